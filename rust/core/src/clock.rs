//! The clock: nanoseconds since the start of the drive, cheap enough to read for every instant.
//!
//! Where the kernel itself trusts the time-stamp counter (clocksource `tsc`, and the counter runs
//! at one rate in every power state), it is read directly, about 10 ns a reading; elsewhere
//! `clock_gettime(CLOCK_MONOTONIC)`, about 25 ns. The counter's rate is calibrated against
//! CLOCK_MONOTONIC once a process, and checked against it again when a drive ends: the difference
//! is the drift that the accounting reports.

use std::sync::OnceLock;

/// How long the counter is watched to learn its rate. Two readings of about 30 ns uncertainty
/// this far apart know the rate to about 3 parts in a million.
const CALIBRATION_NS: i64 = 20_000_000;

/// How many times two clocks are read together. A reading takes less than 100 ns, so it is unlikely
/// that the thread is preempted in all of them.
const READINGS: usize = 16;

/// Two clocks read together: the second between two readings of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reading {
    before: i64,
    other: i64,
    after: i64,
}

impl Reading {
    fn width(&self) -> i64 {
        self.after.wrapping_sub(self.before)
    }

    /// When the second clock was read, by the first; off by half the width at most.
    fn at(&self) -> i64 {
        self.before.wrapping_add(self.width() / 2)
    }
}

/// The tightest of so many readings. A preemption between two clocks makes a reading wide, and what
/// it says wrong by as much.
fn tightest(times: usize, mut read: impl FnMut() -> Reading) -> Reading {
    let mut best = read();
    for _ in 1..times {
        let reading = read();
        if reading.width() < best.width() {
            best = reading;
        }
    }
    best
}

/// A clock with its zero at the start of a drive. Copied to every thread.
#[derive(Clone, Copy)]
pub struct Clock {
    /// Ticks (or monotonic nanoseconds) at zero.
    base: u64,
    /// Nanoseconds a tick, times 2^32; zero where the counter is not used.
    scale: u64,
}

impl Clock {
    /// A clock whose zero lies `ahead_ns` in the future.
    pub fn starting_in(ahead_ns: i64) -> Clock {
        match tsc_scale() {
            Some(scale) => {
                let ahead_ticks = ((ahead_ns as u128) << 32) / scale as u128;
                Clock {
                    base: ticks().wrapping_add(ahead_ticks as u64),
                    scale,
                }
            }
            None => Clock {
                base: (monotonic_ns() + ahead_ns) as u64,
                scale: 0,
            },
        }
    }

    /// A clock whose zero is at this time since 1970 UTC.
    pub fn starting_at(start_unix_ns: i64) -> Clock {
        let now = Clock::starting_in(0);
        now.later(start_unix_ns - now.zero_unix_ns())
    }

    /// When the zero is, in nanoseconds since 1970 UTC.
    pub fn zero_unix_ns(&self) -> i64 {
        let reading = self.read_with(unix_ns);
        reading.other - reading.at()
    }

    /// This clock and another, read as nearly at once as can be.
    fn read_with(&self, other: fn() -> i64) -> Reading {
        tightest(READINGS, || Reading {
            before: self.now(),
            other: other(),
            after: self.now(),
        })
    }

    /// The same clock with its zero so much later.
    fn later(self, by_ns: i64) -> Clock {
        let by = match self.scale {
            0 => by_ns,
            scale => (((by_ns as i128) << 32) / scale as i128) as i64,
        };
        Clock {
            base: self.base.wrapping_add_signed(by),
            ..self
        }
    }

    /// Nanoseconds since the zero; negative before it.
    #[inline(always)]
    pub fn now(&self) -> i64 {
        if self.scale != 0 {
            let delta = ticks().wrapping_sub(self.base) as i64;
            ((delta as i128 * self.scale as i128) >> 32) as i64
        } else {
            monotonic_ns() - self.base as i64
        }
    }

    /// `"tsc"` or `"monotonic"`, as the accounting names it.
    pub fn name(&self) -> &'static str {
        if self.scale != 0 { "tsc" } else { "monotonic" }
    }
}

/// Compares a clock with CLOCK_MONOTONIC from when it is made until it is asked.
pub struct DriftCheck {
    clock: Clock,
    began: Reading,
}

impl DriftCheck {
    pub fn begin(clock: Clock) -> DriftCheck {
        let began = clock.read_with(monotonic_ns);
        DriftCheck { clock, began }
    }

    /// How much faster than CLOCK_MONOTONIC the clock went since `begin`, in parts per million.
    pub fn ppm(&self) -> f64 {
        let ended = self.clock.read_with(monotonic_ns);
        let truth = (ended.other - self.began.other) as f64;
        if truth <= 0.0 {
            return 0.0;
        }
        ((ended.at() - self.began.at()) as f64 - truth) / truth * 1e6
    }
}

/// CLOCK_MONOTONIC in nanoseconds.
pub fn monotonic_ns() -> i64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds since 1970 UTC.
pub fn unix_ns() -> i64 {
    read(libc::CLOCK_REALTIME)
}

fn read(which: libc::clockid_t) -> i64 {
    let mut at = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `at` is a valid timespec; both clocks exist on every Linux.
    unsafe { libc::clock_gettime(which, &mut at) };
    at.tv_sec * 1_000_000_000 + at.tv_nsec
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn ticks() -> u64 {
    // SAFETY: every x86-64 has the instruction, and it has no preconditions.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn ticks() -> u64 {
    0
}

/// Nanoseconds a tick times 2^32, or None where the counter is not to be trusted.
fn tsc_scale() -> Option<u64> {
    static SCALE: OnceLock<Option<u64>> = OnceLock::new();
    *SCALE.get_or_init(|| {
        if !tsc_is_trusted() {
            return None;
        }
        let first = ticks_with_monotonic();
        std::thread::sleep(std::time::Duration::from_nanos(CALIBRATION_NS as u64));
        let second = ticks_with_monotonic();
        let elapsed_ns = (second.other - first.other) as u128;
        let elapsed_ticks = second.at().wrapping_sub(first.at()) as u64 as u128;
        (elapsed_ticks > 0).then(|| ((elapsed_ns << 32) / elapsed_ticks) as u64)
    })
}

/// The counter and CLOCK_MONOTONIC. The rate rests on it for a whole process, hence more readings.
fn ticks_with_monotonic() -> Reading {
    tightest(2 * READINGS, || Reading {
        before: ticks() as i64,
        other: monotonic_ns(),
        after: ticks() as i64,
    })
}

#[cfg(target_arch = "x86_64")]
fn tsc_is_trusted() -> bool {
    let source =
        std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = flags
        .lines()
        .find(|line| line.starts_with("flags"))
        .unwrap_or_default();
    let has = |name: &str| flags.split_ascii_whitespace().any(|flag| flag == name);
    source.is_ok_and(|name| name.trim() == "tsc") && has("constant_tsc") && has("nonstop_tsc")
}

#[cfg(not(target_arch = "x86_64"))]
fn tsc_is_trusted() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_zero_lies_where_it_was_asked_for() {
        let clock = Clock::starting_in(5_000_000);
        let at = clock.now();
        assert!((-5_000_000..0).contains(&at), "{at}");
        std::thread::sleep(Duration::from_millis(6));
        assert!(clock.now() > 0);
    }

    #[test]
    fn it_agrees_with_the_monotonic_clock_to_a_fraction_of_a_per_mille() {
        let clock = Clock::starting_in(0);
        let check = DriftCheck::begin(clock);
        std::thread::sleep(Duration::from_millis(200));
        assert!(check.ppm().abs() < 200.0, "{} ppm", check.ppm());
    }

    #[test]
    fn it_never_goes_back() {
        let clock = Clock::starting_in(0);
        let mut last = clock.now();
        for _ in 0..100_000 {
            let at = clock.now();
            assert!(at >= last);
            last = at;
        }
    }

    #[test]
    fn a_preemption_between_two_clocks_does_not_move_the_zero() {
        // The zero is at 1_000_000_000 on the other clock. One reading was preempted for 3 ms before
        // the other clock was read, one for 5 ms after.
        let reading = |before: i64, waited: i64, after: i64| Reading {
            before,
            other: 1_000_000_000 + before + waited,
            after,
        };
        let sequence = [
            reading(100, 3_000_020, 3_000_140),
            reading(3_000_200, 20, 8_000_240),
            reading(8_000_300, 25, 8_000_340),
            reading(8_000_400, 70, 8_000_500),
        ];
        let zero = |times: usize| {
            let mut readings = sequence.into_iter();
            let best = tightest(times, || readings.next().unwrap());
            best.other - best.at() - 1_000_000_000
        };
        assert_eq!(zero(1), 1_500_000, "by the first reading alone");
        assert_eq!(zero(4), 5, "by the third, which is 40 ns wide");
    }

    #[test]
    fn a_clock_knows_when_its_zero_is_since_1970() {
        let earliest = unix_ns();
        let clock = Clock::starting_in(0);
        let latest = unix_ns();
        let zero = clock.zero_unix_ns();
        // Half the width of a reading, and what the two clocks drift apart meanwhile.
        let slack_ns = clock.read_with(unix_ns).width() + 1_000;
        assert!(zero >= earliest - slack_ns && zero <= latest + slack_ns);
        let later = Clock::starting_at(zero + 3_600_000_000_000);
        let off = later.zero_unix_ns() - zero - 3_600_000_000_000;
        assert!(off.abs() <= 2 * slack_ns, "{off}");
    }

    #[test]
    fn without_a_trusted_counter_the_monotonic_clock_serves() {
        let clock = Clock {
            base: monotonic_ns() as u64,
            scale: 0,
        };
        std::thread::sleep(Duration::from_millis(2));
        assert_eq!(clock.name(), "monotonic");
        assert!((2_000_000..2_000_000_000).contains(&clock.now()));
    }
}
