//! The formats: each file reads one, or one family, into entries.
//!
//! A reader is given blocks. Most need nothing but their block, and what it begins amid; a reader that
//! joins lines far apart (`Format::joins`) is given all blocks of its source in order.
//!
//! Longer than 450 lines: what every reader is given and gives back stands in one place.

mod access;
mod agents;
mod amid;
mod csv;
mod groonga;
mod hold;
mod json;
mod mysql;
pub mod named;
mod postgres;
mod prefix;
pub mod roles;
mod shape;
mod slowlog;
mod solr;
mod sphinx;
mod syslog;
mod values;

pub use amid::{Amid, Before, after, behind, goes_before, has_lines, since_last, whole};
pub use hold::{hold, waits};
pub use mysql::begins_slow;
pub use prefix::{LETTERS, looks_text};
pub use solr::SLOW;

use crate::clock::{Clock, Zone};
use crate::entry::{Entry, NO_TIME};
use crate::queries::{Local, Shared};
use crate::saved::{Saved, Saving};
use crate::source::{Block, LONGEST};
use crate::sql::{Dialect, statement};
use crate::tally::Tally;

/// The class of a request by itself, as that of the same request in a log: of a path with its method,
/// of any other text as a statement of SQL.
pub fn class_of(method: &[u8], text: &[u8], dialect: Dialect) -> Vec<u8> {
    let mut class = Vec::new();
    if text.starts_with(b"/") && !text.starts_with(b"/*") {
        access::target(method, text, &[], &mut class, &mut Vec::new());
    } else {
        statement(text, dialect, &mut class);
    }
    class
}

/// A line of more bytes is counted as a long one.
const LONG: usize = 1 << 20;
pub const LONG_LINES: &str = "lines (or entries of several) longer than 1 MiB";
pub const CUT_LINES: &str = "lines of 64 MiB or more, of which the rest was not read";

/// How many lines that could not be read are kept as examples.
pub const EXAMPLES: usize = 5;
const EXAMPLE_BYTES: usize = 120;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    SphinxPlain,
    SphinxQl,
    Access,
    MysqlSlow,
    MysqlGeneral,
    PostgresText,
    PostgresCsv,
    PostgresJson,
    Groonga,
    SlowPlain,
    SlowJson,
    Solr,
    Json,
    Ltsv,
    Csv,
    Pattern,
}

impl Format {
    pub const ALL: [Format; 16] = [
        Format::SphinxPlain,
        Format::SphinxQl,
        Format::Access,
        Format::MysqlSlow,
        Format::MysqlGeneral,
        Format::PostgresText,
        Format::PostgresCsv,
        Format::PostgresJson,
        Format::Groonga,
        Format::SlowPlain,
        Format::SlowJson,
        Format::Solr,
        Format::Json,
        Format::Ltsv,
        Format::Csv,
        Format::Pattern,
    ];

    /// What the command line and the record call it.
    pub fn name(self) -> &'static str {
        match self {
            Format::SphinxPlain => "sphinx",
            Format::SphinxQl => "sphinxql",
            Format::Access => "access",
            Format::MysqlSlow => "mysql-slow",
            Format::MysqlGeneral => "mysql-general",
            Format::PostgresText => "postgresql",
            Format::PostgresCsv => "postgresql-csv",
            Format::PostgresJson => "postgresql-json",
            Format::Groonga => "groonga",
            Format::SlowPlain => "slowlog",
            Format::SlowJson => "slowlog-json",
            Format::Solr => "solr",
            Format::Json => "json",
            Format::Ltsv => "ltsv",
            Format::Csv => "csv",
            Format::Pattern => "line",
        }
    }

    pub fn named(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|f| f.name() == name)
    }

    /// Whether lines that stand far apart make one entry (or one line says how all others are to be
    /// read), so that blocks must come in order.
    pub fn joins(self) -> bool {
        matches!(
            self,
            Format::MysqlGeneral
                | Format::PostgresText
                | Format::PostgresCsv
                | Format::PostgresJson
                | Format::Groonga
                | Format::SlowPlain
                | Format::SlowJson
                | Format::Csv
        )
    }
}

/// What the user says about logs that do not say it.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub zone: Zone,
    /// Zones of single servers, by name.
    pub zones: Vec<(Vec<u8>, Zone)>,
    /// What one is in a whole number of an access log, in nanoseconds; 0: not said.
    pub unit_ns: u64,
    /// Parameters of a path that hold what is searched for.
    pub parameters: Vec<Vec<u8>>,
    /// What columns of JSON, LTSV and CSV are.
    pub columns: Vec<roles::Said>,
    /// The format string of lines; empty: there is none.
    pub pattern: String,
    /// Of which instants entries are counted, in nanoseconds, the second no more; None: of all.
    pub within: Option<(i64, i64)>,
}

impl Settings {
    /// The same, with the zone of one server.
    pub fn of_server(&self, server: &[u8]) -> Settings {
        let own = self.zones.iter().find(|(name, _)| name == server);
        Settings {
            zone: own.map_or_else(|| self.zone.clone(), |(_, zone)| zone.clone()),
            ..self.clone()
        }
    }
}

/// What was met in a block besides its entries.
#[derive(Clone, Default, Debug)]
pub struct Seen {
    pub lines: u64,
    pub entries: u64,
    pub unread: u64,
    /// (line from 1, why it could not be read, its beginning)
    pub examples: Vec<(u64, &'static str, Vec<u8>)>,
    /// Of the lines that could not be read, those that look like a known format: how many, and the
    /// number of the first. (One that looks like the format of the log itself lacks something else.)
    pub others: Vec<(Format, u64, u64)>,
    /// What could be read in two ways or is not sure, and how often.
    pub notes: Vec<(&'static str, u64)>,
    pub first_ns: Option<i64>,
    pub last_ns: i64,
    pub longest: u64,
    /// How often the time of an entry was more than a minute before that of the entry above.
    pub back: u64,
}

impl Seen {
    /// One more line of so many bytes.
    #[inline(always)]
    pub fn line(&mut self, bytes: usize) {
        self.lines += 1;
        self.length(bytes);
    }

    /// How long a line was, or an entry of several.
    #[inline(always)]
    pub fn length(&mut self, bytes: usize) {
        self.longest = self.longest.max(bytes as u64);
        if bytes > LONG {
            self.long(bytes);
        }
    }

    #[cold]
    fn long(&mut self, bytes: usize) {
        self.note(LONG_LINES, 1);
        self.note(CUT_LINES, u64::from(bytes >= LONGEST));
    }

    #[inline]
    pub fn note(&mut self, what: &'static str, times: u64) {
        if times > 0 {
            self.note_some(what, times);
        }
    }

    #[inline(never)]
    fn note_some(&mut self, what: &'static str, times: u64) {
        match self.notes.iter_mut().find(|(name, _)| *name == what) {
            Some((_, n)) => *n += times,
            None => self.notes.push((what, times)),
        }
    }

    /// The line that was counted last could not be read.
    pub fn unread(&mut self, line: &[u8], why: &'static str) {
        self.unread_at(self.lines, line, why);
    }

    /// The same of another line, by its number.
    #[cold]
    pub fn unread_at(&mut self, number: u64, line: &[u8], why: &'static str) {
        self.unread += 1;
        if let Some(other) = looks(line) {
            self.other(other, 1, number);
        }
        if self.examples.len() < EXAMPLES {
            let shown = line[..line.len().min(EXAMPLE_BYTES)].to_vec();
            self.examples.push((number, why, shown));
        }
    }

    /// So many lines of another format; `first`: the number of the first of them.
    fn other(&mut self, format: Format, lines: u64, first: u64) {
        match self.others.iter_mut().find(|(known, ..)| *known == format) {
            Some((_, n, _)) => *n += lines,
            None => self.others.push((format, lines, first)),
        }
    }

    /// What a clock met, of stamps.
    pub fn clock(&mut self, clock: &mut Clock) {
        clock.tell(|what, times| self.note(what, times));
    }

    /// The clock between two entries that follow each other.
    #[inline]
    fn went_back(&mut self, from_ns: i64, to_ns: i64) {
        if let Some(hour) = back_between(from_ns, to_ns) {
            self.back += 1;
            self.note(HOUR_BACK, u64::from(hour));
        }
    }

    /// The same without so many lines at its beginning, which were counted elsewhere.
    pub fn without(mut self, lines: u64) -> Seen {
        self.lines = self.lines.saturating_sub(lines);
        let firsts = self.examples.iter_mut().map(|(line, ..)| line);
        for line in firsts.chain(self.others.iter_mut().map(|(.., first)| first)) {
            *line = line.saturating_sub(lines).max(1);
        }
        self
    }

    /// What follows in the same source.
    pub fn append(&mut self, next: Seen) {
        for (line, why, shown) in next.examples {
            if self.examples.len() < EXAMPLES {
                self.examples.push((self.lines + line, why, shown));
            }
        }
        for (format, n, first) in next.others {
            self.other(format, n, self.lines + first);
        }
        self.lines += next.lines;
        self.entries += next.entries;
        self.unread += next.unread;
        self.longest = self.longest.max(next.longest);
        self.back += next.back;
        if let (Some(_), Some(first)) = (self.first_ns, next.first_ns) {
            self.went_back(self.last_ns, first);
        }
        if next.first_ns.is_some() {
            self.first_ns = self.first_ns.or(next.first_ns);
            self.last_ns = next.last_ns;
        }
        for (what, n) in next.notes {
            self.note(what, n);
        }
    }
}

/// What is noted where no zone is known.
pub const HOUR_BACK: &str = "the clock went back by about an hour at night, as clocks are set back";
const HOUR_NS: i64 = 3_600_000_000_000;

/// Whether a clock went back between two entries that follow each other; and if so, whether it did as
/// clocks are set back.
#[inline]
pub fn back_between(from_ns: i64, to_ns: i64) -> Option<bool> {
    (to_ns < from_ns - BACK_NS).then(|| set_back(from_ns, from_ns - to_ns))
}

/// Whether a clock that goes back from here by so much may have been set back on a date of that
/// kind: a Sunday night of autumn, north or south.
fn set_back(from_ns: i64, by_ns: i64) -> bool {
    let hour = from_ns.div_euclid(HOUR_NS);
    // Days since 1970, a Thursday; what was 24:00 becomes 23:00 somewhere.
    let day = (hour + 1).div_euclid(24);
    let night = (hour + 1).rem_euclid(24) <= 4;
    let about = (HOUR_NS - 600_000_000_000..HOUR_NS + BACK_NS).contains(&by_ns);
    about && night && (day + 4).rem_euclid(7) == 0
}

/// Logs of searches that end in another order than they began go back by no more than this.
pub const BACK_NS: i64 = 60_000_000_000;

/// What is noted of entries that the user does not want.
pub const OUTSIDE: &str = "entries outside of the time that was asked for";
pub const TIMELESS: &str = "entries that have no time, where a time was asked for";

/// Where a reader puts what it finds.
pub struct Out<'a> {
    pub tally: &'a mut Tally,
    pub queries: &'a mut Local,
    pub shared: &'a Shared,
    pub source: &'a [u8],
    pub seen: Seen,
}

impl Out<'_> {
    #[inline]
    pub fn entry(&mut self, entry: &Entry<'_>) {
        self.passes(entry.at_ns);
        self.counts(entry);
    }

    /// An entry stands here, and is counted later: it is not known yet what it is.
    #[inline]
    pub fn passes(&mut self, at_ns: i64) {
        self.seen.entries += 1;
        if at_ns != NO_TIME {
            if self.seen.first_ns.is_none() {
                self.seen.first_ns = Some(at_ns);
            } else {
                self.seen.went_back(self.seen.last_ns, at_ns);
            }
            self.seen.last_ns = at_ns;
        }
    }

    /// The entry that passed.
    #[inline]
    pub fn counts(&mut self, entry: &Entry<'_>) {
        if let Some((from, to)) = self.tally.within
            && !(from..to).contains(&entry.at_ns)
        {
            let what = if entry.at_ns == NO_TIME {
                TIMELESS
            } else {
                OUTSIDE
            };
            return self.seen.note(what, 1);
        }
        self.tally
            .add(entry, self.source, self.queries, self.shared);
    }
}

pub trait Reader: Send {
    fn read(&mut self, block: &Block, out: &mut Out<'_>);

    /// How many bytes at the end of that block it left, because what begins there may not be whole: they
    /// are given to it again, with what follows them. Only of formats that join.
    fn left(&self) -> usize {
        0
    }

    /// What turns its stamps into instants.
    fn clock(&mut self) -> &mut Clock;

    /// After the last block.
    fn end(&mut self, _out: &mut Out<'_>) {}

    /// What is open after the last block, where more may follow: instead of `end`.
    fn save(&self, _into: &mut Saving) {}

    /// Goes on with what was open. None where it is not what this reader saved.
    fn restore(&mut self, _from: &mut Saved<'_>) -> Option<()> {
        Some(())
    }
}

/// The format that a line has, where only one can be meant.
pub fn looks(line: &[u8]) -> Option<Format> {
    type Test = fn(&[u8]) -> bool;
    let tests: [(Test, Format); 12] = [
        (sphinx::looks_plain, Format::SphinxPlain),
        (sphinx::looks_ql, Format::SphinxQl),
        (groonga::looks, Format::Groonga),
        (mysql::looks_slow, Format::MysqlSlow),
        (slowlog::looks_plain, Format::SlowPlain),
        (slowlog::looks_json, Format::SlowJson),
        (prefix::looks_json, Format::PostgresJson),
        (prefix::looks_csv, Format::PostgresCsv),
        (prefix::looks_text, Format::PostgresText),
        (solr::looks, Format::Solr),
        (access::looks, Format::Access),
        (mysql::looks_general, Format::MysqlGeneral),
    ];
    if let Some((_, format)) = tests.iter().find(|(test, _)| test(line)) {
        return Some(*format);
    }
    named::looks(line).map(|shape| match shape {
        named::Shape::Json => Format::Json,
        _ => Format::Ltsv,
    })
}

/// A reader of a format.
pub fn reader(format: Format, settings: &Settings) -> Box<dyn Reader> {
    use named::{Named, Shape};
    use postgres::{Form, Postgres};
    match format {
        Format::SphinxPlain => Box::new(sphinx::Plain::new(settings)),
        Format::SphinxQl => Box::new(sphinx::Ql::new(settings)),
        Format::Access => Box::new(access::Access::new(settings)),
        Format::MysqlSlow => Box::new(mysql::Slow::new(settings)),
        Format::MysqlGeneral => Box::new(mysql::General::new(settings)),
        Format::PostgresText => Box::new(Postgres::new(Form::Text, settings)),
        Format::PostgresCsv => Box::new(Postgres::new(Form::Csv, settings)),
        Format::PostgresJson => Box::new(Postgres::new(Form::Json, settings)),
        Format::Groonga => Box::new(groonga::Groonga::new(settings)),
        Format::SlowPlain => Box::new(slowlog::SlowLog::new(false, settings)),
        Format::SlowJson => Box::new(slowlog::SlowLog::new(true, settings)),
        Format::Solr => Box::new(solr::Solr::new(settings)),
        Format::Json => Box::new(Named::new(Shape::Json, settings)),
        Format::Ltsv => Box::new(Named::new(Shape::Ltsv, settings)),
        Format::Csv => Box::new(Named::new(Shape::Csv, settings)),
        Format::Pattern => Box::new(Named::new(Shape::Pattern, settings)),
    }
}
