//! Groups that most entries are counted in, so that their counts of times stay in the cache.
//!
//! A log of whole milliseconds has some hundred different times, each in a bucket far from the
//! others: with a hundred indexes their counts are as many lines of the cache, and more than it
//! has. So the buckets that are met first, and most often, are numbered, and counted side by side.

use crate::entry::Entry;
use crate::histogram::BUCKETS;
use crate::table::prefetch;
use crate::tally::Group;

/// Buckets that are numbered; what comes later is counted in the histogram itself.
const MOST: usize = 1024;

/// The numbers of buckets.
pub struct Often {
    /// By bucket its number from 1; 0: it was not met; `MOST` + 1: it came too late for a number.
    numbers: Vec<u16>,
    buckets: Vec<u32>,
}

impl Default for Often {
    fn default() -> Often {
        Often {
            numbers: vec![0; BUCKETS],
            buckets: Vec::new(),
        }
    }
}

impl Often {
    /// The number of a bucket; `MOST` where it has none.
    #[inline]
    pub fn number(&mut self, bucket: usize) -> usize {
        match self.numbers[bucket] {
            0 => self.learn(bucket),
            number => usize::from(number) - 1,
        }
    }

    #[inline(never)]
    fn learn(&mut self, bucket: usize) -> usize {
        let number = self.buckets.len();
        if number < MOST {
            self.buckets.push(bucket as u32);
        }
        self.numbers[bucket] = number as u16 + 1;
        number
    }
}

/// A group while it is being counted.
#[derive(Default)]
pub struct Busy {
    group: Group,
    /// By number of the bucket; as many as were needed.
    counts: Vec<u32>,
}

impl Busy {
    /// Counts an entry, but for its time, which is to be added later: its place comes near meanwhile.
    #[inline]
    pub fn count(&mut self, entry: &Entry<'_>, number: usize) {
        if let Some(count) = self.counts.get(number) {
            prefetch(count);
        }
        self.group.count(entry);
    }

    /// `bucket`: that of the time of an entry; `number`: its number.
    #[inline]
    pub fn add(&mut self, bucket: usize, number: usize) {
        match self.counts.get_mut(number) {
            Some(count) if *count < u32::MAX => *count += 1,
            _ => self.seldom(bucket, number),
        }
    }

    #[inline(never)]
    fn seldom(&mut self, bucket: usize, number: usize) {
        if number < MOST && number >= self.counts.len() {
            self.counts.resize((number + 1).next_multiple_of(64), 0);
            self.counts[number] = 1;
        } else {
            self.group.times.add_bucket(bucket, 1);
        }
    }

    /// The group with all that was counted.
    pub fn settled(mut self, often: &Often) -> Group {
        for (&bucket, &count) in often.buckets.iter().zip(&self.counts) {
            if count > 0 {
                self.group
                    .times
                    .add_bucket(bucket as usize, u64::from(count));
            }
        }
        self.group
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::UNKNOWN;
    use crate::histogram::bucket;

    #[test]
    fn times_are_counted_alike_with_and_without_a_number() {
        let (mut often, mut busy, mut plain) =
            (Often::default(), Busy::default(), Group::default());
        for i in 0..100_000u64 {
            // More buckets than have a number.
            let entry = Entry {
                ns: i % 7 * 1_000_000 + i % 3000 * 1_000_000_000,
                ..Entry::default()
            };
            let at = bucket(entry.ns);
            let number = often.number(at);
            busy.count(&entry, number);
            busy.add(at, number);
            plain.add(&entry);
        }
        busy.count(&Entry::default(), often.number(bucket(UNKNOWN)));
        plain.add(&Entry::default());
        assert!(often.buckets.len() == MOST);
        let busy = busy.settled(&often);
        assert_eq!(busy.numbers(), plain.numbers());
        assert!(busy.times.filled().eq(plain.times.filled()));
    }
}
