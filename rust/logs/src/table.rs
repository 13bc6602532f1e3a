//! A table of queries: counted by hash, kept in the order in which they were met.
//!
//! It grows far beyond any cache, and most queries are asked once. So what is counted of a query is
//! put at the end of a list, and only eight bytes of it where its hash says: each such place costs a
//! miss of the cache. `near` begins it before it is waited for, and `meet` that of what is counted.

use crate::queries::{Counts, SHOWN};

/// One query and what is counted of it (`Counts`, without the bytes between its numbers).
#[derive(Clone, Copy)]
pub struct Entry {
    pub hash: u64,
    n: u64,
    sum_ns: u64,
    max_ns: u64,
    zero: u32,
    errors: u32,
    first: u32,
    /// Where its text is in the arena.
    text: u32,
}

impl Entry {
    pub fn counts(&self) -> Counts {
        Counts {
            n: self.n,
            sum_ns: self.sum_ns,
            max_ns: self.max_ns,
            zero: self.zero,
            errors: self.errors,
            first: self.first,
        }
    }

    #[inline]
    fn add(&mut self, other: &Counts) {
        self.n += other.n;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.zero = self.zero.saturating_add(other.zero);
        self.errors = self.errors.saturating_add(other.errors);
        self.first = self.first.min(other.first);
    }
}

pub struct Table {
    /// Open addressing by the low bits of the hash; 2^n places. 0: free. Else the low half of the
    /// hash << 32 | the number of the entry, from 1.
    places: Vec<u64>,
    entries: Vec<Entry>,
    /// Texts, each after a byte that says how long it is; the first is empty.
    arena: Vec<u8>,
}

impl Table {
    /// `places`: a power of two.
    pub fn new(places: usize) -> Table {
        Table {
            places: vec![0; places],
            entries: Vec::new(),
            arena: vec![0],
        }
    }

    /// In the order in which they were met.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Bytes of all texts, and one for each.
    pub fn text_bytes(&self) -> usize {
        self.arena.len()
    }

    pub fn text(&self, entry: &Entry) -> &[u8] {
        text_in(&self.arena, entry)
    }

    /// Whether so many of the places are taken that a search is long.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.entries.len() * 2 >= self.places.len()
    }

    /// Adds; true where the query was new. There must be a free place.
    #[inline]
    pub fn add(&mut self, hash: u64, text: &[u8], counts: &Counts) -> bool {
        let Some(at) = self.seek(hash, counts) else {
            return false;
        };
        let text = self.keep(text);
        self.put(at, hash, text, counts);
        true
    }

    /// The same for a text that was kept last, which is forgotten where the query has one.
    #[inline]
    pub fn add_kept(&mut self, hash: u64, text: u32, counts: &Counts) {
        match self.seek(hash, counts) {
            Some(at) => self.put(at, hash, text, counts),
            None if text > 0 => self.arena.truncate(text as usize),
            None => {}
        }
    }

    /// Adds to the entry of a hash; where there is none, gives the free place for it.
    #[inline(always)]
    fn seek(&mut self, hash: u64, counts: &Counts) -> Option<usize> {
        let mut from = hash as usize;
        loop {
            let (at, number) = self.probe(hash, from);
            let Some(number) = number else {
                return Some(at);
            };
            if self.add_to(number, hash, counts) {
                return None;
            }
            from = at + 1;
        }
    }

    /// The first place from `from` on that is free or has the low half of a hash, and then the number
    /// of its entry.
    #[inline(always)]
    fn probe(&self, hash: u64, from: usize) -> (usize, Option<u32>) {
        let places = &self.places[..];
        let mask = places.len() - 1;
        let mut at = from & mask;
        loop {
            let place = places[at];
            if place == 0 {
                return (at, None);
            }
            if place >> 32 == hash & LOW {
                return (at, Some((place & LOW) as u32 - 1));
            }
            at = (at + 1) & mask;
        }
    }

    /// Puts in a query that was never met. Of another it brings near what is counted of it and gives
    /// its number, for `add_to`; hardly ever that is the number of one with the same low half.
    #[inline(always)]
    pub fn meet(&mut self, hash: u64, text: &[u8], counts: &Counts) -> Option<u32> {
        let (at, number) = self.probe(hash, hash as usize);
        let Some(number) = number else {
            let text = self.keep(text);
            self.put(at, hash, text, counts);
            return None;
        };
        let entry = &self.entries[number as usize];
        // It may stand in two lines of the cache.
        prefetch(&entry.hash);
        prefetch(&entry.text);
        Some(number)
    }

    /// Adds to an entry; false where it is another query's.
    #[inline(always)]
    pub fn add_to(&mut self, number: u32, hash: u64, counts: &Counts) -> bool {
        let entry = &mut self.entries[number as usize];
        let is_its = entry.hash == hash;
        if is_its {
            entry.add(counts);
        }
        is_its
    }

    #[inline(always)]
    fn put(&mut self, at: usize, hash: u64, text: u32, counts: &Counts) {
        self.places[at] = hash << 32 | (self.entries.len() as u64 + 1);
        self.entries.push(Entry {
            hash,
            n: counts.n,
            sum_ns: counts.sum_ns,
            max_ns: counts.max_ns,
            zero: counts.zero,
            errors: counts.errors,
            first: counts.first,
            text,
        });
    }

    /// Where a text is kept. Those beyond 4 GB are not.
    #[inline]
    pub fn keep(&mut self, text: &[u8]) -> u32 {
        let Ok(at) = u32::try_from(self.arena.len()) else {
            return 0;
        };
        let kept = &text[..text.len().min(SHOWN)];
        self.arena.push(kept.len() as u8);
        self.arena.extend_from_slice(kept);
        at
    }

    /// Brings the place of a hash near; something will look there soon.
    #[inline]
    pub fn near(&self, hash: u64) {
        prefetch(&self.places[hash as usize & (self.places.len() - 1)]);
    }

    /// Twice as many places.
    #[inline(never)]
    pub fn double(&mut self) {
        let mut places = vec![0; self.places.len() * 2];
        let mask = places.len() - 1;
        for &place in self.places.iter().filter(|&&place| place != 0) {
            let mut at = (place >> 32) as usize & mask;
            while places[at] != 0 {
                at = (at + 1) & mask;
            }
            places[at] = place;
        }
        self.places = places;
    }

    /// Drops the queries of which `keep` is false, in the memory that there is: new memory for the rest,
    /// each time that some are dropped, would leave holes that add up.
    pub fn retain(&mut self, mut keep: impl FnMut(&Entry) -> bool) {
        let mut end = 1;
        let arena = &mut self.arena;
        self.entries.retain_mut(|entry| {
            if !keep(entry) {
                return false;
            }
            // Texts stand in the order of their entries, so none is written over that is wanted yet.
            let at = entry.text as usize;
            if at > 0 {
                let length = 1 + arena[at] as usize;
                arena.copy_within(at..at + length, end);
                entry.text = end as u32;
                end += length;
            }
            true
        });
        arena.truncate(end);
        self.places.fill(0);
        let mask = self.places.len() - 1;
        for (number, entry) in self.entries.iter().enumerate() {
            let mut at = entry.hash as usize & mask;
            while self.places[at] != 0 {
                at = (at + 1) & mask;
            }
            self.places[at] = entry.hash << 32 | (number as u64 + 1);
        }
    }

    pub fn clear(&mut self) {
        self.places.fill(0);
        self.entries.clear();
        self.arena.truncate(1);
    }

    /// All queries by their hash.
    pub fn by_hash(mut self, mut each: impl FnMut(&Entry, &[u8])) {
        self.entries.sort_unstable_by_key(|entry| entry.hash);
        for entry in &self.entries {
            each(entry, text_in(&self.arena, entry));
        }
    }
}

const LOW: u64 = 0xffff_ffff;

#[inline]
fn text_in<'a>(arena: &'a [u8], entry: &Entry) -> &'a [u8] {
    let at = entry.text as usize;
    &arena[at + 1..at + 1 + arena[at] as usize]
}

/// Has the cache get what will be needed soon.
#[inline(always)]
pub fn prefetch<T>(what: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: it is there; a prefetch changes nothing that can be seen.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(what).cast::<i8>()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = what;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one() -> Counts {
        Counts {
            n: 1,
            first: 3,
            ..Counts::default()
        }
    }

    #[test]
    fn hashes_that_share_their_low_half_are_told_apart() {
        let mut table = Table::new(8);
        for high in 1..=20u64 {
            if table.is_full() {
                table.double();
            }
            let text = high.to_string();
            assert!(table.add(high << 32 | 5, text.as_bytes(), &one()));
            assert!(!table.add(high << 32 | 5, b"other", &one()));
            table.near(high << 32 | 5);
        }
        let mut found = Vec::new();
        table
            .by_hash(|entry, text| found.push((entry.hash >> 32, entry.counts().n, text.to_vec())));
        let wanted: Vec<_> = (1..=20u64)
            .map(|h| (h, 2, h.to_string().into_bytes()))
            .collect();
        assert_eq!(found, wanted);
    }

    #[test]
    fn who_is_met_again_is_told_from_who_shares_its_low_half() {
        let mut table = Table::new(8);
        let (first, other) = (1 << 32 | 5, 2 << 32 | 5);
        assert_eq!(table.meet(first, b"first", &one()), None);
        assert_eq!(table.meet(first, b"first", &one()), Some(0));
        assert!(table.add_to(0, first, &one()));
        assert_eq!(table.meet(other, b"other", &one()), Some(0));
        assert!(!table.add_to(0, other, &one()));
        assert!(table.add(other, b"other", &one()));
        let counted: Vec<_> = table.entries().iter().map(|e| e.counts().n).collect();
        assert_eq!(counted, [2, 1]);
        assert_eq!(table.text(&table.entries()[1]), b"other");
    }

    #[test]
    fn what_is_kept_keeps_its_text_and_is_found_and_takes_no_more_memory() {
        let mut table = Table::new(1024);
        for hash in 1..=600u64 {
            let text = "x".repeat((hash % 90) as usize);
            table.add((hash << 32) | (hash % 7), text.as_bytes(), &one());
        }
        let room = (table.entries.capacity(), table.arena.capacity());
        table.retain(|entry| (entry.hash >> 32).is_multiple_of(3));
        assert_eq!((table.entries.capacity(), table.arena.capacity()), room);
        assert_eq!(table.entries().len(), 200);
        for hash in 1..=600u64 {
            let is_new = table.add((hash << 32) | (hash % 7), b"new", &one());
            assert_eq!(is_new, hash % 3 > 0, "{hash}");
        }
        for entry in table.entries() {
            let number = entry.hash >> 32;
            let kept = number.is_multiple_of(3);
            let length = if kept { (number % 90) as usize } else { 3 };
            assert_eq!(table.text(entry).len(), length, "{number}");
            assert_eq!(entry.counts().n, if kept { 2 } else { 1 });
        }
    }

    #[test]
    fn a_text_is_cut_where_it_is_no_longer_shown_and_may_be_empty() {
        let mut table = Table::new(8);
        table.add(1, &[b'x'; 1000], &one());
        table.add(2, b"", &one());
        let lengths: Vec<usize> = table
            .entries()
            .iter()
            .map(|e| table.text(e).len())
            .collect();
        assert_eq!(lengths, [SHOWN, 0]);
        table.clear();
        assert!(table.entries().is_empty() && table.add(1, b"a", &one()));
    }
}
