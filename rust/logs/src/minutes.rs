//! What is counted of each minute.

use crate::queries::SHOWN;

/// Buckets of the times of a minute: half doublings, the first up to 1 µs.
pub const COARSE: usize = 64;

/// One minute of searches.
#[derive(Clone)]
pub struct Minute {
    pub n: u64,
    pub sum_ns: u64,
    pub max_ns: u64,
    pub zero: u64,
    pub errors: u64,
    pub coarse: [u32; COARSE],
    /// The one that took longest.
    pub slowest: Vec<u8>,
}

impl Default for Minute {
    fn default() -> Minute {
        Minute {
            n: 0,
            sum_ns: 0,
            max_ns: 0,
            zero: 0,
            errors: 0,
            coarse: [0; COARSE],
            slowest: Vec::new(),
        }
    }
}

/// The coarse bucket of a time: 0 up to 1 µs, then two a doubling.
#[inline]
pub fn coarse(ns: u64) -> usize {
    if ns < 1024 {
        return 0;
    }
    let doubling = 63 - ns.leading_zeros() as usize;
    // The upper half of a doubling begins at √2 of its least: 181/128.
    let upper = (ns >> (doubling - 7)) >= 181;
    ((doubling - 10) * 2 + usize::from(upper) + 1).min(COARSE - 1)
}

impl Minute {
    pub fn slower(&mut self, ns: u64, text: &[u8]) {
        let text = &text[..text.len().min(SHOWN)];
        if ns > self.max_ns || (ns == self.max_ns && text < self.slowest.as_slice()) {
            self.max_ns = ns;
            self.slowest.clear();
            self.slowest.extend_from_slice(text);
        }
    }

    pub fn merge(&mut self, other: &Minute) {
        if self.n == 0 {
            *self = other.clone();
            return;
        }
        self.n += other.n;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.zero += other.zero;
        self.errors += other.errors;
        for (own, other) in self.coarse.iter_mut().zip(other.coarse) {
            *own = own.saturating_add(other);
        }
        self.slower(other.max_ns, &other.slowest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coarse_buckets_rise_by_the_root_of_two() {
        assert_eq!(coarse(0), 0);
        assert_eq!(coarse(1023), 0);
        assert_eq!(coarse(1024), 1);
        assert_eq!(coarse(1500), 2);
        assert_eq!(coarse(2048), 3);
        assert!(coarse(u64::MAX) == COARSE - 1);
        for ns in 1..100_000u64 {
            assert!(coarse(ns) <= coarse(ns + 1));
        }
    }
}
