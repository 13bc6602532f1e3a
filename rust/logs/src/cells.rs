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
        if self.slots.is_empty() {
            self.slots = vec![(0, 0); (MOST_CELLS * 3).next_power_of_two()];
        }
        let mask = self.slots.len() - 1;
        let mut at = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
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
}
