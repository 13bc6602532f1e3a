//! Replies that are kept: their bytes in pieces, and which sample each belongs to.
//!
//! A long reply is laid down while it comes, so that what exceeds memory can go to a file as
//! samples do (spill.rs). Its pieces then lie between those of other connections.

use std::borrow::Cow;
use std::io;
use std::ops::Range;

use crate::region::Region;
use crate::spill::Prefix;

/// Address space for one thread's kept replies; memory is taken only as they come.
const MOST_BYTES: usize = 32 << 30;
/// Where the machine grants less, it is at least this.
const LEAST_BYTES: usize = 4096;
/// So much of a reply that is under way stays with its connection; what is longer is laid down.
const PIECE_BYTES: usize = 256 << 10;

/// The kept replies of one thread.
pub struct Kept {
    bytes: Region,
    /// Where the pieces of all replies are.
    pieces: Vec<Range<usize>>,
    replies: Vec<Place>,
    /// A piece found no room.
    full: bool,
}

/// A reply: the thread's sample that it belongs to, and which pieces it has.
struct Place {
    sample: u64,
    pieces: Range<usize>,
}

/// The reply that a connection is being given.
#[derive(Default)]
pub struct Coming {
    bytes: Vec<u8>,
    laid: Vec<Range<usize>>,
}

impl Coming {
    /// What came is not kept.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.laid.clear();
    }
}

impl Kept {
    /// `any`: replies will be kept at all.
    pub fn reserve(any: bool) -> io::Result<Kept> {
        Ok(Kept {
            bytes: Region::reserve(if any { MOST_BYTES } else { 0 }, LEAST_BYTES)?,
            pieces: Vec::new(),
            replies: Vec::new(),
            full: false,
        })
    }

    /// Their bytes, one reply's between another's.
    pub(crate) fn region(&self) -> &Region {
        &self.bytes
    }

    /// The next piece of a reply that goes on.
    #[inline]
    pub fn gather(&mut self, coming: &mut Coming, piece: &[u8]) {
        coming.bytes.extend_from_slice(piece);
        if coming.bytes.len() >= PIECE_BYTES {
            let Coming { bytes, laid } = coming;
            self.lay(laid, &[bytes]);
            bytes.clear();
        }
    }

    /// Keeps a reply: what was gathered, and its last piece. False where there was no room for all
    /// of it.
    pub fn push(&mut self, sample: u64, coming: &mut Coming, last: &[u8]) -> bool {
        self.lay(&mut coming.laid, &[&coming.bytes, last]);
        if !coming.laid.is_empty() {
            let first = self.pieces.len();
            self.pieces.append(&mut coming.laid);
            let pieces = first..self.pieces.len();
            self.replies.push(Place { sample, pieces });
        }
        coming.clear();
        !self.full
    }

    /// Lays down bytes as one piece, as many of them as there is room for.
    fn lay(&mut self, laid: &mut Vec<Range<usize>>, parts: &[&[u8]]) {
        let start = self.bytes.len();
        self.full |= !parts.iter().all(|part| self.bytes.append(part));
        if self.bytes.len() > start {
            laid.push(start..self.bytes.len());
        }
    }

    /// The first bytes are in a file from now on, and nothing more is kept.
    pub(crate) fn put(&mut self, prefix: &Prefix) -> io::Result<()> {
        self.bytes.put(&prefix.file, prefix.bytes)
    }

    /// Of each reply the index of its sample among the thread's, and how many pieces it has.
    pub fn places(&self) -> impl ExactSizeIterator<Item = (u64, usize)> {
        self.replies
            .iter()
            .map(|place| (place.sample, place.pieces.len()))
    }

    /// One piece of a reply, both by their numbers.
    pub fn piece(&self, reply: usize, piece: usize) -> Option<&[u8]> {
        let own = self.pieces.get(self.replies.get(reply)?.pieces.clone())?;
        Some(&self.bytes.as_slice()[own.get(piece)?.clone()])
    }

    /// What comes before a piece was read for now: its memory is given back where a file has it.
    pub fn pass(&self, reply: usize, piece: usize) {
        let place = self.replies.get(reply);
        if let Some(at) = place.and_then(|place| self.pieces.get(place.pieces.start + piece)) {
            self.bytes.pass(at.start);
        }
    }

    /// Each reply, whole, with the index of its sample among the thread's.
    pub fn replies(&self) -> impl Iterator<Item = (u64, Cow<'_, [u8]>)> {
        let bytes = self.bytes.as_slice();
        self.replies.iter().map(move |place| {
            let whole = match &self.pieces[place.pieces.clone()] {
                [only] => Cow::Borrowed(&bytes[only.clone()]),
                several => {
                    let pieces: Vec<_> = several.iter().map(|at| &bytes[at.clone()]).collect();
                    Cow::Owned(pieces.concat())
                }
            };
            (place.sample, whole)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(kept: &mut Kept, sample: u64, pieces: [&[u8]; 2]) -> bool {
        let mut coming = Coming::default();
        kept.gather(&mut coming, pieces[0]);
        kept.push(sample, &mut coming, pieces[1])
    }

    #[test]
    fn replies_come_back_whole_with_their_samples_and_empty_ones_do_not() {
        let mut kept = Kept::reserve(true).unwrap();
        assert!(push(&mut kept, 0, [b"one", b" piece"]));
        assert!(push(&mut kept, 3, [b"", b""]));
        assert!(push(&mut kept, 7, [b"", b"another"]));
        let replies: Vec<_> = kept.replies().collect();
        assert_eq!(
            replies,
            [(0, b"one piece"[..].into()), (7, b"another"[..].into())]
        );
    }

    #[test]
    fn long_replies_that_come_at_the_same_time_are_each_whole_and_in_pieces() {
        let mut kept = Kept::reserve(true).unwrap();
        let (mut a, mut b) = (Coming::default(), Coming::default());
        for _ in 0..3 {
            kept.gather(&mut a, &[b'a'; PIECE_BYTES]);
            kept.gather(&mut b, &[b'b'; PIECE_BYTES - 1]);
        }
        assert!(kept.push(0, &mut b, b"end"));
        assert!(kept.push(1, &mut a, b""));
        let replies: Vec<_> = kept
            .replies()
            .map(|(_, bytes)| bytes.into_owned())
            .collect();
        assert_eq!(
            replies,
            [
                [vec![b'b'; 3 * (PIECE_BYTES - 1)], b"end".to_vec()].concat(),
                vec![b'a'; 3 * PIECE_BYTES],
            ]
        );
        for (reply, (_, count)) in kept.places().enumerate() {
            let pieces: Vec<_> = (0..count).map(|n| kept.piece(reply, n).unwrap()).collect();
            assert_eq!(pieces.concat(), replies[reply]);
            assert!(pieces.iter().all(|piece| piece.len() <= 2 * PIECE_BYTES));
            assert_eq!(kept.piece(reply, count), None);
        }
        assert_eq!(kept.piece(2, 0), None);
    }

    #[test]
    fn what_was_begun_and_is_not_kept_leaves_nothing_in_the_next() {
        let mut kept = Kept::reserve(true).unwrap();
        let mut coming = Coming::default();
        kept.gather(&mut coming, &[b'x'; PIECE_BYTES]);
        kept.gather(&mut coming, b"set-up");
        coming.clear();
        assert!(kept.push(0, &mut coming, b"reply"));
        assert_eq!(kept.replies().next(), Some((0, b"reply"[..].into())));
    }

    #[test]
    fn a_reply_that_finds_no_room_is_reported_and_those_before_it_stay() {
        let mut kept = Kept::reserve(false).unwrap();
        assert!(push(&mut kept, 0, [b"small", b""]));
        assert!(!push(&mut kept, 1, [b"head", &[b'x'; 2 * LEAST_BYTES]]));
        assert_eq!(kept.replies().next(), Some((0, b"small"[..].into())));
        let mut kept = Kept::reserve(false).unwrap();
        assert!(!push(&mut kept, 0, [&[b'x'; PIECE_BYTES], b"end"]));
    }
}
