//! The lines of PostgreSQL: prefix, severity and stamp, and how its three forms are told.

use crate::scan;

const SEVERITIES: [&[u8]; 14] = [
    b"LOG",
    b"ERROR",
    b"STATEMENT",
    b"DETAIL",
    b"FATAL",
    b"PANIC",
    b"WARNING",
    b"NOTICE",
    b"HINT",
    b"CONTEXT",
    b"LOCATION",
    b"QUERY",
    b"INFO",
    b"DEBUG",
];

/// The prefix, the severity and the message of a line of text.
pub fn cut(line: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    if line.first() == Some(&b'\t') {
        return None;
    }
    let mut from = 0;
    loop {
        let at = from + scan::find(&line[from..], b":  ", 0)?;
        let start = line[..at]
            .iter()
            .rposition(|b| !b.is_ascii_uppercase())
            .map_or(0, |n| n + 1);
        let word = &line[start..at];
        if SEVERITIES.contains(&word) {
            return Some((&line[..start], word, &line[at + 3..]));
        }
        from = at + 3;
    }
}

/// Whether a line is one of PostgreSQL's own, with a stamp in its prefix.
pub fn looks_text(line: &[u8]) -> bool {
    cut(line).is_some_and(|(prefix, ..)| stamp_in(prefix).is_some())
}

pub fn looks_csv(line: &[u8]) -> bool {
    line.len() > 40
        && line[4] == b'-'
        && line[10] == b' '
        && SEVERITIES[..8].iter().any(|severity| {
            let mut marked = b",".to_vec();
            marked.extend_from_slice(severity);
            marked.extend_from_slice(b",");
            memchr::memmem::find(line, &marked).is_some()
        })
}

pub fn looks_json(line: &[u8]) -> bool {
    line.starts_with(b"{\"timestamp\":")
        && memchr::memmem::find(line, b"\"error_severity\":").is_some()
}

/// Where a stamp is in a prefix: its beginning and its end, with its zone where that is an
/// offset or UTC.
pub fn stamp_in(prefix: &[u8]) -> Option<(usize, usize)> {
    let at = prefix.windows(11).position(|w| {
        w[4] == b'-' && w[7] == b'-' && w[10] == b' ' && w[..4].iter().all(u8::is_ascii_digit)
    })?;
    let mut end = at + 19;
    if end > prefix.len() || prefix[at + 13] != b':' {
        return None;
    }
    if prefix.get(end) == Some(&b'.') {
        end += 1 + prefix[end + 1..]
            .iter()
            .take_while(|b| b.is_ascii_digit())
            .count();
    }
    let behind = &prefix[end..];
    if behind.starts_with(b" UTC") || behind.starts_with(b" GMT") {
        end += 4;
    } else if let [b' ', b'+' | b'-', digits @ ..] = behind {
        // Zones without letters are written so: `-03` of America/Sao_Paulo, `+0330` of Asia/Tehran.
        let many = digits.iter().take_while(|b| b.is_ascii_digit()).count();
        if matches!(many, 2 | 4) {
            end += 2 + many;
        }
    }
    Some((at, end))
}

/// What is noted of a stamp with such a zone.
pub const LETTERS: &str = "a time with letters for its zone that several zones share";

/// Whether what is behind a stamp is letters for a zone, such as ` CET`, that do not say which.
pub fn lettered(behind: &[u8]) -> bool {
    let Some(letters) = behind.strip_prefix(b" ") else {
        return false;
    };
    let many = letters
        .iter()
        .take_while(|b| b.is_ascii_uppercase())
        .count();
    matches!(many, 2..=5) && !letters.get(many).is_some_and(u8::is_ascii_alphanumeric)
}
