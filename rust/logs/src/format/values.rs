//! What a value of a named field means: an instant in one of several forms, a status in words.

use crate::clock::{Clock, decimal, number};

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
