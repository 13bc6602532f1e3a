//! What syslog puts before a line: servers that log through it have no lines without.
//!
//! ```text
//! Feb  6 12:14:14 HOST haproxy[14389]: ..                      rsyslog's and syslog-ng's files
//! 2026-02-06T12:14:14.655+01:00 HOST haproxy[14389]: ..         the same with RFC 3339's times
//! <134>1 2026-02-06T12:14:14Z HOST haproxy 14389 - [..] ..      RFC 5424
//! 2026-02-06T12:14:14.655Z stdout F ..                          files of Kubernetes' containers
//! ```
//!
//! A priority (`<134>`) may stand before each of them, or alone, as on the wire. The host may be
//! absent (HAProxy sends none unless told to). The time is that of syslog, and no better than that
//! of the line itself.

use crate::scan::word;

/// The host that a header names (empty: none), and the line behind it; the whole line where there
/// is no header.
#[inline]
pub fn cut(line: &[u8]) -> (&[u8], &[u8]) {
    // Nearly all lines have none; that is told by a few bytes.
    match line {
        [b'<', ..]
        | [_, _, _, b' ', _, _, b' ', _, _, b':', _, _, b':', ..]
        | [_, _, _, _, b'-', _, _, b'-', _, _, b'T', ..] => header(line).unwrap_or((b"", line)),
        _ => (b"", line),
    }
}

#[inline(never)]
fn header(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = match line.strip_prefix(b"<") {
        Some(after) => {
            let digits = after
                .iter()
                .take(4)
                .take_while(|b| b.is_ascii_digit())
                .count();
            let rest = after[digits..].strip_prefix(b">").filter(|_| digits > 0)?;
            if let Some(after) = rest.strip_prefix(b"1 ") {
                return structured(after);
            }
            rest
        }
        None => line,
    };
    let Some(after) = stamped(rest) else {
        // A priority alone.
        return (rest.len() < line.len()).then_some((b"", rest));
    };
    // A container's runtime (CRI) names the stream, and whether the line is whole.
    if let Some(line) = [&b"stdout F "[..], b"stderr F "]
        .iter()
        .find_map(|stream| after.strip_prefix(*stream))
    {
        return Some((b"", line));
    }
    // `HOST TAG: ` or `TAG: `; a tag ends in a colon.
    let (first, after) = word(after);
    if let Some(b':') = first.last() {
        return Some((b"", unblanked(after)?));
    }
    let (tag, after) = word(unblanked(after)?);
    (tag.last() == Some(&b':')).then_some((first, unblanked(after)?))
}

/// What follows `Feb  6 12:14:14 ` or `2026-02-06T12:14:14.655+01:00 `.
fn stamped(text: &[u8]) -> Option<&[u8]> {
    if let [b'A'..=b'Z', b'a'..=b'z', b'a'..=b'z', b' ', ..] = text {
        let (time, rest) = (text.get(7..15)?, &text[15..]);
        let fits = text[6] == b' ' && time[2] == b':' && time[5] == b':';
        return unblanked(rest).filter(|_| fits && time[0].is_ascii_digit());
    }
    let (time, rest) = word(text);
    let fits = time.len() >= 19 && time[10] == b'T' && time[13] == b':' && time[16] == b':';
    unblanked(rest).filter(|_| fits)
}

/// What follows the version of RFC 5424: time, host, application, process, kind, data.
fn structured(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (_time, rest) = word(text);
    let (host, mut rest) = word(unblanked(rest)?);
    for _ in 0..3 {
        (_, rest) = word(unblanked(rest)?);
    }
    let mut rest = unblanked(rest)?;
    if let Some(after) = rest.strip_prefix(b"-") {
        rest = after;
    } else {
        while rest.first() == Some(&b'[') {
            rest = element(rest)?;
        }
    }
    // rsyslog's own template has two blanks; a byte order mark says that UTF-8 follows.
    let rest = rest.trim_ascii_start();
    let rest = rest.strip_prefix(b"\xef\xbb\xbf").unwrap_or(rest);
    Some((if host == b"-" { b"" } else { host }, rest))
}

/// What follows `[id name="value" ..]`, where `"`, `\` and `]` are escaped within values.
fn element(text: &[u8]) -> Option<&[u8]> {
    let (mut within, mut at) = (false, 1);
    while at < text.len() {
        match text[at] {
            b'\\' if within => at += 1,
            b'"' => within = !within,
            b']' if !within => return Some(&text[at + 1..]),
            _ => {}
        }
        at += 1;
    }
    None
}

fn unblanked(text: &[u8]) -> Option<&[u8]> {
    text.strip_prefix(b" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> (&str, &str) {
        let (host, rest) = cut(line.as_bytes());
        (
            std::str::from_utf8(host).unwrap(),
            std::str::from_utf8(rest).unwrap(),
        )
    }

    #[test]
    fn each_header_of_syslog_is_left_out_and_its_host_is_known() {
        let line = "10.0.1.2:33317 [06/Feb/2009:12:14:14.655] www a: b";
        for (header, host) in [
            ("Feb  6 12:14:14 localhost haproxy[14389]: ", "localhost"),
            ("Feb 16 12:14:14 haproxy[14389]: ", ""),
            ("<134>Feb  6 12:14:14 lb-1 haproxy[14389]: ", "lb-1"),
            ("<134>", ""),
            ("2009-02-06T12:14:14.655123456Z stdout F ", ""),
            (
                "2009-02-06T12:14:14.655123+01:00 lb-1 haproxy[14389]: ",
                "lb-1",
            ),
            (
                "<134>1 2009-02-06T12:14:14Z lb-1 haproxy 14389 - - ",
                "lb-1",
            ),
            ("<134>1 2009-02-06T12:14:14Z - haproxy 14389 - -  ", ""),
            (
                "<134>1 2009-02-06T12:14:14Z lb-1 haproxy 14389 ID7 [a@1 b=\"x \\\"]\\] y\"][c@2] \u{feff}",
                "lb-1",
            ),
        ] {
            assert_eq!(split(&format!("{header}{line}")), (host, line), "{header}");
        }
    }

    #[test]
    fn a_line_without_a_header_stays_whole() {
        for line in [
            "10.0.1.2:33317 [06/Feb/2009:12:14:14.655] www",
            "Feb  6 12:14:14 localhost kernel",
            "<134>",
            "<x>1 2009",
            "<134>1 2009-02-06T12:14:14Z lb-1 haproxy 14389 - [a b=\"",
            "2009-02-06T12:14:14Z",
            "",
        ] {
            let (host, rest) = split(line);
            assert!(host.is_empty(), "{line}");
            assert!(rest == line || rest.is_empty(), "{line}");
        }
    }
}
