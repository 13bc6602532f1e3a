//! What is counted of the entries of a log. Everything merges: sums, least and greatest.

use std::collections::BTreeMap;
use std::collections::HashMap;

use crate::cells::{Cells, MOST_CELLS};
use crate::entries::Entries;
use crate::entry::{Entry, Fault, Kind, NO_TIME, NO_WORDS, UNKNOWN};
use crate::histogram::{Histogram, bucket};
use crate::minutes::{Minute, coarse};
use crate::names::Names;
use crate::often::{Busy, Often};
use crate::queries::{Counts, Local, Shared, asked_of, seed_of};

/// What the searches are grouped by. The names are those of the record.
pub const KINDS: [&str; 7] = ["server", "index", "class", "words", "user", "part", "other"];
pub const SERVER: usize = 0;
const INDEX: usize = 1;
const CLASS: usize = 2;
const WORDS: usize = 3;
const USER: usize = 4;
const PART: usize = 5;
const OTHER: usize = 6;

/// More words than this are one group.
pub const MOST_WORDS: u32 = 100;
/// What is counted of a group of entries.
#[derive(Clone, Default)]
pub struct Group {
    pub n: u64,
    /// Those whose time is known, its sum and its greatest.
    pub timed: u64,
    pub sum_ns: u64,
    pub max_ns: u64,
    /// Those whose number of hits is known, its sum, and those without a hit.
    pub hits_known: u64,
    pub hits: u64,
    pub zero: u64,
    pub errors: u64,
    pub partial: u64,
    pub cached: u64,
    /// Those whose processor time is known, its sum; those whose reads are known, their sum.
    pub cpu_known: u64,
    pub cpu_us: u64,
    pub ios_known: u64,
    pub ios: u64,
    pub times: Histogram,
}

impl Group {
    #[inline]
    pub fn add(&mut self, entry: &Entry<'_>) {
        self.count(entry);
        if entry.ns != UNKNOWN {
            self.times.add(entry.ns, 1);
        }
    }

    /// The same, but for the histogram of times.
    #[inline]
    pub fn count(&mut self, entry: &Entry<'_>) {
        self.n += 1;
        if entry.ns != UNKNOWN {
            self.timed += 1;
            self.sum_ns = self.sum_ns.saturating_add(entry.ns);
            self.max_ns = self.max_ns.max(entry.ns);
        }
        if entry.hits != UNKNOWN {
            self.hits_known += 1;
            self.hits = self.hits.saturating_add(entry.hits);
            self.zero += u64::from(entry.hits == 0);
        }
        match entry.fault {
            Fault::None => {}
            Fault::Error => self.errors += 1,
            Fault::Partial => self.partial += 1,
        }
        self.cached += u64::from(entry.cached);
        if entry.cpu_us != UNKNOWN {
            self.cpu_known += 1;
            self.cpu_us = self.cpu_us.saturating_add(entry.cpu_us);
        }
        if entry.ios != UNKNOWN {
            self.ios_known += 1;
            self.ios = self.ios.saturating_add(entry.ios);
        }
    }

    pub fn numbers(&self) -> [u64; 14] {
        [
            self.n,
            self.timed,
            self.sum_ns,
            self.max_ns,
            self.hits_known,
            self.hits,
            self.zero,
            self.errors,
            self.partial,
            self.cached,
            self.cpu_known,
            self.cpu_us,
            self.ios_known,
            self.ios,
        ]
    }

    pub const NUMBERS: [&str; 14] = [
        "n",
        "timed",
        "sum_ns",
        "max_ns",
        "hits_known",
        "hits",
        "zero",
        "errors",
        "partial",
        "cached",
        "cpu_known",
        "cpu_us",
        "ios_known",
        "ios",
    ];

    pub fn add_numbers(&mut self, from: &[u64; 14]) {
        let max_ns = self.max_ns.max(from[3]);
        for (own, add) in [
            &mut self.n,
            &mut self.timed,
            &mut self.sum_ns,
            &mut self.max_ns,
            &mut self.hits_known,
            &mut self.hits,
            &mut self.zero,
            &mut self.errors,
            &mut self.partial,
            &mut self.cached,
            &mut self.cpu_known,
            &mut self.cpu_us,
            &mut self.ios_known,
            &mut self.ios,
        ]
        .into_iter()
        .zip(from)
        {
            *own = own.saturating_add(*add);
        }
        self.max_ns = max_ns;
    }

    fn merge(&mut self, other: &Group) {
        self.add_numbers(&other.numbers());
        self.times.merge(&other.times);
    }
}

/// Groups of one kind by name.
#[derive(Clone, Default)]
pub struct Groups {
    pub names: Names,
    pub groups: Vec<Group>,
}

impl Groups {
    #[inline]
    pub fn of(&mut self, name: &[u8]) -> &mut Group {
        let number = self.names.number(name);
        self.at(number)
    }

    fn at(&mut self, number: usize) -> &mut Group {
        if number >= self.groups.len() {
            self.groups.resize_with(number + 1, Group::default);
        }
        &mut self.groups[number]
    }

    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &Group)> {
        let named = self.groups.iter().enumerate();
        named.map(|(i, group)| (self.names.get(i), group))
    }
}

/// A time that is not added yet.
struct LastTime {
    bucket: usize,
    number: usize,
    cell: usize,
    words: Option<usize>,
}

/// In place of the number of a server that is not known.
pub const ANY: usize = usize::MAX;

/// Everything that one thread, or one log, counted, without its distinct queries.
#[derive(Default)]
pub struct Tally {
    pub kinds: [Groups; KINDS.len()],
    pub words: Vec<Group>,
    /// By number of hits: none, one, two to three, four to seven and so on.
    pub hits: Vec<u64>,
    pub minutes: HashMap<i64, Box<Minute>>,
    /// The number of a server (`ANY`: counted before servers were told apart), the finest difference
    /// of times that its log can write → entries.
    pub resolutions: BTreeMap<(usize, u32), u64>,
    cells: Cells,
    busy_words: Vec<Busy>,
    often: Often,
    last_time: Option<LastTime>,
    current: Option<(i64, Box<Minute>)>,
    last_resolution: ((usize, u32), u64),
    /// Where entries are kept one by one, and not counted.
    pub kept: Option<Box<Entries>>,
    /// `Settings::within`.
    pub within: Option<(i64, i64)>,
}

impl Tally {
    /// One that counts what began within a time (`Settings::within`).
    pub fn within(within: Option<(i64, i64)>) -> Tally {
        Tally {
            within,
            ..Tally::default()
        }
    }

    /// One that keeps entries and counts nothing.
    pub fn keeping() -> Tally {
        Tally {
            kept: Some(Box::default()),
            ..Tally::default()
        }
    }

    /// Counts an entry; its query goes into `queries`.
    #[inline]
    pub fn add(&mut self, entry: &Entry<'_>, source: &[u8], queries: &mut Local, shared: &Shared) {
        if let Some(kept) = &mut self.kept {
            return kept.add(entry, source);
        }
        match entry.kind {
            Kind::Asked => {}
            Kind::Part => return self.kinds[PART].of(entry.index).add(entry),
            Kind::Other => return self.kinds[OTHER].of(entry.class).add(entry),
        }
        let server = if entry.server.is_empty() {
            source
        } else {
            entry.server
        };
        let index = seed_of(entry.index);
        let query = asked_of(index, entry.text);
        let place = [
            self.kinds[SERVER].names.number(server),
            self.kinds[INDEX].names.number_of(entry.index, index),
            self.kinds[CLASS].names.number(entry.class),
        ];
        let time = bucket(entry.ns);
        let number = self.often.number(time);
        self.settle_time();
        let cell = self.cells.of(place[0], place[1], place[2]);
        self.cells.cells[cell].1.count(entry, number);
        let mut of_words = None;
        if entry.words != NO_WORDS {
            let words = entry.words.min(MOST_WORDS + 1) as usize;
            if words >= self.busy_words.len() {
                self.busy_words.resize_with(words + 1, Busy::default);
            }
            self.busy_words[words].count(entry, number);
            of_words = Some(words);
        }
        if entry.ns != UNKNOWN {
            self.last_time = Some(LastTime {
                bucket: time,
                number,
                cell,
                words: of_words,
            });
        }
        if self.cells.cells.len() >= MOST_CELLS {
            self.settle_cells();
        }
        if !entry.user.is_empty() {
            self.kinds[USER].of(entry.user).add(entry);
        }
        if entry.hits != UNKNOWN {
            let doubling = 64 - entry.hits.leading_zeros() as usize;
            if self.hits.is_empty() {
                self.hits.resize(65, 0);
            }
            self.hits[doubling] += 1;
        }
        if entry.ns != UNKNOWN {
            let of_server = (place[0], entry.resolution_ns);
            if self.last_resolution.0 != of_server {
                self.settle_resolution();
                self.last_resolution.0 = of_server;
            }
            self.last_resolution.1 += 1;
        }
        let mut first = u32::MAX;
        if entry.at_ns != NO_TIME {
            let second = entry.at_ns.div_euclid(1_000_000_000);
            first = u32::try_from(second.div_euclid(60)).unwrap_or(0);
            self.in_minute(second.div_euclid(60), entry);
        }
        if !entry.text.is_empty() {
            let known_ns = if entry.ns == UNKNOWN { 0 } else { entry.ns };
            let counts = Counts {
                n: 1,
                sum_ns: known_ns,
                max_ns: known_ns,
                zero: u32::from(entry.hits == 0),
                errors: u32::from(entry.fault == Fault::Error),
                first,
            };
            queries.add(query, entry.text, &counts);
            if queries.is_full() {
                queries.empty_into(shared);
            }
        }
    }

    pub fn of_words(&mut self, words: u32) -> &mut Group {
        if self.words.is_empty() {
            self.words
                .resize_with(MOST_WORDS as usize + 2, Group::default);
        }
        &mut self.words[words.min(MOST_WORDS + 1) as usize]
    }

    #[inline]
    fn in_minute(&mut self, minute: i64, entry: &Entry<'_>) {
        if self.current.as_ref().is_none_or(|(at, _)| *at != minute) {
            self.settle_minute();
            let held = self.minutes.remove(&minute).unwrap_or_default();
            self.current = Some((minute, held));
        }
        let Some((_, cell)) = &mut self.current else {
            return;
        };
        cell.n += 1;
        cell.zero += u64::from(entry.hits == 0);
        cell.errors += u64::from(entry.fault == Fault::Error);
        if entry.ns != UNKNOWN {
            cell.sum_ns = cell.sum_ns.saturating_add(entry.ns);
            cell.coarse[coarse(entry.ns)] += 1;
            if entry.ns >= cell.max_ns {
                cell.slower(entry.ns, entry.text);
            }
        }
    }

    /// Adds the time that waited while its places came near.
    #[inline]
    fn settle_time(&mut self) {
        if let Some(last) = self.last_time.take() {
            self.cells.cells[last.cell].1.add(last.bucket, last.number);
            if let Some(words) = last.words {
                self.busy_words[words].add(last.bucket, last.number);
            }
        }
    }

    fn settle_cells(&mut self) {
        self.settle_time();
        for (place, busy) in std::mem::take(&mut self.cells).cells {
            let group = busy.settled(&self.often);
            for (kind, number) in [SERVER, INDEX, CLASS].into_iter().zip(place) {
                self.kinds[kind].at(number).merge(&group);
            }
        }
    }

    fn settle_words(&mut self) {
        self.settle_time();
        for (words, busy) in std::mem::take(&mut self.busy_words).into_iter().enumerate() {
            let group = busy.settled(&self.often);
            self.of_words(words as u32).merge(&group);
        }
    }

    fn settle_minute(&mut self) {
        if let Some((minute, cell)) = self.current.take() {
            self.minutes.insert(minute, cell);
        }
    }

    fn settle_resolution(&mut self) {
        let (resolution, n) = std::mem::take(&mut self.last_resolution);
        if n > 0 {
            *self.resolutions.entry(resolution).or_default() += n;
        }
    }

    /// Puts away what is still being counted; call before anything is read from it.
    pub fn settle(&mut self) {
        self.settle_cells();
        self.settle_words();
        self.settle_minute();
        self.settle_resolution();
    }

    pub fn merge(&mut self, mut other: Tally) {
        self.settle();
        other.settle();
        for (own, others) in self.kinds.iter_mut().zip(&other.kinds) {
            for (name, group) in others.iter() {
                own.of(name).merge(group);
            }
        }
        if self.words.is_empty() {
            self.words = other.words;
        } else {
            for (own, group) in self.words.iter_mut().zip(&other.words) {
                own.merge(group);
            }
        }
        if self.hits.is_empty() {
            self.hits = other.hits;
        } else {
            for (own, n) in self.hits.iter_mut().zip(&other.hits) {
                *own += n;
            }
        }
        for (minute, cell) in other.minutes {
            self.minutes.entry(minute).or_default().merge(&cell);
        }
        for ((server, resolution), n) in other.resolutions {
            let server = match server {
                ANY => ANY,
                known => self.kinds[SERVER]
                    .names
                    .number(other.kinds[SERVER].names.get(known)),
            };
            *self.resolutions.entry((server, resolution)).or_default() += n;
        }
    }
}

/// The name of the group of words a number of words belongs to.
pub fn words_name(number: usize) -> String {
    if number > MOST_WORDS as usize {
        format!(">{MOST_WORDS}")
    } else {
        number.to_string()
    }
}

pub const WORDS_KIND: usize = WORDS;
