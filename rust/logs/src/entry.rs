//! What one entry of a log says, whatever its format.

use crate::saved::{Saved, Saving};

/// A number that the log does not have.
pub const UNKNOWN: u64 = u64::MAX;
/// An instant that the log does not have.
pub const NO_TIME: i64 = i64::MIN;
/// The number of words where nothing was asked in words.
pub const NO_WORDS: u32 = u32::MAX;

/// Who asked, and whether it was a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Kind {
    /// A search that a user or an application asked for.
    #[default]
    Asked,
    /// A part of a search: what an agent or a shard did for a search that has an entry of its own.
    Part,
    /// What is no search: a write, a setting, a static file.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Fault {
    #[default]
    None,
    /// It was refused, or failed.
    Error,
    /// It was answered, and something is missing from the answer.
    Partial,
}

/// One entry. Borrowed from the block that is being read.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// When it began, in nanoseconds since 1970 (UTC, or local time where no zone is known).
    pub at_ns: i64,
    /// How long it took, in nanoseconds.
    pub ns: u64,
    /// The finest difference of times that the log can write, in nanoseconds.
    pub resolution_ns: u32,
    /// How many results were found.
    pub hits: u64,
    pub words: u32,
    pub kind: Kind,
    pub fault: Fault,
    /// Whether the answer came out of a cache, where the log says it.
    pub cached: bool,
    /// The index, table or collection.
    pub index: &'a [u8],
    /// The shape of a search, or the fingerprint of a statement.
    pub class: &'a [u8],
    /// What was asked, as it was written.
    pub text: &'a [u8],
    /// Where `text` is only the words: the statement around them, or what stands before them.
    pub around: &'a [u8],
    /// The user or the application.
    pub user: &'a [u8],
    /// The server, where the log names it; else that of the source.
    pub server: &'a [u8],
    /// Processor time in microseconds, and reads of the disk.
    pub cpu_us: u64,
    pub ios: u64,
}

impl Default for Entry<'_> {
    fn default() -> Self {
        Entry {
            at_ns: NO_TIME,
            ns: UNKNOWN,
            resolution_ns: 1,
            hits: UNKNOWN,
            words: NO_WORDS,
            kind: Kind::Asked,
            fault: Fault::None,
            cached: false,
            index: b"",
            class: b"",
            text: b"",
            around: b"",
            user: b"",
            server: b"",
            cpu_us: UNKNOWN,
            ios: UNKNOWN,
        }
    }
}

/// An entry that outlives its block, while it is not known yet what it is.
#[derive(Clone, Debug)]
pub struct Held {
    plain: Entry<'static>,
    bytes: Vec<u8>,
    ends: [usize; 6],
}

impl Held {
    pub fn of(entry: &Entry<'_>) -> Held {
        let mut ends = [0; 6];
        let parts = [
            entry.index,
            entry.class,
            entry.text,
            entry.user,
            entry.server,
            entry.around,
        ];
        let mut bytes = Vec::with_capacity(parts.iter().map(|part| part.len()).sum());
        for (end, part) in ends.iter_mut().zip(parts) {
            bytes.extend_from_slice(part);
            *end = bytes.len();
        }
        let plain = Entry {
            index: b"",
            class: b"",
            text: b"",
            around: b"",
            user: b"",
            server: b"",
            ..*entry
        };
        Held { plain, bytes, ends }
    }

    pub fn entry(&self) -> Entry<'_> {
        let [a, b, c, d, e, f] = self.ends;
        Entry {
            index: &self.bytes[..a],
            class: &self.bytes[a..b],
            text: &self.bytes[b..c],
            user: &self.bytes[c..d],
            server: &self.bytes[d..e],
            around: &self.bytes[e..f],
            ..self.plain
        }
    }

    pub fn save(&self, into: &mut Saving) {
        let entry = self.entry();
        for number in [
            entry.at_ns as u64,
            entry.ns,
            u64::from(entry.resolution_ns),
            entry.hits,
            u64::from(entry.words),
            match entry.kind {
                Kind::Asked => 0,
                Kind::Part => 1,
                Kind::Other => 2,
            },
            match entry.fault {
                Fault::None => 0,
                Fault::Error => 1,
                Fault::Partial => 2,
            },
            u64::from(entry.cached),
            entry.cpu_us,
            entry.ios,
        ] {
            into.number(number);
        }
        for text in [
            entry.index,
            entry.class,
            entry.text,
            entry.user,
            entry.server,
            entry.around,
        ] {
            into.text(text);
        }
    }

    /// What was saved.
    pub fn restored(from: &mut Saved<'_>) -> Option<Held> {
        Some(Held::of(&Entry {
            at_ns: from.number()? as i64,
            ns: from.number()?,
            resolution_ns: from.number()? as u32,
            hits: from.number()?,
            words: from.number()? as u32,
            kind: match from.number()? {
                0 => Kind::Asked,
                1 => Kind::Part,
                _ => Kind::Other,
            },
            fault: match from.number()? {
                0 => Fault::None,
                1 => Fault::Error,
                _ => Fault::Partial,
            },
            cached: from.number()? > 0,
            cpu_us: from.number()?,
            ios: from.number()?,
            index: from.text()?,
            class: from.text()?,
            text: from.text()?,
            user: from.text()?,
            server: from.text()?,
            around: from.text()?,
        }))
    }

    pub fn plain_mut(&mut self) -> &mut Entry<'static> {
        &mut self.plain
    }
}
