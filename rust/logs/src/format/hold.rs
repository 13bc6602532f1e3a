//! Where a reading ends, if more may follow: before the last entry that may not be whole yet.
//!
//! Readers that are given their blocks in order keep what is open (`Reader::save`). All others begin
//! again where this says; what they need of the lines behind it, they see ahead.

use crate::format::amid::{Amid, Before, after};
use crate::format::{Format, agents, csv, mysql, sphinx};

/// The place in `bytes`, the last whole lines of a source, from which on the next reading begins.
/// None where that cannot be said without what stands before them. `begins`: nothing does.
pub fn hold(format: Format, bytes: &[u8], begins: bool) -> Option<usize> {
    match format {
        Format::MysqlSlow => match mysql::last_head(bytes, 0, bytes.len()) {
            // The line before may be the time of the entry, and begin further back.
            Some(at) if !begins && begins_at_most_second(bytes, at) => None,
            Some(at) if closed(format, bytes, at) => Some(half_head(bytes)),
            Some(at) => Some(mysql::with_time(bytes, at)),
            None => begins.then(|| half_head(bytes)),
        },
        Format::SphinxPlain => plain_searches(bytes, begins),
        Format::SphinxQl => {
            let waiting = ql_searches(bytes, begins)?;
            let last = sphinx::last_ql(bytes, 0, bytes.len());
            let open = last.filter(|&at| !closed(format, bytes, at));
            Some(waiting.min(open.unwrap_or(bytes.len())))
        }
        Format::PostgresCsv => {
            let (mut cells, mut at) = (Vec::new(), 0);
            while at < bytes.len() {
                at = match csv::next(bytes, at, &mut cells, false) {
                    csv::Next::Record(next) | csv::Next::Line(next) => next,
                    csv::Next::Open => return Some(at),
                };
            }
            Some(bytes.len())
        }
        _ => Some(bytes.len()),
    }
}

/// Whether lines of another program have ended the last entry, which begins at `at`.
fn closed(format: Format, bytes: &[u8], at: usize) -> bool {
    after(format, bytes, at, bytes.len(), &Before::default()).amid == Amid::Nothing
}

/// Whether at most one line stands before the one at `at`.
fn begins_at_most_second(bytes: &[u8], at: usize) -> bool {
    memchr::memchr_iter(b'\n', &bytes[..at]).nth(1).is_none()
}

/// Where lines at the end begin that may be the first of an entry of MySQL's slow log.
fn half_head(bytes: &[u8]) -> usize {
    let lines = rlines(bytes).take(2);
    let first = lines.take_while(|(_, line)| mysql::may_begin(line)).last();
    first.map_or(bytes.len(), |(at, _)| at)
}

fn plain_searches(bytes: &[u8], begins: bool) -> Option<usize> {
    let is_one = |line: &[u8]| line.starts_with(b"[");
    searches(bytes, begins, is_one, sphinx::is_plain, b"(0,1000")
}

fn ql_searches(bytes: &[u8], begins: bool) -> Option<usize> {
    searches(
        bytes,
        begins,
        sphinx::begins_ql,
        sphinx::is_ql,
        b" LIMIT 0,1000",
    )
}

/// Whether a line at the end of `bytes`, the last whole lines, waits for another: that of an agent for
/// its search, or the time of an entry of MySQL's slow log for the entry.
pub fn waits(format: Format, bytes: &[u8]) -> bool {
    let found = match format {
        Format::SphinxPlain => plain_searches(bytes, true),
        Format::SphinxQl => ql_searches(bytes, true),
        Format::MysqlSlow => rlines(bytes)
            .next()
            .and_then(|(at, line)| line.starts_with(b"# Time: ").then_some(at)),
        _ => None,
    };
    found.is_some_and(|at| at < bytes.len())
}

/// Lines from the last one on: where each begins, and what it is.
fn rlines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut end = bytes.len();
    std::iter::from_fn(move || {
        if end == 0 {
            return None;
        }
        let line = &bytes[..end];
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let at = memchr::memrchr(b'\n', line).map_or(0, |n| n + 1);
        end = at;
        Some((at, &line[at..]))
    })
}

/// The first of the last entries that may have been asked by an agent, whose search follows. `is_one`:
/// whether a line begins one, cheaply; `is_entry`: whether there is one in its lines, as readers count
/// them.
fn searches(
    bytes: &[u8],
    begins: bool,
    is_one: impl Fn(&[u8]) -> bool,
    is_entry: impl Fn(&[u8]) -> bool,
    page: &[u8],
) -> Option<usize> {
    let (mut found, mut entries, mut end) = (bytes.len(), 0, bytes.len());
    for (at, line) in rlines(bytes) {
        // The first line may be cut.
        if !is_one(line) || (at == 0 && !begins) {
            continue;
        }
        // Its lines up to the next entry.
        if memchr::memmem::find(&bytes[at..end], page).is_some() {
            found = at;
        }
        entries += u64::from(is_entry(&bytes[at..end]));
        end = at;
        if entries > agents::LINES {
            return Some(found);
        }
    }
    begins.then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_entry_of_a_slow_log_is_held_with_its_time() {
        let one =
            "# Time: 1\n# User@Host: a[a] @ h []\n# Thread_id: 3\n# Query_time: 1\nSELECT 1;\n";
        let two = format!("{one}{one}");
        assert_eq!(
            hold(Format::MysqlSlow, two.as_bytes(), true),
            Some(one.len())
        );
        assert_eq!(hold(Format::MysqlSlow, one.as_bytes(), true), Some(0));
        assert_eq!(hold(Format::MysqlSlow, &one.as_bytes()[10..], false), None);
        assert_eq!(hold(Format::MysqlSlow, b"SELECT\n", false), None);
    }

    #[test]
    fn the_line_of_an_agent_is_held_until_its_search_can_no_longer_follow() {
        let line = |page: &str| {
            format!(
                "[Fri Nov 20 20:39:57.402 2026] 0.001 sec 0.001 sec [ext2/0/rel 9 {page}] [p] a\n"
            )
        };
        let (user, agent) = (line("(0,20)"), line("(0,1000)"));
        let at = user.len() * 3;
        let text = user.repeat(3) + &agent + &user.repeat(7);
        assert_eq!(hold(Format::SphinxPlain, text.as_bytes(), true), Some(at));
        assert_eq!(hold(Format::SphinxPlain, text.as_bytes(), false), None);
        let text = user.repeat(3) + &agent + &user.repeat(300);
        assert_eq!(
            hold(Format::SphinxPlain, text.as_bytes(), false),
            Some(text.len())
        );
    }

    #[test]
    fn a_record_of_csv_is_held_while_its_quotes_are_open() {
        let whole = "2026-11-22 11:03:30.970 CET,\"a\",1\n";
        let open = format!("{whole}2026-11-22 11:03:30.970 CET,\"a\nb\n");
        assert_eq!(
            hold(Format::PostgresCsv, open.as_bytes(), true),
            Some(whole.len())
        );
        let closed = format!("{open}c\"\n");
        assert_eq!(
            hold(Format::PostgresCsv, closed.as_bytes(), true),
            Some(closed.len())
        );
    }
}
