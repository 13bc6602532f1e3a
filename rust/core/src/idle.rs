//! What a thread does while it has nothing to do: block, spin, or block until shortly before.
//!
//! A thread that sleeps is woken tens of microseconds after its event, which is added to every
//! latency it measures. Spinning sees the event at once, at the price of a core. Hybrid blocks
//! while nothing is expected and spins while something is: from shortly before the next due time,
//! and while a reply is expected, which is from shortly before the fast ones of the recent replies
//! would be there (or from the sending on, where that is sooner than 200 us) until 100 us after
//! the slow ones would. Where they are too far apart for that, it spins around their median. So
//! each request costs at most 1 ms of spinning; a server is seen without delay as long as its
//! service times lie within a millisecond of each other, and beyond that the tens of microseconds
//! are a small share of what they are added to.

/// The policy, as asked for and as recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    Block,
    Hybrid,
    Spin,
}

impl Idle {
    pub fn named(name: &str) -> Option<Idle> {
        match name {
            "block" => Some(Idle::Block),
            "hybrid" => Some(Idle::Hybrid),
            "spin" => Some(Idle::Spin),
            _ => None,
        }
    }
}

/// How long before an expected event hybrid stops sleeping: a fiftieth of the sleep, within
/// these bounds. It covers the time to be woken, which is longer after a long sleep: a processor
/// that has idled for 20 ms takes some hundred microseconds to come back, more if it is virtual.
pub const LEAD_NS: i64 = 60_000;
pub const LONGEST_LEAD_NS: i64 = 500_000;
/// How long after the expected moment of a reply hybrid goes on spinning.
pub const PATIENCE_NS: i64 = 100_000;
/// A sleep shorter than this is not worth being woken from.
pub const NAP_NS: i64 = 200_000;
/// The most a request costs of spinning for its reply.
pub const SPIN_NS: i64 = 1_000_000;

/// What is expected rests on this many recent service times, ...
const WINDOW: usize = 32;
/// ... looked at anew after each so many, so that it costs a few nanoseconds a request.
const EVERY: usize = 8;

/// Where recent service times lie.
pub struct Expectation {
    recent: [i64; WINDOW],
    seen: usize,
    /// From and until when to spin, after the sending.
    from: i64,
    to: i64,
}

impl Default for Expectation {
    fn default() -> Expectation {
        Expectation {
            recent: [0; WINDOW],
            seen: 0,
            from: 0,
            to: PATIENCE_NS,
        }
    }
}

impl Expectation {
    #[inline]
    pub fn note(&mut self, service_ns: i64) {
        self.recent[self.seen % WINDOW] = service_ns;
        self.seen += 1;
        if self.seen <= EVERY || self.seen.is_multiple_of(EVERY) {
            self.look();
        }
    }

    fn look(&mut self) {
        let have = self.seen.min(WINDOW);
        let mut sorted = self.recent;
        let sorted = &mut sorted[..have];
        sorted.sort_unstable();
        // A tenth at either end may be strays, such as a stall.
        let (fast, slow) = (sorted[have / 10], sorted[have - 1 - have / 10]);
        let (from, to) = (awake_from(fast), slow + PATIENCE_NS);
        (self.from, self.to) = if to - from <= SPIN_NS {
            (from, to)
        } else {
            let median = sorted[have / 2];
            (awake_from(median), median + PATIENCE_NS)
        };
    }

    /// From when until when the reply to a request sent at `sent` is to be spun for. Before any
    /// reply was seen, right after sending.
    #[inline]
    pub fn window(&self, sent: i64) -> (i64, i64) {
        (sent + self.from, sent + self.to)
    }
}

#[inline]
fn lead_ns(sleep_ns: i64) -> i64 {
    (sleep_ns / 50).clamp(LEAD_NS, LONGEST_LEAD_NS)
}

fn awake_from(service_ns: i64) -> i64 {
    let from = service_ns - lead_ns(service_ns);
    if from < NAP_NS { 0 } else { from }
}

/// How long to wait: None for ever, 0 not at all.
///
/// `act_at`: when the thread itself wants to do something (i64::MAX: never). `give_up_at`: when
/// something times out, which nobody needs to the microsecond. `window`: when the next reply is
/// expected.
#[inline]
pub fn wait_ns(
    idle: Idle,
    now: i64,
    act_at: i64,
    give_up_at: i64,
    window: Option<(i64, i64)>,
) -> Option<i64> {
    let until = match idle {
        Idle::Spin => return Some(0),
        Idle::Block => act_at.min(give_up_at),
        Idle::Hybrid => {
            let early = if act_at == i64::MAX {
                i64::MAX
            } else {
                act_at - lead_ns(act_at - now)
            };
            let reply = match window {
                Some((from, to)) if now < to => from,
                _ => i64::MAX,
            };
            early.min(reply).min(give_up_at)
        }
    };
    (until != i64::MAX).then(|| (until - now).max(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: i64 = i64::MAX;

    #[test]
    fn blocking_waits_for_the_nearer_of_action_and_timeout() {
        assert_eq!(wait_ns(Idle::Block, 100, 300, 900, None), Some(200));
        assert_eq!(wait_ns(Idle::Block, 100, NEVER, 900, None), Some(800));
        assert_eq!(wait_ns(Idle::Block, 100, 50, 900, None), Some(0));
        assert_eq!(wait_ns(Idle::Block, 100, NEVER, NEVER, None), None);
    }

    #[test]
    fn spinning_never_waits() {
        assert_eq!(wait_ns(Idle::Spin, 0, NEVER, NEVER, None), Some(0));
    }

    #[test]
    fn hybrid_sleeps_until_shortly_before_and_then_spins() {
        let due = 1_000_000;
        assert_eq!(
            wait_ns(Idle::Hybrid, 0, due, NEVER, None),
            Some(due - LEAD_NS)
        );
        assert_eq!(
            wait_ns(Idle::Hybrid, due - 1_000, due, NEVER, None),
            Some(0)
        );
    }

    fn after(services: &[i64]) -> Expectation {
        let mut expectation = Expectation::default();
        for service in services {
            expectation.note(*service);
        }
        expectation
    }

    #[test]
    fn hybrid_spins_while_a_reply_is_expected_and_sleeps_once_it_is_overdue() {
        let window = Some(after(&[900_000, 1_000_000, 1_100_000]).window(0));
        assert_eq!(window, Some((900_000 - LEAD_NS, 1_100_000 + PATIENCE_NS)));
        let wait = |now| wait_ns(Idle::Hybrid, now, NEVER, 9_000_000, window);
        assert_eq!(wait(0), Some(900_000 - LEAD_NS));
        assert_eq!(wait(990_000), Some(0));
        assert_eq!(wait(1_200_000), Some(7_800_000));
    }

    #[test]
    fn hybrid_does_not_sleep_for_less_than_waking_costs() {
        assert_eq!(after(&[50_000, 400_000]).window(7), (7, 500_007));
    }

    #[test]
    fn hybrid_never_spins_for_more_than_a_millisecond() {
        let (from, to) = after(&[300_000, 5_000_000, 50_000_000]).window(0);
        assert_eq!((from, to), (4_900_000, 5_000_000 + PATIENCE_NS));
        for services in [
            [10_000, 900_000, 9_000_000],
            [1, 2, 3],
            [800_000, 900_000, 1_700_000],
        ] {
            let (from, to) = after(&services).window(0);
            assert!(
                from >= 0 && from < to && to - from <= SPIN_NS,
                "{services:?}"
            );
        }
    }

    #[test]
    fn a_long_sleep_ends_earlier_than_a_short_one_but_not_by_much() {
        let wait = |due| wait_ns(Idle::Hybrid, 0, due, NEVER, None).unwrap();
        assert_eq!(wait(1_000_000), 1_000_000 - LEAD_NS);
        assert_eq!(wait(10_000_000), 9_800_000);
        assert_eq!(wait(10_000_000_000), 10_000_000_000 - LONGEST_LEAD_NS);
    }

    #[test]
    fn a_stray_does_not_move_the_expectation() {
        let mut services = vec![1_000_000; 31];
        services.push(500_000_000);
        let around = (1_000_000 - LEAD_NS, 1_000_000 + PATIENCE_NS);
        assert_eq!(after(&services).window(0), around);
    }

    #[test]
    fn the_expectation_follows_a_change_within_a_window() {
        let mut expectation = after(&[1_000_000; 100]);
        for _ in 0..WINDOW {
            expectation.note(5_000_000);
        }
        assert_eq!(expectation.window(0).0, 4_900_000);
    }
}
