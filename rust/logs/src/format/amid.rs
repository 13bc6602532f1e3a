//! What the lines at the beginning of a block belong to, which only what stands before them tells.
//!
//! Statements have line breaks, and blocks are read in any order. So whoever cuts a log walks along,
//! from the last entry that begins in a block to the block's end, by the very steps by which a reader
//! tells what belongs to an entry; the next block is given what it begins amid.

use crate::format::{Format, mysql, sphinx};

/// What a line stands amid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Amid {
    /// No entry: none has begun, or lines of another program came behind the last.
    #[default]
    Nothing,
    /// The lines before a statement.
    Head,
    /// A statement. `ended`: it may be whole.
    Statement { ended: bool },
}

/// What stands before a block, as far as it matters there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Before {
    pub amid: Amid,
    /// The last line, where it is the time of an entry of MySQL's slow log, whose head follows.
    pub time: Vec<u8>,
}

/// What stands before `to`, of a log of which `before` stands before `from`, where a line begins. Lines
/// that begin before `to` are looked at, to their end.
pub fn after(format: Format, bytes: &[u8], from: usize, to: usize, before: &Before) -> Before {
    match format {
        _ if from >= to => before.clone(),
        Format::MysqlSlow | Format::SphinxQl => since_last(format, bytes, from, to)
            .unwrap_or_else(|| walked(format, bytes, from, to, before.amid)),
        _ => Before::default(),
    }
}

/// The same where it is not known what stands before `from`; None where no entry begins there.
pub fn since_last(format: Format, bytes: &[u8], from: usize, to: usize) -> Option<Before> {
    let at = last(format, bytes, from, to)?;
    Some(walked(format, bytes, at, to, Amid::Nothing))
}

/// Whether an entry of this format may have several lines, of which some may be in other blocks.
pub fn has_lines(format: Format) -> bool {
    matches!(format, Format::MysqlSlow | Format::SphinxQl)
}

/// Where the last entry begins of those that begin in `from..to`.
fn last(format: Format, bytes: &[u8], from: usize, to: usize) -> Option<usize> {
    match format {
        Format::MysqlSlow => mysql::last_head(bytes, from, to),
        Format::SphinxQl => sphinx::last_ql(bytes, from, to),
        _ => None,
    }
}

fn walked(format: Format, bytes: &[u8], from: usize, to: usize, amid: Amid) -> Before {
    let (mut amid, mut at, mut last) = (amid, from, &b""[..]);
    while at < to {
        last = line_at(bytes, at);
        amid = match format {
            Format::MysqlSlow if mysql::is_head(bytes, at) => Amid::Head,
            Format::MysqlSlow => mysql::then(amid, last),
            _ if sphinx::begins_ql(last) => sphinx::begun(last),
            _ => sphinx::then(amid, last),
        };
        at = behind(bytes, at);
    }
    let time = match format {
        Format::MysqlSlow => mysql::time_of(last).unwrap_or(b"").to_vec(),
        _ => Vec::new(),
    };
    Before { amid, time }
}

/// Whether what begins in `begin..end` can be seen to its end.
pub fn whole(format: Format, bytes: &[u8], begin: usize, end: usize) -> bool {
    if begin >= end {
        return true;
    }
    let mut breaks = memchr::memchr_iter(b'\n', &bytes[end - 1..]);
    if breaks.next().is_none() {
        return false;
    }
    if !has_lines(format) {
        return true;
    }
    // Of MySQL's slow log the line behind tells whether one begins an entry.
    breaks.next().is_some()
        && (last(format, bytes, begin, end).is_none()
            || match format {
                Format::MysqlSlow => mysql::next_head(bytes, end).is_some(),
                _ => sphinx::next_ql(bytes, end).is_some(),
            })
}

/// Whether the last of these lines says something of the entry that follows it: the two are not to be
/// parted where an entry may be left for the next reading.
pub fn goes_before(format: Format, lines: &[u8]) -> bool {
    let before = lines.strip_suffix(b"\n").unwrap_or(lines);
    let at = memchr::memrchr(b'\n', before).map_or(0, |n| n + 1);
    format == Format::MysqlSlow && mysql::time_of(&lines[at..]).is_some()
}

/// Where the line behind the one at `at` begins.
pub fn behind(bytes: &[u8], at: usize) -> usize {
    memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |n| at + n + 1)
}

/// The line at `at`, without its end.
pub fn line_at(bytes: &[u8], at: usize) -> &[u8] {
    let line = &bytes[at..behind(bytes, at)];
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOW: &str = "\
# Time: 2026-11-22T10:52:14.123456Z
# User@Host: a[a] @ h []  Id: 8
# Query_time: 1.5
SET timestamp=1795312334;
SELECT *
FROM p;
1.2.3.4 - - [22/Nov/2026:11:03:06 +0900] \"GET / HTTP/1.1\" 200 1 \"-\" \"x\" 0.001
garbage
# Time: 2026-11-22T10:52:15.123456Z
# User@Host: a[a] @ h []  Id: 8
# Query_time: 1.5
";

    /// What stands before each line.
    fn each(format: Format, text: &str) -> Vec<Amid> {
        let text = text.as_bytes();
        let mut found = Vec::new();
        let mut at = 0;
        while at < text.len() {
            at = behind(text, at);
            found.push(after(format, text, 0, at, &Before::default()).amid);
        }
        found
    }

    #[test]
    fn a_line_of_another_program_ends_a_statement_that_is_whole() {
        use Amid::{Head, Nothing};
        let (open, ended) = (
            Amid::Statement { ended: false },
            Amid::Statement { ended: true },
        );
        assert_eq!(
            each(Format::MysqlSlow, SLOW),
            [
                Nothing, Head, Head, open, open, ended, Nothing, Nothing, Nothing, Head, Head
            ]
        );
        let ql = "/* Sun Nov 22 02:59:00.970 2026 conn 5 real 0.001 wall 0.002 found 3 */ SELECT *\n\
                  FROM p;\n\n1.2.3.4 - - [22/Nov/2026:11:03:06 +0900] \"GET / HTTP/1.1\" 200 1\nSELECT\n";
        assert_eq!(
            each(Format::SphinxQl, ql),
            [open, ended, ended, Nothing, Nothing]
        );
    }

    #[test]
    fn the_time_of_an_entry_is_known_where_its_head_begins_a_block() {
        let text = SLOW.as_bytes();
        let first = behind(text, 0);
        let found = after(Format::MysqlSlow, text, 0, first, &Before::default());
        assert_eq!(found.time, b"2026-11-22T10:52:14.123456Z");
        let next = behind(text, first);
        let found = after(Format::MysqlSlow, text, 0, next, &Before::default());
        assert_eq!(found.time, b"");
    }

    #[test]
    fn what_is_told_from_the_middle_is_what_is_told_from_the_beginning() {
        let text = [SLOW, SLOW].concat();
        let text = text.as_bytes();
        let lines: Vec<usize> = std::iter::successors(Some(0), |&at| {
            Some(behind(text, at)).filter(|&n| n < text.len())
        })
        .collect();
        for format in [Format::MysqlSlow, Format::SphinxQl] {
            for &from in &lines {
                for &to in lines.iter().filter(|&&to| to > from) {
                    let before = after(format, text, 0, from, &Before::default());
                    let once = after(format, text, 0, to, &Before::default());
                    assert_eq!(after(format, text, from, to, &before), once, "{from} {to}");
                    assert!(since_last(format, text, from, to).is_none_or(|told| told == once));
                }
            }
        }
    }
}
