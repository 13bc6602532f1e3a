//! Replies that are kept: their bytes in one piece, and which sample each belongs to.

use std::io;

use crate::region::Region;

/// Address space for one thread's kept replies; memory is taken only as they come.
const MOST_BYTES: usize = 32 << 30;
/// Where the machine grants less, it is at least this.
const LEAST_BYTES: usize = 4096;

/// The kept replies of one thread.
pub struct Kept {
    bytes: Region,
    replies: Vec<Place>,
}

/// A reply: the thread's sample that it belongs to, and where its bytes are.
struct Place {
    sample: u64,
    start: usize,
    len: usize,
}

impl Kept {
    /// `any`: replies will be kept at all.
    pub fn reserve(any: bool) -> io::Result<Kept> {
        Ok(Kept {
            bytes: Region::reserve(if any { MOST_BYTES } else { 0 }, LEAST_BYTES)?,
            replies: Vec::new(),
        })
    }

    /// Keeps a reply that came in these pieces. False where there is no room for all of it.
    pub fn push(&mut self, sample: u64, pieces: [&[u8]; 2]) -> bool {
        let start = self.bytes.as_slice().len();
        let room = pieces.iter().all(|piece| self.bytes.append(piece));
        let len = self.bytes.as_slice().len() - start;
        if len > 0 {
            self.replies.push(Place { sample, start, len });
        }
        room
    }

    /// Each reply with the index of its sample among the thread's.
    pub fn replies(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.replies.iter().map(|place| {
            let bytes = &self.bytes.as_slice()[place.start..place.start + place.len];
            (place.sample, bytes)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_come_back_whole_with_their_samples_and_empty_ones_do_not() {
        let mut kept = Kept::reserve(true).unwrap();
        assert!(kept.push(0, [b"one", b" piece"]));
        assert!(kept.push(3, [b"", b""]));
        assert!(kept.push(7, [b"", b"another"]));
        let replies: Vec<_> = kept.replies().collect();
        assert_eq!(replies, [(0, &b"one piece"[..]), (7, &b"another"[..])]);
    }

    #[test]
    fn a_reply_that_finds_no_room_is_reported_and_those_before_it_stay() {
        let mut kept = Kept::reserve(false).unwrap();
        assert!(kept.push(0, [b"small", b""]));
        assert!(!kept.push(1, [b"head", &[b'x'; 2 * LEAST_BYTES]]));
        assert_eq!(kept.replies().next(), Some((0, &b"small"[..])));
    }
}
