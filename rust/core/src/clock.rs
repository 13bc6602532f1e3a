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

/// One moment on both clocks.
#[derive(Clone, Copy)]
struct Pair {
    ticks: u64,
    monotonic_ns: i64,
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

    /// A clock whose zero is at this time since 1970 UTC, by the tightest of several readings.
    pub fn starting_at(start_unix_ns: i64) -> Clock {
        let now = Clock::starting_in(0);
        let mut best = (i64::MAX, 0);
        for _ in 0..16 {
            let before = now.now();
            let unix = unix_ns();
            let after = now.now();
            if after - before < best.0 {
                best = (
                    after - before,
                    before + (after - before) / 2 + start_unix_ns - unix,
                );
            }
        }
        now.later(best.1)
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
    clock_ns: i64,
    monotonic_ns: i64,
}

impl DriftCheck {
    pub fn begin(clock: Clock) -> DriftCheck {
        let (clock_ns, monotonic_ns) = paired(&clock);
        DriftCheck {
            clock,
            clock_ns,
            monotonic_ns,
        }
    }

    /// How much faster than CLOCK_MONOTONIC the clock went since `begin`, in parts per million.
    pub fn ppm(&self) -> f64 {
        let (clock_ns, monotonic_ns) = paired(&self.clock);
        let truth = (monotonic_ns - self.monotonic_ns) as f64;
        if truth <= 0.0 {
            return 0.0;
        }
        ((clock_ns - self.clock_ns) as f64 - truth) / truth * 1e6
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

/// Reads both clocks as nearly at once as can be: the tightest of several attempts.
fn paired(clock: &Clock) -> (i64, i64) {
    let mut best = (i64::MAX, 0, 0);
    for _ in 0..16 {
        let before = clock.now();
        let monotonic = monotonic_ns();
        let after = clock.now();
        if after - before < best.0 {
            best = (after - before, before + (after - before) / 2, monotonic);
        }
    }
    (best.1, best.2)
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
        let first = pair();
        std::thread::sleep(std::time::Duration::from_nanos(CALIBRATION_NS as u64));
        let second = pair();
        let elapsed_ns = (second.monotonic_ns - first.monotonic_ns) as u128;
        let elapsed_ticks = second.ticks.wrapping_sub(first.ticks) as u128;
        (elapsed_ticks > 0).then(|| ((elapsed_ns << 32) / elapsed_ticks) as u64)
    })
}

fn pair() -> Pair {
    let mut best = (
        u64::MAX,
        Pair {
            ticks: 0,
            monotonic_ns: 0,
        },
    );
    for _ in 0..32 {
        let before = ticks();
        let monotonic_ns = monotonic_ns();
        let width = ticks().wrapping_sub(before);
        if width < best.0 {
            best = (
                width,
                Pair {
                    ticks: before + width / 2,
                    monotonic_ns,
                },
            );
        }
    }
    best.1
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
