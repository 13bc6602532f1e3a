//! Solr's log of requests.
//!
//! ```text
//! 2026-11-22 10:00:00.123 INFO  (qtp-22) [c:pages s:shard1 r:core_node3 x:pages_shard1] o.a.s.c.S.Request
//!     webapp=/solr path=/select params={q=a+b&rows=10} hits=3 status=0 QTime=5
//! ```
//!
//! (Solr 4 begins with `INFO  - 2026-11-22 10:00:00.123; ` and has `[core] ` before `webapp`; the layout
//! of JSON has these parts in its members.)
//!
//! Of a distributed search the requests to shards carry `isShard=true`: parts. The time is that of
//! the end, UTC unless Solr was told otherwise. A line is cut at 10,240 letters.

use crate::clock::{Clock, duration, number};
use crate::entry::{Entry, Fault, Kind, NO_TIME, UNKNOWN};
use crate::format::access::target;
use crate::format::{Format, Out, Reader, Settings, json, looks as any_looks};
use crate::source::{Block, Lines};

pub struct Solr {
    clock: Clock,
    asked: Vec<Vec<u8>>,
    class: Vec<u8>,
    scratch: Vec<u8>,
    path: Vec<u8>,
}

pub fn looks(line: &[u8]) -> bool {
    memchr::memmem::find(line, b"path=/").is_some()
        && memchr::memmem::find(line, b"params={").is_some()
        && memchr::memmem::rfind(line, b"QTime=").is_some()
}

/// The number after the last `name` of a line.
fn last(line: &[u8], name: &[u8]) -> Option<u64> {
    let at = memchr::memmem::rfind(line, name)? + name.len();
    let digits = line[at..].iter().take_while(|b| b.is_ascii_digit()).count();
    number(&line[at..at + digits]).map(|n| n as u64)
}

/// What is noted of what Solr writes of slow requests, beside the line of every request.
pub const SLOW: &str = "a slow request, as Solr writes it into a log of its own";

impl Solr {
    pub fn new(settings: &Settings) -> Solr {
        // Solr writes UTC; without a zone that is what local times are taken for.
        Solr {
            clock: Clock::new(&settings.zone),
            asked: vec![b"q".to_vec()],
            class: Vec::new(),
            scratch: Vec::new(),
            path: Vec::new(),
        }
    }

    fn line(&mut self, line: &[u8], out: &mut Out<'_>) -> bool {
        if line.first() == Some(&b'{') {
            return self.object(line, out);
        }
        let older = memchr::memmem::find(&line[..line.len().min(16)], b" - ").map(|at| at + 3);
        let ended = [Some(0), older].into_iter().flatten().find_map(|at| {
            let stamp = line.get(at..at + 23)?;
            self.clock.iso_ns(stamp)
        });
        self.request(line, ended, b"", out)
    }

    /// A line of the layout of JSON.
    fn object(&mut self, line: &[u8], out: &mut Out<'_>) -> bool {
        let (mut text, mut stamp, mut core) = (Vec::new(), &b""[..], &b""[..]);
        let mut scratch = Vec::new();
        json::members(line, &mut |key, raw| match key {
            b"message" => {
                text.clear();
                text.push(b' ');
                text.extend_from_slice(json::plain(raw, &mut scratch));
            }
            b"@timestamp" | b"timestamp" => stamp = raw,
            b"collection" => core = raw,
            _ => {}
        });
        let (mut plain_stamp, mut plain_core) = (Vec::new(), Vec::new());
        let ended = self.clock.iso_ns(json::plain(stamp, &mut plain_stamp));
        let core = json::plain(core, &mut plain_core);
        let core = core.strip_prefix(b"c:").unwrap_or(core);
        self.request(&text, ended, core, out)
    }

    /// A line without what is around it, when the request ended, and its collection, where that is
    /// not in the line.
    fn request(&mut self, line: &[u8], ended: Option<i64>, core: &[u8], out: &mut Out<'_>) -> bool {
        let Some(at) = memchr::memmem::find(line, b" path=") else {
            return false;
        };
        let Some(open) = memchr::memmem::find(line, b" params={") else {
            return false;
        };
        let end = memchr::memmem::rfind(line, b"} hits=")
            .or_else(|| memchr::memmem::rfind(line, b"} status="));
        let Some(took) = last(line, b"QTime=") else {
            // It was cut, and how long it took with it.
            out.seen.note("cut short by the server that wrote it", 1);
            return true;
        };
        let Some(end) = end.filter(|&end| end >= open + 9 && open > at) else {
            return false;
        };
        let params = &line[open + 9..end];
        let path = &line[at + 6..open];
        self.path.clear();
        self.path.extend_from_slice(path);
        self.path.push(b'?');
        self.path.extend_from_slice(params);
        let whole = std::mem::take(&mut self.path);
        let found = target(b"", &whole, &self.asked, &mut self.class, &mut self.scratch);
        let slow = memchr::memmem::find(&line[..at], b"SlowRequest").is_some();
        out.seen.note(SLOW, u64::from(slow));
        let shard = memchr::memmem::find(params, b"isShard=true").is_some();
        let collection = [&b"[c:"[..], b" x:"].iter().find_map(|mark| {
            let at = memchr::memmem::find(&line[..at], mark)? + mark.len();
            let name = &line[at..];
            Some(
                &name[..name
                    .iter()
                    .position(|&b| b == b' ' || b == b']')
                    .unwrap_or(0)],
            )
        });
        let before =
            memchr::memmem::find(&line[..at], b" webapp=").map_or(&b""[..], |n| &line[..n]);
        let bare = before.strip_suffix(b"]").map(|named| {
            let open = memchr::memrchr(b'[', named).map_or(named.len(), |n| n + 1);
            &named[open..]
        });
        // `[c:pages s:shard1]` has its collection, and others have no such name.
        let bare = bare.filter(|name| !name.contains(&b' ') && !name.contains(&b':'));
        let collection = collection.or(bare).unwrap_or(core);
        let ns = duration(took.to_string().as_bytes(), 1_000_000).map_or(UNKNOWN, |(ns, _)| ns);
        let failed = last(line, b" status=").is_some_and(|s| s != 0);
        out.entry(&Entry {
            at_ns: ended.map_or(NO_TIME, |at| at - ns as i64),
            ns,
            resolution_ns: 1_000_000,
            hits: if failed {
                UNKNOWN
            } else {
                last(line, b"} hits=").unwrap_or(UNKNOWN)
            },
            kind: match (found.search, shard) {
                (_, true) => Kind::Part,
                (true, _) => Kind::Asked,
                _ => Kind::Other,
            },
            fault: if failed { Fault::Error } else { Fault::None },
            words: found.words,
            index: collection,
            class: self.class.trim_ascii(),
            text: &whole,
            ..Entry::default()
        });
        self.path = whole;
        true
    }
}

/// Whether a line is one of another format. Most lines of Solr begin with a date, or go on with what
/// began with one; the others are few.
fn foreign(line: &[u8]) -> bool {
    let dated = matches!(line, [_, _, _, _, b'-', _, _, b'-', _, _, b' ' | b'T', ..]);
    let goes_on = line[0].is_ascii_whitespace();
    !dated && !goes_on && any_looks(line).is_some_and(|format| format != Format::Solr)
}

impl Reader for Solr {
    fn clock(&mut self) -> &mut Clock {
        &mut self.clock
    }

    fn read(&mut self, block: &Block, out: &mut Out<'_>) {
        let mut lines = Lines::new(block);
        let mut beside = 0;
        while lines.at < block.end {
            let Some((_, line)) = lines.step() else { break };
            out.seen.line(line.len());
            if line.is_empty() || self.line(line, out) {
                continue;
            }
            if foreign(line) {
                out.seen.unread(line, "it is not a line of Solr's log");
            } else {
                beside += 1;
            }
        }
        out.seen
            .note("lines of Solr's log that are about no request", beside);
    }
}
