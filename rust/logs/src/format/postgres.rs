//! PostgreSQL's log: text with any prefix, csvlog, jsonlog.
//!
//! With `log_min_duration_statement`: `duration: 1.2 ms  statement: SQL`; in the extended protocol
//! `parse`, `bind` and `execute` have a duration each: one query, whose time is their sum. With
//! `log_duration` and `log_statement` the statement comes first and a bare duration of the same
//! process later. Lines are written at the end, so the beginning is the time less the duration. An
//! error has no duration, and its statement follows. There are no row counts: whether a search
//! found nothing is not known.
//!
//! Longer than 450 lines: its three forms share what is known of a process.

use std::collections::HashMap;

use crate::clock::{Clock, duration};
use crate::entry::{Entry, Fault, Kind, NO_TIME, UNKNOWN};
use crate::format::amid::{behind, line_at};
use crate::format::prefix::{LETTERS, cut, lettered, stamp_in};
use crate::format::{Out, Reader, Settings, csv, json};
use crate::saved::{Saved, Saving};
use crate::scan;
use crate::source::{Block, LONGEST, Lines};
use crate::sql::{Dialect, statement};

/// What is noted of plans: a statement that is logged with its duration would count twice.
const PLAN: &str = "a plan of auto_explain, which does not count as a search; \
                    log_min_duration_statement logs the statements";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Text,
    Csv,
    Json,
}

/// One message, whatever it was written as.
#[derive(Default)]
struct Message<'a> {
    at_ns: i64,
    /// Its stamp names a zone that cannot be known.
    lettered: bool,
    process: &'a [u8],
    severity: &'a [u8],
    text: &'a [u8],
    /// The statement of an error, where it is in the same entry.
    statement: Option<&'a [u8]>,
    user: &'a [u8],
    app: &'a [u8],
}

/// What is known of a process that is not an entry yet.
#[derive(Default)]
struct Pending {
    /// A statement whose duration follows.
    statement: Option<Vec<u8>>,
    /// Durations of parse and bind, of which the execution follows.
    spent_ns: u64,
    /// An error, whose statement follows.
    error: bool,
}

impl Pending {
    /// However many are added, the sum can be taken from an instant.
    const MOST_NS: u64 = 10_000_000_000_000_000;

    fn spend(&mut self, ns: u64) {
        self.spent_ns = self.spent_ns.saturating_add(ns).min(Pending::MOST_NS);
    }

    /// The time of an execution with all that came before it, which is forgotten.
    fn whole_ns(&mut self, ns: u64) -> u64 {
        self.spend(ns);
        std::mem::take(&mut self.spent_ns)
    }
}

pub struct Postgres {
    form: Form,
    clock: Clock,
    processes: HashMap<Vec<u8>, Pending>,
    /// A message of text, which lines with a tab continue.
    open: Vec<u8>,
    /// Bytes at the end of the last block that may be a part of a record.
    left: usize,
    class: Vec<u8>,
}

impl Postgres {
    pub fn new(form: Form, settings: &Settings) -> Postgres {
        Postgres {
            form,
            clock: Clock::new(&settings.zone),
            processes: HashMap::new(),
            open: Vec::new(),
            left: 0,
            class: Vec::new(),
        }
    }

    /// The instant of the stamp in a prefix, whether its zone is letters that nobody explained, and
    /// what is behind it.
    fn instant(&mut self, prefix: &[u8]) -> (i64, bool, usize) {
        let Some((from, to)) = stamp_in(prefix) else {
            return (NO_TIME, false, 0);
        };
        let at_ns = self.clock.iso_ns(&prefix[from..to]).unwrap_or(NO_TIME);
        let lettered = self.clock.zone.0.is_empty() && lettered(&prefix[to..]);
        (at_ns, lettered, to)
    }

    fn entry(
        &mut self,
        message: &Message<'_>,
        text: &[u8],
        spent: Option<(u64, u32)>,
        failed: bool,
        out: &mut Out<'_>,
    ) {
        let found = statement(text, Dialect::Postgres, &mut self.class);
        let user = if message.app.is_empty() || message.app == b"[unknown]" {
            message.user
        } else {
            message.app
        };
        let (ns, resolution_ns) = spent.unwrap_or((UNKNOWN, 1));
        let past = if ns == UNKNOWN { 0 } else { ns as i64 };
        let entry = Entry {
            at_ns: if message.at_ns == NO_TIME {
                NO_TIME
            } else {
                message.at_ns - past
            },
            ns,
            resolution_ns,
            kind: if found.search {
                Kind::Asked
            } else {
                Kind::Other
            },
            fault: if failed { Fault::Error } else { Fault::None },
            index: found.table,
            words: found.words,
            class: &self.class,
            text,
            user,
            ..Entry::default()
        };
        out.seen.note(LETTERS, u64::from(message.lettered));
        out.entry(&entry);
    }

    fn other(message: &Message<'_>, class: &'static [u8], fault: Fault, out: &mut Out<'_>) {
        out.seen.note(LETTERS, u64::from(message.lettered));
        out.entry(&Entry {
            at_ns: message.at_ns,
            kind: Kind::Other,
            fault,
            class,
            ..Entry::default()
        });
    }

    fn take(&mut self, message: &Message<'_>, out: &mut Out<'_>) {
        let mut pending = self.processes.remove(message.process).unwrap_or_default();
        if pending.error && matches!(message.severity, b"LOG" | b"ERROR" | b"FATAL") {
            pending.error = false;
            Postgres::other(
                message,
                b"(an error without its statement)",
                Fault::Error,
                out,
            );
        }
        match message.severity {
            b"LOG" => self.log(message, &mut pending, out),
            b"ERROR" => {
                pending.statement = None;
                pending.spent_ns = 0;
                match message.statement {
                    Some(text) => self.entry(message, text, None, true, out),
                    None if self.form == Form::Text => pending.error = true,
                    None => Postgres::other(
                        message,
                        b"(an error without its statement)",
                        Fault::Error,
                        out,
                    ),
                }
            }
            b"STATEMENT" if pending.error => {
                pending.error = false;
                self.entry(message, message.text, None, true, out);
            }
            b"FATAL" | b"PANIC" => {
                Postgres::other(message, b"(a connection that was ended)", Fault::Error, out);
            }
            _ => {}
        }
        if pending.error || pending.statement.is_some() || pending.spent_ns > 0 {
            self.processes.insert(message.process.to_vec(), pending);
        }
    }

    fn log(&mut self, message: &Message<'_>, pending: &mut Pending, out: &mut Out<'_>) {
        // With log_error_verbosity = verbose the code of the state comes first.
        let text = message.text;
        let text = match text.get(..7) {
            Some(code)
                if code.ends_with(b": ") && code[..5].iter().all(u8::is_ascii_alphanumeric) =>
            {
                &text[7..]
            }
            _ => text,
        };
        if let Some(rest) = text.strip_prefix(b"duration: ") {
            let end = memchr::memchr(b' ', rest).unwrap_or(rest.len());
            let Some((ns, resolution)) = duration(&rest[..end], 1_000_000) else {
                return;
            };
            let rest = rest[end..]
                .strip_prefix(b" ms")
                .unwrap_or(b"")
                .trim_ascii_start();
            if rest.starts_with(b"plan:") {
                out.seen.note(PLAN, 1);
                Postgres::other(message, b"(a plan of auto_explain)", Fault::None, out);
                return;
            }
            if rest.is_empty() {
                match pending.statement.take() {
                    Some(text) => {
                        let spent = pending.whole_ns(ns);
                        self.entry(message, &text, Some((spent, resolution)), false, out);
                    }
                    None => pending.spend(ns),
                }
                return;
            }
            let (verb, name, sql) = named(rest);
            match verb {
                b"parse" | b"bind" => pending.spend(ns),
                b"execute" if name.starts_with(b"fetch from ") => {
                    pending.spent_ns = 0;
                    Postgres::other(message, b"(more rows of a portal)", Fault::None, out);
                }
                _ => {
                    let spent = pending.whole_ns(ns);
                    self.entry(message, sql, Some((spent, resolution)), false, out);
                }
            }
            return;
        }
        if text.starts_with(b"statement: ") || text.starts_with(b"execute ") {
            let (_, name, sql) = named(text);
            if !name.starts_with(b"fetch from ") {
                pending.statement = Some(sql.to_vec());
            }
        }
    }

    fn text(&mut self, line: &[u8], out: &mut Out<'_>) {
        let Some((prefix, severity, text)) = cut(line) else {
            return;
        };
        let (at_ns, lettered, behind) = self.instant(prefix);
        let rest = &prefix[behind..];
        let process = memchr::memchr(b'[', rest)
            .and_then(|at| Some(&rest[at + 1..at + memchr::memchr(b']', &rest[at..])?]))
            .unwrap_or(b"");
        let field = |name: &[u8], ends: &[u8]| {
            let at = scan::find(rest, name, name.len() - 1)? + name.len();
            let end = scan::find(&rest[at..], ends, 0).map_or(rest.len(), |n| at + n);
            Some(rest[at..end].trim_ascii())
        };
        // `user@database`, or `user=..,db=..,app=..,client=..`.
        let at_sign = rest
            .split(|&b| b == b' ')
            .find_map(|part| memchr::memchr(b'@', part).map(|at| &part[..at]));
        let message = Message {
            at_ns,
            lettered,
            process,
            severity,
            text,
            statement: None,
            user: field(b"user=", b",").or(at_sign).unwrap_or(b""),
            app: field(b"app=", b",client=").unwrap_or(b""),
        };
        self.take(&message, out);
    }
}

/// `statement: SQL`, `execute NAME: SQL` → the verb, the name, the SQL.
fn named(text: &[u8]) -> (&[u8], &[u8], &[u8]) {
    let verb = &text[..text
        .iter()
        .position(|b| !b.is_ascii_lowercase())
        .unwrap_or(text.len())];
    let rest = &text[verb.len()..];
    match scan::find(rest, b": ", 0) {
        Some(at) => (verb, rest[..at].trim_ascii(), &rest[at + 2..]),
        None => (verb, b"", rest),
    }
}

impl Postgres {
    fn csv(&mut self, block: &Block, out: &mut Out<'_>) {
        let mut cells = Vec::new();
        let mut held: [Vec<u8>; 4] = Default::default();
        let mut at = block.begin;
        while at < block.end {
            let next = match csv::next(&block.bytes, at, &mut cells, block.is_last()) {
                // What follows the block shows whether it is a record.
                csv::Next::Open => break,
                csv::Next::Record(next) if next > block.end => break,
                csv::Next::Record(next) => next,
                csv::Next::Line(_) => {
                    let line = line_at(&block.bytes, at);
                    let line = &line[..line.len().min(LONGEST)];
                    out.seen.line(line.len());
                    if !line.is_empty() {
                        out.seen.unread(line, "it is not a record of csvlog");
                    }
                    at = behind(&block.bytes, at);
                    continue;
                }
            };
            let taken = &block.bytes[at..next];
            // The last line of a log may have no line break.
            let half = u64::from(taken.last() != Some(&b'\n'));
            out.seen.lines += memchr::memchr_iter(b'\n', taken).count() as u64 + half;
            out.seen.length(next - at);
            at = next;
            let [text, asked, user, app] = &mut held;
            csv::unquoted(cells[13], text);
            csv::unquoted(cells[19], asked);
            csv::unquoted(cells[1], user);
            csv::unquoted(cells.get(22).copied().unwrap_or(b""), app);
            let (at_ns, lettered, _) = self.instant(cells[0]);
            let message = Message {
                at_ns,
                lettered,
                process: cells[3],
                severity: cells[11],
                text,
                statement: (!asked.is_empty()).then_some(asked),
                user,
                app,
            };
            self.take(&message, out);
        }
        self.left = block.end.saturating_sub(at);
    }

    fn json(&mut self, line: &[u8], out: &mut Out<'_>) -> bool {
        let mut found: [Vec<u8>; 7] = Default::default();
        let mut scratch = Vec::new();
        let whole = json::members(line, &mut |key, raw| {
            let names: [&[u8]; 7] = [
                b"timestamp",
                b"pid",
                b"error_severity",
                b"message",
                b"statement",
                b"user",
                b"application_name",
            ];
            if let Some(at) = names.iter().position(|n| *n == key) {
                found[at].extend_from_slice(json::plain(raw, &mut scratch));
            }
        });
        let [stamp, process, severity, text, asked, user, app] = &found;
        if whole.is_none() || severity.is_empty() {
            return false;
        }
        let (at_ns, lettered, _) = self.instant(stamp);
        let message = Message {
            at_ns,
            lettered,
            process,
            severity,
            text,
            statement: (!asked.is_empty()).then_some(asked),
            user,
            app,
        };
        self.take(&message, out);
        true
    }
}

impl Reader for Postgres {
    fn clock(&mut self) -> &mut Clock {
        &mut self.clock
    }

    fn read(&mut self, block: &Block, out: &mut Out<'_>) {
        if self.form == Form::Csv {
            self.csv(block, out);
            return;
        }
        let mut lines = Lines::new(block);
        while lines.at < block.end {
            let Some((_, line)) = lines.step() else { break };
            out.seen.line(line.len());
            if self.form == Form::Json {
                if !line.is_empty() && !self.json(line, out) {
                    out.seen.unread(line, "it is not an object of jsonlog");
                }
            } else if let Some(more) = line.strip_prefix(b"\t") {
                self.open.push(b'\n');
                self.open.extend_from_slice(more);
            } else {
                let whole = std::mem::take(&mut self.open);
                self.text(&whole, out);
                self.open = whole;
                self.open.clear();
                if cut(line).is_some() {
                    self.open.extend_from_slice(line);
                } else if !line.is_empty() {
                    out.seen
                        .unread(line, "it has no severity of PostgreSQL, as in LOG:  ..");
                }
            }
        }
        out.seen.clock(&mut self.clock);
    }

    fn left(&self) -> usize {
        self.left
    }

    fn end(&mut self, out: &mut Out<'_>) {
        let whole = std::mem::take(&mut self.open);
        self.text(&whole, out);
        let without = self
            .processes
            .values()
            .filter(|p| p.statement.is_some())
            .count();
        out.seen.note(
            "statements whose duration is not in the log",
            without as u64,
        );
        let cut = self.processes.values().filter(|p| p.spent_ns > 0).count();
        out.seen
            .note("durations whose statement is not in the log", cut as u64);
    }

    fn save(&self, into: &mut Saving) {
        into.text(&self.open);
        let mut all: Vec<_> = self.processes.iter().collect();
        all.sort_unstable_by_key(|(process, _)| *process);
        for (process, pending) in all {
            into.text(process);
            into.number(pending.spent_ns);
            into.number(u64::from(pending.error) | u64::from(pending.statement.is_some()) << 1);
            into.text(pending.statement.as_deref().unwrap_or(b""));
        }
    }

    fn restore(&mut self, from: &mut Saved<'_>) -> Option<()> {
        self.open = from.text()?.to_vec();
        while !from.is_empty() {
            let process = from.text()?.to_vec();
            let (spent_ns, flags, text) = (from.number()?, from.number()?, from.text()?);
            let pending = Pending {
                statement: (flags & 2 > 0).then(|| text.to_vec()),
                spent_ns,
                error: flags & 1 > 0,
            };
            self.processes.insert(process, pending);
        }
        Some(())
    }
}
