//! Sphinx's and Manticore's query logs, plain and as SQL.
//!
//! ```text
//! [Fri Nov 20 20:39:57.302 2026] 0.003 sec 0.003 sec x2 [bool/0/rel 1 (20,10) @group] [index]
//!     [ios=8 kb=158.2 ioms=1.2 cpums=1.1] [comment] words
//! /* Fri Nov 20 20:40:01.065 2026 conn 6 real 0.002 wall 0.002 x2 found 1 */ SELECT ..; /* .. */
//! ```
//!
//! (In the file a plain entry is one line; old versions write one time and whole seconds.) The time
//! is local and that of the end. Words that begin with a bracket are taken for a comment: the log
//! does not tell them apart. In plain logs searches that failed are absent.
//!
//! Longer than most files: both forms of its log have agents, comments and what is no line in common.

use crate::clock::{Clock, clock, date, duration, month, number, three};
use crate::entry::{Entry, Fault, Kind, UNKNOWN};
use crate::format::agents::{Agents, Place};
use crate::format::amid::{Amid, line_at};
use crate::format::{Format, Out, Reader, Settings, looks};
use crate::scan;
use crate::source::{Block, LONGEST, Lines};
use crate::sql;
use crate::words;

const BRACKET: &str = "words in brackets, taken for a comment";
const TOGETHER: &str = "searches that were done together with others (their time is of all)";

/// `Fri Nov 20 20:39:57.302 2026` at the start of `text`: nanoseconds, and how long it is.
#[inline]
fn stamp(clock_of: &mut Clock, text: &[u8]) -> Option<(i64, usize)> {
    let (millis, at) = match text.get(19)? {
        b'.' => (three(text.get(20..23)?)?, 23),
        b' ' => (0, 19),
        _ => return None,
    };
    let year = text.get(at + 1..at + 5)?;
    let mut key = [0u8; 23];
    key[..19].copy_from_slice(&text[..19]);
    key[19..].copy_from_slice(year);
    let s = clock_of.second(&key, |key| {
        let day = number(&key[8..10])?;
        let day = date(number(&key[19..])?, month(&key[4..7])?, day)?;
        Some((day * 86_400 + clock(&key[11..19])?, false))
    })?;
    Some((s * 1_000_000_000 + millis * 1_000_000, at + 5))
}

pub fn looks_plain(line: &[u8]) -> bool {
    line.len() > 40
        && line[0] == b'['
        && stamp(&mut Clock::default(), &line[1..]).is_some_and(|(_, n)| {
            line.get(n + 1..n + 3) == Some(b"] ") && line[n + 3].is_ascii_digit()
        })
}

/// Whether an entry begins here; cheap, for each line is asked.
#[inline]
pub fn begins_ql(line: &[u8]) -> bool {
    line.len() > 30 && line.starts_with(b"/* ") && line[16] == b':' && line[19] == b':'
}

pub fn looks_ql(line: &[u8]) -> bool {
    line.strip_prefix(b"/* ").is_some_and(|rest| {
        stamp(&mut Clock::default(), rest).is_some_and(|(_, n)| rest[n..].starts_with(b" conn "))
    })
}

/// Whether an entry of the plain log is in the first line of this text.
pub fn is_plain(text: &[u8]) -> bool {
    plain(line_at(text, 0), &mut Clock::default()).is_some()
}

/// Whether an entry of SQL is at the beginning of this text.
pub fn is_ql(text: &[u8]) -> bool {
    Ql::new(&Settings::default()).entry(text).is_some()
}

/// Where the next entry of SQL begins behind the line before `from`.
pub fn next_ql(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from.saturating_sub(1);
    loop {
        at += memchr::memmem::find(&bytes[at..], b"\n/* ")? + 1;
        if begins_ql(line_at(bytes, at)) {
            return Some(at);
        }
    }
}

/// Where the last one begins of those that begin in `from..to`.
pub fn last_ql(bytes: &[u8], from: usize, to: usize) -> Option<usize> {
    let mut end = to;
    while end > from {
        let before = &bytes[from..end - 1];
        let at = memchr::memrchr(b'\n', before).map_or(from, |n| from + n + 1);
        if begins_ql(line_at(bytes, at)) {
            return Some(at);
        }
        end = at;
    }
    None
}

/// Whether a statement may be whole with this line.
fn ended(line: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    matches!(line.last(), Some(b';' | b'/')) || scan::rfind(line, b"; # error=", 2).is_some()
}

/// Behind the first line of an entry.
pub fn begun(line: &[u8]) -> Amid {
    Amid::Statement { ended: ended(line) }
}

/// What a line that begins no entry makes of what it stands amid; where that is nothing, the line
/// belongs to no entry.
pub fn then(amid: Amid, line: &[u8]) -> Amid {
    match amid {
        Amid::Nothing => Amid::Nothing,
        _ if line.trim_ascii().is_empty() => amid,
        Amid::Statement { ended: true } if foreign(line) => Amid::Nothing,
        _ => begun(line),
    }
}

/// Whether a line is one of another format.
#[cold]
fn foreign(line: &[u8]) -> bool {
    looks(line).is_some_and(|format| format != Format::SphinxQl)
}

pub struct Plain {
    clock: Clock,
    class: Vec<u8>,
}

impl Plain {
    pub fn new(settings: &Settings) -> Plain {
        Plain {
            clock: Clock::new(&settings.zone),
            class: Vec::new(),
        }
    }
}

/// What stands in a line besides what an entry has.
struct Shape<'a> {
    shape: &'a [u8],
    group: &'a [u8],
    ended_ns: i64,
    as_agent: bool,
    together: bool,
    bracket: bool,
    operators: u8,
}

/// ``[..]`` at the start: what is in it, and what follows.
#[inline]
fn bracketed(text: &[u8]) -> Option<(&[u8], &[u8])> {
    scan::cut(b']', text.strip_prefix(b"[")?)
}

/// The same, of brackets that may have others within; None where they do not close.
fn nested(text: &[u8]) -> Option<&[u8]> {
    let mut depth = 0;
    for (i, &b) in text.iter().enumerate() {
        match b {
            b'[' => depth += 1,
            b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(&text[i + 1..]);
                }
            }
            _ => {}
        }
    }
    None
}

/// Seconds before `` sec``: nanoseconds, their resolution, and what follows.
#[inline]
fn seconds(text: &[u8]) -> Option<(u64, u32, &[u8])> {
    let end = scan::near(b' ', &text[..text.len().min(24)])?;
    let (ns, resolution) = duration(&text[..end], 1_000_000_000)?;
    Some((ns, resolution, text[end..].strip_prefix(b" sec")?))
}

/// A number before a blank, and what follows the blank.
#[inline]
fn number_before_blank(text: &[u8]) -> Option<(i64, &[u8])> {
    let mut value = 0i64;
    for (i, &b) in text.iter().take(16).enumerate() {
        let digit = b.wrapping_sub(b'0');
        if digit > 9 {
            if b == b' ' && i > 0 {
                return Some((value, &text[i + 1..]));
            }
            break;
        }
        value = value * 10 + i64::from(digit);
    }
    let (digits, after) = scan::cut(b' ', text)?;
    Some((number(digits)?, after))
}

#[inline]
fn plain<'a>(line: &'a [u8], clock: &mut Clock) -> Option<(Entry<'a>, Shape<'a>)> {
    let inner = line.strip_prefix(b"[")?;
    let (ended_ns, n) = stamp(clock, inner)?;
    let rest = inner[n..].strip_prefix(b"] ")?;
    let (mut ns, resolution_ns, mut rest) = seconds(rest)?;
    if rest.get(1).is_some_and(u8::is_ascii_digit) {
        // The second is the wall time; the first, where both are there, is that without waiting.
        let (wall, _, after) = seconds(&rest[1..])?;
        (ns, rest) = (ns.max(wall), after);
    }
    let mut together = false;
    if let Some(after) = rest.strip_prefix(b" x") {
        let (queries, _) = scan::cut(b' ', after)?;
        number(queries)?;
        (rest, together) = (&after[queries.len()..], true);
    }
    let (how, after) = bracketed(rest.strip_prefix(b" ")?)?;
    let (shape, page) = scan::cut(b' ', how)?;
    let (hits, page) = number_before_blank(page)?;
    let hits = hits as u64;
    let (page, group) = scan::cut(b')', page.strip_prefix(b"(")?)?;
    let (index, after) = bracketed(after.strip_prefix(b" ")?)?;
    let mut entry = Entry {
        at_ns: ended_ns - ns as i64,
        ns,
        resolution_ns,
        hits,
        index,
        around: how,
        ..Entry::default()
    };
    let mut shape = Shape {
        shape,
        group,
        ended_ns,
        as_agent: page == b"0,1000",
        together,
        bracket: false,
        operators: 0,
    };
    let mut text = after;
    if text.get(1) != Some(&b'[') {
        // No statistics and no comment, as in most logs.
    } else if let Some(stats) = text.strip_prefix(b" [ios=") {
        let end = memchr::memchr(b']', stats)?;
        statistics(&line[line.len() - stats.len() - 4..][..end + 4], &mut entry);
        text = &stats[end + 1..];
    } else if let Some(stats) = text.strip_prefix(b" [cpums=") {
        let end = memchr::memchr(b']', stats)?;
        statistics(&line[line.len() - stats.len() - 6..][..end + 6], &mut entry);
        text = &stats[end + 1..];
    }
    text = text.strip_prefix(b" ").unwrap_or(text);
    if text.first() == Some(&b'[')
        && let Some(after) = nested(text)
    {
        shape.bracket = true;
        text = after.strip_prefix(b" ").unwrap_or(after);
    }
    let look = words::look(text);
    entry.words = look.words;
    shape.operators = look.operators;
    entry.text = text;
    Some((entry, shape))
}

/// `ios=8 kb=158.2 ioms=1.2 cpums=1.1`
fn statistics(text: &[u8], entry: &mut Entry<'_>) {
    for pair in text.split(|&b| b == b' ') {
        if let Some(ios) = pair.strip_prefix(b"ios=") {
            entry.ios = number(ios).map_or(UNKNOWN, |n| n as u64);
        } else if let Some(ms) = pair.strip_prefix(b"cpums=") {
            entry.cpu_us = duration(ms, 1000).map_or(UNKNOWN, |(us, _)| us);
        }
    }
}

/// What stands between blanks.
struct Parts<'a>(&'a [u8]);

impl<'a> Iterator for Parts<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        while self.0.first() == Some(&b' ') {
            self.0 = &self.0[1..];
        }
        let (part, rest) = scan::word(self.0);
        self.0 = rest;
        (!part.is_empty()).then_some(part)
    }
}

impl Reader for Plain {
    fn clock(&mut self) -> &mut Clock {
        &mut self.clock
    }

    fn read(&mut self, block: &Block, out: &mut Out<'_>) {
        let mut agents = Agents::new(block.ahead);
        let mut lines = Lines::new(block);
        let mut looked = None;
        loop {
            let own = lines.at < block.end;
            if !own && agents.is_empty() {
                break;
            }
            let Some((start, line)) = lines.step() else {
                break;
            };
            if own {
                out.seen.line(line.len());
            } else if looked.is_none() {
                looked = Some(own_ends(&mut self.clock, out));
            }
            let Some((mut entry, shape)) = plain(line, &mut self.clock) else {
                if own && !line.is_empty() {
                    out.seen
                        .unread(line, "it is not a line of Sphinx's query log");
                }
                continue;
            };
            if shape.group.is_empty() && shape.operators == 0 {
                entry.class = shape.shape;
            } else {
                self.class.clear();
                self.class.extend_from_slice(shape.shape);
                if !shape.group.is_empty() {
                    self.class.extend_from_slice(b" group");
                }
                words::name_operators(shape.operators, &mut self.class);
                entry.class = &self.class;
            }
            if own {
                out.seen.note(TOGETHER, u64::from(shape.together));
                out.seen.note(BRACKET, u64::from(shape.bracket));
            }
            let place = Place {
                at: start,
                behind: lines.at,
                own,
            };
            agents.take(&entry, place, shape.ended_ns, shape.as_agent, out);
        }
        agents.end(out);
        settle(&mut self.clock, looked, out);
    }
}

/// What a clock met in the lines of a block, before those behind it are looked at; where it stands.
fn own_ends(clock: &mut Clock, out: &mut Out<'_>) -> Option<i64> {
    out.seen.clock(clock);
    clock.at_s()
}

/// The end of a block. `looked`: where the clock stood before lines behind it were looked at.
fn settle(clock: &mut Clock, looked: Option<Option<i64>>, out: &mut Out<'_>) {
    match looked {
        None => out.seen.clock(clock),
        Some(at_s) => {
            // They are another block's to tell.
            clock.tell(|_, _| {});
            clock.go_on(at_s);
        }
    }
}

pub struct Ql {
    clock: Clock,
    class: Vec<u8>,
}

impl Ql {
    pub fn new(settings: &Settings) -> Ql {
        Ql {
            clock: Clock::new(&settings.zone),
            class: Vec::new(),
        }
    }

    /// An entry without its class, when it ended, and whether it was done with others.
    fn entry<'a>(&mut self, text: &'a [u8]) -> Option<(Entry<'a>, i64, bool)> {
        let head = text.strip_prefix(b"/* ")?;
        let (ended_ns, n) = stamp(&mut self.clock, head)?;
        let end = scan::find(&head[n..head.len().min(400)], b" */", 1)? + n;
        let mut entry = Entry {
            at_ns: ended_ns,
            ..Entry::default()
        };
        let mut parts = Parts(&head[n..end]);
        let mut together = false;
        while let Some(key) = parts.next() {
            match key {
                b"real" | b"wall" => {
                    let (ns, resolution) = duration(parts.next()?, 1_000_000_000)?;
                    entry.ns = if entry.ns == UNKNOWN {
                        ns
                    } else {
                        entry.ns.max(ns)
                    };
                    entry.resolution_ns = resolution;
                }
                b"found" => entry.hits = number(parts.next()?)? as u64,
                b"conn" => {
                    parts.next()?;
                }
                other => together |= other[0] == b'x',
            }
        }
        if entry.ns != UNKNOWN {
            entry.at_ns -= entry.ns as i64;
        }
        let mut statement = head[end + 3..].trim_ascii();
        if statement.ends_with(b"*/")
            && let Some(at) = scan::rfind(statement, b"; /*", 3)
            // Not where one asterisk both begins and ends it.
            && let Some(comment) = statement.get(at + 4..statement.len() - 2)
        {
            let comment = comment.trim_ascii();
            statement = &statement[..at];
            if comment.starts_with(b"error=") {
                entry.fault = Fault::Error;
            } else if scan::has(comment, b"warning=", 0) {
                entry.fault = Fault::Partial;
            }
            statistics(comment, &mut entry);
        } else if !statement.ends_with(b";")
            && let Some(at) = scan::rfind(statement, b" # error=", 1)
        {
            statement = &statement[..at];
            entry.fault = Fault::Error;
        }
        entry.text = statement.strip_suffix(b";").unwrap_or(statement);
        entry.around = entry.text;
        if entry.fault == Fault::Error {
            entry.hits = UNKNOWN;
        }
        Some((entry, ended_ns, together))
    }
}

impl Reader for Ql {
    fn clock(&mut self) -> &mut Clock {
        &mut self.clock
    }

    fn read(&mut self, block: &Block, out: &mut Out<'_>) {
        let mut agents = Agents::new(block.ahead);
        let mut lines = Lines::new(block);
        let mut class = std::mem::take(&mut self.class);
        let mut looked = None;
        let mut amid = block.before.amid;
        let mut next = lines.step();
        while let Some((start, line)) = next {
            let own = start < block.end;
            if !own && agents.is_empty() {
                break;
            }
            next = lines.step();
            if own {
                out.seen.line(line.len());
            } else if looked.is_none() {
                looked = Some(own_ends(&mut self.clock, out));
            }
            if !begins_ql(line) {
                if own {
                    amid = then(amid, line);
                    if amid == Amid::Nothing && !line.is_empty() {
                        out.seen
                            .unread(line, "it is not a line of Sphinx's log of SQL");
                    }
                }
                continue;
            }
            let number = out.seen.lines;
            // A statement with line breaks goes on until a line that begins an entry, or that
            // another program wrote behind the end of the statement.
            let (mut end, mut last) = (start + line.len(), line);
            amid = Amid::Statement { ended: false };
            while let Some((at, more)) = next {
                if begins_ql(more) {
                    break;
                }
                if !more.trim_ascii().is_empty() {
                    if ended(last) && foreign(more) {
                        amid = Amid::Nothing;
                        break;
                    }
                    last = more;
                }
                if at < block.end {
                    out.seen.line(more.len());
                }
                end = end.max((at + more.len()).min(start + LONGEST));
                next = lines.step();
            }
            let place = Place {
                at: start,
                // The line that ends it must be seen whole to be known.
                behind: lines.at,
                own,
            };
            let whole = &block.bytes[start..end];
            let Some((mut entry, ended_ns, together)) = self.entry(whole) else {
                if own {
                    let why = "its head or its times cannot be read";
                    out.seen.unread_at(number, line, why);
                }
                continue;
            };
            let found = sql::statement(entry.text, sql::Dialect::Sphinx, &mut class);
            entry.index = found.table;
            entry.words = found.words;
            if !found.search {
                entry.kind = Kind::Other;
            }
            entry.class = &class;
            let as_agent = scan::rfind(entry.text, b" LIMIT 0,1000", 1).is_some();
            // What agents are asked is the words; the rest of their statement is another.
            let asked = entry.text;
            entry.text = found.matched.unwrap_or(asked);
            if own {
                out.seen.note(TOGETHER, u64::from(together));
            }
            let as_agent = as_agent && entry.kind == Kind::Asked;
            agents.take(&entry, place, ended_ns, as_agent, out);
        }
        agents.end(out);
        self.class = class;
        settle(&mut self.clock, looked, out);
    }
}
