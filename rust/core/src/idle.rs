//! What a thread does while it has nothing to do: block, spin, or block until shortly before.
//!
//! A thread that sleeps is woken tens of microseconds after its event, which is added to every
//! latency it measures. Spinning sees the event at once, at the price of a core. Hybrid blocks
//! while nothing is expected and spins while something is: from 60 us before the next due time,
//! and from 60 us before the moment at which a reply is expected (its request's instant plus the
//! running median of service times) until 100 us after it. So each request costs at most 160 us
//! of spinning, a steady server is seen without delay, and an unsteady one, whose replies come
//! when they come, is seen as late as by blocking: tens of microseconds on many more.

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

/// How long before an expected event hybrid stops sleeping; covers the time to be woken.
pub const LEAD_NS: i64 = 60_000;
/// How long after the expected moment of a reply hybrid goes on spinning.
pub const PATIENCE_NS: i64 = 100_000;

/// The median is taken over this many recent service times, ...
const WINDOW: usize = 32;
/// ... anew after each so many, so that it costs a few nanoseconds a request.
const EVERY: usize = 8;

/// The running median of service times.
pub struct Expectation {
    recent: [i64; WINDOW],
    seen: usize,
    median: i64,
}

impl Default for Expectation {
    fn default() -> Expectation {
        Expectation {
            recent: [0; WINDOW],
            seen: 0,
            median: 0,
        }
    }
}

impl Expectation {
    #[inline]
    pub fn note(&mut self, service_ns: i64) {
        self.recent[self.seen % WINDOW] = service_ns;
        self.seen += 1;
        if self.seen <= EVERY || self.seen.is_multiple_of(EVERY) {
            let have = self.seen.min(WINDOW);
            let mut sorted = self.recent;
            let (_, median, _) = sorted[..have].select_nth_unstable(have / 2);
            self.median = *median;
        }
    }

    /// From when until when the reply to a request sent at `sent` is to be spun for. Before any
    /// reply was seen, right after sending.
    #[inline]
    pub fn window(&self, sent: i64) -> (i64, i64) {
        let expected = sent + self.median;
        (expected - LEAD_NS, expected + PATIENCE_NS)
    }
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
                act_at - LEAD_NS
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

    #[test]
    fn hybrid_spins_while_a_reply_is_expected_and_sleeps_once_it_is_overdue() {
        let mut expectation = Expectation::default();
        for service in [900_000, 1_000_000, 1_100_000] {
            expectation.note(service);
        }
        let window = Some(expectation.window(0));
        assert_eq!(
            wait_ns(Idle::Hybrid, 0, NEVER, NEVER, window),
            Some(1_000_000 - LEAD_NS)
        );
        assert_eq!(
            wait_ns(Idle::Hybrid, 990_000, NEVER, NEVER, window),
            Some(0)
        );
        assert_eq!(
            wait_ns(
                Idle::Hybrid,
                1_000_000 + PATIENCE_NS,
                NEVER,
                9_000_000,
                window
            ),
            Some(7_900_000)
        );
    }

    #[test]
    fn the_expectation_follows_a_change_within_a_window() {
        let mut expectation = Expectation::default();
        for _ in 0..100 {
            expectation.note(1_000);
        }
        for _ in 0..WINDOW {
            expectation.note(5_000);
        }
        assert_eq!(expectation.window(0).0, 5_000 - LEAD_NS);
    }
}
