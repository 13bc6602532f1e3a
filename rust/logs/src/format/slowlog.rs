//! The slow logs of OpenSearch and Elasticsearch, plain and JSON.
//!
//! A search leaves a line for each shard and phase (`query`, `fetch`), and in OpenSearch, where
//! `cluster.search.request.slowlog` is set, one line of the request. Shards' lines are parts. Where a
//! line of the request follows, it is the search; else the search is put together from its shards:
//! the longest of their times (less than a user waited), the sum of their hits. They share no id
//! unless the client sent one, so lines of one source are one search until a shard comes again;
//! equal searches at the same moment may be mixed up, which is noted. The slow log of indexing has the
//! same form: its lines are documents that were written, and no searches.

use std::collections::{HashMap, VecDeque};

use xxhash_rust::xxh3::xxh3_64;

use crate::clock::{Clock, duration, number};
use crate::entry::{Entry, Fault, Held, Kind, NO_TIME, NO_WORDS, UNKNOWN};
use crate::format::shape::{balanced, shape};
use crate::format::{Out, Reader, Settings, json};
use crate::saved::{Saved, Saving};
use crate::scan;
use crate::source::{Block, Lines};
use crate::words;

const ESTIMATED: &str = "searches put together from the lines of their shards";
const MIXED: &str = "searches whose shards could belong to several equal searches";

/// How long shards' lines wait for the line of their request.
const WAIT_NS: i64 = 10_000_000_000;
const MOST: usize = 4096;

/// What one line says.
#[derive(Default, Debug)]
struct Line<'a> {
    at_ns: i64,
    request: bool,
    fetch: bool,
    /// A document was written, and nothing asked.
    indexing: bool,
    index: &'a [u8],
    shard: &'a [u8],
    took: &'a [u8],
    millis: &'a [u8],
    hits: &'a [u8],
    shards: &'a [u8],
    failed: bool,
    id: &'a [u8],
}

struct Group {
    key: u64,
    held: Held,
    seen: Vec<u64>,
    wanted: usize,
    mixed: bool,
}

pub struct SlowLog {
    json: bool,
    clock: Clock,
    groups: VecDeque<Group>,
    keys: HashMap<u64, u32>,
    source: Vec<u8>,
    scratch: Vec<u8>,
    class: Vec<u8>,
    asked: Vec<u8>,
}

pub fn looks_plain(line: &[u8]) -> bool {
    line.first() == Some(&b'[')
        && memchr::memmem::find(line, b" took[").is_some()
        && memchr::memmem::find(line, b"took_millis[").is_some()
}

pub fn looks_json(line: &[u8]) -> bool {
    line.first() == Some(&b'{')
        && (memchr::memmem::find(line, b"search_slowlog\"").is_some()
            || memchr::memmem::find(line, b"search_request_slowlog\"").is_some()
            || memchr::memmem::find(line, b"indexing_slowlog\"").is_some()
            || memchr::memmem::find(line, b"\"elasticsearch.slowlog.").is_some())
}

/// Whether a logger, or the kind of a line, is that of documents that are written.
fn is_indexing(name: &[u8]) -> bool {
    name.starts_with(b"i.i.s.") || memchr::memmem::find(name, b"indexing").is_some()
}

/// `937.7micros`, `3.8ms`, `1.2s`: nanoseconds and their resolution.
fn took(text: &[u8]) -> Option<(u64, u32)> {
    let at = text.iter().position(|b| b.is_ascii_alphabetic())?;
    let unit = match &text[at..] {
        b"nanos" => 1,
        b"micros" => 1_000,
        b"ms" => 1_000_000,
        b"s" => 1_000_000_000,
        b"m" => 60_000_000_000,
        b"h" => 3_600_000_000_000,
        _ => return None,
    };
    duration(&text[..at], unit)
}

/// The same; from a second on `took` has a digit behind the point, cut off, and `took_millis` has
/// the milliseconds.
fn spent(line: &Line<'_>) -> Option<(u64, u32)> {
    const MILLI: u32 = 1_000_000;
    let found = took(line.took);
    if found.is_some_and(|(_, resolution)| resolution <= MILLI) {
        return found;
    }
    duration(line.millis, u64::from(MILLI)).or(found)
}

/// An entry with nothing but when it began and how long it took.
fn timed(line: &Line<'_>) -> Entry<'static> {
    let (ns, resolution_ns) = spent(line).unwrap_or((UNKNOWN, 1));
    let past = if ns == UNKNOWN { 0 } else { ns as i64 };
    Entry {
        at_ns: if line.at_ns == NO_TIME {
            NO_TIME
        } else {
            line.at_ns - past
        },
        ns,
        resolution_ns,
        ..Entry::default()
    }
}

/// `417 hits`, `10+ hits`, `-1`: how many, where that is known.
fn hits(text: &[u8]) -> u64 {
    let digits = text.iter().take_while(|b| b.is_ascii_digit()).count();
    // `0+` is not counted at all; `10+` is at least as many.
    if text.get(digits) == Some(&b'+') && &text[..digits] == b"0" {
        return UNKNOWN;
    }
    number(&text[..digits]).map_or(UNKNOWN, |n| n as u64)
}

/// ``name[..]`` up to the bracket that closes: what is in it.
fn within<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let at = scan::find(line, name, name.len() - 1)? + name.len();
    let end = memchr::memchr(b']', &line[at..])?;
    Some(&line[at..at + end])
}

impl SlowLog {
    pub fn new(json: bool, settings: &Settings) -> SlowLog {
        SlowLog {
            json,
            clock: Clock::new(&settings.zone),
            groups: VecDeque::new(),
            keys: HashMap::new(),
            source: Vec::new(),
            scratch: Vec::new(),
            class: Vec::new(),
            asked: Vec::new(),
        }
    }

    /// A line of a plain log; its source goes into `self.source`.
    fn plain<'a>(&mut self, line: &'a [u8]) -> Option<Line<'a>> {
        let stamp = line.get(1..24)?;
        let at_ns = self.clock.iso_ns(stamp)?;
        let at = scan::find(line, b" took[", 5)?;
        let (head, body) = (&line[..at], &line[at + 1..]);
        let mut brackets = head
            .split(|&b| b == b'[')
            .skip(1)
            .map(|part| &part[..memchr::memchr(b']', part).unwrap_or(part.len())]);
        let logger = brackets.nth(2)?.trim_ascii();
        let (_node, index, shard) = (brackets.next(), brackets.next(), brackets.next());
        // The source ends where its brackets and braces do, as far as they are in no string.
        let open = scan::find(body, b"source[", 6)? + 7;
        let length = balanced(&body[open..]);
        self.source.clear();
        self.source.extend_from_slice(&body[open..open + length]);
        Some(Line {
            at_ns,
            request: logger == b"c.s.r.slowlog",
            fetch: logger.ends_with(b".fetch"),
            indexing: is_indexing(logger),
            index: index.unwrap_or(b""),
            shard: shard.unwrap_or(b""),
            took: within(body, b"took[")?,
            millis: within(&body[..open], b"took_millis[").unwrap_or(b""),
            hits: within(&body[..open], b"total_hits[").unwrap_or(b""),
            shards: within(&body[..open], b"total_shards[").unwrap_or(b""),
            failed: failures(&body[..open]),
            id: within(&body[open + length..], b"id[").unwrap_or(b""),
        })
    }

    /// A line of a log of JSON.
    fn object<'a>(&mut self, line: &'a [u8]) -> Option<Line<'a>> {
        let mut found = Line {
            at_ns: NO_TIME,
            ..Line::default()
        };
        let (clock, source, scratch) = (&mut self.clock, &mut self.source, &mut self.scratch);
        source.clear();
        let (mut known, mut elastic) = (false, false);
        let inside = |raw: &'a [u8]| {
            raw.strip_prefix(b"\"")
                .and_then(|r| r.strip_suffix(b"\""))
                .unwrap_or(raw)
        };
        json::members(line, &mut |key, raw| {
            let (name, of_elastic) = match key.strip_prefix(b"elasticsearch.slowlog.") {
                Some(name) => (name, true),
                None => (key, false),
            };
            elastic |= of_elastic;
            let value = inside(raw);
            match name {
                b"timestamp" | b"@timestamp" => {
                    found.at_ns = clock.iso_ns(value).unwrap_or(NO_TIME)
                }
                b"type" => {
                    known = true;
                    found.request = value == b"search_request_slowlog";
                    found.indexing |= is_indexing(value);
                }
                b"component" | b"log.logger" | b"event.dataset" => {
                    found.fetch |= value.ends_with(b"fetch");
                    found.indexing |= is_indexing(value);
                }
                b"message" => {
                    // `[pages][1]`
                    let mut parts = value.split(|&b| b == b'[' || b == b']');
                    found.index = parts.nth(1).unwrap_or(b"");
                    found.shard = parts.nth(1).unwrap_or(b"");
                }
                b"took" => found.took = value,
                b"took_millis" => found.millis = value,
                b"total_hits" => found.hits = value,
                b"total_shards" => found.shards = value,
                b"shards" => found.failed = failures(value),
                b"id" => found.id = if value == b"null" { b"" } else { value },
                b"trace.id" => found.id = value,
                b"source" => {
                    json::unescaped(value, source);
                    if of_elastic {
                        // Escaped twice.
                        scratch.clear();
                        scratch.extend_from_slice(source);
                        json::unescaped(scratch, source);
                    }
                }
                _ => {}
            }
        });
        (known || elastic).then_some(found)
    }

    fn take(&mut self, line: &Line<'_>, out: &mut Out<'_>) {
        self.expire(line.at_ns, out);
        if line.indexing {
            let index = line.index.split(|&b| b == b'/').next();
            return out.entry(&Entry {
                kind: Kind::Other,
                index: index.unwrap_or(b""),
                class: b"(a document that was indexed)",
                ..timed(line)
            });
        }
        let (source, mut class) = (
            std::mem::take(&mut self.source),
            std::mem::take(&mut self.class),
        );
        shape(&source, &mut class, &mut self.asked);
        self.join(line, &source, &class, out);
        (self.source, self.class) = (source, class);
    }

    fn join(&mut self, line: &Line<'_>, source: &[u8], class: &[u8], out: &mut Out<'_>) {
        let words = words::count(&self.asked);
        let entry = Entry {
            hits: hits(line.hits),
            index: line.index,
            class,
            text: source,
            user: line.id,
            words: if self.asked.is_empty() {
                NO_WORDS
            } else {
                words
            },
            ..timed(line)
        };
        // The number of shards is not in lines of requests; the source is in both.
        let key = xxh3_64(source) ^ xxh3_64(line.id);
        if line.request {
            // Looked up first: thousands may wait, and none of them for this line.
            let waits = self.keys.contains_key(&key);
            let at = waits.then(|| self.groups.iter().position(|group| group.key == key));
            let at = at.flatten();
            let mut entry = entry;
            entry.fault = if line.failed {
                Fault::Partial
            } else {
                Fault::None
            };
            let index = at.and_then(|at| self.forget(at)).map(|group| group.held);
            let index = index.as_ref().map_or(&b""[..], |held| held.entry().index);
            out.entry(&Entry {
                index,
                user: b"",
                ..entry
            });
            return;
        }
        out.entry(&Entry {
            kind: Kind::Part,
            ..entry.clone()
        });
        if line.fetch {
            return;
        }
        let shard = xxh3_64(line.index) ^ xxh3_64(line.shard);
        let wanted = number(line.shards).unwrap_or(1).max(1) as usize;
        if self.keys.contains_key(&key) {
            let mut equal = 0;
            let mut joined = None;
            for (i, group) in self.groups.iter().enumerate().filter(|(_, g)| g.key == key) {
                equal += 1;
                if joined.is_none()
                    && group.wanted == wanted
                    && group.seen.len() < wanted
                    && !group.seen.contains(&shard)
                {
                    joined = Some(i);
                }
            }
            if let Some(i) = joined {
                let group = &mut self.groups[i];
                group.seen.push(shard);
                group.mixed |= equal > 1;
                let plain = group.held.plain_mut();
                plain.at_ns = plain.at_ns.min(entry.at_ns);
                if entry.ns != UNKNOWN && (plain.ns == UNKNOWN || entry.ns > plain.ns) {
                    (plain.ns, plain.resolution_ns) = (entry.ns, entry.resolution_ns);
                }
                plain.hits = match (plain.hits, entry.hits) {
                    (UNKNOWN, _) | (_, UNKNOWN) => UNKNOWN,
                    (a, b) => a.saturating_add(b),
                };
                return;
            }
        }
        *self.keys.entry(key).or_default() += 1;
        self.groups.push_back(Group {
            key,
            held: Held::of(&Entry { user: b"", ..entry }),
            seen: vec![shard],
            wanted,
            mixed: false,
        });
        if self.groups.len() > MOST {
            self.close_first(out);
        }
    }

    fn forget(&mut self, at: usize) -> Option<Group> {
        let group = self.groups.remove(at)?;
        if let Some(n) = self.keys.get_mut(&group.key) {
            *n -= 1;
            if *n == 0 {
                self.keys.remove(&group.key);
            }
        }
        Some(group)
    }

    fn close_first(&mut self, out: &mut Out<'_>) {
        let Some(group) = self.forget(0) else { return };
        out.seen.note(ESTIMATED, 1);
        out.seen.note(MIXED, u64::from(group.mixed));
        let missing = group.wanted > group.seen.len();
        out.seen.note(
            "searches of which lines of shards are missing",
            u64::from(missing),
        );
        out.entry(&group.held.entry());
    }

    fn expire(&mut self, now_ns: i64, out: &mut Out<'_>) {
        while self
            .groups
            .front()
            .is_some_and(|g| g.held.entry().at_ns + WAIT_NS < now_ns)
        {
            self.close_first(out);
        }
    }
}

/// Whether `{total:3, successful:3, skipped:0, failed:0}` names failed shards.
fn failures(text: &[u8]) -> bool {
    scan::find(text, b"failed:", 6).is_some_and(|at| text.get(at + 7) != Some(&b'0'))
}

impl Reader for SlowLog {
    fn clock(&mut self) -> &mut Clock {
        &mut self.clock
    }

    fn read(&mut self, block: &Block, out: &mut Out<'_>) {
        let mut lines = Lines::new(block);
        while lines.at < block.end {
            let Some((_, line)) = lines.step() else { break };
            out.seen.line(line.len());
            if line.is_empty() {
                continue;
            }
            let found = if self.json {
                self.object(line)
            } else {
                self.plain(line)
            };
            match found {
                Some(found) => self.take(&found, out),
                None => out.seen.unread(line, "it is not a line of a slow log"),
            }
        }
        out.seen.clock(&mut self.clock);
    }

    fn end(&mut self, out: &mut Out<'_>) {
        while !self.groups.is_empty() {
            self.close_first(out);
        }
    }

    fn save(&self, into: &mut Saving) {
        for group in &self.groups {
            into.number(group.key);
            into.number(group.wanted as u64);
            into.number(u64::from(group.mixed));
            into.number(group.seen.len() as u64);
            group.seen.iter().for_each(|&shard| into.number(shard));
            group.held.save(into);
        }
    }

    fn restore(&mut self, from: &mut Saved<'_>) -> Option<()> {
        while !from.is_empty() {
            let (key, wanted) = (from.number()?, from.number()? as usize);
            let (mixed, shards) = (from.number()? > 0, from.number()?);
            let seen = (0..shards).map_while(|_| from.number()).collect();
            let held = Held::restored(from)?;
            *self.keys.entry(key).or_default() += 1;
            self.groups.push_back(Group {
                key,
                held,
                seen,
                wanted,
                mixed,
            });
        }
        Some(())
    }
}
