//! How long the null host takes for a request, and when that is over: laws whose truth is exact.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::f64::consts::TAU;
use std::time::{Duration, SystemTime};

use crate::options::Options;

/// Options that say how much, their neutral value, and the options without which they say nothing.
const NEEDS: [(&str, f64, &str); 7] = [
    ("cold_speed", 1.0, "warmup_tau_s"),
    ("slow_factor", 1.0, "slow_ms"),
    ("cold_speed", 1.0, "delay_us"),
    ("slow_factor", 1.0, "delay_us"),
    ("drift_per_min", 0.0, "delay_us"),
    ("service_sd", 0.0, "delay_us"),
    ("speed_sd", 0.0, "delay_us"),
];
/// The longest service: a drift is exponential, and a duration is not.
const LONGEST_S: f64 = 86_400.0;

/// A span at the beginning of each period but the first: [k·every, k·every + length), k ≥ 1.
#[derive(Clone)]
pub struct Periodic {
    every: Duration,
    length: Duration,
}

impl Periodic {
    /// From two options in milliseconds, the second shorter than the first; 0: never.
    pub fn new(options: &Options, every: &str, length: &str) -> Result<Periodic, String> {
        let [of, long] = [every, length].map(|name| options.size(name) as u64);
        if long > 0 && long >= of {
            return Err(format!(
                "--{length} {long} must be shorter than --{every} {of}"
            ));
        }
        Ok(Periodic {
            every: Duration::from_millis(of),
            length: Duration::from_millis(long),
        })
    }

    /// When the span ends that `at` lies in.
    pub fn end(&self, at: Duration) -> Option<Duration> {
        if self.length.is_zero() || at < self.every {
            return None;
        }
        let every = self.every.as_nanos() as u64;
        let begin = Duration::from_nanos(at.as_nanos() as u64 / every * every);
        (at - begin < self.length).then_some(begin + self.length)
    }
}

/// What a service takes, by the instant at which it begins, counted from the first query.
#[derive(Clone)]
pub struct Law {
    seconds: f64,
    /// Drawn for this start; 1 is the declared one.
    pub speed: f64,
    /// How much longer the first service takes: 1 / cold_speed - 1.
    cold: f64,
    tau_s: f64,
    /// Of the log of the time, per second.
    drift: f64,
    slow: Periodic,
    slow_factor: f64,
    sd: f64,
    random: Random,
}

impl Law {
    /// From the options; the error is one sentence.
    pub fn new(options: &Options) -> Result<Law, String> {
        for (name, neutral, needed) in NEEDS {
            if options.real(name) != neutral && options.real(needed) == 0.0 {
                return Err(format!("--{name} has no effect without --{needed}"));
            }
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let clock =
            now.map_or(0, |now| now.as_nanos() as u64) ^ (u64::from(std::process::id()) << 32);
        let mut drawn = Random(match options.int("seed") {
            0 => clock,
            seed => seed as u64,
        });
        Ok(Law {
            seconds: options.real("delay_us") / 1e6,
            speed: (options.real("speed_sd") * drawn.normal()).exp(),
            cold: 1.0 / options.real("cold_speed") - 1.0,
            tau_s: options.real("warmup_tau_s"),
            drift: options.real("drift_per_min").ln_1p() / 60.0,
            slow: Periodic::new(options, "slow_every_ms", "slow_ms")?,
            slow_factor: options.real("slow_factor"),
            sd: options.real("service_sd"),
            // Never of the seed: starts of one speed are not to be copies of each other.
            random: Random(!clock),
        })
    }

    /// The mean time of a service that begins at `begin`.
    fn mean_s(&self, begin: Duration) -> f64 {
        let t = begin.as_secs_f64();
        let cold = match self.cold {
            0.0 => 1.0,
            cold => 1.0 + cold * (-t / self.tau_s).exp(),
        };
        let slow = self.slow.end(begin).map_or(1.0, |_| self.slow_factor);
        self.seconds / self.speed * cold * slow * (self.drift * t).exp()
    }

    fn service(&mut self, begin: Duration) -> Duration {
        let mut seconds = self.mean_s(begin);
        if self.sd > 0.0 {
            // Lognormal; less half of the variance, so that the mean stays.
            seconds *= (self.sd * self.random.normal() - self.sd * self.sd / 2.0).exp();
        }
        Duration::from_secs_f64(seconds.min(LONGEST_S))
    }
}

/// What a term begins with that says how long its query takes.
const MARK: &[u8] = b"\"takes";

/// Requests in line for workers that each take one at a time, first in first out.
pub struct Line {
    law: Law,
    /// When the first query came: what happened before, documents being put in for example, takes
    /// a while that nobody knows beforehand.
    first: Option<Duration>,
    /// When each worker is free next; empty: nothing waits for anything.
    free: BinaryHeap<Reverse<Duration>>,
}

impl Line {
    pub fn new(workers: usize, law: Law) -> Line {
        Line {
            law,
            first: None,
            free: vec![Reverse(Duration::ZERO); workers].into(),
        }
    }

    /// When a request that arrives at `at` has been served.
    pub fn ends(&mut self, at: Duration) -> Duration {
        let first = *self.first.get_or_insert(at);
        let Some(mut free) = self.free.peek_mut() else {
            return at + self.law.service(at - first);
        };
        let begin = at.max(free.0);
        let end = begin + self.law.service(begin - first);
        *free = Reverse(end);
        end
    }

    /// The same of a request that says itself how long it takes at full speed.
    pub fn ends_taking(&mut self, at: Duration, seconds: f64) -> Duration {
        let usual = std::mem::replace(&mut self.law.seconds, seconds);
        let end = self.ends(at);
        self.law.seconds = usual;
        end
    }
}

/// The seconds that a query asks to take by a term such as `takes5000us`.
pub fn takes(payload: &[u8]) -> Option<f64> {
    let at = payload.windows(MARK.len()).position(|word| word == MARK)? + MARK.len();
    let rest = &payload[at..];
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    if digits == 0 || digits > 9 || !rest[digits..].starts_with(b"us\"") {
        return None;
    }
    let us = std::str::from_utf8(&rest[..digits]).ok()?;
    us.parse::<f64>().ok().map(|us| us / 1e6)
}

/// SplitMix64 (Steele, Lea and Flood 2014), and normal numbers of it by Box and Muller (1958).
#[derive(Clone)]
struct Random(u64);

impl Random {
    /// Above 0, at most 1.
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64 + f64::EPSILON / 2.0
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (TAU * self.uniform()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::null::OPTIONS;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn law(words: &str) -> Result<Law, String> {
        let words: Vec<String> = words.split_whitespace().map(String::from).collect();
        Law::new(&Options::parse(&[OPTIONS], &words)?)
    }

    /// Mean times over the declared one, by seconds since the start.
    fn costs<const N: usize>(words: &str, at_s: [f64; N]) -> [f64; N] {
        let law = law(&format!("--delay_us 2000 {words}")).unwrap();
        at_s.map(|at| law.mean_s(Duration::from_secs_f64(at)) / 0.002)
    }

    fn near<const N: usize>(found: [f64; N], wanted: [f64; N]) {
        for (found, wanted) in found.iter().zip(wanted) {
            assert!((found - wanted).abs() < 1e-9, "{found} is not {wanted}");
        }
    }

    #[test]
    fn what_a_warm_up_adds_falls_exponentially() {
        let rest = (-1f64).exp();
        near(
            costs("--cold_speed 0.4 --warmup_tau_s 5", [0.0, 5.0, 10.0, 1e4]),
            [2.5, 1.0 + 1.5 * rest, 1.0 + 1.5 * rest * rest, 1.0],
        );
    }

    #[test]
    fn a_drift_is_the_same_share_every_minute() {
        near(
            costs("--drift_per_min 0.1", [0.0, 60.0, 120.0]),
            [1.0, 1.1, 1.21],
        );
        near(costs("--drift_per_min -0.5", [60.0, 120.0]), [0.5, 0.25]);
    }

    #[test]
    fn periodic_slowness_begins_with_the_second_period() {
        let words = "--slow_every_ms 1000 --slow_ms 250 --slow_factor 3";
        near(
            costs(words, [0.0, 0.999, 1.0, 1.249, 1.25, 7.1]),
            [1.0, 1.0, 3.0, 3.0, 1.0, 3.0],
        );
    }

    #[test]
    fn a_speed_is_drawn_at_each_start_and_the_same_for_the_same_seed() {
        let speed = |seed: u32| law(&format!("--delay_us 1 --speed_sd 0.02 --seed {seed}"));
        let drawn: Vec<f64> = (1..=4000)
            .map(|seed| speed(seed).unwrap().speed.ln())
            .collect();
        let mean = drawn.iter().sum::<f64>() / 4000.0;
        let sd = (drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 4000.0).sqrt();
        assert!(
            mean.abs() < 0.0015 && (sd - 0.02).abs() < 0.001,
            "{mean} {sd}"
        );
        assert_eq!(speed(7).unwrap().speed, speed(7).unwrap().speed);
        assert_ne!(speed(0).unwrap().speed, speed(0).unwrap().speed);
        assert_eq!(law("--delay_us 1 --seed 7").unwrap().speed, 1.0);
    }

    #[test]
    fn services_scatter_around_the_declared_mean() {
        let mut law = law("--delay_us 1000 --service_sd 0.5").unwrap();
        let times: Vec<f64> = (0..40_000)
            .map(|_| law.service(MS(0)).as_secs_f64())
            .collect();
        let mean = times.iter().sum::<f64>() / 40_000.0;
        let slow = times
            .iter()
            .filter(|&&s| s > 0.001 * (0.5f64 * 2.0 - 0.125).exp());
        assert!((mean / 0.001 - 1.0).abs() < 0.015, "{mean}");
        // Beyond two standard deviations of the log: 2.28 %.
        assert!((800..1030).contains(&slow.count()));
    }

    #[test]
    fn a_request_begins_when_the_first_worker_is_free() {
        let mut line = Line::new(2, law("--delay_us 10000").unwrap());
        let ends = [0, 1, 2, 3, 12, 50, 50, 50].map(|at| line.ends(MS(at)).as_millis());
        assert_eq!(ends, [10, 11, 20, 21, 30, 60, 60, 70]);
    }

    #[test]
    fn a_query_may_say_how_long_it_takes() {
        let asked = |terms: &str| takes(format!("{{\"terms\":[{terms}]}}").as_bytes());
        assert_eq!(asked("\"red\",\"takes5000us\""), Some(0.005));
        for terms in ["\"red\"", "\"takesus\"", "\"takes5ms\"", "\"mistakes5us\""] {
            assert_eq!(asked(terms), None, "{terms}");
        }
        let mut line = Line::new(1, law("--delay_us 10000").unwrap());
        let ends = [
            line.ends_taking(MS(0), 0.002),
            line.ends(MS(1)),
            line.ends_taking(MS(1), 0.002),
        ];
        assert_eq!(ends.map(|end| end.as_millis()), [2, 12, 14]);
    }

    #[test]
    fn a_service_costs_what_it_costs_when_it_begins() {
        let slow = "--slow_every_ms 100 --slow_ms 20 --slow_factor 4";
        let mut line = Line::new(1, law(&format!("--delay_us 10000 {slow}")).unwrap());
        let ends = [5, 90, 91, 110, 111].map(|at| line.ends(MS(at)).as_millis());
        assert_eq!(ends, [15, 100, 110, 150, 160]);
    }

    #[test]
    fn without_workers_every_request_is_delayed_alone() {
        let mut line = Line::new(0, law("--delay_us 10000").unwrap());
        for at in [0, 0, 0, 7] {
            assert_eq!(line.ends(MS(at)), MS(at + 10));
        }
    }

    #[test]
    fn what_cannot_be_or_has_no_effect_is_refused_in_a_sentence() {
        for (words, said) in [
            ("--cold_speed 0", "--cold_speed is 0.01 to 1, not 0"),
            ("--cold_speed nan", "--cold_speed is 0.01 to 1, not NaN"),
            (
                "--speed_sd much",
                "--speed_sd is a number from 0 to 1, not \"much\"",
            ),
            (
                "--drift_per_min -1",
                "--drift_per_min is -0.9 to 10, not -1",
            ),
            (
                "--cold_speed 0.5",
                "--cold_speed has no effect without --warmup_tau_s",
            ),
            (
                "--slow_factor 2",
                "--slow_factor has no effect without --slow_ms",
            ),
            (
                "--drift_per_min 0.1",
                "--drift_per_min has no effect without --delay_us",
            ),
            (
                "--slow_ms 100 --slow_every_ms 100",
                "--slow_ms 100 must be shorter than --slow_every_ms 100",
            ),
        ] {
            assert_eq!(law(words).err().unwrap(), said);
        }
    }
}
