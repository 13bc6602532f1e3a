//! Searches of one server, index and class, counted once in place of three times.

use crate::often::Busy;

/// Searches of one server, index and class together. Counted once here, they are taken apart into
/// three groups when all is done (`Tally::settle`).
#[derive(Default)]
pub struct Cells {
    /// (server, index, class) as one number, plus one, and the number of the cell.
    slots: Vec<(u64, u32)>,
    pub cells: Vec<([usize; 3], Busy)>,
    last: (u64, usize),
}

/// So many cells are taken apart before there are more.
pub const MOST_CELLS: usize = 20_000;

impl Cells {
    #[inline]
    pub fn of(&mut self, server: usize, index: usize, class: usize) -> usize {
        let key = ((server as u64) << 42 | (index as u64) << 21 | class as u64) + 1;
        if self.last.0 != key {
            self.last = (key, self.look(key, [server, index, class]));
        }
        self.last.1
    }

    fn look(&mut self, key: u64, of: [usize; 3]) -> usize {
        if self.slots.len() < 2 * (self.cells.len() + 1) {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        let mut at = slot(key) & mask;
        loop {
            let (there, cell) = self.slots[at];
            if there == key {
                return cell as usize;
            }
            if there == 0 {
                self.slots[at] = (key, self.cells.len() as u32);
                self.cells.push((of, Busy::default()));
                return self.cells.len() - 1;
            }
            at = (at + 1) & mask;
        }
    }

    fn grow(&mut self) {
        let size = (self.slots.len() * 4).max(64);
        let old = std::mem::replace(&mut self.slots, vec![(0, 0); size]);
        let mask = size - 1;
        for (key, cell) in old.into_iter().filter(|&(key, _)| key > 0) {
            let mut at = slot(key) & mask;
            while self.slots[at].0 > 0 {
                at = (at + 1) & mask;
            }
            self.slots[at] = (key, cell);
        }
    }
}

/// Where a key is looked for first, before it is cut to the slots that there are.
#[inline]
fn slot(key: u64) -> usize {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_keeps_its_cell_while_there_are_more_and_more() {
        let mut cells = Cells::default();
        let place = |i: usize| [i % 3, i % 700, i];
        for i in 0..MOST_CELLS {
            let [server, index, class] = place(i);
            assert_eq!(cells.of(server, index, class), i);
        }
        for i in (0..MOST_CELLS).rev() {
            let [server, index, class] = place(i);
            assert_eq!(cells.of(server, index, class), i);
            assert_eq!(cells.cells[i].0, place(i));
        }
        assert_eq!(cells.cells.len(), MOST_CELLS);
    }
}
