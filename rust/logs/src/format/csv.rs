//! Cells of CSV, quoted or not.

use crate::format::amid::{behind, line_at};
use crate::format::prefix::stamp_in;
use crate::source::LONGEST;

/// A record of csvlog has more cells than this.
const CELLS: usize = 19;

/// What begins at a place of csvlog, and where the next begins.
pub enum Next {
    Record(usize),
    /// A line that is no record.
    Line(usize),
    /// What may be a record, and goes on beyond the text.
    Open,
}

/// What begins at `at`; the cells of a record. `last`: nothing follows the text.
pub fn next<'a>(text: &'a [u8], at: usize, cells: &mut Vec<&'a [u8]>, last: bool) -> Next {
    let line = line_at(text, at);
    if stamp_in(&line[..line.len().min(40)]).is_some_and(|stamp| stamp.0 == 0) {
        let open = !last && text.len() - at <= LONGEST;
        match record(text, at, cells) {
            Scan::Next(next) if next - at <= LONGEST && cells.len() > CELLS => {
                return Next::Record(next);
            }
            Scan::End { .. } if open => return Next::Open,
            Scan::End { within: false } if cells.len() > CELLS => return Next::Record(text.len()),
            _ => {}
        }
    }
    Next::Line(behind(text, at))
}

/// What a scan of a record came to.
enum Scan {
    /// Where the next one begins.
    Next(usize),
    /// The end of the text; `within` quotes.
    End { within: bool },
    /// What no record has.
    Broken,
}

/// The cells of a record of csvlog that begins at `at`.
fn record<'a>(text: &'a [u8], mut at: usize, cells: &mut Vec<&'a [u8]>) -> Scan {
    cells.clear();
    loop {
        let start = at;
        if text.get(at) == Some(&b'"') {
            at += 1;
            loop {
                let Some(n) = text.get(at..).and_then(|rest| memchr::memchr(b'"', rest)) else {
                    return Scan::End { within: true };
                };
                at += n + 1;
                if text.get(at) != Some(&b'"') {
                    break;
                }
                at += 1;
            }
        } else {
            at += memchr::memchr2(b',', b'\n', &text[at..]).unwrap_or(text.len() - at);
        }
        let cell = &text[start..at];
        cells.push(cell.strip_suffix(b"\r").unwrap_or(cell));
        match text.get(at) {
            Some(b',') => at += 1,
            Some(b'\n') => return Scan::Next(at + 1),
            // On Windows.
            Some(b'\r') if text.get(at + 1) == Some(&b'\n') => return Scan::Next(at + 2),
            Some(b'\r') if at + 1 == text.len() => return Scan::End { within: false },
            None => return Scan::End { within: false },
            Some(_) => return Scan::Broken,
        }
    }
}

/// A cell of CSV as written, and what follows its separator.
pub fn cell(text: &[u8], separator: u8) -> (&[u8], Option<&[u8]>) {
    let mut end = 0;
    if text.first() == Some(&b'"') {
        end = 1;
        while let Some(n) = memchr::memchr(b'"', &text[end..]) {
            end += n + 1;
            if text.get(end) != Some(&b'"') {
                break;
            }
            end += 1;
        }
    }
    match memchr::memchr(separator, &text[end.min(text.len())..]) {
        Some(n) => (&text[..end + n], Some(&text[end + n + 1..])),
        None => (text, None),
    }
}

/// What a cell says, into `into`: without its quotes, and doubled ones single.
pub fn unquoted(cell: &[u8], into: &mut Vec<u8>) {
    into.clear();
    match cell.strip_prefix(b"\"").and_then(|c| c.strip_suffix(b"\"")) {
        Some(inner) => {
            let mut again = false;
            for &b in inner {
                again = b == b'"' && !again;
                if !again {
                    into.push(b);
                }
            }
        }
        None => into.extend_from_slice(cell),
    }
}
