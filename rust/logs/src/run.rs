//! All sources of a log, read on all cores and counted into one `Log`.
//!
//! Blocks are counted in whatever order they are done: counts do not depend on it. What does (line
//! numbers, a clock that goes back) is kept for each block and put together in order.
//!
//! Longer than 450 lines: how sources are cut, handed to threads and put together is one thing.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::damage::Damage;
use crate::format::{Before, Format, Out, Reader, Seen, Settings, after, reader};
use crate::look::{end_of, open_from, opened};
use crate::queries::{Local, Shared, give_back};
use crate::queue::{Job, Link, Queue, Work};
use crate::saved::{Saved, Saving};
use crate::seam::{
    Ends, Handed, Moved, after_far, before, before_far, between, newlines, seam, tail,
};
use crate::source::{Block, Cutter, Opened, Sizes, Span, block_of};
use crate::tally::Tally;

/// A file, or "-" for standard input.
#[derive(Clone, Debug, Default)]
pub struct Source {
    pub path: String,
    /// What its server is called where its entries do not say.
    pub server: String,
    /// Its format; empty: told by its content.
    pub format: String,
    /// Bytes, unpacked, that were read before.
    pub skip: u64,
    /// Which part of it is read here; None: all of it.
    pub part: Option<Part>,
    /// What was open at the end of the last reading.
    pub open: Open,
    /// Whether it goes on where the source before it ended, of which it takes over what is open.
    pub follows: Follows,
}

/// How a source goes on where the one before it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Follows {
    #[default]
    No,
    /// With a line of its own.
    Next,
    /// Perhaps within a line, or within an entry of several.
    Within,
}

/// What a reading leaves to the next one of the same source.
#[derive(Clone, Debug, Default)]
pub struct Open {
    /// What its reader holds (`Reader::save`).
    pub state: Vec<u8>,
    /// Lines of the file before that one, that were not read: they stand before its beginning.
    pub before: Vec<u8>,
    /// Lines that were not read, because their entry may go on; the next reading begins with them.
    pub text: Vec<u8>,
    /// The time of the last entry.
    pub last_ns: Option<i64>,
    /// The instant of the last stamp (UTC, seconds) that was read, where its zone changes.
    pub at_s: Option<i64>,
}

/// Some blocks of a file: the very ones that a reading of the whole file has, so what is counted of
/// all parts together is what that reading counts. A format that joins has one part, with all.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The length of the file when it was cut. What was appended since is not read.
    pub len: u64,
    /// Numbers of its blocks: the first, and the one after the last.
    pub from: u64,
    pub to: u64,
}

#[derive(Clone, Debug)]
pub struct Options {
    pub settings: Settings,
    /// 0: as many as there are cores.
    pub threads: usize,
    /// A line at the end that has no line break is left for the next time, and so is an entry that
    /// may go on.
    pub keep_tail: bool,
    pub sizes: Sizes,
}

/// What became of a source.
#[derive(Clone, Debug)]
pub struct Read {
    pub source: Source,
    /// Its format; None where it could not be told, and `refused` says why.
    pub format: Option<Format>,
    pub refused: String,
    /// Bytes, unpacked, that were read now; with `skip`, where the next reading begins.
    pub bytes: u64,
    pub seen: Seen,
    /// What is left to the next reading: how the clock stands, and where `keep_tail` says so all that
    /// is open.
    pub open: Open,
}

/// Everything that was counted.
pub struct Log {
    pub tally: Tally,
    pub queries: Shared,
    pub reads: Vec<Read>,
}

impl Log {
    pub fn new(distinct: usize) -> Log {
        Log {
            tally: Tally::default(),
            queries: Shared::new(distinct),
            reads: Vec::new(),
        }
    }
}

/// What the threads share.
struct Floor<'a> {
    queue: Queue,
    options: &'a Options,
    sources: &'a [Source],
    /// Those of the server of each source.
    settings: Vec<Settings>,
    shared: &'a Shared,
    /// Of each block of each source, what was seen in it.
    seen: Mutex<BTreeMap<(usize, u64), Seen>>,
    /// Of sources that a thread reads whole: bytes, and what is left open.
    streamed: Mutex<HashMap<usize, (u64, Open, Moved)>>,
    /// Bytes of blocks of streams that were read, for the next ones.
    spare: Mutex<Vec<Vec<u8>>>,
    bytes: AtomicU64,
    failed: Mutex<Option<String>>,
    stop: AtomicBool,
}

impl Floor<'_> {
    fn fail(&self, why: String) {
        self.failed.lock().unwrap().get_or_insert(why);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether the next source goes on where this one ends.
    fn goes_on(&self, source: usize) -> bool {
        let next = self.sources.get(source + 1);
        next.is_some_and(|next| next.follows != Follows::No)
    }

    /// By what a reader of this source is told from readers of the same format in other zones.
    fn zone_of(&self, source: usize) -> usize {
        let name = self.sources[source].server.as_bytes();
        let zones = &self.options.settings.zones;
        let own = zones.iter().position(|(of, _)| of == name);
        own.unwrap_or(usize::MAX)
    }
}

/// Reads sources into a log. `tick` is told the bytes so far ten times a second; false ends it.
///
/// A source that is no known log is left out and says so in its `Read`. Err where none of them
/// could be read, where one breaks off, or where `tick` said so ("interrupted").
pub fn read(
    log: &mut Log,
    sources: &[Source],
    options: &Options,
    tick: &mut dyn FnMut(u64) -> bool,
) -> Result<(), String> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if options.threads == 0 {
        cores
    } else {
        options.threads
    };
    let floor = Floor {
        queue: Queue::default(),
        options,
        sources,
        settings: sources
            .iter()
            .map(|s| options.settings.of_server(s.server.as_bytes()))
            .collect(),
        shared: &log.queries,
        seen: Mutex::default(),
        streamed: Mutex::default(),
        spare: Mutex::default(),
        bytes: AtomicU64::new(0),
        failed: Mutex::default(),
        stop: AtomicBool::new(false),
    };
    let mut reads: Vec<Read> = Vec::new();
    let mut moved: Vec<Moved> = Vec::new();
    let mut tallies: Vec<Tally> = Vec::new();
    std::thread::scope(|scope| {
        let started = |_| {
            let named = std::thread::Builder::new();
            named.spawn_scoped(scope, || work(&floor)).ok()
        };
        let workers: Vec<_> = (0..threads).filter_map(started).collect();
        if workers.is_empty() {
            floor.fail("no thread can be started: there is not enough memory".to_owned());
        }
        let mut go_on = || {
            if !tick(floor.bytes.load(Ordering::Relaxed)) {
                floor.fail("interrupted".to_owned());
            }
            !floor.stop.load(Ordering::Relaxed)
        };
        let (mut handed, mut links) = (Handed::default(), Vec::new());
        for number in 0..sources.len() {
            if !go_on() {
                break;
            }
            let most = threads * 2;
            let (read, of_lines) = feed(&floor, number, &mut handed, &mut links, most, &mut go_on);
            reads.push(read);
            moved.push(of_lines);
        }
        floor.queue.close();
        while !workers.iter().all(|w| w.is_finished()) {
            std::thread::park_timeout(Duration::from_millis(2));
            go_on();
        }
        for worker in workers {
            match worker.join() {
                Ok(tally) => tallies.push(tally),
                Err(_) => floor.fail("a thread that read the log ended unexpectedly".to_owned()),
            }
        }
    });
    if let Some(why) = floor.failed.into_inner().unwrap() {
        return Err(why);
    }
    let streamed = floor.streamed.into_inner().unwrap();
    let mut seen = floor.seen.into_inner().unwrap();
    let mut of_blocks = seen.iter_mut().peekable();
    let mut last_ns = None;
    for (number, read) in reads.iter_mut().enumerate() {
        // The clock goes on where the last reading ended, or the file before.
        let own = read.source.part.is_none_or(|p| p.from == 0);
        let follows = read.source.follows != Follows::No;
        let before = if follows {
            last_ns
        } else {
            read.source.open.last_ns
        };
        read.seen.first_ns = before.filter(|_| own);
        read.seen.last_ns = read.seen.first_ns.unwrap_or_default();
        while let Some((_, block)) = of_blocks.next_if(|((source, _), _)| *source == number) {
            read.seen.append(std::mem::take(block));
        }
        last_ns = read.seen.first_ns.map(|_| read.seen.last_ns);
    }
    for (source, (bytes, open, of_lines)) in streamed {
        // Of a file it is known before what is left of its end.
        let text = std::mem::take(&mut reads[source].open.text);
        (reads[source].bytes, reads[source].open) = (bytes, open);
        if !text.is_empty() {
            reads[source].open.text = text;
        }
        moved[source] = of_lines;
    }
    for (read, of_lines) in reads.iter_mut().zip(moved) {
        read.open.last_ns = read.seen.first_ns.map(|_| read.seen.last_ns);
        read.seen = of_lines.counted(std::mem::take(&mut read.seen));
    }
    if !reads.is_empty() && reads.iter().all(|r| r.format.is_none()) {
        let reasons: Vec<&str> = reads.iter().map(|r| r.refused.as_str()).collect();
        return Err(reasons.join("\n"));
    }
    for tally in tallies {
        log.tally.merge(tally);
    }
    give_back();
    log.reads.extend(reads);
    Ok(())
}

/// Opens a source and puts its blocks into the queue. `handed`: what the source before it left, and
/// what it leaves; `links`: sources that one thread reads one after another.
fn feed(
    floor: &Floor<'_>,
    number: usize,
    handed: &mut Handed,
    links: &mut Vec<Link>,
    most: usize,
    go_on: &mut dyn FnMut() -> bool,
) -> (Read, Moved) {
    let source = &floor.sources[number];
    let mut read = Read {
        source: source.clone(),
        format: None,
        refused: String::new(),
        bytes: 0,
        seen: Seen::default(),
        open: Open::default(),
    };
    let mut moved = Moved::default();
    let mut named = source.clone();
    let follows = source.follows != Follows::No && handed.format.is_some();
    let goes_on_here = floor.goes_on(number);
    let given = std::mem::take(handed);
    if let Some(format) = given.format.filter(|_| follows) {
        named.format = format.name().to_owned();
    }
    let (opened, format) = match opened(&named) {
        Ok(found) => found,
        Err(why) => {
            if follows {
                floor.fail(why.clone());
            }
            read.refused = why;
            return (read, moved);
        }
    };
    read.format = Some(format);
    let (text, mut at_s) = if follows {
        (before(given.text, source.follows), given.at_s)
    } else {
        (source.open.before.clone(), source.open.at_s)
    };
    if goes_on_here {
        handed.format = Some(format);
    }
    let keep = floor.options.keep_tail || goes_on_here;
    let mut ends = Ends::new(format, &floor.settings[number]);
    let job = |work, at_s| Job {
        source: number,
        format,
        at_s,
        work,
    };
    match opened {
        Opened::File(file, now) => {
            let len = match source.part {
                Some(part) => part.len,
                None => end_of(&file, now, keep),
            };
            if len > now {
                let path = &source.path;
                floor.fail(format!("{path} was cut short while it was read"));
                return (read, moved);
            }
            if format.joins() {
                let mut end = if goes_on_here { now } else { len };
                if floor.options.keep_tail && !goes_on_here && !follows {
                    let held = open_from(&file, format, source.skip, len, &[]);
                    (end, read.open.text) = (held.end, held.text);
                }
                read.bytes = end.saturating_sub(source.skip);
                // The file as a stream, no further than where this reading ends.
                let (at, of) = (source.skip, identity(&file));
                let stream: Box<dyn std::io::Read + Send> = if links.is_empty() {
                    Box::new(At { file, at, end })
                } else {
                    let part = Some(Stretch { of, at, end });
                    Box::new(Late::new(named, part, Damage::default()))
                };
                links.push(Link {
                    source: number,
                    stream,
                    damage: Damage::default(),
                    skip: 0,
                });
                if !goes_on_here {
                    let work = Work::Whole(std::mem::take(links));
                    floor.queue.put(job(work, None), most, go_on);
                }
                return (read, moved);
            }
            let fed = Fed {
                floor,
                file: &file,
                text: &text,
                now,
                len,
                goes_on: goes_on_here,
                keep,
            };
            match fed.blocks(
                number,
                &mut ends,
                &mut read,
                &mut moved,
                handed,
                &mut at_s,
                &mut |work, at_s| floor.queue.put(job(work, at_s), most, go_on),
            ) {
                Ok(()) => handed.at_s = at_s,
                Err(e) => floor.fail(format!("{} cannot be read: {e}", source.path)),
            }
            if !goes_on_here {
                read.open.at_s = at_s;
            }
        }
        Opened::Stream(mut stream, mut damage) if format.joins() => {
            if !links.is_empty() {
                damage = Damage::default();
                stream = Box::new(Late::new(named, None, damage.clone()));
            }
            links.push(Link {
                source: number,
                stream,
                damage,
                skip: source.skip,
            });
            if !goes_on_here {
                let work = Work::Whole(std::mem::take(links));
                floor.queue.put(job(work, None), most, go_on);
            }
        }
        Opened::Stream(mut stream, damage) => {
            let cut = skipped(&mut stream, source.skip).and_then(|()| {
                let whole = std::io::Cursor::new(text.clone()).chain(stream);
                let mut cutter = Cutter::new(whole, 0, format, floor.options.sizes)?;
                while let Some(mut block) = cutter.cut()? {
                    if keep {
                        read.open.text = tail(&mut block, &mut cutter.bytes, format, goes_on_here);
                    }
                    let begins_s = at_s;
                    at_s = ends.after(&block, at_s);
                    if !floor
                        .queue
                        .put(job(Work::Near(block), begins_s), most, go_on)
                    {
                        break;
                    }
                    cutter.spare = floor.spare.lock().unwrap().pop().unwrap_or_default();
                }
                Ok(cutter.bytes)
            });
            match cut {
                Ok(bytes) => {
                    let mut open = std::mem::take(&mut read.open);
                    (read.bytes, moved) = settled(&text, bytes, &mut open, goes_on_here);
                    if goes_on_here {
                        (handed.text, handed.at_s) = (given_on(&mut open), at_s);
                    } else {
                        open.at_s = at_s;
                    }
                    read.open = open;
                    if let Some(what) = damage.note() {
                        read.seen.note(what, 1);
                    }
                }
                Err(e) => floor.fail(format!("{} is damaged: {e}", source.path)),
            }
        }
    }
    (read, moved)
}

/// Passes over what was read before.
fn skipped(stream: &mut dyn std::io::Read, bytes: u64) -> std::io::Result<()> {
    std::io::copy(&mut stream.take(bytes), &mut std::io::sink()).map(|_| ())
}

/// What of a stream that began with `text` was read of it itself, of `bytes` in all, and whose lines
/// are counted where; what is open is told apart by where it stands.
fn settled(text: &[u8], bytes: u64, open: &mut Open, goes_on: bool) -> (u64, Moved) {
    let begun = text.len().min(bytes as usize);
    open.before = text[begun..].to_vec();
    open.text.drain(..open.before.len().min(open.text.len()));
    let mut own = bytes - begun as u64;
    let mut moved = Moved {
        taken: newlines(&text[..begun]),
        handed: 0,
    };
    if goes_on {
        own += open.text.len() as u64;
        moved.handed = newlines(&open.text);
    }
    (own, moved)
}

/// What is open, for the file that follows.
fn given_on(open: &mut Open) -> Vec<u8> {
    let mut text = std::mem::take(&mut open.before);
    text.append(&mut open.text);
    text
}

/// A file whose blocks are put into the queue.
struct Fed<'a> {
    floor: &'a Floor<'a>,
    file: &'a Arc<File>,
    /// What stands before it.
    text: &'a [u8],
    now: u64,
    len: u64,
    goes_on: bool,
    keep: bool,
}

impl Fed<'_> {
    #[allow(clippy::too_many_arguments)]
    fn blocks(
        &self,
        number: usize,
        ends: &mut Ends,
        read: &mut Read,
        moved: &mut Moved,
        handed: &mut Handed,
        at_s: &mut Option<i64>,
        put: &mut dyn FnMut(Work, Option<i64>) -> bool,
    ) -> std::io::Result<()> {
        let (file, text, source) = (self.file, self.text, &self.floor.sources[number]);
        let format = read.format.unwrap_or(Format::Pattern);
        let mut end = self.len;
        let mut begun = text.len();
        if self.keep {
            let held = open_from(file, format, source.skip, self.len, text);
            (end, begun) = (held.end, held.begun);
            if self.goes_on {
                let rest = between(file, end, self.now)?;
                moved.handed = newlines(&rest);
                handed.text = [&text[begun..], &rest].concat();
            } else {
                (read.open.before, read.open.text) = (text[begun..].to_vec(), held.text);
            }
        }
        moved.taken = newlines(&text[..begun]);
        let sizes = self.floor.options.sizes;
        let blocks = end.saturating_sub(source.skip).div_ceil(sizes.block as u64);
        let (from, to) = source
            .part
            .map_or((0, blocks), |p| (p.from.min(blocks), p.to.min(blocks)));
        let upto = |block: u64| (source.skip + block * sizes.block as u64).min(end);
        read.bytes = if self.goes_on {
            self.now - source.skip
        } else {
            upto(to).saturating_sub(upto(from))
        };
        let span = Span {
            skip: source.skip,
            end,
            len: self.len,
            within: begun > 0 && text.last() != Some(&b'\n'),
            format,
            sizes,
        };
        let mut stands = Before::default();
        if begun > 0 {
            let block = seam(file, span, text, begun)?;
            let begins_s = *at_s;
            *at_s = ends.after(&block, *at_s);
            stands = after(format, &block.bytes, block.begin, block.end, &stands);
            if !put(Work::Near(block), begins_s) {
                return Ok(());
            }
        }
        *at_s = ends.before_far(file, span, from, *at_s)?;
        stands = before_far(file, span, from, stands)?;
        for n in from..to {
            let work = Work::Far(file.clone(), span, n, u64::from(begun > 0), stands.clone());
            if !put(work, *at_s) {
                break;
            }
            *at_s = ends.after_far(file, span, n, *at_s)?;
            if n + 1 < to {
                stands = after_far(file, span, n, stands)?;
            }
        }
        Ok(())
    }
}

/// A part of a file as a stream.
struct At {
    file: Arc<File>,
    at: u64,
    end: u64,
}

impl std::io::Read for At {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let most = into.len().min(self.end.saturating_sub(self.at) as usize);
        let n = self.file.read_at(&mut into[..most], self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

/// The part of a file that is read, and which file it was.
#[derive(Clone, Copy)]
struct Stretch {
    of: Option<(u64, u64)>,
    at: u64,
    end: u64,
}

/// A source that is opened when its turn comes: of a log that was rotated a thousand times, not all
/// files are open at once.
struct Late {
    source: Source,
    /// Of a file.
    part: Option<Stretch>,
    stream: Option<Box<dyn std::io::Read + Send>>,
    /// Of the stream, and what is told of it.
    inner: Damage,
    damage: Damage,
}

impl Late {
    fn new(source: Source, part: Option<Stretch>, damage: Damage) -> Late {
        Late {
            source,
            part,
            stream: None,
            inner: Damage::default(),
            damage,
        }
    }

    fn open(&mut self) -> std::io::Result<Box<dyn std::io::Read + Send>> {
        let (opened, _) = opened(&self.source).map_err(std::io::Error::other)?;
        match (opened, self.part) {
            (Opened::Stream(stream, damage), None) => {
                self.inner = damage;
                Ok(stream)
            }
            (Opened::File(file, _), Some(part)) if identity(&file) == part.of => {
                let Stretch { at, end, .. } = part;
                Ok(Box::new(At { file, at, end }))
            }
            _ => Err(std::io::Error::other("another file came in its place")),
        }
    }
}

impl std::io::Read for Late {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => self.open()?,
        };
        let n = stream.read(into);
        self.damage.take_over(&self.inner);
        self.stream = Some(stream);
        n
    }
}

/// Which file it is.
fn identity(file: &File) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let found = file.metadata().ok()?;
    Some((found.dev(), found.ino()))
}

/// One thread: takes jobs until there are no more.
fn work(floor: &Floor<'_>) -> Tally {
    let mut tally = Tally::within(floor.options.settings.within);
    let mut local = Local::default();
    let mut readers: HashMap<(Format, usize), Box<dyn Reader>> = HashMap::new();
    let mut spare = Vec::new();
    while let Some(job) = floor.queue.take() {
        if floor.stop.load(Ordering::Relaxed) {
            continue;
        }
        if let Work::Whole(links) = job.work {
            if let Err(why) = whole(floor, links, job.format, &mut tally, &mut local) {
                floor.fail(why);
            }
            continue;
        }
        let mut out = Out {
            tally: &mut tally,
            queries: &mut local,
            shared: floor.shared,
            source: floor.sources[job.source].server.as_bytes(),
            seen: Seen::default(),
        };
        let key = (job.format, floor.zone_of(job.source));
        let mut reader = readers
            .remove(&key)
            .unwrap_or_else(|| reader(job.format, &floor.settings[job.source]));
        reader.clock().go_on(job.at_s);
        let path = &floor.sources[job.source].path;
        let number = match job.work {
            Work::Far(file, span, number, blocks_before, before) => {
                match block_of(&file, span, number, std::mem::take(&mut spare)) {
                    Ok(mut block) => {
                        block.number += blocks_before;
                        block.before = before;
                        reader.read(&block, &mut out);
                        let own = (block.end - block.begin) as u64;
                        floor.bytes.fetch_add(own, Ordering::Relaxed);
                        spare = block.bytes;
                        block.number
                    }
                    Err(e) => {
                        floor.fail(format!("{path} cannot be read: {e}"));
                        continue;
                    }
                }
            }
            Work::Near(block) => {
                reader.read(&block, &mut out);
                let own = (block.end - block.begin) as u64;
                floor.bytes.fetch_add(own, Ordering::Relaxed);
                floor.spare.lock().unwrap().push(block.bytes);
                block.number
            }
            Work::Whole(_) => unreachable!("they were read above"),
        };
        readers.insert(key, reader);
        let seen = std::mem::take(&mut out.seen);
        floor
            .seen
            .lock()
            .unwrap()
            .insert((job.source, number), seen);
    }
    local.empty_into(floor.shared);
    tally.settle();
    tally
}

/// Sources whose lines must come in order, from the beginning of the first to the end of the last.
fn whole(
    floor: &Floor<'_>,
    links: Vec<Link>,
    format: Format,
    tally: &mut Tally,
    queries: &mut Local,
) -> Result<(), String> {
    let Some(first) = links.first().map(|link| link.source) else {
        return Ok(());
    };
    let mut reader = reader(format, &floor.settings[first]);
    let open = &floor.sources[first].open;
    take_up(reader.as_mut(), format, &open.state);
    reader.clock().go_on(open.at_s);
    let mut text = open.before.clone();
    let last = links.len() - 1;
    for (n, link) in links.into_iter().enumerate() {
        let source = &floor.sources[link.source];
        let broken = |e: std::io::Error| format!("{} is damaged: {e}", source.path);
        let goes_on = n < last;
        if n > 0 {
            text = before(text, source.follows);
        }
        let mut stream = link.stream;
        skipped(&mut stream, link.skip).map_err(broken)?;
        let with_text = std::io::Cursor::new(text.clone()).chain(stream);
        let sizes = floor.options.sizes;
        let mut cutter = Cutter::new(with_text, 0, format, sizes).map_err(broken)?;
        let mut out = Out {
            tally,
            queries,
            shared: floor.shared,
            source: source.server.as_bytes(),
            seen: Seen::default(),
        };
        let mut open = Open::default();
        while let Some(mut block) = cutter.cut().map_err(broken)? {
            if floor.options.keep_tail || goes_on {
                open.text = tail(&mut block, &mut cutter.bytes, format, goes_on);
            }
            reader.read(&block, &mut out);
            let left = reader.left();
            cutter.give_back(&block.bytes[block.end - left..block.end]);
            let own = (block.end - left - block.begin) as u64;
            floor.bytes.fetch_add(own, Ordering::Relaxed);
            cutter.spare = block.bytes;
            if floor.stop.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
        if let Some(what) = link.damage.note() {
            out.seen.note(what, 1);
        }
        let (bytes, moved) = settled(&text, cutter.bytes, &mut open, goes_on);
        if goes_on {
            text = given_on(&mut open);
        } else {
            open.at_s = reader.clock().at_s();
            if floor.options.keep_tail {
                let mut saving = Saving::default();
                saving.text(format.name().as_bytes());
                reader.save(&mut saving);
                open.state = saving.bytes();
            } else {
                reader.end(&mut out);
            }
        }
        let seen = std::mem::take(&mut out.seen);
        floor.seen.lock().unwrap().insert((link.source, 0), seen);
        let mut streamed = floor.streamed.lock().unwrap();
        streamed.insert(link.source, (bytes, open, moved));
    }
    Ok(())
}

/// A reader goes on with what the last one of the same format held.
fn take_up(reader: &mut dyn Reader, format: Format, state: &[u8]) {
    let mut saved = Saved::new(state);
    if saved.text() == Some(format.name().as_bytes()) {
        reader.restore(&mut saved);
    }
}

/// Counts what readings left open, as if nothing more came: for each source, what was seen in it.
pub fn read_open(log: &mut Log, sources: &[(Source, Format)], settings: &Settings) -> Vec<Seen> {
    let mut local = Local::default();
    let found = sources
        .iter()
        .map(|(source, format)| {
            let mut out = Out {
                tally: &mut log.tally,
                queries: &mut local,
                shared: &log.queries,
                source: source.server.as_bytes(),
                seen: Seen {
                    first_ns: source.open.last_ns,
                    last_ns: source.open.last_ns.unwrap_or_default(),
                    ..Seen::default()
                },
            };
            let of_server = settings.of_server(source.server.as_bytes());
            let mut reader = reader(*format, &of_server);
            take_up(reader.as_mut(), *format, &source.open.state);
            reader.clock().go_on(source.open.at_s);
            let text = [&source.open.before[..], &source.open.text].concat();
            reader.read(&Block::all(text), &mut out);
            reader.end(&mut out);
            out.seen.without(newlines(&source.open.before))
        })
        .collect();
    local.empty_into(&log.queries);
    log.tally.settle();
    found
}
