//! Byte strings by which a whole HTTP answer is known: each stands near the beginning of its body.
//!
//! A cluster that lost a part may answer 200 and say so only in words. What those words would be is
//! the engine's to know; here they are looked for, in as much of the body as this keeps.

use std::sync::Arc;

/// Marks are looked for in this much of a body.
pub(super) const LOOK_BYTES: usize = 512;

/// The marks of every whole answer; of a clone, the same ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks(Option<Arc<[Vec<u8>]>>);

impl Marks {
    /// None of them may be empty or longer than what is looked at; no marks at all cost nothing.
    pub fn new(each: Vec<Vec<u8>>) -> Result<Marks, String> {
        for (index, mark) in each.iter().enumerate() {
            if mark.is_empty() || mark.len() > LOOK_BYTES {
                return Err(format!(
                    "whole[{index}] has {} bytes, not 1 to {LOOK_BYTES}: marks are looked for in \
                     the first {LOOK_BYTES} bytes of a body",
                    mark.len()
                ));
            }
        }
        Ok(Marks((!each.is_empty()).then(|| each.into())))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// All of them are there.
    pub(super) fn are_in(&self, beginning: &[u8]) -> bool {
        let mut each = self.0.iter().flat_map(|marks| marks.iter());
        each.all(|mark| contains(beginning, mark))
    }
}

/// Whether `part` is somewhere in `bytes`; the C library's search never takes quadratic time.
fn contains(bytes: &[u8], part: &[u8]) -> bool {
    // SAFETY: reads within two valid slices, of the lengths given.
    let found = unsafe {
        libc::memmem(
            bytes.as_ptr().cast(),
            bytes.len(),
            part.as_ptr().cast(),
            part.len(),
        )
    };
    !found.is_null()
}

/// The beginning of one body, gathered from pieces.
#[derive(Clone)]
pub(super) struct Beginning {
    bytes: [u8; LOOK_BYTES],
    have: usize,
}

impl Beginning {
    pub fn new() -> Beginning {
        Beginning {
            bytes: [0; LOOK_BYTES],
            have: 0,
        }
    }

    pub fn clear(&mut self) {
        self.have = 0;
    }

    /// The next piece of the body.
    pub fn take(&mut self, piece: &[u8]) {
        let taken = piece.len().min(LOOK_BYTES - self.have);
        self.bytes[self.have..self.have + taken].copy_from_slice(&piece[..taken]);
        self.have += taken;
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.have]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(each: &[&[u8]]) -> Result<Marks, String> {
        Marks::new(each.iter().map(|mark| mark.to_vec()).collect())
    }

    #[test]
    fn every_mark_must_be_there() {
        let both = marks(&[b"one", b"\0two"]).unwrap();
        assert!(both.are_in(b"..\0two..one"));
        assert!(!both.are_in(b"..two..one"));
        assert!(!both.are_in(b""));
        assert!(marks(&[b"x"]).unwrap().are_in(b"x"));
        assert!(!both.is_empty());
    }

    #[test]
    fn no_marks_are_everywhere() {
        let none = marks(&[]).unwrap();
        assert!(none.is_empty() && none.are_in(b""));
        assert_eq!(none, Marks::default());
    }

    #[test]
    fn a_mark_that_can_never_be_seen_is_refused_by_its_number() {
        let why = marks(&[b"ok", b""]).unwrap_err();
        assert!(why.starts_with("whole[1] has 0 bytes"), "{why}");
        assert!(marks(&[&[b'x'; LOOK_BYTES]]).is_ok());
        assert!(marks(&[&[b'x'; LOOK_BYTES + 1]]).is_err());
    }
}
