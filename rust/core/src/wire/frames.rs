//! The framed protocol of library hosts, as FORMATS.md has it: 16 bytes, then the payload.

use super::boundary::{Reply, Step, Wire};
use crate::sample::{NO_HOST_NS, Outcome};

const HEADER_BYTES: usize = 16;
/// A frame above this is no frame.
const MAX_PAYLOAD_BYTES: u64 = 1 << 30;

#[derive(Clone)]
pub struct Frames {
    header: [u8; HEADER_BYTES],
    /// How much of the header is there.
    have: usize,
    /// Bytes of the payload that must still come, once the header is whole.
    left: u64,
}

impl Default for Frames {
    fn default() -> Frames {
        Frames {
            header: [0; HEADER_BYTES],
            have: 0,
            left: 0,
        }
    }
}

impl Frames {
    /// The reply that the header announces; None where it is no header.
    fn reply(&self) -> Option<Reply> {
        let outcome = match self.header[4] {
            0 => Outcome::Ok,
            1 => Outcome::EngineError,
            2 => Outcome::Unsupported,
            3 => Outcome::Partial,
            _ => return None,
        };
        let host_ns = u64::from_le_bytes(self.header[8..16].try_into().expect("eight bytes"));
        Some(Reply {
            outcome,
            host_ns: host_ns.min(NO_HOST_NS - 1),
            close: false,
        })
    }
}

impl Wire for Frames {
    fn begin(&mut self, _exchange: &[u8]) {
        self.have = 0;
        self.left = 0;
    }

    fn feed(&mut self, piece: &[u8]) -> Step {
        let mut used = 0;
        if self.have < HEADER_BYTES {
            used = piece.len().min(HEADER_BYTES - self.have);
            self.header[self.have..self.have + used].copy_from_slice(&piece[..used]);
            self.have += used;
            if self.have < HEADER_BYTES {
                return Step::More;
            }
            let length = u32::from_le_bytes(self.header[0..4].try_into().expect("four bytes"));
            self.left = u64::from(length);
            let reserved_is_zero = self.header[5..8] == [0; 3];
            if self.left > MAX_PAYLOAD_BYTES || !reserved_is_zero || self.reply().is_none() {
                return Step::Malformed;
            }
        }
        let rest = (piece.len() - used) as u64;
        if rest < self.left {
            self.left -= rest;
            return Step::More;
        }
        used += self.left as usize;
        self.left = 0;
        match self.reply() {
            Some(reply) => Step::Whole { used, reply },
            None => Step::Malformed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::assert_cut_anywhere;
    use super::*;

    fn frame(status: u8, host_ns: u64, payload: &[u8]) -> Vec<u8> {
        let mut bytes = (payload.len() as u32).to_le_bytes().to_vec();
        bytes.extend([status, 0, 0, 0]);
        bytes.extend(host_ns.to_le_bytes());
        bytes.extend(payload);
        bytes
    }

    #[test]
    fn a_frame_is_whole_wherever_it_is_cut() {
        let bytes = frame(0, 1234, b"{\"total\": 5}");
        let reply = Reply {
            outcome: Outcome::Ok,
            host_ns: 1234,
            close: false,
        };
        assert_cut_anywhere(&Frames::default(), b"x", &bytes, Some(reply), bytes.len());
    }

    #[test]
    fn what_follows_a_frame_is_not_part_of_it() {
        let bytes = frame(3, 7, b"12345");
        let twice = [bytes.clone(), bytes.clone()].concat();
        let reply = Reply {
            outcome: Outcome::Partial,
            host_ns: 7,
            close: false,
        };
        assert_cut_anywhere(&Frames::default(), b"x", &twice, Some(reply), bytes.len());
    }

    #[test]
    fn an_empty_payload_is_a_reply() {
        let bytes = frame(2, 0, b"");
        let reply = Reply {
            outcome: Outcome::Unsupported,
            host_ns: 0,
            close: false,
        };
        assert_cut_anywhere(&Frames::default(), b"x", &bytes, Some(reply), HEADER_BYTES);
    }

    #[test]
    fn an_absurd_processing_time_is_not_mistaken_for_none() {
        let bytes = frame(1, u64::MAX, b"");
        let reply = Reply {
            outcome: Outcome::EngineError,
            host_ns: NO_HOST_NS - 1,
            close: false,
        };
        assert_cut_anywhere(&Frames::default(), b"x", &bytes, Some(reply), HEADER_BYTES);
    }

    #[test]
    fn unknown_status_reserved_bytes_and_huge_lengths_are_malformed() {
        let mut reserved = frame(0, 0, b"");
        reserved[6] = 1;
        let mut huge = frame(0, 0, b"");
        huge[0..4].copy_from_slice(&((1u32 << 30) + 1).to_le_bytes());
        for bytes in [frame(4, 0, b""), reserved, huge] {
            assert_cut_anywhere(&Frames::default(), b"x", &bytes, None, 0);
        }
    }

    #[test]
    fn a_frame_never_ends_by_the_end_of_the_connection() {
        let mut wire = Frames::default();
        wire.begin(b"x");
        assert_eq!(wire.feed(&frame(0, 0, b"12345")[..18]), Step::More);
        assert_eq!(wire.ended(), None);
    }
}
