//! What exceeds a drive's memory goes to a file while it runs.
//!
//! The measuring threads go on writing into their regions and know nothing of it. A follower looks
//! ten times a second at how far each has come, writes what is finished to a file, gives those
//! pages back, and touches fresh ones ahead, so that recording costs no page faults. The files
//! have no names: nothing is left of them, however the process ends.
//!
//! Replies that are kept go the same way.
//!
//! A full disk loses nothing: what could not be written stays in memory, and from then on
//! nothing more is given back.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::region::{Mapping, PAGES, Region};
use crate::sample::{SAMPLE_BYTES, TOUCHED_BYTES};
use crate::sys;

/// How often the follower looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The most recent bytes of a thread that stay in memory.
const KEEP_BYTES: usize = 1 << 20;
/// Kept replies are spilled once so much is held of them. They are read once, piece by piece, after
/// the drive, so there is little use in holding more.
const KEPT_BYTES: usize = 16 << 20;
/// Beyond what was recorded since the last look, a look writes at most this much and as much
/// again, so that the first one does not move the whole threshold at once.
const CATCH_UP_BYTES: usize = 8 << 20;
/// The most recent samples of a thread that `Recorded::recent` gives.
pub const RECENT: usize = 4_096;

/// What one thread has recorded, as others may see it. It has a cache line to itself, which the
/// thread writes to once in a turn of its loop.
#[repr(align(64))]
#[derive(Default)]
pub(crate) struct Recorded {
    /// Bytes of finished samples, or of replies that are kept.
    finished: AtomicUsize,
    /// The first bytes of the mapping that are there no more.
    given_back: AtomicUsize,
    mapping: OnceLock<Arc<Mapping>>,
}

impl Recorded {
    /// Says where the thread records; once.
    pub fn place(&self, mapping: &Arc<Mapping>) {
        let _ = self.mapping.set(Arc::clone(mapping));
    }

    /// Says how far the thread has come.
    #[inline]
    pub fn publish(&self, samples: usize) {
        self.publish_bytes(samples * SAMPLE_BYTES);
    }

    /// The same in bytes, which are not written to again.
    #[inline]
    pub fn publish_bytes(&self, bytes: usize) {
        self.finished.store(bytes, Release);
    }

    pub fn samples(&self) -> usize {
        self.finished.load(Relaxed) / SAMPLE_BYTES
    }

    /// Appends the bytes of the most recent finished samples, at most `RECENT`.
    pub fn recent(&self, into: &mut Vec<u8>) {
        let Some(mapping) = self.mapping.get() else {
            return;
        };
        let to = self.finished.load(Acquire);
        let from = to.saturating_sub(RECENT * SAMPLE_BYTES);
        let start = into.len();
        // SAFETY: what is finished was written and is not written to again.
        into.extend_from_slice(unsafe { mapping.slice(from, to) });
        // Had this thread been kept from reading for long, some may have been given back.
        let gone = self.given_back.load(SeqCst).clamp(from, to) - from;
        into.drain(start..start + gone);
    }
}

/// The first bytes of what a thread recorded, in a file.
pub(crate) struct Prefix {
    pub file: File,
    pub bytes: usize,
}

/// What a drive spilled.
pub(crate) struct Written {
    pub samples: Spilled,
    pub kept: Spilled,
}

/// What was spilled: a prefix for each thread, and what went wrong.
pub(crate) struct Spilled {
    pub prefixes: Vec<Prefix>,
    pub failed: Option<String>,
}

/// A file without a name in `folder`.
fn nameless(folder: &Path) -> io::Result<File> {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    let number = MADE.fetch_add(1, Relaxed);
    let path = folder.join(format!(".spill-{}-{number}", std::process::id()));
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path);
    let file = file.map_err(|error| {
        let place = folder.display();
        io::Error::new(
            error.kind(),
            format!("cannot write samples and replies to {place}: {error}"),
        )
    })?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// Follows the threads of one drive.
pub(crate) struct Follower {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<Written>>,
}

impl Follower {
    /// Starts to follow. `folder` is for the files; spilling begins once more than `after_bytes`
    /// of samples, or `KEPT_BYTES` of replies, are held by all threads together. It keeps off
    /// `cpus`, where there are others.
    pub fn start(
        recorded: Arc<[Recorded]>,
        laid: Arc<[Recorded]>,
        folder: &Path,
        after_bytes: usize,
        cpus: Vec<usize>,
    ) -> io::Result<Follower> {
        let prefixes = |threads: &[Recorded]| {
            let each = threads.iter().map(|_| nameless(folder));
            each.map(|file| file.map(|file| Prefix { file, bytes: 0 }))
                .collect::<io::Result<Vec<_>>>()
        };
        let (of_samples, of_kept) = (prefixes(&recorded)?, prefixes(&laid)?);
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let mut samples = Follow::new(recorded, of_samples, after_bytes, TOUCHED_BYTES);
        let mut kept = Follow::new(laid, of_kept, KEPT_BYTES, 0);
        let told = Arc::clone(&stop);
        let body = move || {
            sys::step_back(&cpus);
            let (flag, changed) = &*told;
            loop {
                samples.look();
                kept.look();
                let Ok(state) = flag.lock() else { break };
                match changed.wait_timeout_while(state, LOOK_EVERY, |stopped| !*stopped) {
                    Ok((state, _)) if !*state => {}
                    _ => break,
                }
            }
            // What came since: a drive that was short has its look too.
            samples.look();
            kept.look();
            Written {
                samples: samples.spilled,
                kept: kept.spilled,
            }
        };
        let thread = std::thread::Builder::new()
            .name("spill".into())
            .spawn(body)?;
        Ok(Follower {
            stop,
            thread: Some(thread),
        })
    }

    /// Stops and hands over what was spilled. To be called once the threads have ended.
    pub fn finish(mut self) -> io::Result<Written> {
        self.end()
            .ok_or_else(|| io::Error::other("the thread that spills samples failed"))
    }

    fn end(&mut self) -> Option<Written> {
        if let Ok(mut stopped) = self.stop.0.lock() {
            *stopped = true;
        }
        self.stop.1.notify_all();
        self.thread.take()?.join().ok()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.end();
    }
}

/// The follower's own state.
struct Follow {
    recorded: Arc<[Recorded]>,
    after_bytes: usize,
    /// So much is touched ahead of what was recorded.
    touched_bytes: usize,
    /// The threshold was once exceeded.
    begun: bool,
    /// By thread: bytes touched, and bytes finished at the last look.
    seen: Vec<(usize, usize)>,
    spilled: Spilled,
}

impl Follow {
    fn new(
        recorded: Arc<[Recorded]>,
        prefixes: Vec<Prefix>,
        after_bytes: usize,
        touched_bytes: usize,
    ) -> Follow {
        Follow {
            seen: vec![(touched_bytes, 0); recorded.len()],
            recorded,
            after_bytes,
            touched_bytes,
            begun: false,
            spilled: Spilled {
                prefixes,
                failed: None,
            },
        }
    }

    fn look(&mut self) {
        let finished: Vec<usize> = self
            .recorded
            .iter()
            .map(|recorded| recorded.finished.load(Acquire))
            .collect();
        self.touch_ahead(&finished);
        let held: usize = finished
            .iter()
            .zip(&self.spilled.prefixes)
            .map(|(finished, prefix)| finished - prefix.bytes)
            .sum();
        self.begun |= held > self.after_bytes;
        for (thread, &finished) in finished.iter().enumerate() {
            let since = finished - std::mem::replace(&mut self.seen[thread].1, finished);
            if self.begun && self.spilled.failed.is_none() {
                let most = self.spilled.prefixes[thread].bytes + 2 * since + CATCH_UP_BYTES;
                let to = finished.saturating_sub(KEEP_BYTES).min(most) / PAGES * PAGES;
                if let Err(error) = self.spill(thread, to) {
                    self.spilled.failed = Some(error.to_string());
                }
            }
        }
    }

    /// Touches what a thread will come to before the next looks.
    fn touch_ahead(&mut self, finished: &[usize]) {
        for (thread, &finished) in finished.iter().enumerate() {
            let touched = &mut self.seen[thread].0;
            let ahead = finished + self.touched_bytes;
            if self.touched_bytes > 0
                && ahead > *touched
                && let Some(mapping) = self.recorded[thread].mapping.get()
            {
                let from = (*touched).max(finished);
                mapping.touch(from, ahead);
                *touched = ahead / PAGES * PAGES;
            }
        }
    }

    /// Writes what a thread has finished up to `to`, and gives it back.
    fn spill(&mut self, thread: usize, to: usize) -> io::Result<()> {
        let recorded = &self.recorded[thread];
        let prefix = &mut self.spilled.prefixes[thread];
        let Some(mapping) = recorded.mapping.get() else {
            return Ok(());
        };
        while prefix.bytes < to {
            let end = to.min(prefix.bytes + CATCH_UP_BYTES);
            // SAFETY: what is finished was written and is not written to again.
            let piece = unsafe { mapping.slice(prefix.bytes, end) };
            prefix.file.write_all_at(piece, prefix.bytes as u64)?;
            recorded.given_back.store(end, SeqCst);
            // SAFETY: the file has it; those who read meanwhile look at `given_back`.
            unsafe { mapping.give_back(prefix.bytes, end) };
            prefix.bytes = end;
        }
        Ok(())
    }
}

/// Samples of all threads in one piece, one after another. Memory is given back while they are
/// gathered.
pub(crate) fn gather(mut parts: Vec<Region>, spilled: Option<&mut Spilled>) -> io::Result<Region> {
    let total: usize = parts.iter().map(Region::len).sum();
    let Some(spilled) = spilled.filter(|s| s.prefixes.iter().any(|p| p.bytes > 0)) else {
        return in_memory(parts, total);
    };
    for (part, prefix) in parts.iter_mut().zip(&spilled.prefixes) {
        part.put(&prefix.file, prefix.bytes)?;
    }
    if parts.len() == 1 {
        return Ok(parts.remove(0));
    }
    // The first thread's file goes on with the rest of it, and then with the others.
    let Prefix { file, bytes } = spilled.prefixes.remove(0);
    let mut at = bytes;
    let mut taken = vec![0; parts.len()];
    for (index, part) in parts.iter_mut().enumerate() {
        let from = if index == 0 { bytes } else { 0 };
        let (count, written) = part.drain(from, |piece| {
            file.write_all_at(piece, at as u64)?;
            at += piece.len();
            Ok::<(), io::Error>(())
        });
        taken[index] = from + count;
        if let Err(error) = written {
            spilled.failed.get_or_insert(error.to_string());
            return back_in_memory(parts, &taken, total, &file, at);
        }
        if index > 0 {
            // Gives its file back too.
            spilled.prefixes.remove(0);
        }
    }
    Region::of_file(&file, total)
}

fn in_memory(mut parts: Vec<Region>, total: usize) -> io::Result<Region> {
    if parts.len() == 1 {
        return Ok(parts.remove(0));
    }
    let mut whole = Region::reserve(total, total)?;
    for mut part in parts {
        append_rest(&mut whole, &mut part, 0);
    }
    Ok(whole)
}

fn append_rest(whole: &mut Region, part: &mut Region, from: usize) {
    let (_, all) = part.drain(from, |piece| match whole.append(piece) {
        true => Ok(()),
        false => Err("there is room for all"),
    });
    debug_assert_eq!(all, Ok(()));
}

/// The disk is full: what the file has is read back, and the rest follows.
fn back_in_memory(
    parts: Vec<Region>,
    taken: &[usize],
    total: usize,
    file: &File,
    written: usize,
) -> io::Result<Region> {
    let mut whole = Region::reserve(total, total)?;
    let mut piece = vec![0; CATCH_UP_BYTES];
    let mut at = 0;
    while at < written {
        let count = piece.len().min(written - at);
        file.read_exact_at(&mut piece[..count], at as u64)?;
        whole.append(&piece[..count]);
        at += count;
    }
    for (mut part, &taken) in parts.into_iter().zip(taken) {
        append_rest(&mut whole, &mut part, taken);
    }
    Ok(whole)
}

#[cfg(test)]
#[path = "spill_tests.rs"]
mod tests;
