//! Counts of times by size, exact to 0.1 % over all of u64, which merge by adding.
//!
//! A value of up to 2047 ns has a bucket of its own; above, each doubling has 1,024 buckets, so a
//! bucket is at most 1/1024 of its value wide, and its middle at most 0.05 % away from what is in
//! it. Buckets stand in blocks of 128 that are made when first used: the values of a log of whole
//! milliseconds are few.

const BLOCK: usize = 128;
/// How many there are; the greatest is that of u64::MAX.
pub const BUCKETS: usize = 53 * 1024 + 2048;

#[derive(Clone, Default)]
pub struct Histogram {
    /// Where the block of 128 buckets is in `counts`, plus one; 0: it was never used.
    places: Vec<u32>,
    counts: Vec<u64>,
}

/// The bucket of a value.
#[inline]
pub fn bucket(value: u64) -> usize {
    let shift = (53 - value.leading_zeros().min(53)) as usize;
    (shift << 10) + (value >> shift) as usize
}

/// The least value of a bucket, and how many values it has.
pub fn span(bucket: usize) -> (u64, u64) {
    if bucket < 2048 {
        return (bucket as u64, 1);
    }
    let shift = (bucket >> 10) - 1;
    (((bucket - (shift << 10)) as u64) << shift, 1 << shift)
}

impl Histogram {
    #[inline]
    pub fn add(&mut self, value: u64, times: u64) {
        self.add_bucket(bucket(value), times);
    }

    #[inline]
    pub fn add_bucket(&mut self, bucket: usize, times: u64) {
        let block = bucket / BLOCK;
        let place = match self.places.get(block) {
            Some(&place) if place > 0 => place as usize - 1,
            _ => self.new_block(block),
        };
        self.counts[place * BLOCK + bucket % BLOCK] += times;
    }

    #[cold]
    fn new_block(&mut self, block: usize) -> usize {
        if self.places.is_empty() {
            self.places = vec![0; BUCKETS.div_ceil(BLOCK)];
        }
        let place = self.counts.len() / BLOCK;
        self.counts.resize(self.counts.len() + BLOCK, 0);
        self.places[block] = place as u32 + 1;
        place
    }

    pub fn merge(&mut self, other: &Histogram) {
        for (bucket, count) in other.filled() {
            self.add_bucket(bucket, count);
        }
    }

    /// The buckets that are not empty, ascending, with their counts.
    pub fn filled(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.places
            .iter()
            .enumerate()
            .filter(|&(_, &place)| place > 0)
            .flat_map(move |(block, &place)| {
                let at = (place as usize - 1) * BLOCK;
                self.counts[at..at + BLOCK]
                    .iter()
                    .enumerate()
                    .filter(|&(_, &count)| count > 0)
                    .map(move |(i, &count)| (block * BLOCK + i, count))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_is_within_a_thousandth_of_its_bucket() {
        let mut value = 1u64;
        while value < u64::MAX / 3 {
            for v in [value - 1, value, value + 1, value + value / 3] {
                let (low, width) = span(bucket(v));
                assert!(low <= v && v - low < width, "{v}: {low} {width}");
                assert!(width == 1 || width * 1024 <= low, "{v}");
            }
            value = value * 2 + value / 7;
        }
        let (low, width) = span(bucket(u64::MAX));
        assert_eq!(low.wrapping_add(width - 1), u64::MAX);
    }

    #[test]
    fn buckets_rise_with_values_and_none_is_left_out() {
        for b in 1..BUCKETS {
            let (low, width) = span(b - 1);
            if let Some(next) = low.checked_add(width) {
                assert_eq!(bucket(next), b);
            }
        }
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_values_within_a_thousandth() {
        let mut values: Vec<u64> = Vec::new();
        let mut state = 1u64;
        for _ in 0..200_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            // Seven decades, 1 µs to 10 s.
            let unit = (state >> 11) as f64 / (1u64 << 53) as f64;
            values.push((1000.0 * 10f64.powf(7.0 * unit)) as u64);
        }
        let (mut a, mut b) = (Histogram::default(), Histogram::default());
        for (i, &v) in values.iter().enumerate() {
            if i % 3 == 0 { &mut a } else { &mut b }.add(v, 1);
        }
        a.merge(&b);
        values.sort_unstable();
        for q in [0.001, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 0.9999] {
            let rank = (q * values.len() as f64) as u64;
            let mut seen = 0;
            let found = a
                .filled()
                .find(|&(_, count)| {
                    seen += count;
                    seen > rank
                })
                .map(|(bucket, _)| span(bucket))
                .map(|(low, width)| low as f64 + (width - 1) as f64 / 2.0)
                .unwrap();
            let truth = values[rank as usize] as f64;
            assert!((found / truth - 1.0).abs() < 0.001, "{q}: {found} {truth}");
        }
    }
}
