//! How often each distinct query was asked.
//!
//! A thread counts in a small table of its own, which fits its cache, and empties it into `Shared`
//! when it is full, shard by shard. Everything counted is a sum, a least or a greatest, so the order
//! does not matter.
//!
//! All distinct queries are counted exactly up to a limit. Above it, those asked least are dropped,
//! a shard at a time (lossy counting): then a count is too low by at most `Shared::dropped_below`,
//! and how many there are is estimated (`Registers`, 0.8 %).

use std::sync::Mutex;

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::table::Table;

/// Bytes of a query that are kept to show it.
pub const SHOWN: usize = 200;
/// Places of a thread's own table: what it holds fits the second cache of a core.
const LOCAL: usize = 1 << 14;
const SHARD_BITS: u32 = 6;
const SHARDS: usize = 1 << SHARD_BITS;
/// Places of a shard at first.
const FIRST: usize = 256;

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

/// The identity of a query: what was asked of which index.
pub fn identity(index: &[u8], text: &[u8]) -> u64 {
    asked_of(seed_of(index), text)
}

/// The hash of an index, which is what those of its queries begin with.
#[inline]
pub fn seed_of(index: &[u8]) -> u64 {
    xxh3_64_with_seed(index, 1)
}

/// The identity of a query of an index whose `seed_of` is known.
#[inline]
pub fn asked_of(seed: u64, text: &[u8]) -> u64 {
    // No query has 0 in a record.
    xxh3_64_with_seed(text, seed).max(1)
}

/// A thread's own table. The last query waits for its turn while its place comes near.
pub struct Local {
    table: Table,
    /// Its hash, where its text is, and its counts; hash 0: none waits.
    last: (u64, u32, Counts),
    /// The numbers of its entries by shard.
    order: Vec<u32>,
    /// Of one shard: the numbers of entries here, and of those there to which they are added.
    met: Vec<(u32, u32)>,
}

impl Default for Local {
    fn default() -> Local {
        Local {
            table: Table::new(LOCAL),
            last: (0, 0, Counts::default()),
            order: Vec::new(),
            met: Vec::new(),
        }
    }
}

/// How many queries before their turn what is counted of them is brought near.
const AHEAD: usize = 16;

impl Local {
    #[inline]
    pub fn add(&mut self, hash: u64, text: &[u8], counts: &Counts) {
        self.table.near(hash);
        self.add_last();
        self.last = (hash, self.table.keep(text), *counts);
    }

    #[inline]
    fn add_last(&mut self) {
        let (hash, text, counts) = &self.last;
        if *hash != 0 {
            self.table.add_kept(*hash, *text, counts);
        }
    }

    #[inline]
    pub fn is_full(&self) -> bool {
        self.table.is_full()
    }

    /// Everything into the shared table; this one is empty afterwards.
    #[inline(never)]
    pub fn empty_into(&mut self, shared: &Shared) {
        self.add_last();
        self.last.0 = 0;
        let entries = self.table.entries();
        let mut starts = [0; SHARDS + 1];
        for entry in entries {
            starts[shard_of(entry.hash) + 1] += 1;
        }
        for shard in 0..SHARDS {
            starts[shard + 1] += starts[shard];
        }
        let mut next = starts;
        self.order.resize(entries.len(), 0);
        for (number, entry) in entries.iter().enumerate() {
            let at = &mut next[shard_of(entry.hash)];
            self.order[*at] = number as u32;
            *at += 1;
        }
        let (order, met) = (&self.order, &mut self.met);
        let hash_in = |own: &[u32], at: usize| own.get(at).map(|&i| entries[i as usize].hash);
        // The shard whose turn is next is locked too, so that its first places come near. All lock
        // in the same order.
        let begin = |number: usize| {
            let shard = shared.shards.get(number)?.lock().unwrap();
            let own = &order[starts[number]..starts[number + 1]];
            for hash in (0..AHEAD).filter_map(|at| hash_in(own, at)) {
                shard.table.near(hash);
            }
            Some((shard, own))
        };
        let mut following = begin(0);
        for number in 1..=SHARDS {
            let Some((mut shard, own)) = following.take() else {
                break;
            };
            following = begin(number);
            let hash = |at: usize| hash_in(own, at);
            for (at, &i) in own.iter().enumerate() {
                if let Some(next) = hash(at + AHEAD) {
                    shard.table.near(next);
                }
                let entry = &entries[i as usize];
                let text = self.table.text(entry);
                if let Some(number) = shard.meet(entry.hash, text, &entry.counts()) {
                    met.push((i, number));
                }
            }
            for (i, number) in met.drain(..) {
                let entry = &entries[i as usize];
                let counts = entry.counts();
                if !shard.table.add_to(number, entry.hash, &counts) {
                    shard.add(entry.hash, self.table.text(entry), &counts);
                }
            }
            shard.keep_within(shared.limit);
        }
        self.table.clear();
    }
}

fn shard_of(hash: u64) -> usize {
    (hash >> (64 - SHARD_BITS)) as usize
}

struct Shard {
    table: Table,
    registers: Registers,
    dropped_below: u64,
    dropped: u64,
}

impl Shard {
    fn add(&mut self, hash: u64, text: &[u8], counts: &Counts) {
        self.make_room();
        if self.table.add(hash, text, counts) {
            self.registers.add(hash);
        }
    }

    /// `Table::meet`.
    #[inline(always)]
    fn meet(&mut self, hash: u64, text: &[u8], counts: &Counts) -> Option<u32> {
        self.make_room();
        let number = self.table.meet(hash, text, counts);
        if number.is_none() {
            self.registers.add(hash);
        }
        number
    }

    #[inline(always)]
    fn make_room(&mut self) {
        if self.table.is_full() {
            self.table.double();
        }
    }

    fn keep_within(&mut self, limit: usize) {
        if self.table.entries().len() * SHARDS > limit {
            self.drop_least(limit / SHARDS / 4 * 3);
        }
    }

    /// Drops those asked least until at most `keep` are left.
    #[cold]
    fn drop_least(&mut self, keep: usize) {
        let entries = self.table.entries().iter();
        let mut counts: Vec<u64> = entries.map(|entry| entry.counts().n).collect();
        let at = counts.len() - keep.min(counts.len()).max(1);
        let (_, &mut least, _) = counts.select_nth_unstable(at);
        let below = least.max(2); // at least those that were asked once
        let dropped = &mut self.dropped;
        self.table.retain(|entry| {
            let n = entry.counts().n;
            *dropped += if n < below { n } else { 0 };
            n >= below
        });
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

/// What was freed goes back to the system: glibc keeps it, and what is made of the queries comes on top.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it touches nothing that is in use.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// One query, as it is given out.
pub struct Query<'a> {
    pub hash: u64,
    pub text: &'a [u8],
    pub counts: Counts,
}

impl Shared {
    /// Distinct queries that are counted exactly.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// `limit`: distinct queries that are counted exactly.
    pub fn new(limit: usize) -> Shared {
        let shard = || {
            Mutex::new(Shard {
                table: Table::new(FIRST),
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
        shard.add(hash, text, counts);
        shard.keep_within(self.limit);
    }

    /// Every query that is kept, by hash. The memory of each shard is given back when it is through,
    /// so that they and what is made of them are not there at once.
    pub fn into_each(self, mut each: impl FnMut(Query<'_>)) {
        for (number, shard) in self.shards.into_iter().enumerate() {
            if number % 8 == 0 {
                give_back();
            }
            let shard = shard.into_inner().unwrap();
            shard.table.by_hash(|entry, text| {
                each(Query {
                    hash: entry.hash,
                    text,
                    counts: entry.counts(),
                });
            });
        }
        give_back();
    }

    pub fn kept(&self) -> usize {
        let filled = |s: &Mutex<Shard>| s.lock().unwrap().table.entries().len();
        self.shards.iter().map(filled).sum()
    }

    /// Bytes of the texts of all queries that are kept, and some more.
    pub fn text_bytes(&self) -> usize {
        let bytes = |s: &Mutex<Shard>| s.lock().unwrap().table.text_bytes();
        self.shards.iter().map(bytes).sum()
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
        assert_eq!(shared.kept(), 50_000);
        let (below, dropped, registers) = shared.dropped();
        assert_eq!((below, dropped), (0, 0));
        assert!((registers.estimate() / 50_000.0 - 1.0).abs() < 0.03);
        let (mut total, mut last) = (0, 0);
        shared.into_each(|q| {
            total += q.counts.n;
            assert_eq!(q.hash, identity(b"i", q.text));
            assert!(q.hash > last, "they come by hash");
            last = q.hash;
        });
        assert_eq!(total, 600_000);
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
        shared.into_each(|q| top.push(q.counts.n));
        top.sort_unstable_by(|a, b| b.cmp(a));
        assert!(
            top[..20].iter().all(|&n| n <= 5_000 && n + below >= 5_000),
            "{top:?}"
        );
    }
}
