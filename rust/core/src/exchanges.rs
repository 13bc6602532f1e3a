//! When each exchange of a request was sent and answered, where that is asked for.

use std::mem::size_of;

/// So many of one thread are kept; they would take 800 MB.
const MOST: usize = 20_000_000;
pub const EXCHANGE_BYTES: usize = size_of::<ExchangeTimes>();

/// One exchange of a request that is on record.
///
/// `sample`: the request's; `exchange`: its number within what is timed, from 0; instants as those
/// of a sample: nanoseconds since the start, -1 where they never came.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeTimes {
    pub sent: i64,
    pub first_byte: i64,
    pub done: i64,
    pub sample: u32,
    pub exchange: u32,
}

// They cross to Python as bytes: no padding, whose bytes would be anything.
const _: () = assert!(EXCHANGE_BYTES == 32);

/// The exchanges of one thread's requests.
#[derive(Default)]
pub struct ExchangeLog(Vec<ExchangeTimes>);

impl ExchangeLog {
    /// Those of the sample of this number; none of them are left in `of`. False where there is no
    /// room for them.
    pub fn take(&mut self, sample: u64, of: &mut Vec<ExchangeTimes>) -> bool {
        if self.0.len() + of.len() > MOST {
            of.clear();
            return false;
        }
        self.0.extend(of.drain(..).map(|times| ExchangeTimes {
            sample: sample as u32,
            ..times
        }));
        true
    }

    /// Those of several threads in one, each with the number of its first sample in the whole.
    pub fn gathered(parts: Vec<(u64, ExchangeLog)>) -> Vec<ExchangeTimes> {
        let mut parts = parts.into_iter();
        let mut all = parts.next().map_or_else(Vec::new, |(_, first)| first.0);
        for (first_sample, part) in parts {
            all.extend(part.0.iter().map(|times| ExchangeTimes {
                sample: times.sample + first_sample as u32,
                ..*times
            }));
        }
        all
    }

    /// As they lie in memory, `EXCHANGE_BYTES` each.
    pub fn bytes(all: &[ExchangeTimes]) -> &[u8] {
        // SAFETY: a ExchangeTimes has no padding, and any of its bytes may be read.
        unsafe { std::slice::from_raw_parts(all.as_ptr().cast(), size_of_val(all)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(exchange: u32) -> ExchangeTimes {
        ExchangeTimes {
            sent: 10,
            first_byte: 20,
            done: 30,
            sample: 0,
            exchange,
        }
    }

    #[test]
    fn exchanges_know_their_sample_in_the_whole() {
        let (mut one, mut other) = (ExchangeLog::default(), ExchangeLog::default());
        let mut of = vec![times(0), times(1)];
        assert!(one.take(4, &mut of));
        assert!(of.is_empty());
        assert!(other.take(0, &mut vec![times(0)]));
        let all = ExchangeLog::gathered(vec![(0, one), (5, other)]);
        let found: Vec<_> = all.iter().map(|s| (s.sample, s.exchange)).collect();
        assert_eq!(found, [(4, 0), (4, 1), (5, 0)]);
        assert_eq!(ExchangeLog::bytes(&all).len(), 3 * EXCHANGE_BYTES);
    }

    #[test]
    fn what_finds_no_room_is_reported_and_those_before_it_stay() {
        let mut full = ExchangeLog(vec![times(0); MOST]);
        assert!(!full.take(1, &mut vec![times(0)]));
        assert_eq!(full.0.len(), MOST);
    }
}
