//! Which ids are taken: a second document with the id of another is refused.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher};

/// The ids taken, as 128 bits of keyed hash each: at a thousand million documents the chance
/// that any two differing ids are taken for one is below 1e-20.
pub struct Ids {
    keys: [RandomState; 2],
    taken: HashSet<u128, BuildHasherDefault<Low>>,
}

impl Ids {
    /// None taken.
    pub fn new() -> Ids {
        Ids {
            keys: [RandomState::new(), RandomState::new()],
            taken: HashSet::default(),
        }
    }

    /// Takes `id`; false if it was taken already.
    pub fn take(&mut self, id: &str) -> bool {
        let [high, low] = self.keys.each_ref().map(|key| u128::from(key.hash_one(id)));
        self.taken.insert(high << 64 | low)
    }

    /// Gives `id` back; false if it was not taken.
    pub fn give_back(&mut self, id: &str) -> bool {
        let [high, low] = self.keys.each_ref().map(|key| u128::from(key.hash_one(id)));
        self.taken.remove(&(high << 64 | low))
    }
}

/// The keys are hashes already.
#[derive(Default)]
pub struct Low(u64);

impl Hasher for Low {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }
    fn write_u128(&mut self, key: u128) {
        self.0 = key as u64;
    }
}
