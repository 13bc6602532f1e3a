//! Numbers drawn by lot, the same ones for the same seed on every machine.

/// SplitMix64: one multiplication more than a counter, and any state is a good one.
pub struct Random(u64);

impl Random {
    /// The numbers of one input of one sequence.
    pub fn of(sequence: u64, input: u64) -> Random {
        let mut first = Random(sequence);
        Random(first.next() ^ input.wrapping_mul(0xd6e8_feb8_6659_fd93))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// 0 to `bound` - 1; of nothing, 0.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }

    pub fn byte(&mut self) -> u8 {
        self.next() as u8
    }

    /// Once in so many times.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub fn of_these<'a, T>(&mut self, these: &'a [T]) -> &'a T {
        &these[self.below(these.len())]
    }

    /// Some places at which `bytes` bytes are cut, in order; perhaps none, perhaps all.
    pub fn cuts(&mut self, bytes: usize, into: &mut Vec<usize>) {
        into.clear();
        if self.once_in(16) {
            into.extend(1..bytes);
            return;
        }
        for _ in 0..self.below(5) {
            into.push(self.below(bytes));
        }
        into.sort_unstable();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_drawn_alike_whatever_was_drawn_before() {
        let drawn = |input| {
            let mut random = Random::of(1, input);
            [random.below(1000), random.below(1000), random.below(1000)]
        };
        assert_eq!(drawn(7), drawn(7));
        assert_ne!(drawn(7), drawn(8));
        assert_eq!(Random::of(1, 1).below(0), 0);
    }

    #[test]
    fn cuts_are_in_order_and_within_the_bytes() {
        let mut random = Random::of(1, 1);
        let mut cuts = Vec::new();
        for _ in 0..1000 {
            random.cuts(20, &mut cuts);
            assert!(cuts.is_sorted() && cuts.iter().all(|&cut| cut < 20));
        }
    }
}
