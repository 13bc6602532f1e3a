//! How often each distinct query was asked.
//!
//! A thread counts in a small table of its own, which fits its cache, and empties it into `Shared`
//! when it is full. Everything counted is a sum, a least or a greatest, so the order does not
//! matter.
//!
//! All distinct queries are counted exactly up to a limit. Above it, those asked least are dropped,
//! a shard at a time (lossy counting): then a count is too low by at most `Shared::dropped_below`,
//! and how many there are is estimated (`Registers`, 0.8 %).

use std::sync::Mutex;

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Bytes of a query that are kept to show it.
pub const SHOWN: usize = 200;
const LOCAL: usize = 1 << 15;
const SHARDS: usize = 64;

/// What is counted of a query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub n: u64,
    pub sum_ns: u64,
    pub max_ns: u64,
    pub zero: u32,
    pub errors: u32,
    /// Minutes since 1970 when it was first asked; u32::MAX where no time is known.
    pub first: u32,
}

impl Counts {
    fn add(&mut self, other: &Counts) {
        self.n += other.n;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.zero = self.zero.saturating_add(other.zero);
        self.errors = self.errors.saturating_add(other.errors);
        self.first = self.first.min(other.first);
    }
}

/// The identity of a query: what was asked of which index.
#[inline]
pub fn identity(index: &[u8], text: &[u8]) -> u64 {
    let seed = xxh3_64_with_seed(index, 1);
    // 0 marks a free slot.
    xxh3_64_with_seed(text, seed).max(1)
}

#[derive(Clone, Copy, Default)]
struct Slot {
    hash: u64,
    text: u64, // offset << 8 | length
    counts: Counts,
}

#[derive(Default)]
struct Table {
    slots: Vec<Slot>,
    filled: usize,
    arena: Vec<u8>,
}

impl Table {
    fn with_slots(size: usize) -> Table {
        Table {
            slots: vec![Slot::default(); size],
            filled: 0,
            arena: Vec::new(),
        }
    }

    /// Adds; true where the query was new.
    #[inline]
    fn add(&mut self, hash: u64, text: &[u8], counts: &Counts) -> bool {
        let mask = self.slots.len() - 1;
        // The low bits: the shard has taken the high ones.
        let mut at = hash as usize & mask;
        loop {
            let slot = &mut self.slots[at];
            if slot.hash == hash {
                slot.counts.add(counts);
                return false;
            }
            if slot.hash == 0 {
                let kept = &text[..text.len().min(SHOWN)];
                *slot = Slot {
                    hash,
                    text: (self.arena.len() as u64) << 8 | kept.len() as u64,
                    counts: *counts,
                };
                self.arena.extend_from_slice(kept);
                self.filled += 1;
                return true;
            }
            at = (at + 1) & mask;
        }
    }

    /// Brings the slot of a hash near; the next to be added will be looked for there.
    #[inline]
    fn near(&self, hash: u64) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let at = hash as usize & (self.slots.len() - 1);
            // SAFETY: the place is one of the slots; a prefetch changes nothing that can be seen.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(self.slots.as_ptr().add(at).cast::<i8>()) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = hash;
    }

    fn text(&self, slot: &Slot) -> &[u8] {
        let at = (slot.text >> 8) as usize;
        &self.arena[at..at + (slot.text & 255) as usize]
    }

    fn resize(&mut self, size: usize) {
        let old = std::mem::replace(&mut self.slots, vec![Slot::default(); size]);
        for slot in old.into_iter().filter(|slot| slot.hash != 0) {
            let mut at = slot.hash as usize & (size - 1);
            while self.slots[at].hash != 0 {
                at = (at + 1) & (size - 1);
            }
            self.slots[at] = slot;
        }
    }

    fn clear(&mut self) {
        self.slots.fill(Slot::default());
        self.filled = 0;
        self.arena.clear();
    }
}

/// A thread's own table. The last query waits, so that its slot comes near in the meantime.
pub struct Local {
    table: Table,
    last: (u64, Counts),
    text: Vec<u8>,
}

impl Default for Local {
    fn default() -> Local {
        Local {
            table: Table::with_slots(LOCAL),
            last: (0, Counts::default()),
            text: Vec::with_capacity(SHOWN),
        }
    }
}

impl Local {
    #[inline]
    pub fn add(&mut self, hash: u64, text: &[u8], counts: &Counts) {
        self.table.near(hash);
        self.add_last();
        self.last = (hash, *counts);
        self.text.clear();
        self.text.extend_from_slice(&text[..text.len().min(SHOWN)]);
    }

    #[inline]
    fn add_last(&mut self) {
        let (hash, counts) = self.last;
        if hash != 0 {
            self.table.add(hash, &self.text, &counts);
        }
    }

    #[inline]
    pub fn is_full(&self) -> bool {
        self.table.filled * 4 > LOCAL * 3
    }

    /// Everything into the shared table; this one is empty afterwards.
    pub fn empty_into(&mut self, shared: &Shared) {
        self.add_last();
        self.last.0 = 0;
        let mut order: [Vec<u32>; SHARDS] = std::array::from_fn(|_| Vec::new());
        for (i, slot) in self.table.slots.iter().enumerate() {
            if slot.hash != 0 {
                order[shard_of(slot.hash)].push(i as u32);
            }
        }
        for (numbers, shard) in order.iter().zip(&shared.shards) {
            if numbers.is_empty() {
                continue;
            }
            let mut shard = shard.lock().unwrap();
            for (k, &i) in numbers.iter().enumerate() {
                if let Some(&ahead) = numbers.get(k + 6) {
                    shard.table.near(self.table.slots[ahead as usize].hash);
                }
                let slot = self.table.slots[i as usize];
                shard.add(
                    slot.hash,
                    self.table.text(&slot),
                    &slot.counts,
                    shared.limit,
                );
            }
        }
        self.table.clear();
    }
}

fn shard_of(hash: u64) -> usize {
    (hash >> 58) as usize
}

struct Shard {
    table: Table,
    registers: Registers,
    dropped_below: u64,
    dropped: u64,
}

impl Shard {
    fn add(&mut self, hash: u64, text: &[u8], counts: &Counts, limit: usize) {
        if self.table.filled * 8 >= self.table.slots.len() * 7 {
            let size = (self.table.slots.len() * 2).max(256);
            self.table.resize(size);
        }
        if self.table.add(hash, text, counts) {
            self.registers.add(hash);
            if self.table.filled * SHARDS > limit {
                self.drop_least(limit / SHARDS / 4 * 3);
            }
        }
    }

    /// Drops those asked least until at most `keep` are left.
    #[cold]
    fn drop_least(&mut self, keep: usize) {
        let slots = self.table.slots.iter().filter(|s| s.hash != 0);
        let mut counts: Vec<u64> = slots.map(|s| s.counts.n).collect();
        let at = counts.len() - keep.min(counts.len()).max(1);
        let (_, &mut least, _) = counts.select_nth_unstable(at);
        let below = least.max(2); // at least those that were asked once
        let old = std::mem::take(&mut self.table);
        self.table = Table::with_slots(old.slots.len());
        for slot in old.slots.iter().filter(|s| s.hash != 0) {
            if slot.counts.n >= below {
                self.table.add(slot.hash, old.text(slot), &slot.counts);
            } else {
                self.dropped += slot.counts.n;
            }
        }
        self.dropped_below += below - 1;
    }
}

/// How many distinct hashes there were: HyperLogLog of 16,384 registers.
#[derive(Clone)]
pub struct Registers(pub Vec<u8>);

impl Default for Registers {
    fn default() -> Registers {
        Registers(vec![0; 1 << 14])
    }
}

impl Registers {
    fn add(&mut self, hash: u64) {
        let rank = ((hash << 14) | (1 << 13)).leading_zeros() as u8 + 1;
        let register = &mut self.0[(hash >> 50) as usize];
        *register = rank.max(*register);
    }

    pub fn merge(&mut self, other: &[u8]) {
        for (own, &other) in self.0.iter_mut().zip(other) {
            *own = other.max(*own);
        }
    }

    pub fn estimate(&self) -> f64 {
        let m = self.0.len() as f64;
        let sum: f64 = self.0.iter().map(|&r| (-f64::from(r)).exp2()).sum();
        let raw = 0.7213 / (1.0 + 1.079 / m) * m * m / sum;
        let empty = self.0.iter().filter(|&&r| r == 0).count() as f64;
        if raw < 2.5 * m && empty > 0.0 {
            return m * (m / empty).ln();
        }
        raw
    }
}

/// The table of all threads, in shards by hash.
pub struct Shared {
    shards: Vec<Mutex<Shard>>,
    limit: usize,
}

/// One query, as it is given out.
pub struct Query<'a> {
    pub hash: u64,
    pub text: &'a [u8],
    pub counts: Counts,
}

impl Shared {
    /// `limit`: distinct queries that are counted exactly.
    pub fn new(limit: usize) -> Shared {
        let shard = || {
            Mutex::new(Shard {
                table: Table::with_slots(256),
                registers: Registers::default(),
                dropped_below: 0,
                dropped: 0,
            })
        };
        Shared {
            shards: (0..SHARDS).map(|_| shard()).collect(),
            limit: limit.max(SHARDS * 16),
        }
    }

    pub fn add(&self, hash: u64, text: &[u8], counts: &Counts) {
        let mut shard = self.shards[shard_of(hash)].lock().unwrap();
        shard.add(hash, text, counts, self.limit);
    }

    /// Every query that is kept, shard by shard and by hash within it.
    pub fn for_each(&self, mut each: impl FnMut(Query<'_>)) {
        for shard in &self.shards {
            let shard = shard.lock().unwrap();
            let filled = shard.table.slots.iter().filter(|s| s.hash != 0);
            let mut order: Vec<&Slot> = filled.collect();
            order.sort_unstable_by_key(|s| s.hash);
            for slot in order {
                each(Query {
                    hash: slot.hash,
                    text: shard.table.text(slot),
                    counts: slot.counts,
                });
            }
        }
    }

    pub fn kept(&self) -> usize {
        let filled = |s: &Mutex<Shard>| s.lock().unwrap().table.filled;
        self.shards.iter().map(filled).sum()
    }

    /// By how much a count may be too low, how many requests were of queries that were dropped, and
    /// the registers that estimate how many distinct ones there were.
    pub fn dropped(&self) -> (u64, u64, Registers) {
        let (mut below, mut dropped, mut registers) = (0, 0, Registers::default());
        for shard in &self.shards {
            let shard = shard.lock().unwrap();
            below = below.max(shard.dropped_below);
            dropped += shard.dropped;
            registers.merge(&shard.registers.0);
        }
        (below, dropped, registers)
    }

    /// What an earlier reading dropped, so that it holds for both together.
    pub fn add_dropped(&self, below: u64, dropped: u64, registers: &[u8]) {
        for (i, shard) in self.shards.iter().enumerate() {
            let mut shard = shard.lock().unwrap();
            shard.dropped_below += below;
            if i == 0 {
                shard.dropped += dropped;
                shard.registers.merge(registers);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(n: u64) -> Counts {
        Counts {
            n,
            first: 7,
            ..Counts::default()
        }
    }

    #[test]
    fn counts_are_exact_whatever_the_order_and_the_threads() {
        let shared = Shared::new(1 << 20);
        std::thread::scope(|scope| {
            for thread in 0..3u64 {
                let shared = &shared;
                scope.spawn(move || {
                    let mut local = Local::default();
                    for i in 0..200_000u64 {
                        let text = (i * (thread + 1) % 50_000).to_string();
                        local.add(identity(b"i", text.as_bytes()), text.as_bytes(), &one(1));
                        if local.is_full() {
                            local.empty_into(shared);
                        }
                    }
                    local.empty_into(shared);
                });
            }
        });
        let mut total = 0;
        shared.for_each(|q| {
            total += q.counts.n;
            assert_eq!(q.hash, identity(b"i", q.text));
        });
        assert_eq!((total, shared.kept()), (600_000, 50_000));
        let (below, dropped, registers) = shared.dropped();
        assert_eq!((below, dropped), (0, 0));
        assert!((registers.estimate() / 50_000.0 - 1.0).abs() < 0.03);
    }

    #[test]
    fn above_the_limit_the_often_asked_stay_and_the_error_is_said() {
        let shared = Shared::new(10_000);
        for i in 0..300_000u64 {
            // One in three is one of twenty.
            let text = if i % 3 == 0 { i / 3 % 20 } else { 100 + i };
            let text = text.to_string();
            shared.add(identity(b"", text.as_bytes()), text.as_bytes(), &one(1));
        }
        let (below, dropped, registers) = shared.dropped();
        assert!(below > 0 && dropped > 0 && shared.kept() <= 10_000);
        assert!((registers.estimate() / 200_020.0 - 1.0).abs() < 0.03);
        let mut top = Vec::new();
        shared.for_each(|q| top.push(q.counts.n));
        top.sort_unstable_by(|a, b| b.cmp(a));
        assert!(
            top[..20].iter().all(|&n| n <= 5_000 && n + below >= 5_000),
            "{top:?}"
        );
    }
}
