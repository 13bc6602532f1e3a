//! What a value of a named field means: an instant in one of several forms, a status in words.

use crate::clock::{Clock, decimal, number, offset};

/// A stamp in any of the common forms: ISO, seconds or milliseconds since 1970, that of access logs.
pub fn instant(clock: &mut Clock, text: &[u8]) -> Option<i64> {
    if text.len() >= 19 && text[4] == b'-' {
        return clock.iso_ns(text);
    }
    if text.len() >= 20 && text[2] == b'/' {
        return crate::format::access::stamp(clock, text);
    }
    // Seconds have ten digits until the year 2286; what has more is milli-, micro- or nanoseconds.
    let unit_ns = match text.iter().take_while(|b| b.is_ascii_digit()).count() {
        0..=11 => 1_000_000_000,
        12..=14 => 1_000_000,
        15..=17 => 1_000,
        _ => 1,
    };
    i64::try_from(decimal(text, unit_ns)?.0).ok()
}

/// Whether an ISO stamp ends in a name of a zone that does not say which one it is, or that is not
/// read, such as `CET` and `Europe/Paris`.
pub fn names_unknown_zone(text: &[u8]) -> bool {
    if text.len() <= 19 || text[4] != b'-' {
        return false;
    }
    let mut behind = &text[19..];
    if let [b'.' | b',', rest @ ..] = behind {
        behind = &rest[rest.iter().take_while(|b| b.is_ascii_digit()).count()..];
    }
    let behind = behind.trim_ascii();
    let half = behind.eq_ignore_ascii_case(b"AM") || behind.eq_ignore_ascii_case(b"PM");
    behind.first().is_some_and(u8::is_ascii_alphabetic) && !half && offset(behind).is_none()
}

/// Whether a value is a number that is too small to be an instant: a field `time` may be a duration.
pub fn is_no_instant(value: &[u8]) -> bool {
    const YEAR_1973_NS: u64 = 100_000_000_000_000_000;
    value.len() < 19 && decimal(value, 1_000_000_000).is_some_and(|(ns, _)| ns < YEAR_1973_NS)
}

/// What is noted of a status in words that nobody knows.
pub const STATUS: &str = "a status that is known neither as good nor as bad, counted as good";
const WELL: [&[u8]; 12] = [
    b"",
    b"-",
    b"ok",
    b"true",
    b"success",
    b"successful",
    b"succeeded",
    b"complete",
    b"completed",
    b"done",
    b"finished",
    b"found",
];
const BADLY: [&[u8]; 17] = [
    b"false",
    b"error",
    b"err",
    b"fail",
    b"failed",
    b"failure",
    b"exception",
    b"timeout",
    b"timed_out",
    b"timed out",
    b"timedout",
    b"aborted",
    b"cancelled",
    b"canceled",
    b"rejected",
    b"fatal",
    b"killed",
];

/// Whether a status says that all went well; None where it is not known. `200 OK` goes by its number.
pub fn went_well(status: &[u8]) -> Option<bool> {
    let status = status.trim_ascii();
    let digits = status.iter().take_while(|b| b.is_ascii_digit()).count();
    if digits > 0
        && status
            .get(digits)
            .is_none_or(|b| !b.is_ascii_alphanumeric())
    {
        return number(&status[..digits]).map(|code| code < 400);
    }
    let is = |known: &&[u8]| known.eq_ignore_ascii_case(status);
    if WELL.iter().any(is) {
        return Some(true);
    }
    BADLY.iter().any(is).then_some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_zones_that_are_not_read_are_known_as_such() {
        for text in ["EST", " CET", ".5 Europe/Paris", ",123 JST"] {
            let stamp = format!("2026-03-04 00:00:00{text}");
            assert!(names_unknown_zone(stamp.as_bytes()), "{stamp}");
        }
        for text in [
            "", "Z", " UTC", " GMT", ".5+01:00", " -03", " PM", ".123", "am",
        ] {
            let stamp = format!("2026-03-04 00:00:00{text}");
            assert!(!names_unknown_zone(stamp.as_bytes()), "{stamp}");
        }
    }
}
