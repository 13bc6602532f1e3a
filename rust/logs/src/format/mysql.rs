//! The slow log and the general log of MySQL and MariaDB.
//!
//! An entry of the slow log is a run of `# User@Host:`, `# Thread_id:` (MariaDB; MySQL has ` Id:` at
//! the end of the line before) and `# Query_time:`, then other lines with `#`, `use`, `SET
//! timestamp=`, and the statement until the next such run: nothing less is taken for a head, because
//! statements can hold lines that look like one. Time is `SET timestamp` (UTC, the start, whole
//! seconds), or where MySQL writes microseconds `# Time` less the duration. What failed looks like
//! what found nothing. Where a statement may be whole, a line of another known format ends it: another
//! program writes into the file. So does the head that a server writes when it starts.
//!
//! The general log has no duration and no rows; it is written when a statement arrives, with the
//! time only where the second changes.
//!
//! Longer than most files: the two logs of one server have their heads and their statements in common.

use crate::clock::{Clock, clock, duration, number};
use crate::entry::{Entry, Kind, NO_TIME, UNKNOWN};
use crate::format::amid::{Amid, behind, line_at};
use crate::format::{Format, Out, Reader, Settings, looks};
use crate::saved::{Saved, Saving};
use crate::scan;
use crate::source::{Block, LONGEST, Lines};
use crate::sql::{Dialect, statement};

const USER: &[u8] = b"# User@Host: ";
const TIME: &[u8] = b"# Time: ";
const OUTSIDE: &str = "it is outside of any entry of a slow log";

pub fn looks_slow(line: &[u8]) -> bool {
    line.starts_with(b"# User@Host: ") || line.starts_with(b"# Query_time: ")
}

/// Whether a line is the first of an entry of the slow log, or of what a server writes when it starts.
pub fn begins_slow(line: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    line.starts_with(TIME) || line.starts_with(USER) || is_preamble(line)
}

pub fn looks_general(line: &[u8]) -> bool {
    general(line).is_some()
}

/// The first line that both logs write when a server starts or a log is flushed.
pub fn is_preamble(line: &[u8]) -> bool {
    starts(line)
        || line.starts_with(b"Tcp port: ")
        || (line.starts_with(b"Time") && line.ends_with(b"Id Command\tArgument"))
        || (line.starts_with(b"Time") && line.ends_with(b"Id Command    Argument"))
}

pub struct Slow {
    clock: Clock,
    class: Vec<u8>,
}

impl Slow {
    pub fn new(settings: &Settings) -> Slow {
        Slow {
            clock: Clock::new(&settings.zone),
            class: Vec::new(),
        }
    }
}

/// Whether a server starts with this line.
fn starts(line: &[u8]) -> bool {
    line.ends_with(b"started with:") && memchr::memmem::find(line, b", Version: ").is_some()
}

/// Whether an entry begins at `at`, with its user: the line behind it has the thread (MySQL: the time,
/// if the first ends with an id).
pub fn is_head(bytes: &[u8], at: usize) -> bool {
    if !bytes[at..].starts_with(USER) || (at > 0 && bytes[at - 1] != b'\n') {
        return false;
    }
    let end = behind(bytes, at);
    let next = &bytes[end..];
    let of_mysql = || memchr::memmem::rfind(&bytes[at..end], b" Id: ").is_some();
    // Percona's server has the schema between.
    let follows = next.starts_with(b"# Query_time: ") || next.starts_with(b"# Schema: ");
    next.starts_with(b"# Thread_id: ") || (follows && of_mysql())
}

/// Where the next entry begins at or after `from`.
pub fn next_head(bytes: &[u8], mut from: usize) -> Option<usize> {
    loop {
        let at = from + scan::find(&bytes[from..], USER, 6)?;
        if is_head(bytes, at) {
            return Some(at);
        }
        from = at + USER.len();
    }
}

/// Where the last entry begins of those that begin in `from..to`.
pub fn last_head(bytes: &[u8], from: usize, to: usize) -> Option<usize> {
    let mut end = (to + USER.len() - 1).min(bytes.len());
    loop {
        let at = from + scan::rfind(bytes.get(from..end)?, USER, 6)?;
        if is_head(bytes, at) {
            return Some(at);
        }
        end = at + USER.len() - 1;
    }
}

/// Where an entry begins whose head is at `at`: its time stands before that.
pub fn with_time(bytes: &[u8], at: usize) -> usize {
    let before = bytes[..at].strip_suffix(b"\n").unwrap_or(b"");
    let from = memchr::memrchr(b'\n', before).map_or(0, |n| n + 1);
    if before[from..].starts_with(TIME) {
        from
    } else {
        at
    }
}

/// Whether a line may be the first of an entry whose others are not there yet.
pub fn may_begin(line: &[u8]) -> bool {
    line.starts_with(TIME) || line.starts_with(USER)
}

/// The time in a line that has nothing else.
pub fn time_of(line: &[u8]) -> Option<&[u8]> {
    line.strip_prefix(TIME)
}

/// The second in the line before a statement. An INSERT or a LAST_INSERT_ID() may have more in it.
fn set_second(line: &[u8]) -> Option<&[u8]> {
    let set = line.strip_prefix(b"SET ")?;
    let first = &set[..memchr::memchr(b'=', set)?];
    if !matches!(first, b"timestamp" | b"last_insert_id" | b"insert_id") {
        return None;
    }
    let mut parts = set.split(|&b| b == b',');
    parts.find_map(|part| part.strip_prefix(b"timestamp="))
}

/// What a line that begins no entry makes of what it stands amid; where that is nothing, the line
/// belongs to no entry.
pub fn then(amid: Amid, line: &[u8]) -> Amid {
    if starts(line) {
        return Amid::Nothing;
    }
    if amid == Amid::Nothing || line.starts_with(TIME) || line.trim_ascii().is_empty() {
        return amid;
    }
    match amid {
        Amid::Head if line.starts_with(b"#") || line.starts_with(b"use ") => Amid::Head,
        Amid::Head if set_second(line).is_some() => Amid::Statement { ended: false },
        Amid::Statement { ended: true } if is_foreign(line) => Amid::Nothing,
        _ => Amid::Statement {
            ended: line.trim_ascii_end().ends_with(b";"),
        },
    }
}

/// How long the entry at the start of `text` is: up to the first line that does not belong to it.
fn length(text: &[u8]) -> usize {
    let (mut amid, mut at) = (Amid::Head, behind(text, 0));
    while at < text.len() {
        amid = then(amid, line_at(text, at));
        if amid == Amid::Nothing {
            break;
        }
        at = behind(text, at);
    }
    at
}

/// The value after `name` in a line of the head.
fn after<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let at = scan::find(line, name, name.len() - 1)? + name.len();
    let rest = line[at..].trim_ascii_start();
    Some(&rest[..memchr::memchr(b' ', rest).unwrap_or(rest.len())])
}

impl Slow {
    /// An entry; `time` is what its `# Time:` says, where it has one.
    fn one(&mut self, text: &[u8], time: Option<&[u8]>, out: &mut Out<'_>) {
        let mut entry = Entry::default();
        let user = &text[USER.len()..];
        entry.user = &user[..memchr::memchr(b'[', user).unwrap_or(0)];
        let (mut seconds, mut body, mut at) = (None, text.len(), 0);
        while at < text.len() {
            let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |n| at + n);
            let line = line_at(text, at);
            let start = at;
            at = end + 1;
            if line.starts_with(b"# ")
                && let Some(found) = after(line, b"Query_time:")
            {
                if let Some((ns, resolution)) = duration(found, 1_000_000_000) {
                    (entry.ns, entry.resolution_ns) = (ns, resolution);
                }
                let sent = after(line, b"Rows_sent:").and_then(number);
                entry.hits = sent.map_or(UNKNOWN, |n| n as u64);
            } else if let Some(set) = set_second(line) {
                seconds = set
                    .split(|&b| b == b';' || b == b'.')
                    .next()
                    .and_then(number);
                body = at.min(text.len());
                break;
            } else if !line.starts_with(b"#") && !line.starts_with(b"use ") {
                body = start;
                break;
            }
        }
        let asked = text[body..].trim_ascii();
        let asked = asked.strip_suffix(b";").unwrap_or(asked);
        let fine = time.filter(|t| t.len() > 19 && t[4] == b'-');
        if let Some(ended) = fine.and_then(|t| self.clock.iso_ns(t))
            && entry.ns != UNKNOWN
        {
            entry.at_ns = ended - entry.ns as i64;
        } else if let Some(seconds) = seconds.filter(|&s| s < 7_000_000_000) {
            entry.at_ns = seconds * 1_000_000_000;
        }
        let found = statement(asked, Dialect::Mysql, &mut self.class);
        entry.kind = if found.search {
            Kind::Asked
        } else {
            Kind::Other
        };
        (entry.index, entry.words, entry.text) = (found.table, found.words, asked);
        entry.class = &self.class;
        out.entry(&entry);
    }
}

fn is_foreign(line: &[u8]) -> bool {
    looks(line).is_some_and(|format| format != Format::MysqlSlow)
}

fn newlines(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}

impl Reader for Slow {
    fn clock(&mut self) -> &mut Clock {
        &mut self.clock
    }

    fn read(&mut self, block: &Block, out: &mut Out<'_>) {
        let bytes = &block.bytes;
        let own = &bytes[block.begin..block.end];
        let first = out.seen.lines;
        // The last line that begins here may end in the next block.
        out.seen.lines += newlines(own) + u64::from(!own.is_empty() && !own.ends_with(b"\n"));
        // Lines are counted once: a server that starts often leaves many that belong to no entry.
        let (mut counted, mut number) = (block.begin, first);
        let mut head = next_head(bytes, block.begin);
        let upto = head.unwrap_or(block.end).min(block.end);
        outside(bytes, block.begin..upto, first, block.before.amid, out);
        while let Some(at) = head.filter(|&at| at < block.end) {
            head = next_head(bytes, at + 1);
            let upto = head.unwrap_or(bytes.len());
            let text = &bytes[at..upto.min(at + LONGEST)];
            let length = length(text);
            let closed = length < text.len();
            let mut text = text[..length].trim_ascii_end();
            // The time of the next entry stands before its head.
            let last = memchr::memrchr(b'\n', text).map_or(0, |n| n + 1);
            if text[last..].starts_with(TIME) {
                text = text[..last].trim_ascii_end();
            }
            out.seen.length(text.len());
            let time = if at == block.begin {
                Some(&block.before.time[..]).filter(|time| !time.is_empty())
            } else {
                time_of(line_at(bytes, with_time(&bytes[..at], at)))
            };
            self.one(text, time, out);
            let rest = at + length..upto.min(block.end);
            if closed && !rest.is_empty() {
                number += newlines(&bytes[counted..rest.start]);
                counted = rest.start;
                outside(bytes, rest, number, Amid::Nothing, out);
            }
        }
        out.seen.clock(&mut self.clock);
    }
}

/// Counts those of some lines that belong to no entry; `number`: of the line before them.
fn outside(
    bytes: &[u8],
    lines: std::ops::Range<usize>,
    mut number: u64,
    mut amid: Amid,
    out: &mut Out<'_>,
) {
    let mut at = lines.start;
    while at < lines.end {
        let line = line_at(bytes, at);
        at = behind(bytes, at);
        number += 1;
        amid = then(amid, line);
        let line = &line[..line.len().min(LONGEST)];
        if amid == Amid::Nothing
            && !line.is_empty()
            && !line.starts_with(TIME)
            && !is_preamble(line)
        {
            out.seen.length(line.len());
            out.seen.unread_at(number, line, OUTSIDE);
        }
    }
}

const COMMANDS: [&[u8]; 22] = [
    b"Query",
    b"Execute",
    b"Connect",
    b"Quit",
    b"Init DB",
    b"Prepare",
    b"Close stmt",
    b"Reset stmt",
    b"Field List",
    b"Statistics",
    b"Ping",
    b"Change user",
    b"Long Data",
    b"Fetch",
    b"Set option",
    b"Shutdown",
    b"Kill",
    b"Refresh",
    b"Error",
    b"Reset Connection",
    b"Binlog Dump",
    b"Process list",
];

/// The stamp (empty: that of the line before), the command and its text.
fn general(line: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (stamp, rest) = if let Some(rest) = line.strip_prefix(b"\t\t") {
        (&b""[..], rest)
    } else {
        let at = memchr::memchr(b'\t', &line[..line.len().min(40)])?;
        (&line[..at], &line[at + 1..])
    };
    let rest = rest.trim_ascii_start();
    let at = memchr::memchr(b' ', &rest[..rest.len().min(24)])?;
    number(&rest[..at])?;
    let rest = &rest[at + 1..];
    let end = memchr::memchr(b'\t', rest).unwrap_or(rest.len());
    let command = rest[..end].trim_ascii_end();
    COMMANDS
        .contains(&command)
        .then(|| (stamp, command, rest.get(end + 1..).unwrap_or(b"")))
}

pub struct General {
    clock: Clock,
    at_ns: Option<i64>,
    /// The statement that is being read, which later lines may continue.
    open: Option<Vec<u8>>,
    class: Vec<u8>,
}

impl General {
    pub fn new(settings: &Settings) -> General {
        General {
            clock: Clock::new(&settings.zone),
            at_ns: None,
            open: None,
            class: Vec::new(),
        }
    }

    fn close(&mut self, out: &mut Out<'_>) {
        let Some(text) = self.open.take() else { return };
        let text = text.trim_ascii();
        let found = statement(text, Dialect::Mysql, &mut self.class);
        let entry = Entry {
            at_ns: self.at_ns.unwrap_or(NO_TIME),
            kind: if found.search {
                Kind::Asked
            } else {
                Kind::Other
            },
            index: found.table,
            words: found.words,
            class: &self.class,
            text,
            ..Entry::default()
        };
        out.entry(&entry);
    }

    /// `261122 10:52:14` (the hour may have a blank in front), or ISO with a zone.
    fn stamp(&mut self, text: &[u8]) -> Option<i64> {
        if text.len() > 19 {
            return self.clock.iso_ns(text.trim_ascii());
        }
        let s = self.clock.second(text.trim_ascii_end(), |text| {
            let (date, time) = (text.get(..6)?, text.get(7..)?);
            let mut eight = *b"00:00:00";
            let time = time.trim_ascii_start();
            eight
                .get_mut(8usize.checked_sub(time.len())?..)?
                .copy_from_slice(time);
            let day = crate::clock::date(
                2000 + number(&date[..2])?,
                number(&date[2..4])?,
                number(&date[4..])?,
            )?;
            Some((day * 86_400 + clock(&eight)?, false))
        })?;
        Some(s * 1_000_000_000)
    }
}

impl Reader for General {
    fn clock(&mut self) -> &mut Clock {
        &mut self.clock
    }

    fn read(&mut self, block: &Block, out: &mut Out<'_>) {
        let mut lines = Lines::new(block);
        while lines.at < block.end {
            let Some((_, line)) = lines.step() else { break };
            out.seen.line(line.len());
            let Some((stamp, command, text)) = general(line) else {
                if is_preamble(line) {
                    self.close(out);
                } else if let Some(open) = &mut self.open {
                    open.push(b'\n');
                    open.extend_from_slice(line);
                } else if !line.is_empty() {
                    out.seen.unread(line, "it is not a line of a general log");
                }
                continue;
            };
            self.close(out);
            if !stamp.is_empty() {
                match self.stamp(stamp) {
                    Some(at) => self.at_ns = Some(at),
                    None => {
                        out.seen.unread(line, "its time cannot be read");
                        continue;
                    }
                }
            }
            if command == b"Query" || command == b"Execute" {
                self.open = Some(text.to_vec());
            }
        }
        out.seen.clock(&mut self.clock);
    }

    fn end(&mut self, out: &mut Out<'_>) {
        self.close(out);
    }

    fn save(&self, into: &mut Saving) {
        into.number(self.at_ns.unwrap_or(NO_TIME) as u64);
        if let Some(open) = &self.open {
            into.text(open);
        }
    }

    fn restore(&mut self, from: &mut Saved<'_>) -> Option<()> {
        self.at_ns = Some(from.number()? as i64).filter(|&at| at != NO_TIME);
        self.open = from.text().map(<[u8]>::to_vec);
        Some(())
    }
}
