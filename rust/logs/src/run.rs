//! All sources of a log, read on all cores and counted into one `Log`.
//!
//! Blocks are counted in whatever order they are done: counts do not depend on it. What does (line
//! numbers, a clock that goes back) is kept for each block and put together in order.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::format::{Format, Out, Reader, Seen, Settings, hold, reader};
use crate::look::{end_of, open_from, opened};
use crate::queries::{Local, Shared, give_back};
use crate::queue::{Job, Queue, Work};
use crate::saved::{Saved, Saving};
use crate::source::{BLOCK, Block, Cutter, Opened, Span, block_of};
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
}

/// What a reading leaves to the next one of the same source.
#[derive(Clone, Debug, Default)]
pub struct Open {
    /// What its reader holds (`Reader::save`).
    pub state: Vec<u8>,
    /// Lines that were not read, because their entry may go on; the next reading begins with them.
    pub text: Vec<u8>,
    /// The time of the last entry.
    pub last_ns: Option<i64>,
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
    /// What is left to the next reading, where `keep_tail` says so.
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
    shared: &'a Shared,
    /// Of each block of each source, what was seen in it.
    seen: Mutex<BTreeMap<(usize, u64), Seen>>,
    /// Of sources that a thread reads whole: bytes, and what is left open.
    streamed: Mutex<HashMap<usize, (u64, Open)>>,
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
        shared: &log.queries,
        seen: Mutex::default(),
        streamed: Mutex::default(),
        spare: Mutex::default(),
        bytes: AtomicU64::new(0),
        failed: Mutex::default(),
        stop: AtomicBool::new(false),
    };
    let mut reads: Vec<Read> = Vec::new();
    let mut tallies: Vec<Tally> = Vec::new();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| work(&floor))).collect();
        let mut go_on = || {
            if !tick(floor.bytes.load(Ordering::Relaxed)) {
                floor.fail("interrupted".to_owned());
            }
            !floor.stop.load(Ordering::Relaxed)
        };
        for (number, source) in sources.iter().enumerate() {
            if !go_on() {
                break;
            }
            reads.push(feed(&floor, number, source, threads * 2, &mut go_on));
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
    for read in reads
        .iter_mut()
        .filter(|r| r.source.part.is_none_or(|p| p.from == 0))
    {
        // The clock goes on where the last reading ended.
        read.seen.first_ns = read.source.open.last_ns;
        read.seen.last_ns = read.source.open.last_ns.unwrap_or_default();
    }
    for ((source, _), seen) in floor.seen.into_inner().unwrap() {
        reads[source].seen.append(seen);
    }
    for (source, (bytes, open)) in streamed {
        // Of a file it is known before what is left of its end.
        let text = std::mem::take(&mut reads[source].open.text);
        (reads[source].bytes, reads[source].open) = (bytes, open);
        if !text.is_empty() {
            reads[source].open.text = text;
        }
    }
    for read in &mut reads {
        read.open.last_ns = read.seen.first_ns.map(|_| read.seen.last_ns);
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

/// Opens a source and puts its blocks into the queue.
fn feed(
    floor: &Floor<'_>,
    number: usize,
    source: &Source,
    most: usize,
    go_on: &mut dyn FnMut() -> bool,
) -> Read {
    let mut read = Read {
        source: source.clone(),
        format: None,
        refused: String::new(),
        bytes: 0,
        seen: Seen::default(),
        open: Open::default(),
    };
    let (opened, format) = match opened(source) {
        Ok(found) => found,
        Err(why) => {
            read.refused = why;
            return read;
        }
    };
    read.format = Some(format);
    let job = |work| Job {
        source: number,
        format,
        work,
    };
    match opened {
        Opened::File(file, now) => {
            let len = match source.part {
                Some(part) => part.len,
                None => end_of(&file, now, floor.options.keep_tail),
            };
            if len > now {
                let path = &source.path;
                floor.fail(format!("{path} was cut short while it was read"));
                return read;
            }
            let mut end = len;
            if floor.options.keep_tail {
                (end, read.open.text) = open_from(&file, format, source.skip, len);
            }
            read.bytes = end.saturating_sub(source.skip);
            let all = read.bytes.div_ceil(BLOCK as u64);
            if format.joins() {
                // The file as a stream, no further than where this reading ends.
                let stream = At {
                    file,
                    at: source.skip,
                    end,
                };
                let work = Work::Whole(Opened::Stream(Box::new(stream)), 0);
                floor.queue.put(job(work), most, go_on);
                return read;
            }
            let (from, to) = source
                .part
                .map_or((0, all), |p| (p.from.min(all), p.to.min(all)));
            let upto = |block: u64| (source.skip + block * BLOCK as u64).min(end);
            read.bytes = upto(to).saturating_sub(upto(from));
            let span = Span {
                skip: source.skip,
                end,
                len,
            };
            for n in from..to {
                let work = Work::Far(file.clone(), span, n);
                if !floor.queue.put(job(work), most, go_on) {
                    break;
                }
            }
        }
        Opened::Stream(stream) if format.joins() => {
            let work = Work::Whole(Opened::Stream(stream), source.skip);
            floor.queue.put(job(work), most, go_on);
        }
        Opened::Stream(stream) => {
            let cut = Cutter::new(stream, source.skip).and_then(|mut cutter| {
                while let Some(mut block) = cutter.cut()? {
                    if floor.options.keep_tail {
                        read.open.text = tail(&mut block, &mut cutter.bytes, format);
                    }
                    if !floor.queue.put(job(Work::Near(block)), most, go_on) {
                        break;
                    }
                    cutter.spare = floor.spare.lock().unwrap().pop().unwrap_or_default();
                }
                Ok(cutter.bytes)
            });
            match cut {
                Ok(bytes) => read.bytes = bytes,
                Err(e) => floor.fail(format!("{} is damaged: {e}", source.path)),
            }
        }
    }
    read
}

/// Leaves out what follows the last line break of the last block, and ends the block before an entry
/// that may go on: the lines from there on.
fn tail(block: &mut Block, bytes: &mut u64, format: Format) -> Vec<u8> {
    if block.end < block.bytes.len() {
        return Vec::new();
    }
    let whole = memchr::memrchr(b'\n', &block.bytes).map_or(0, |at| at + 1);
    block.bytes.truncate(whole);
    // What stands before the block ended where it begins.
    let end = hold(format, &block.bytes, true).unwrap_or(whole);
    *bytes -= (block.end - end) as u64;
    block.end = end;
    block.bytes[end..].to_vec()
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

/// One thread: takes jobs until there are no more.
fn work(floor: &Floor<'_>) -> Tally {
    let mut tally = Tally::default();
    let mut local = Local::default();
    let mut readers: HashMap<Format, Box<dyn Reader>> = HashMap::new();
    let mut spare = Vec::new();
    while let Some(job) = floor.queue.take() {
        if floor.stop.load(Ordering::Relaxed) {
            continue;
        }
        let mut out = Out {
            tally: &mut tally,
            queries: &mut local,
            shared: floor.shared,
            source: floor.sources[job.source].server.as_bytes(),
            seen: Seen::default(),
        };
        let settings = &floor.options.settings;
        let held = |r: &mut HashMap<Format, Box<dyn Reader>>| {
            r.remove(&job.format)
                .unwrap_or_else(|| reader(job.format, settings))
        };
        let path = &floor.sources[job.source].path;
        let number = match job.work {
            Work::Far(file, span, number) => {
                match block_of(&file, span, number, std::mem::take(&mut spare)) {
                    Ok(block) => {
                        let mut reader = held(&mut readers);
                        reader.read(&block, &mut out);
                        readers.insert(job.format, reader);
                        let own = (block.end - block.begin) as u64;
                        floor.bytes.fetch_add(own, Ordering::Relaxed);
                        spare = block.bytes;
                        number
                    }
                    Err(e) => {
                        floor.fail(format!("{path} cannot be read: {e}"));
                        continue;
                    }
                }
            }
            Work::Near(block) => {
                let mut reader = held(&mut readers);
                reader.read(&block, &mut out);
                readers.insert(job.format, reader);
                floor.bytes.fetch_add(block.end as u64, Ordering::Relaxed);
                floor.spare.lock().unwrap().push(block.bytes);
                block.number
            }
            Work::Whole(Opened::Stream(stream), skip) => {
                if let Err(e) = whole(floor, job.source, job.format, stream, skip, &mut out) {
                    floor.fail(format!("{path} is damaged: {e}"));
                }
                0
            }
            Work::Whole(Opened::File(..), _) => {
                unreachable!("files that join are given as streams")
            }
        };
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

/// A source whose lines must come in order, from its beginning to its end.
fn whole(
    floor: &Floor<'_>,
    source: usize,
    format: Format,
    stream: Box<dyn std::io::Read + Send>,
    skip: u64,
    out: &mut Out<'_>,
) -> std::io::Result<()> {
    let mut reader = reader(format, &floor.options.settings);
    take_up(reader.as_mut(), format, &floor.sources[source].open.state);
    let keep_tail = floor.options.keep_tail;
    let mut open = Open::default();
    let mut cutter = Cutter::new(stream.take(u64::MAX), skip)?;
    while let Some(mut block) = cutter.cut()? {
        if keep_tail {
            open.text = tail(&mut block, &mut cutter.bytes, format);
        }
        reader.read(&block, out);
        floor.bytes.fetch_add(block.end as u64, Ordering::Relaxed);
        cutter.spare = block.bytes;
        if floor.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
    }
    if keep_tail {
        let mut saving = Saving::default();
        saving.text(format.name().as_bytes());
        reader.save(&mut saving);
        open.state = saving.bytes();
    } else {
        reader.end(out);
    }
    let mut streamed = floor.streamed.lock().unwrap();
    streamed.insert(source, (cutter.bytes, open));
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
            let mut reader = reader(*format, settings);
            take_up(reader.as_mut(), *format, &source.open.state);
            let text = &source.open.text;
            reader.read(
                &Block {
                    bytes: text.clone(),
                    begin: 0,
                    end: text.len(),
                    number: 0,
                },
                &mut out,
            );
            reader.end(&mut out);
            out.seen
        })
        .collect();
    local.empty_into(&log.queries);
    log.tally.settle();
    found
}
