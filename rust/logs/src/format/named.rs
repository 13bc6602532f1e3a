//! Logs whose fields have names: JSON lines, LTSV, CSV, and any line by a format string.
//!
//! A name tells what a field is (`Role`): those that programs commonly use are known, and the user
//! says the others (`Settings::columns`, NAME=ROLE or NAME=ROLE:UNIT). In a format string fields
//! stand in braces: `{time} {server} "{text}" {status} {_} {duration:ms}`; `{_}` is passed over.
//!
//! Longer than 450 lines: the four shapes of a line fill one row, which is counted in one way.

use crate::clock::{Clock, duration, number, scientific};
use crate::entry::{Entry, Fault, Kind, NO_TIME, UNKNOWN};
use crate::format::access::target;
use crate::format::prefix::LETTERS;
use crate::format::roles::{Meaning, ROLES, Role, Said, meaning, said_without, unit};
use crate::format::values::{STATUS, instant, is_no_instant, names_unknown_zone, went_well};
use crate::format::{Out, Reader, Settings, csv, json};
use crate::source::{Block, Lines};
use crate::sql::{Dialect, statement};
use crate::words;

/// What names mean, by their place in a line: most lines have the same names at the same places.
#[derive(Default)]
struct Known(Vec<(Vec<u8>, Option<Meaning>)>);

impl Known {
    #[inline]
    fn meaning(&mut self, place: usize, name: &[u8], said: &[Said]) -> Option<Meaning> {
        match self.0.get(place) {
            Some((known, found)) if known == name => *found,
            _ => self.learn(place, name, said),
        }
    }

    fn learn(&mut self, place: usize, name: &[u8], said: &[Said]) -> Option<Meaning> {
        const MOST: usize = 100;
        let found = meaning(name, said);
        match self.0.get_mut(place) {
            Some((known, of)) => {
                known.clear();
                known.extend_from_slice(name);
                *of = found;
            }
            None if place < MOST => self.0.push((name.to_vec(), found)),
            None => {}
        }
        found
    }
}

/// The values of one line, by role.
#[derive(Default)]
struct Row {
    values: [Vec<u8>; ROLES.len()],
    ranks: [usize; ROLES.len()],
    unit_ns: u64,
    assumed: &'static str,
    held: Vec<u8>,
    /// Whether there is a field for what was asked, though it may be empty.
    asks: bool,
}

impl Row {
    fn clear(&mut self) {
        self.asks = false;
        self.values.iter_mut().for_each(Vec::clear);
        self.ranks = [usize::MAX; ROLES.len()];
    }

    fn set(&mut self, meaning: &Meaning, fill: impl FnOnce(&mut Vec<u8>)) {
        let at = meaning.role as usize;
        self.asks |= matches!(meaning.role, Role::Text | Role::Request);
        if meaning.rank < self.ranks[at] {
            // What another name gave stays where this one gives nothing.
            self.held.clear();
            fill(&mut self.held);
            let other = meaning.role == Role::Time && meaning.rank > 0 && is_no_instant(&self.held);
            if !self.held.is_empty() && !other {
                std::mem::swap(&mut self.values[at], &mut self.held);
                self.ranks[at] = meaning.rank;
                if meaning.role == Role::Duration {
                    (self.unit_ns, self.assumed) = (meaning.unit_ns, meaning.assumed);
                }
            }
        }
    }

    fn get(&self, role: Role) -> &[u8] {
        &self.values[role as usize]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Json,
    Ltsv,
    Csv,
    Pattern,
}

/// A piece of a format string: a field with what follows it.
#[derive(Clone, Debug)]
struct Piece {
    meaning: Option<Meaning>,
    after: Vec<u8>,
}

pub struct Named {
    shape: Shape,
    clock: Clock,
    said: Vec<Said>,
    header: Vec<Option<Meaning>>,
    separator: u8,
    lead: Vec<u8>,
    pieces: Vec<Piece>,
    parameters: Vec<Vec<u8>>,
    row: Row,
    known: Known,
    class: Vec<u8>,
    scratch: Vec<u8>,
}

/// Cuts a format string. Err with a sentence.
fn pieces(pattern: &str) -> Result<(Vec<u8>, Vec<Piece>), String> {
    let (lead, rest) = pattern
        .split_once('{')
        .ok_or("a format string has fields: {time} {text}")?;
    let mut found = Vec::new();
    for part in rest.split('{') {
        let (field, after) = part
            .split_once('}')
            .ok_or_else(|| format!("{{{part}: a field ends with }}"))?;
        let (name, of) = field.split_once(':').unwrap_or((field, ""));
        let role = ROLES
            .iter()
            .find(|(n, _)| *n == name)
            .map(|(_, role)| *role);
        if role.is_none() && name != "_" {
            let names: Vec<&str> = ROLES.iter().map(|(n, _)| *n).collect();
            return Err(format!(
                "{{{name}}} is no field; there are {}, _",
                names.join(", ")
            ));
        }
        let unit_ns = if of.is_empty() { Some(0) } else { unit(of) };
        let unit_ns =
            unit_ns.ok_or_else(|| format!("{of:?} is no unit; there are s, ms, us, ns"))?;
        let rank = found.len();
        let meaning = role.map(|role| Meaning {
            role,
            unit_ns,
            assumed: said_without(role, unit_ns),
            rank,
        });
        found.push(Piece {
            meaning,
            after: after.as_bytes().to_vec(),
        });
    }
    if found
        .iter()
        .rev()
        .skip(1)
        .any(|piece| piece.after.is_empty())
    {
        return Err(
            "two fields of a format string stand side by side: put between them what \
                    separates them"
                .to_owned(),
        );
    }
    Ok((lead.as_bytes().to_vec(), found))
}

/// Whether a format string can be used; Err with what is wrong.
pub fn check_pattern(pattern: &str) -> Result<(), String> {
    let (_, pieces) = pieces(pattern)?;
    let has = |role| {
        pieces
            .iter()
            .any(|p| p.meaning.as_ref().is_some_and(|m| m.role == role))
    };
    if has(Role::Time) || has(Role::Duration) || has(Role::Text) || has(Role::Request) {
        return Ok(());
    }
    Err("a format string needs {time}, {duration}, {text} or {request}".to_owned())
}

impl Named {
    pub fn new(shape: Shape, settings: &Settings) -> Named {
        let (lead, pieces) = match shape {
            Shape::Pattern => pieces(&settings.pattern).unwrap_or_default(),
            _ => Default::default(),
        };
        Named {
            shape,
            clock: Clock::new(&settings.zone),
            said: settings.columns.clone(),
            header: Vec::new(),
            separator: b',',
            lead,
            pieces,
            parameters: settings.parameters.clone(),
            row: Row::default(),
            known: Known::default(),
            class: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// The fields of a line into the row; why it could not be read.
    /// The row of a line; where what is read of it ends. Objects may follow each other in one line.
    fn fill(&mut self, line: &[u8]) -> Result<usize, &'static str> {
        self.row.clear();
        match self.shape {
            Shape::Json => {
                let (row, said, known) = (&mut self.row, &self.said, &mut self.known);
                let mut place = 0;
                let end = json::members(line, &mut |key, raw| {
                    place += 1;
                    if let Some(meaning) = known.meaning(place - 1, key, said) {
                        row.set(&meaning, |into| {
                            let mut held = Vec::new();
                            into.extend_from_slice(json::plain(raw, &mut held));
                        });
                    }
                });
                end.ok_or("it is not an object of JSON")
            }
            Shape::Ltsv => {
                for (place, pair) in line.split(|&b| b == b'\t').enumerate() {
                    let at = memchr::memchr(b':', pair).ok_or("a field of it has no label")?;
                    if let Some(meaning) = self.known.meaning(place, &pair[..at], &self.said) {
                        self.row.set(&meaning, |into| {
                            into.extend_from_slice(&pair[at + 1..]);
                        });
                    }
                }
                Ok(line.len())
            }
            Shape::Csv => {
                let mut rest = line;
                for column in 0..self.header.len() {
                    let (value, after) = csv::cell(rest, self.separator);
                    if let Some(meaning) = &self.header[column] {
                        self.row.set(meaning, |into| csv::unquoted(value, into));
                    }
                    match after {
                        Some(after) => rest = after,
                        None if column + 1 == self.header.len() => return Ok(line.len()),
                        None => return Err("it has fewer columns than the first line"),
                    }
                }
                Err("it has more columns than the first line")
            }
            Shape::Pattern => {
                let mut rest = line
                    .strip_prefix(self.lead.as_slice())
                    .ok_or("it does not fit the format string")?;
                let last = self.pieces.len() - 1;
                for (i, piece) in self.pieces.iter().enumerate() {
                    let end = if piece.after.is_empty() && i == last {
                        Some(rest.len())
                    } else {
                        memchr::memmem::find(rest, &piece.after)
                    };
                    let end = end.ok_or("it does not fit the format string")?;
                    if let Some(meaning) = &piece.meaning {
                        self.row
                            .set(meaning, |into| into.extend_from_slice(&rest[..end]));
                    }
                    rest = &rest[end + piece.after.len()..];
                }
                Ok(line.len())
            }
        }
    }

    fn count(&mut self, out: &mut Out<'_>) -> Result<(), &'static str> {
        let row = &self.row;
        let mut entry = Entry {
            index: row.get(Role::Index),
            user: row.get(Role::User),
            server: row.get(Role::Server),
            ..Entry::default()
        };
        let time = row.get(Role::Time);
        if !time.is_empty() {
            entry.at_ns = instant(&mut self.clock, time).ok_or("its time cannot be read")?;
            let unknown = self.clock.zone.0.is_empty() && names_unknown_zone(time);
            out.seen.note(LETTERS, u64::from(unknown));
        }
        let spent = row.get(Role::Duration);
        if !spent.is_empty() && spent != b"-" {
            let unit_ns = if row.unit_ns > 0 {
                row.unit_ns
            } else {
                1_000_000_000
            };
            let found = duration(spent, unit_ns)
                .or_else(|| scientific(spent, unit_ns))
                .ok_or("its duration cannot be read")?;
            (entry.ns, entry.resolution_ns) = found;
            // A value may name its unit, as `1.2ms` does.
            if !row.assumed.is_empty() && spent.last().is_some_and(u8::is_ascii_digit) {
                out.seen.note(row.assumed, 1);
            }
        }
        let hits = row.get(Role::Hits);
        entry.hits = number(hits).map_or(UNKNOWN, |n| n as u64);
        let status = row.get(Role::Status);
        entry.fault = match went_well(status) {
            Some(true) => Fault::None,
            Some(false) => Fault::Error,
            None => {
                out.seen.note(STATUS, 1);
                Fault::None
            }
        };
        let (text, request) = (row.get(Role::Text), row.get(Role::Request));
        if !request.is_empty() {
            let (method, path) = match memchr::memchr(b' ', request) {
                Some(at) => (&request[..at], &request[at + 1..]),
                None => (&b"GET"[..], request),
            };
            let path = &path[..memchr::memchr(b' ', path).unwrap_or(path.len())];
            let found = target(
                method,
                path,
                &self.parameters,
                &mut self.class,
                &mut self.scratch,
            );
            entry.kind = if found.search || !text.is_empty() {
                Kind::Asked
            } else {
                Kind::Other
            };
            entry.words = found.words;
            entry.text = path;
            if entry.index.is_empty() {
                entry.index = found.index;
            }
        } else if !text.is_empty() {
            let begins = &text[..text.len().min(7)];
            if begins.eq_ignore_ascii_case(b"select ") {
                let found = statement(text, Dialect::Mysql, &mut self.class);
                entry.words = found.words;
                if entry.index.is_empty() {
                    entry.index = found.table;
                }
            } else {
                let look = words::look(text);
                entry.words = look.words;
                self.class.clear();
                self.class.extend_from_slice(b"words");
                words::name_operators(look.operators, &mut self.class);
            }
            entry.text = text;
        } else {
            self.class.clear();
            if row.asks {
                entry.kind = Kind::Other;
                self.class.extend_from_slice(b"(nothing was asked)");
            }
        }
        if entry.at_ns == NO_TIME && entry.ns == UNKNOWN && entry.text.is_empty() {
            return Err("it has no field that is known: name them with --column");
        }
        let class = row.get(Role::Class);
        entry.class = if class.is_empty() { &self.class } else { class };
        out.entry(&entry);
        Ok(())
    }
}

/// The mark of UTF-8 at the beginning of a file.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Whether a line of JSON or LTSV has a time or a duration by a name that is known.
pub fn looks(line: &[u8]) -> Option<Shape> {
    let (mut times, mut asks) = (0, 0);
    let mut seen = |name: &[u8]| {
        if let Some(found) = meaning(name, &[]) {
            times += u32::from(matches!(found.role, Role::Time | Role::Duration));
            asks += u32::from(matches!(found.role, Role::Text | Role::Request));
        }
    };
    let line = line.strip_prefix(MARK).unwrap_or(line);
    let shape = if line.first() == Some(&b'{') {
        json::members(line, &mut |key, _| seen(key));
        Shape::Json
    } else {
        let pairs = line.split(|&b| b == b'\t');
        for pair in pairs {
            seen(&pair[..memchr::memchr(b':', pair)?]);
        }
        Shape::Ltsv
    };
    (times > 0 && asks > 0).then_some(shape)
}

/// What is noted of lines of several objects, and of what else stands behind one.
const JOINED: &str = "objects of JSON that follow another in the same line";
const BEHIND: &str = "text behind an object of JSON in its line, which was not read";

impl Named {
    fn line(&mut self, line: &[u8], out: &mut Out<'_>) {
        // Lines are counted that could not be read, so each only once.
        let (mut rest, mut unread) = (line, false);
        loop {
            let read = self.fill(rest);
            if let Err(why) = read.and_then(|_| self.count(out))
                && !std::mem::replace(&mut unread, true)
            {
                out.seen.unread(rest, why);
            }
            let Ok(end) = read else { return };
            rest = rest[end..].trim_ascii_start();
            // As between the objects of an array, and behind them.
            rest = rest.strip_prefix(b",").unwrap_or(rest).trim_ascii_start();
            if rest.is_empty() || rest == b"]" {
                return;
            }
            if !rest.starts_with(b"{") {
                return out.seen.note(BEHIND, 1);
            }
            out.seen.note(JOINED, 1);
        }
    }
}

impl Reader for Named {
    fn clock(&mut self) -> &mut Clock {
        &mut self.clock
    }

    fn read(&mut self, block: &Block, out: &mut Out<'_>) {
        let mut lines = Lines::new(block);
        while lines.at < block.end {
            let Some((_, line)) = lines.step() else { break };
            out.seen.line(line.len());
            // Windows' programs write it at the beginning of a file.
            let line = line.strip_prefix(MARK).unwrap_or(line);
            if line.is_empty() {
                continue;
            }
            if self.shape == Shape::Csv && self.header.is_empty() {
                let tabs = memchr::memchr(b'\t', line).is_some();
                self.separator = if tabs { b'\t' } else { b',' };
                let mut rest = Some(line);
                while let Some(text) = rest {
                    let (name, after) = csv::cell(text, self.separator);
                    let mut plain = Vec::new();
                    csv::unquoted(name, &mut plain);
                    self.header.push(meaning(&plain, &self.said));
                    rest = after;
                }
                continue;
            }
            self.line(line, out);
        }
        out.seen.clock(&mut self.clock);
    }
}
