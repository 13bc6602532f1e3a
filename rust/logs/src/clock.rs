//! Times as logs write them, as nanoseconds since 1970.
//!
//! Many logs write local time without its zone. `Zone` has the offsets that were in force, as the
//! caller gives them. Where clocks are set back, an hour passes twice: a stamp in it is of the first
//! passing, unless the log would go back by it; then it is of the second (`Clock::second`). An hour
//! that clocks leave out is taken as if they had gone on.
//!
//! Longer than 450 lines with its tests: stamps, zones and the clock that keeps both are one thing.

/// How far the stamps of one log may go back because entries that ended together are written in any
/// order, in seconds.
const DISORDER_S: i64 = 300;

/// From which instant (UTC, seconds) which offset (seconds east) was in force; the first holds
/// before it too. Empty: local time is kept as it is.
#[derive(Clone, Debug, Default)]
pub struct Zone(pub Vec<(i64, i64)>);

/// The instants (UTC, seconds) that a local time may mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instants {
    One(i64),
    /// The clock passed it twice.
    Two(i64, i64),
    /// The clock left it out; what it would have been, had the clock gone on.
    Skipped(i64),
}

impl Zone {
    /// Whether clocks are ever set in it.
    pub fn changes(&self) -> bool {
        self.0.len() > 1
    }

    pub fn instants(&self, local_s: i64) -> Instants {
        let mut found: Option<i64> = None;
        let mut skipped = None;
        for (i, &(from, offset)) in self.0.iter().enumerate() {
            let utc = local_s - offset;
            let begun = i == 0 || utc >= from;
            let next = self.0.get(i + 1);
            let ended = next.is_some_and(|&(next, _)| utc >= next);
            if begun && !ended {
                if let Some(first) = found {
                    return Instants::Two(first, utc);
                }
                found = Some(utc);
            } else if begun && next.is_some_and(|&(from, offset)| local_s - offset < from) {
                skipped = Some(utc);
            }
        }
        match (found, skipped) {
            (Some(utc), _) => Instants::One(utc),
            (None, skipped) => Instants::Skipped(skipped.unwrap_or(local_s)),
        }
    }
}

/// Days since 1970 of a date of the Gregorian calendar.
pub fn days(year: i64, month: i64, day: i64) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let of_era = y - era * 400;
    let shifted = (month + 9) % 12;
    let of_year = (153 * shifted + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The same of a date that can be one of a log: years 1900 to 2200, so that nanoseconds fit.
pub fn date(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let fits =
        (1900..=2200).contains(&year) && (1..=12).contains(&month) && (1..=last).contains(&day);
    fits.then(|| days(year, month, day))
}

/// Month 1..=12 of its English name in three letters.
pub fn month(name: &[u8]) -> Option<i64> {
    const NAMES: &[u8; 36] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
    let at = NAMES.chunks(3).position(|m| m == name)?;
    Some(at as i64 + 1)
}

/// A whole number of ASCII digits (blanks before it are skipped).
#[inline]
pub fn number(text: &[u8]) -> Option<i64> {
    let text = text.trim_ascii_start();
    if text.is_empty() || text.len() > 18 {
        return None;
    }
    let mut value = 0i64;
    for &b in text {
        let digit = b.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + i64::from(digit);
    }
    Some(value)
}

/// The same of three digits: milliseconds.
#[inline]
pub fn three(text: &[u8]) -> Option<i64> {
    match *text {
        [b'0'..=b'9', b'0'..=b'9', b'0'..=b'9'] => Some(i64::from(of_three(text))),
        _ => number(text),
    }
}

/// The value of three digits.
#[inline(always)]
fn of_three(text: &[u8]) -> u32 {
    u32::from(text[0] - b'0') * 100 + u32::from(text[1] - b'0') * 10 + u32::from(text[2] - b'0')
}

/// `20:39:57` as seconds of the day.
pub fn clock(text: &[u8]) -> Option<i64> {
    if text.len() != 8 || text[2] != b':' || text[5] != b':' {
        return None;
    }
    let (h, m, s) = (
        number(&text[..2])?,
        number(&text[3..5])?,
        number(&text[6..])?,
    );
    (h < 24 && m < 60 && s < 61).then_some(h * 3600 + m * 60 + s)
}

/// A decimal number as nanoseconds (`unit_ns` is that of 1), and the value of its last digit.
///
/// ``0.003`` with 1e9 → (3_000_000, 1_000_000). None where it is no such number.
#[inline]
pub fn decimal(text: &[u8], unit_ns: u64) -> Option<(u64, u32)> {
    // What most logs write: some digits, a point, three digits.
    if let [whole @ .., b'.', b'0'..=b'9', b'0'..=b'9', b'0'..=b'9'] = text
        && (1..=6).contains(&whole.len())
        && unit_ns.is_multiple_of(1000)
        && let Some(whole) = few_digits(whole)
    {
        let thousandth = unit_ns / 1000;
        let ns = (whole * 1000 + u64::from(of_three(&text[text.len() - 3..])))
            .checked_mul(thousandth)?;
        return Some((ns, thousandth.clamp(1, 1_000_000_000) as u32));
    }
    let (mut whole, mut i) = (0u64, 0);
    while i < text.len() && text[i].is_ascii_digit() {
        whole = whole
            .checked_mul(10)?
            .checked_add(u64::from(text[i] - b'0'))?;
        i += 1;
    }
    if i == 0 {
        return None;
    }
    let mut ns = whole.checked_mul(unit_ns)?;
    let mut unit = unit_ns;
    if i < text.len() {
        if text[i] != b'.' || i + 1 == text.len() {
            return None;
        }
        for &b in &text[i + 1..] {
            if !b.is_ascii_digit() {
                return None;
            }
            unit /= 10;
            ns = ns.checked_add(u64::from(b - b'0') * unit)?;
            if unit == 0 {
                break;
            }
        }
    }
    Some((ns, unit.clamp(1, 1_000_000_000) as u32))
}

/// A number of so few digits that it cannot be too large.
#[inline(always)]
fn few_digits(text: &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for &b in text {
        let digit = b.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    Some(value)
}

/// The same of how long something took; None of more than 115 days, which no log means.
#[inline]
pub fn duration(text: &[u8], unit_ns: u64) -> Option<(u64, u32)> {
    decimal(text, unit_ns).filter(|&(ns, _)| ns <= 10_000_000_000_000_000)
}

/// `4.86e-05`, as programs write short times: nanoseconds and their resolution.
pub fn scientific(text: &[u8], unit_ns: u64) -> Option<(u64, u32)> {
    let at = memchr::memchr2(b'e', b'E', text)?;
    let (mantissa, exponent) = (&text[..at], &text[at + 1..]);
    let digits = exponent.strip_prefix(b"-").or(exponent.strip_prefix(b"+"));
    let size = number(digits.unwrap_or(exponent)).filter(|&n| n <= 30)? as i32;
    let exponent = if exponent[0] == b'-' { -size } else { size };
    // Digits alone, so that neither `inf` nor a sign is a time.
    decimal(mantissa, 1)?;
    let behind = memchr::memchr(b'.', mantissa).map_or(0, |dot| mantissa.len() - dot - 1);
    let value: f64 = std::str::from_utf8(mantissa).ok()?.parse().ok()?;
    let ns = value * unit_ns as f64 * 10f64.powi(exponent);
    let step = unit_ns as f64 * 10f64.powi(exponent - behind.min(30) as i32);
    (ns <= 1e16).then(|| (ns.round() as u64, step.clamp(1.0, 1e9) as u32))
}

/// Which passing of a local time a stamp is of.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Passing {
    #[default]
    Only,
    First,
    Second,
    Skipped,
}

/// Turns stamps into instants; remembers the last second, which most lines share.
#[derive(Clone, Default)]
pub struct Clock {
    pub zone: Zone,
    /// The instant (UTC, seconds) of the last stamp without a zone of its own.
    at_s: Option<i64>,
    first: u64,
    second: u64,
    skipped: u64,
    last: [u8; 32],
    last_len: usize,
    last_s: i64,
    last_passing: Passing,
}

impl Clock {
    pub fn new(zone: &Zone) -> Clock {
        Clock {
            zone: zone.clone(),
            ..Clock::default()
        }
    }

    /// The log goes on behind an entry of this instant (UTC, seconds), if it is known.
    pub fn go_on(&mut self, at_s: Option<i64>) {
        self.at_s = at_s;
        self.last_len = 0;
        self.last_passing = Passing::Only;
    }

    /// The instant of the last stamp that had no zone of its own.
    pub fn at_s(&self) -> Option<i64> {
        self.at_s
    }

    /// Whether the last stamp means one instant, whatever stands before it.
    pub fn is_sure(&self) -> bool {
        !matches!(self.last_passing, Passing::First | Passing::Second)
    }

    /// Tells what was met since the last time, and forgets it.
    pub fn tell(&mut self, mut note: impl FnMut(&'static str, u64)) {
        note(TWICE, std::mem::take(&mut self.first));
        note(SECOND, std::mem::take(&mut self.second));
        note(SKIPPED, std::mem::take(&mut self.skipped));
    }

    /// The second (UTC) of a stamp; `local` parses it into seconds of local time, or, where the
    /// stamp has its own zone, (seconds UTC, true).
    #[inline]
    pub fn second(
        &mut self,
        stamp: &[u8],
        parse: impl FnOnce(&[u8]) -> Option<(i64, bool)>,
    ) -> Option<i64> {
        if self.last_len != stamp.len() || &self.last[..stamp.len()] != stamp {
            let (s, is_utc) = parse(stamp)?;
            (self.last_s, self.last_passing) = if is_utc || self.zone.0.is_empty() {
                (s, Passing::Only)
            } else {
                self.instant(s)
            };
            self.last_len = 0;
            if stamp.len() <= self.last.len() {
                self.last[..stamp.len()].copy_from_slice(stamp);
                self.last_len = stamp.len();
            }
        }
        match self.last_passing {
            Passing::Only => {}
            Passing::First => self.first += 1,
            Passing::Second => self.second += 1,
            Passing::Skipped => self.skipped += 1,
        }
        Some(self.last_s)
    }

    fn instant(&mut self, local_s: i64) -> (i64, Passing) {
        let found = match self.zone.instants(local_s) {
            Instants::One(utc) => (utc, Passing::Only),
            Instants::Skipped(utc) => (utc, Passing::Skipped),
            Instants::Two(first, second) => {
                let from = self.at_s.map_or(i64::MIN, |at| at - DISORDER_S);
                if first < from && second >= from {
                    (second, Passing::Second)
                } else {
                    (first, Passing::First)
                }
            }
        };
        self.at_s = Some(found.0);
        found
    }
}

/// Notes on entries of hours in which clocks are set.
pub const TWICE: &str = "in an hour that the clock passed twice, taken as its first passing";
pub const SECOND: &str = "in an hour that the clock passed twice, in its second passing";
pub const SKIPPED: &str = "in an hour that the clock left out, taken as if it had gone on";

/// `2026-11-22T11:03:30` or with a blank in place of the T: seconds as written.
pub fn iso(text: &[u8]) -> Option<i64> {
    if text.len() != 19 || text[4] != b'-' || text[7] != b'-' {
        return None;
    }
    let (y, m, d) = (
        number(&text[..4])?,
        number(&text[5..7])?,
        number(&text[8..10])?,
    );
    Some(date(y, m, d)? * 86_400 + clock(&text[11..])?)
}

/// A zone at the end of a stamp: `Z`, `+09:00`, `+0900`, ` +0900`, `UTC`; seconds east.
pub fn offset(text: &[u8]) -> Option<i64> {
    let text = text.trim_ascii();
    match text {
        b"Z" | b"UTC" | b"GMT" => return Some(0),
        _ => {}
    }
    let (&sign, rest) = text.split_first()?;
    if sign != b'+' && sign != b'-' {
        return None;
    }
    let hours = number(rest.get(..2)?)?;
    let minutes = match rest.len() {
        2 => 0,
        4 => number(&rest[2..])?,
        5 if rest[2] == b':' => number(&rest[3..])?,
        _ => return None,
    };
    let east = hours * 3600 + minutes * 60;
    Some(if sign == b'-' { -east } else { east })
}

/// By how many seconds a time with `AM` or `PM` behind it is later than it reads; 0 without them.
/// None where its hour is none of a clock of 12 hours.
fn half_of_day(behind: &[u8], hour: &[u8]) -> Option<i64> {
    let behind = behind.trim_ascii();
    let afternoon = match behind {
        _ if behind.len() != 2 => return Some(0),
        _ if behind.eq_ignore_ascii_case(b"PM") => true,
        _ if behind.eq_ignore_ascii_case(b"AM") => false,
        _ => return Some(0),
    };
    match (number(hour)?, afternoon) {
        (12, false) => Some(-43_200),
        (1..=11, true) => Some(43_200),
        (1..=12, _) => Some(0),
        _ => None,
    }
}

impl Clock {
    /// An ISO stamp with a fraction and a zone, or without them, as nanoseconds.
    ///
    /// Fractions may begin with a comma. `AM` or `PM` may follow, of hours from 1 to 12. A name of a
    /// zone other than UTC is not taken (`CET` is several): the zone of this clock holds.
    pub fn iso_ns(&mut self, text: &[u8]) -> Option<i64> {
        let rest = text.get(19..)?;
        let mut nanos = 0i64;
        let mut at = 0;
        if matches!(rest.first(), Some(b'.' | b',')) {
            at = 1;
            let mut unit = 100_000_000i64;
            while at < rest.len() && rest[at].is_ascii_digit() {
                nanos += i64::from(rest[at] - b'0') * unit;
                unit /= 10;
                at += 1;
            }
        }
        let zone = offset(&rest[at..]);
        let later = half_of_day(&rest[at..], &text[11..13])?;
        // Of one text there may be stamps with a zone and without, and in both halves of the day.
        let mut key = [0; 20];
        key[..19].copy_from_slice(&text[..19]);
        key[19] = u8::from(zone.is_some()) + 2 * u8::from(later != 0);
        let s = self.second(&key, |key| Some((iso(&key[..19])? + later, zone.is_some())))?;
        Some((s - zone.unwrap_or(0)) * 1_000_000_000 + nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_days_since_1970() {
        assert_eq!(days(1970, 1, 1), 0);
        assert_eq!(days(2026, 11, 22), 20_779);
        assert_eq!(days(2000, 2, 29), 11_016);
    }

    /// Paris in 2026: on 29 March 02:00 becomes 03:00, on 25 October 03:00 becomes 02:00, at 01:00
    /// UTC.
    fn paris() -> (Zone, i64, i64) {
        let forward = days(2026, 3, 29) * 86_400 + 3600;
        let back = days(2026, 10, 25) * 86_400 + 3600;
        let zone = Zone(vec![(0, 3600), (forward, 7200), (back, 3600)]);
        (zone, forward, back)
    }

    #[test]
    fn times_of_a_clock_of_12_hours_are_in_their_half_of_the_day() {
        let mut clock = Clock::default();
        let mut hour = |text: &str| {
            let day = days(2026, 3, 4) * 86_400;
            let found = clock.iso_ns(format!("2026-03-04 {text}").as_bytes())?;
            Some((found / 1_000_000_000 - day) / 3600)
        };
        assert_eq!(hour("06:00:00 AM"), Some(6));
        assert_eq!(hour("06:00:00 PM"), Some(18));
        assert_eq!(hour("12:00:00 AM"), Some(0));
        assert_eq!(hour("12:00:00 pm"), Some(12));
        assert_eq!(hour("06:00:00.5PM"), Some(18));
        assert_eq!(hour("18:00:00 PM"), None);
        assert_eq!(hour("18:00:00"), Some(18));
        assert_eq!(hour("18:00:00 CET"), Some(18));
    }

    fn met(clock: &mut Clock) -> [u64; 3] {
        let mut found = Vec::new();
        clock.tell(|_, n| found.push(n));
        [found[0], found[1], found[2]]
    }

    #[test]
    fn a_local_time_is_one_instant_or_two_or_none() {
        let (zone, forward, back) = paris();
        let local = |h: i64, m: i64| days(2026, 10, 25) * 86_400 + h * 3600 + m * 60;
        assert_eq!(zone.instants(local(1, 59)), Instants::One(back - 3660));
        let both = Instants::Two(back - 1800, back + 1800);
        assert_eq!(zone.instants(local(2, 30)), both);
        assert_eq!(zone.instants(local(3, 0)), Instants::One(back + 3600));
        let spring = |h: i64, m: i64| days(2026, 3, 29) * 86_400 + h * 3600 + m * 60;
        assert_eq!(zone.instants(spring(1, 59)), Instants::One(forward - 60));
        assert_eq!(
            zone.instants(spring(2, 30)),
            Instants::Skipped(forward + 1800)
        );
        assert_eq!(zone.instants(spring(3, 0)), Instants::One(forward));
        // West of Greenwich: New York, 8 March 2026, 02:00 becomes 03:00 at 07:00 UTC.
        let west = days(2026, 3, 8) * 86_400 + 7 * 3600;
        let zone = Zone(vec![(0, -18_000), (west, -14_400)]);
        let gap = zone.instants(west - 18_000 + 1800);
        assert_eq!(gap, Instants::Skipped(west + 1800));
    }

    #[test]
    fn an_hour_that_passes_twice_passes_again_where_the_log_would_go_back() {
        let (zone, _, back) = paris();
        let mut clock = Clock::new(&zone);
        let mut at = |text: &str| clock.iso_ns(text.as_bytes()).unwrap() / 1_000_000_000 - back;
        assert_eq!(at("2026-10-25 01:59:59"), -3601);
        assert_eq!(at("2026-10-25 02:00:00"), -3600);
        assert_eq!(at("2026-10-25 02:59:59.9"), -1);
        assert_eq!(at("2026-10-25 02:00:00.1"), 0);
        // One that is written late is still of the first passing, and the next of the second.
        assert_eq!(at("2026-10-25 02:59:58"), -2);
        assert_eq!(at("2026-10-25 02:00:03"), 3);
        assert_eq!(at("2026-10-25 02:40:00"), 2400);
        assert_eq!(at("2026-10-25 03:00:01"), 3601);
        assert_eq!(at("2026-10-25 02:59:59"), 3599);
        assert_eq!(met(&mut clock), [3, 4, 0]);
    }

    #[test]
    fn where_nothing_shows_the_second_passing_it_is_the_first() {
        let (zone, _, back) = paris();
        let mut clock = Clock::new(&zone);
        let later = clock.iso_ns(b"2026-12-01 00:00:00").unwrap();
        // The clock was set back by weeks: which passing is meant is not known.
        let then = clock.iso_ns(b"2026-10-25 02:30:00").unwrap();
        assert!(then < later && then / 1_000_000_000 == back - 1800);
        clock.iso_ns(b"2026-10-25 02:30:00.6").unwrap();
        clock.iso_ns(b"2026-10-25 03:30:00").unwrap();
        assert!(clock.is_sure());
        assert_eq!(met(&mut clock), [2, 0, 0]);
        clock.go_on(Some(back + 60));
        let again = clock.iso_ns(b"2026-10-25 02:02:00").unwrap() / 1_000_000_000;
        assert_eq!(again, back + 120);
        assert!(!clock.is_sure());
    }

    #[test]
    fn stamps_with_a_zone_need_none() {
        let mut clock = Clock::new(&Zone(vec![(0, 3600)]));
        let utc = clock.iso_ns(b"2026-11-22T02:59:00.970Z").unwrap();
        assert_eq!(clock.iso_ns(b"2026-11-22T11:59:00,970+09:00"), Some(utc));
        assert_eq!(clock.iso_ns(b"2026-11-22 03:59:00.970 CET"), Some(utc));
    }

    #[test]
    fn stamps_of_one_second_with_a_zone_and_without_are_two_instants() {
        let mut clock = Clock::new(&Zone(vec![(0, 3600)]));
        let local = clock.iso_ns(b"2026-11-22 02:59:00.970 CET").unwrap();
        let utc = clock.iso_ns(b"2026-11-22 02:59:00.970 UTC").unwrap();
        assert_eq!(utc - local, 3_600_000_000_000);
        assert_eq!(clock.iso_ns(b"2026-11-22 02:59:00.970"), Some(local));
    }

    #[test]
    fn three_digits_after_the_point_are_read_as_any_other_number() {
        for (text, more) in [
            ("0.003", "0.0030"),
            ("12.999", "12.9990"),
            ("123456.789", "123456.7890"),
            ("1234567.001", "1234567.0010"),
        ] {
            for unit in [1_000_000_000, 1_000_000, 1_000] {
                let (short, long) = (
                    decimal(text.as_bytes(), unit),
                    decimal(more.as_bytes(), unit),
                );
                assert_eq!(short.unwrap().0, long.unwrap().0, "{text} {unit}");
                assert_eq!(short.unwrap().1 as u64, unit / 1000, "{text} {unit}");
            }
        }
        for wrong in [".003", "a.003", "1.0a3", "1.2.345", "-1.000"] {
            assert_eq!(decimal(wrong.as_bytes(), 1_000_000_000), None, "{wrong}");
        }
    }

    #[test]
    fn decimals_have_the_value_of_their_last_digit() {
        assert_eq!(
            decimal(b"0.003", 1_000_000_000),
            Some((3_000_000, 1_000_000))
        );
        assert_eq!(decimal(b"937.7", 1000), Some((937_700, 100)));
        assert_eq!(decimal(b"12", 1_000_000), Some((12_000_000, 1_000_000)));
        assert_eq!(decimal(b"1.", 1), None);
        assert_eq!(decimal(b"-1", 1), None);
    }
}
