//! What inputs are made from: real bytes, and pieces that matter to their reader.

use crate::random::Random;

/// Bytes that lengths, counts and kinds turn on in most protocols.
const TELLING: [u8; 14] = [
    0, 1, 2, 8, 10, 13, b' ', b'0', b'9', 0x7f, 0x80, 0xfb, 0xfe, 0xff,
];

pub struct Seeds {
    each: Vec<Vec<u8>>,
    /// Put in between.
    pieces: Vec<Vec<u8>>,
    /// Of a longer seed a stretch is taken.
    longest: usize,
    /// The most changes that are made to one.
    changes: usize,
}

impl Seeds {
    pub fn new(each: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Seeds {
        let each: Vec<Vec<u8>> = each.into_iter().map(Into::into).collect();
        assert!(!each.is_empty(), "there are seeds");
        Seeds {
            each,
            pieces: Vec::new(),
            longest: usize::MAX,
            changes: 5,
        }
    }

    pub fn with_pieces(self, pieces: &[&[u8]]) -> Seeds {
        Seeds {
            pieces: pieces.iter().map(|piece| piece.to_vec()).collect(),
            ..self
        }
    }

    pub fn in_stretches_of(self, longest: usize) -> Seeds {
        Seeds { longest, ..self }
    }

    pub fn with_changes(self, changes: usize) -> Seeds {
        Seeds { changes, ..self }
    }

    /// A seed, or a stretch of one.
    fn part(&self, random: &mut Random) -> &[u8] {
        let seed = random.of_these(&self.each);
        if seed.len() <= self.longest {
            return seed;
        }
        // From where a line begins, more often than not.
        let mut from = random.below(seed.len());
        if !random.once_in(3) {
            from = seed[..from]
                .iter()
                .rposition(|&byte| byte == b'\n')
                .map_or(0, |at| at + 1);
        }
        &seed[from..(from + 1 + random.below(self.longest)).min(seed.len())]
    }

    /// One of the seeds as it is.
    pub fn whole(&self, random: &mut Random, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(self.part(random));
    }

    /// One of them with some of its bytes changed, cut, doubled, removed, or taken from another.
    pub fn spoiled(&self, random: &mut Random, out: &mut Vec<u8>) {
        self.whole(random, out);
        for _ in 0..random.below(self.changes + 1) {
            self.change(random, out);
        }
    }

    fn change(&self, random: &mut Random, out: &mut Vec<u8>) {
        if out.is_empty() {
            out.push(random.byte());
        }
        let at = random.below(out.len());
        match random.below(9) {
            0 => out[at] = random.byte(),
            1 => out[at] = *random.of_these(&TELLING),
            2 => out[at] ^= 1 << random.below(8),
            3 => out[at] = out[at].wrapping_add(if random.once_in(2) { 1 } else { 0xff }),
            4 if random.once_in(3) => out.truncate(at),
            4 | 5 => {
                let to = at + random.below((out.len() - at).min(64) + 1);
                out.drain(at..to);
            }
            6 => {
                let to = at + random.below((out.len() - at).min(200) + 1);
                out.extend_from_within(at..to);
                // Where it was copied from, as if it had been put in there.
                let copied = to - at;
                out[at..].rotate_right(copied);
            }
            7 if !self.pieces.is_empty() => {
                let piece = random.of_these(&self.pieces);
                out.splice(at..at, piece.iter().copied());
            }
            _ => {
                let other = self.part(random);
                let from = random.below(other.len());
                out.truncate(at);
                out.extend_from_slice(&other[from..]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_inputs_are_as_they_were_and_most_are_not() {
        let seeds = Seeds::new(["a real reply", "another"]).with_pieces(&[b"{"]);
        let mut out = Vec::new();
        let mut whole = 0;
        for input in 0..1000 {
            seeds.spoiled(&mut Random::of(1, input), &mut out);
            whole += usize::from(out == b"a real reply" || out == b"another");
        }
        assert!((100..500).contains(&whole), "{whole} of 1000");
    }

    #[test]
    fn of_a_long_seed_a_stretch_is_taken() {
        let seeds = Seeds::new([vec![b'x'; 1000]])
            .in_stretches_of(10)
            .with_changes(0);
        let mut out = Vec::new();
        for input in 0..1000 {
            seeds.spoiled(&mut Random::of(1, input), &mut out);
            assert!((1..=10).contains(&out.len()));
        }
    }
}
