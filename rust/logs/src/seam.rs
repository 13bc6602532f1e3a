//! Where a reading ends and the next one goes on, in the same file or in the next one of a log that
//! was rotated: what is handed over, and how the clock stood.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::format::{
    Before, Format, Out, Reader, Seen, Settings, after, has_lines, hold, reader, since_last, whole,
};
use crate::queries::{Local, Shared};
use crate::run::Follows;
use crate::source::{BLOCK, Block, LONGEST, Sizes, Span, block_of};
use crate::tally::Tally;

/// What a file leaves to the one that follows it.
#[derive(Default)]
pub struct Handed {
    /// Lines whose entry may go on, and the beginning of one that was cut.
    pub text: Vec<u8>,
    pub at_s: Option<i64>,
    pub format: Option<Format>,
}

/// Lines that were read with another file than the one that has them: they are counted where they
/// stand.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moved {
    /// Of the file before; they are not counted here.
    pub taken: u64,
    /// That are read with the next file.
    pub handed: u64,
}

impl Moved {
    pub fn counted(self, seen: Seen) -> Seen {
        let mut seen = seen.without(self.taken);
        seen.lines += self.handed;
        seen
    }
}

pub fn newlines(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}

/// What was handed over, as it stands before what follows: a line that was cut goes on there, unless
/// an entry begins there.
pub fn before(mut text: Vec<u8>, follows: Follows) -> Vec<u8> {
    if follows == Follows::Next && text.last().is_some_and(|&b| b != b'\n') {
        text.push(b'\n');
    }
    text
}

/// Leaves out what follows the last line break of the last block, and ends the block before an entry
/// that may go on: the lines from there on; with `half`, what follows the line break too.
pub fn tail(block: &mut Block, bytes: &mut u64, format: Format, half: bool) -> Vec<u8> {
    if block.end < block.bytes.len() {
        return Vec::new();
    }
    let whole = memchr::memrchr(b'\n', &block.bytes).map_or(0, |at| at + 1);
    let rest = block.bytes.split_off(whole);
    // What stands before the block ended where it begins: the last entry is not cut (`Cutter::cut`).
    let begin = block.begin.min(whole);
    let end = hold(format, &block.bytes[begin..], true).map_or(whole, |at| begin + at);
    *bytes -= (block.end - end) as u64;
    block.begin = begin;
    block.end = end;
    let mut text = block.bytes[end..].to_vec();
    if half {
        text.extend_from_slice(&rest);
    }
    text
}

/// The block that begins with what was handed over, `own` bytes of it, and sees what follows: the
/// beginning of a span.
pub fn seam(file: &File, span: Span, before: &[u8], own: usize) -> io::Result<Block> {
    let Sizes { ahead, .. } = span.sizes;
    let mut bytes = before.to_vec();
    let mut wanted = ahead;
    loop {
        let from = span.skip + (bytes.len() - before.len()) as u64;
        let more = wanted.min(span.len.saturating_sub(from) as usize);
        let at = bytes.len();
        bytes.resize(at + more, 0);
        file.read_exact_at(&mut bytes[at..], from)?;
        // A line, or an entry of several, that goes on beyond what was read.
        if more == 0 || bytes.len() > own + LONGEST || whole(span.format, &bytes, 0, own) {
            break;
        }
        wanted = BLOCK;
    }
    Ok(Block {
        end: own,
        ahead,
        ..Block::all(bytes)
    })
}

/// The bytes of a file from one place to another.
pub fn between(file: &File, from: u64, to: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; to.saturating_sub(from) as usize];
    file.read_exact_at(&mut bytes, from)?;
    Ok(bytes)
}

/// What stands before a block of a file, which others read, of which `before` stands before the span.
pub fn before_far(file: &File, span: Span, number: u64, before: Before) -> io::Result<Before> {
    let (mut before, mut from) = (before, 0);
    for earlier in (0..number).rev() {
        if let Some(found) = quick_before(file, span, earlier)? {
            (before, from) = (found, earlier + 1);
            break;
        }
    }
    for earlier in from..number {
        before = after_far(file, span, earlier, before)?;
    }
    Ok(before)
}

/// What stands before the block after the `number`-th, of which `before` stands before that.
pub fn after_far(file: &File, span: Span, number: u64, before: Before) -> io::Result<Before> {
    if let Some(found) = quick_before(file, span, number)? {
        return Ok(found);
    }
    let block = block_of(file, span, number, Vec::new())?;
    let Block { begin, end, .. } = block;
    Ok(after(span.format, &block.bytes, begin, end, &before))
}

/// The same by the last lines of the block alone, where an entry begins in them.
fn quick_before(file: &File, span: Span, number: u64) -> io::Result<Option<Before>> {
    if !has_lines(span.format) {
        return Ok(Some(Before::default()));
    }
    let Some((bytes, begin, own)) = last_lines(file, span, number)? else {
        return Ok(None);
    };
    // The last line must be seen to its end, and the one behind it, which may make it a head.
    let last = &bytes[own.saturating_sub(1).min(bytes.len())..];
    let seen = memchr::memchr_iter(b'\n', last).nth(1).is_some();
    let found = seen.then(|| since_last(span.format, &bytes, begin, own));
    Ok(found.flatten())
}

/// As much of the end of a block as is looked at first, and of what follows it.
const LOOKED_AT: usize = 4 << 10;

/// The end of a block and what follows it, where the first line begins there, and where the block ends.
/// None of a file that was cut short meanwhile.
fn last_lines(file: &File, span: Span, number: u64) -> io::Result<Option<(Vec<u8>, usize, usize)>> {
    let end = span.upto(number);
    let from = end.saturating_sub(LOOKED_AT as u64).max(span.skip);
    let bytes = match between(file, from, (end + LOOKED_AT as u64).min(span.len)) {
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        found => found?,
    };
    let own = end.saturating_sub(from) as usize;
    let begin = if from == span.skip && !span.within {
        0
    } else {
        memchr::memchr(b'\n', &bytes[..own]).map_or(own, |at| at + 1)
    };
    Ok(Some((bytes, begin, own)))
}

/// How the clock of a log stands at the end of blocks that others read: which passing of an hour a
/// block begins in depends on what stands before it. Of a zone without changes nothing is looked at.
pub struct Ends {
    reader: Option<Box<dyn Reader>>,
    local: Local,
    shared: Shared,
}

impl Ends {
    pub fn new(format: Format, settings: &Settings) -> Ends {
        Ends {
            reader: settings.zone.changes().then(|| reader(format, settings)),
            local: Local::default(),
            shared: Shared::new(0),
        }
    }

    /// The instant of the last stamp of a block; `at_s`: of the last before it.
    pub fn after(&mut self, block: &Block, at_s: Option<i64>) -> Option<i64> {
        self.reader.as_ref()?;
        let from = block.end.saturating_sub(LOOKED_AT).max(block.begin);
        let begin = if from == block.begin {
            from
        } else {
            memchr::memchr(b'\n', &block.bytes[from..block.end]).map_or(block.end, |n| from + n + 1)
        };
        let last = upto_line(&block.bytes, begin, block.end);
        let all = upto_line(&block.bytes, block.begin, block.end);
        self.quick(last).or_else(|| self.read(all, at_s).or(at_s))
    }

    /// The same of the `number`-th block of a span of a file.
    pub fn after_far(
        &mut self,
        file: &File,
        span: Span,
        number: u64,
        at_s: Option<i64>,
    ) -> io::Result<Option<i64>> {
        if self.reader.is_none() {
            return Ok(None);
        }
        if let Some(found) = self.quick_far(file, span, number)? {
            return Ok(Some(found));
        }
        let block = block_of(file, span, number, Vec::new())?;
        Ok(self.after(&block, at_s))
    }

    /// How the clock stands where the `number`-th block begins.
    pub fn before_far(
        &mut self,
        file: &File,
        span: Span,
        number: u64,
        at_s: Option<i64>,
    ) -> io::Result<Option<i64>> {
        if self.reader.is_none() {
            return Ok(None);
        }
        let (mut at_s, mut from) = (at_s, 0);
        for earlier in (0..number).rev() {
            if let Some(found) = self.quick_far(file, span, earlier)? {
                (at_s, from) = (Some(found), earlier + 1);
                break;
            }
        }
        for earlier in from..number {
            at_s = self.after_far(file, span, earlier, at_s)?;
        }
        Ok(at_s)
    }

    fn quick_far(&mut self, file: &File, span: Span, number: u64) -> io::Result<Option<i64>> {
        let found = last_lines(file, span, number)?;
        Ok(found.and_then(|(bytes, begin, own)| self.quick(upto_line(&bytes, begin, own))))
    }

    /// The last stamp, where its instant is sure, by the last lines alone.
    fn quick(&mut self, last: &[u8]) -> Option<i64> {
        let found = self.read(last, None);
        let clock = self.reader.as_mut()?.clock();
        found.filter(|_| clock.is_sure())
    }

    fn read(&mut self, bytes: &[u8], at_s: Option<i64>) -> Option<i64> {
        let reader = self.reader.as_mut()?;
        reader.clock().go_on(at_s);
        let mut tally = Tally::keeping();
        let mut out = Out {
            tally: &mut tally,
            queries: &mut self.local,
            shared: &self.shared,
            source: b"",
            seen: Seen::default(),
        };
        reader.read(&Block::all(bytes.to_vec()), &mut out);
        reader.clock().at_s()
    }
}

/// Lines that begin in `from..to`, to their end.
fn upto_line(bytes: &[u8], from: usize, to: usize) -> &[u8] {
    if from >= to {
        return b"";
    }
    let end = memchr::memchr(b'\n', &bytes[to - 1..]).map_or(bytes.len(), |n| to + n);
    &bytes[from..end]
}
