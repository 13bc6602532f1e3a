//! Names that are met again and again (indexes, classes, users), each with a number.

use crate::queries::seed_of;

/// How many names of a kind are told apart; those above are counted as one, `OTHERS`.
pub const MOST: usize = 20_000;
/// What the names that are too many are called.
pub const OTHERS: &[u8] = b"(others)";
/// Letters of a name that are kept.
const LONGEST: usize = 600;

#[derive(Clone, Default)]
pub struct Names {
    names: Vec<Vec<u8>>,
    /// (hash, number + 1), open addressing; the length is a power of two.
    slots: Vec<(u64, u32)>,
    last: (u64, u32),
}

impl Names {
    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub fn get(&self, number: usize) -> &[u8] {
        &self.names[number]
    }

    /// The number of a name; a new one where it was never met.
    #[inline]
    pub fn number(&mut self, name: &[u8]) -> usize {
        self.number_of(name, seed_of(name))
    }

    /// The same, where `seed_of` the name is known.
    #[inline]
    pub fn number_of(&mut self, name: &[u8], hash: u64) -> usize {
        if self.last.1 > 0 && self.last.0 == hash {
            return self.last.1 as usize - 1;
        }
        let number = self.look(hash, name);
        self.last = (hash, number as u32 + 1);
        number
    }

    fn look(&mut self, hash: u64, name: &[u8]) -> usize {
        if self.slots.len() < 2 * (self.names.len() + 1) {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let (there, number) = self.slots[at];
            if number == 0 {
                break;
            }
            if there == hash {
                return number as usize - 1;
            }
            at = (at + 1) & mask;
        }
        if self.names.len() >= MOST && name != OTHERS {
            return self.look(seed_of(OTHERS), OTHERS);
        }
        self.names.push(name[..name.len().min(LONGEST)].to_vec());
        self.slots[at] = (hash, self.names.len() as u32);
        self.names.len() - 1
    }

    fn grow(&mut self) {
        let size = (self.slots.len() * 4).max(64);
        let old = std::mem::replace(&mut self.slots, vec![(0, 0); size]);
        for (hash, number) in old.into_iter().filter(|&(_, number)| number > 0) {
            let mut at = hash as usize & (size - 1);
            while self.slots[at].1 > 0 {
                at = (at + 1) & (size - 1);
            }
            self.slots[at] = (hash, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_number_and_too_many_are_others() {
        let mut names = Names::default();
        let numbers: Vec<usize> = (0..MOST + 10)
            .map(|i| names.number(i.to_string().as_bytes()))
            .collect();
        assert_eq!(names.get(numbers[17]), b"17");
        assert_eq!(names.number(b"17"), numbers[17]);
        assert_eq!(names.get(numbers[MOST + 3]), OTHERS);
        assert_eq!(numbers[MOST + 3], numbers[MOST + 9]);
    }
}
