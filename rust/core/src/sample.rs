//! What is written down of each request.
//!
//! A record is 64 bytes and costs tens of nanoseconds. Each thread writes into a region of its own.

use std::io;

use crate::region::Region;

/// The outcome of a request; the discriminant is what is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    Ok = 0,
    HttpError = 1,
    EngineError = 2,
    Unsupported = 3,
    Partial = 4,
    TimedOut = 5,
    Refused = 6,
    Reset = 7,
    Truncated = 8,
    Malformed = 9,
    Unfinished = 10,
}

/// Names by discriminant.
pub const OUTCOMES: [&str; 11] = [
    "ok",
    "http_error",
    "engine_error",
    "unsupported",
    "partial",
    "timed_out",
    "refused",
    "reset",
    "truncated",
    "malformed",
    "unfinished",
];

impl Outcome {
    /// Of two outcomes within one request, the one that it is reported by.
    pub fn worse(self, other: Outcome) -> Outcome {
        let rank = |outcome| match outcome {
            Outcome::Ok => 0,
            Outcome::Partial => 1,
            Outcome::Unsupported => 2,
            Outcome::HttpError => 3,
            Outcome::EngineError => 4,
            failure => 5 + failure as u8,
        };
        if rank(other) > rank(self) {
            other
        } else {
            self
        }
    }
}

/// The wire carries no processing time: all 40 bits set.
pub const NO_HOST_NS: u64 = (1 << 40) - 1;

/// One request. Instants are nanoseconds since the start, -1 where they never happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Sample {
    pub due: i64,
    pub free: i64,
    /// When opening the connection began, where this is the first request over it and it was
    /// opened after the start; else -1.
    pub connect: i64,
    pub sent: i64,
    pub first_byte: i64,
    pub done: i64,
    pub request: u32,
    pub bytes: u32,
    pub host_low: u32,
    pub connection: u16,
    pub outcome: u8,
    pub host_high: u8,
}

const _: () = assert!(std::mem::size_of::<Sample>() == 64);
pub const SAMPLE_BYTES: usize = std::mem::size_of::<Sample>();

/// The samples of one thread.
pub struct SampleLog {
    region: Region,
}

/// Addresses reserved where the number of samples is not known beforehand: room for 500 million.
const UNKNOWN_BYTES: usize = 32 << 30;
/// Touched beforehand, at most: 260,000 samples.
pub(crate) const TOUCHED_BYTES: usize = 16 << 20;

impl SampleLog {
    /// Room for `samples` records, or for as many as the machine grants where it is None.
    pub fn new(samples: Option<usize>) -> io::Result<SampleLog> {
        let known = samples.filter(|&count| count <= UNKNOWN_BYTES / SAMPLE_BYTES);
        let mut region = match known {
            Some(count) => Region::reserve(count * SAMPLE_BYTES, count * SAMPLE_BYTES)?,
            None => Region::reserve(UNKNOWN_BYTES, 64 << 20)?,
        };
        region.touch(TOUCHED_BYTES);
        Ok(SampleLog { region })
    }

    /// Records one request; false where there is no room left.
    #[inline]
    pub fn push(&mut self, sample: Sample) -> bool {
        // SAFETY: any 64 bytes of a Sample are initialised: it has no padding.
        let bytes =
            unsafe { std::slice::from_raw_parts((&raw const sample).cast::<u8>(), SAMPLE_BYTES) };
        self.region.append(bytes)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn len(&self) -> usize {
        self.region.len() / SAMPLE_BYTES
    }

    pub(crate) fn region(&self) -> &Region {
        &self.region
    }

    pub fn into_region(self) -> Region {
        self.region
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(request: u32) -> Sample {
        Sample {
            due: 1,
            free: -1,
            connect: 2,
            sent: 3,
            first_byte: 4,
            done: 5,
            request,
            bytes: 7,
            host_low: 8,
            connection: 9,
            outcome: Outcome::Partial as u8,
            host_high: 11,
        }
    }

    #[test]
    fn a_record_is_written_as_its_64_little_endian_bytes() {
        let mut log = SampleLog::new(Some(10)).unwrap();
        assert!(log.push(sample(6)));
        let region = log.into_region();
        let bytes = region.as_slice();
        assert_eq!(bytes.len(), 64);
        assert_eq!(&bytes[8..16], &[0xff; 8]);
        assert_eq!(&bytes[16..24], &[2, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(
            &bytes[48..64],
            &[6, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0, 9, 0, 4, 11]
        );
    }

    #[test]
    fn it_grows_without_moving_and_says_when_it_is_full() {
        let mut log = SampleLog::new(Some(100)).unwrap();
        let before = log.region.as_slice().as_ptr();
        let room = log.region.room() / SAMPLE_BYTES;
        for request in 0..room {
            assert!(log.push(sample(request as u32)));
        }
        assert!(!log.push(sample(0)));
        assert_eq!(log.len(), room);
        assert_eq!(log.region.as_slice().as_ptr(), before);
    }

    #[test]
    fn an_unknown_length_takes_addresses_but_no_memory() {
        let log = SampleLog::new(None).unwrap();
        assert!(log.region.room() >= 64 << 20);
        assert_eq!(log.len(), 0);
    }

    #[test]
    fn the_worst_outcome_of_several_exchanges_wins() {
        use Outcome::*;
        assert_eq!(Ok.worse(Partial), Partial);
        assert_eq!(HttpError.worse(Ok), HttpError);
        assert_eq!(EngineError.worse(Unsupported), EngineError);
        assert_eq!(EngineError.worse(Reset), Reset);
        for (code, name) in OUTCOMES.iter().enumerate() {
            assert!(!name.is_empty() && code < 11);
        }
    }
}
