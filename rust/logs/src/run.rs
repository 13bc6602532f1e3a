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

use crate::format::{Format, Out, Reader, Seen, Settings, reader};
use crate::look::{end_of, opened};
use crate::queries::{Local, Shared};
use crate::queue::{Job, Queue, Work};
use crate::source::{BLOCK, Block, Cutter, Opened, block_of};
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
    /// A line at the end that has no line break is left for the next time.
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
    streamed: Mutex<HashMap<usize, u64>>,
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
    for ((source, _), seen) in floor.seen.into_inner().unwrap() {
        reads[source].seen.append(seen);
    }
    for (source, bytes) in streamed {
        reads[source].bytes = bytes;
    }
    if !reads.is_empty() && reads.iter().all(|r| r.format.is_none()) {
        let reasons: Vec<&str> = reads.iter().map(|r| r.refused.as_str()).collect();
        return Err(reasons.join("\n"));
    }
    for tally in tallies {
        log.tally.merge(tally);
    }
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
            read.bytes = len.saturating_sub(source.skip);
            let all = read.bytes.div_ceil(BLOCK as u64);
            if format.joins() {
                // The file as a stream, no further than its last whole line.
                let stream = At {
                    file,
                    at: source.skip,
                    end: len,
                };
                let work = Work::Whole(Opened::Stream(Box::new(stream)), 0);
                floor.queue.put(job(work), most, go_on);
                return read;
            }
            let (from, to) = source
                .part
                .map_or((0, all), |p| (p.from.min(all), p.to.min(all)));
            let upto = |block: u64| (source.skip + block * BLOCK as u64).min(len);
            read.bytes = upto(to).saturating_sub(upto(from));
            for n in from..to {
                let work = Work::Far(file.clone(), len, source.skip, n);
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
                    tail(&mut block, &mut cutter.bytes, floor.options.keep_tail);
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

/// Leaves out what follows the last line break of the last block.
fn tail(block: &mut Block, bytes: &mut u64, keep_tail: bool) {
    if keep_tail && block.end == block.bytes.len() {
        let end = memchr::memrchr(b'\n', &block.bytes).map_or(0, |at| at + 1);
        *bytes -= (block.end - end) as u64;
        block.bytes.truncate(end);
        block.end = end;
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
            Work::Far(file, len, skip, number) => {
                match block_of(&file, len, skip, number, std::mem::take(&mut spare)) {
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
    let mut cutter = Cutter::new(stream.take(u64::MAX), skip)?;
    while let Some(mut block) = cutter.cut()? {
        tail(&mut block, &mut cutter.bytes, floor.options.keep_tail);
        reader.read(&block, out);
        floor.bytes.fetch_add(block.end as u64, Ordering::Relaxed);
        cutter.spare = block.bytes;
        if floor.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
    }
    reader.end(out);
    floor.streamed.lock().unwrap().insert(source, cutter.bytes);
    Ok(())
}
