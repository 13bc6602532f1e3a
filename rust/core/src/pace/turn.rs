//! What every pace shares: the terms of a drive, and the words between a pace and the loop.

use std::sync::atomic::AtomicU64;

use crate::plan::RequestTargets;
use crate::sample::Outcome;

/// On what terms a load is driven, as all threads see them.
pub struct Terms {
    /// Which target each request asks, of so many.
    pub request_targets: RequestTargets,
    pub targets: usize,
    /// Clients, or the size of each pool.
    pub connections: usize,
    pub threads: usize,
    /// Nothing is begun at or after this.
    pub stop_ns: Option<i64>,
    /// Requests begun by all, where a drive stops after a number of them.
    pub begun: AtomicU64,
}

/// A request whose time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub request: u32,
    pub due_ns: i64,
    /// Counts requests, for keeping the reply of every so many-th.
    pub nth: u64,
}

/// What the loop does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Send this over the connection of this index.
    Send(Due, u32),
    /// Nobody can send this: record why, charged to the connection of this number.
    Lost(Due, Outcome, u16),
    /// Nothing this time; there may be more.
    Passed,
}

/// What a connection does after a request, or after it was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// It waits until something is to be sent.
    Wait,
    /// Its client begins its next request at once.
    Begin,
    /// It is opened again.
    Connect,
}

/// How a connection was lost.
#[derive(Clone, Copy)]
pub(crate) struct Loss {
    pub now: i64,
    pub outcome: Outcome,
    /// It carried a request.
    pub carried: bool,
    /// Nothing came of it, so it is not opened again at once.
    pub fruitless: bool,
}

/// The next pause after one of `pause_ns`: 1 ms, doubling to 100 ms.
pub(super) fn longer(pause_ns: i64) -> i64 {
    (pause_ns * 2).clamp(1_000_000, 100_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_stay_within_a_millisecond_and_a_tenth_of_a_second() {
        let mut pause_ns = 0;
        let pauses: Vec<i64> = std::iter::repeat_with(|| {
            pause_ns = longer(pause_ns);
            pause_ns / 1_000_000
        })
        .take(9)
        .collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 100, 100]);
    }
}
