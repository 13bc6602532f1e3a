//! A configuration in Scribe's own format: read, checked, and as what is to be done.

mod keys;
mod kinds;
mod places;
mod read;
mod scope;
#[cfg(test)]
mod tests;
mod text;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

pub use keys::TYPES;
pub use read::read;

/// Something wrong with a configuration, or that has no effect in it (`fatal` is false).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// From 1; 0 where it is about the whole file.
    pub line: u32,
    pub key: String,
    pub what: String,
    pub hint: String,
    pub fatal: bool,
}

impl Mistake {
    fn new(line: u32, key: &str, what: String, hint: &str) -> Mistake {
        Mistake {
            line,
            key: key.into(),
            what,
            hint: hint.into(),
            fatal: true,
        }
    }

    fn warning(line: u32, key: &str, what: String, hint: &str) -> Mistake {
        Mistake {
            fatal: false,
            ..Mistake::new(line, key, what, hint)
        }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        write!(f, "{} ({})", self.what, self.hint)
    }
}

/// A whole configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Ours: the address to listen at; 127.0.0.1 where it is not given.
    pub host: Option<String>,
    pub port: u16,
    /// 0 is no limit.
    pub max_msg_per_second: u64,
    pub max_queue_bytes: u64,
    pub check_interval: Duration,
    pub new_thread_per_category: bool,
    pub threads: usize,
    /// 0 is no limit.
    pub max_conn: usize,
    /// Ours: where what must outlive the process is written.
    pub state_path: Option<PathBuf>,
    pub stores: Vec<TopStore>,
}

/// A `<store>` of the file, and the categories it is for.
#[derive(Clone, Debug, PartialEq)]
pub struct TopStore {
    pub line: u32,
    pub categories: Vec<Pattern>,
    /// `categories=`, which makes a store a model even of exact categories.
    pub several: bool,
    pub target_write_bytes: u64,
    pub max_write_interval: Duration,
    pub must_succeed: bool,
    /// Ours: OK is said only of what is on disk, or with the upstream server.
    pub fsync: bool,
    pub store: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    Exact(String),
    Prefix(String),
    Default,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    File(Files),
    ThriftFile(Files, Events),
    Network(Network),
    Buffer(Box<Buffer>),
    Bucket(Buckets),
    Null,
    Multi(Multi),
    /// `category`, `multifile`, `thriftmultifile`: one of this for each category, in one thread.
    PerCategory(Box<Kind>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    Never,
    Hourly,
    Daily,
    Every(Duration),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Files {
    pub path: PathBuf,
    pub base: Option<String>,
    pub sub_directory: Option<String>,
    pub period: Period,
    pub rotate_hour: u32,
    pub rotate_minute: u32,
    pub rotate_on_reopen: bool,
    /// 0 is no limit.
    pub max_bytes: u64,
    pub max_write_bytes: usize,
    pub write_meta: bool,
    pub write_category: bool,
    pub write_stats: bool,
    pub create_symlink: bool,
    pub base_symlink: Option<String>,
    /// 0 is none.
    pub chunk_bytes: u64,
    pub add_newlines: bool,
}

/// What a thriftfile has beside a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Events {
    pub flush_every: Duration,
    pub simple: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// Tried in random order, and never empty.
    pub servers: Vec<(String, u16)>,
    pub timeout: Duration,
    pub pooled: bool,
    pub ignore_error: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Buffer {
    pub primary: Kind,
    pub secondary: Kind,
    /// Files of the secondary that are sent at each check.
    pub send_rate: u64,
    pub retry: Retry,
    pub replay: bool,
    pub flush_streaming: bool,
    pub bypass_max_ratio: f64,
}

/// When a primary that failed is tried again. In seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Retry {
    /// Uniform within half the range on both sides.
    Around { interval: u64, range: u64 },
    /// Longer by 1.414 and up to `random` at each failure, and shorter by 2 at each success.
    Adaptive { least: u64, most: u64, random: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hash {
    ContextLog,
    Key,
    Modulo,
    Range(u64),
    Random,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Buckets {
    pub hash: Hash,
    pub delimiter: u8,
    pub remove_key: bool,
    /// The first is for what has no key.
    pub stores: Vec<Kind>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Multi {
    /// Else one is enough.
    pub all: bool,
    pub stores: Vec<Kind>,
}
