//! Where a reading ends and the next one goes on, in the same file or in the next one of a log that
//! was rotated: what is handed over, and how the clock stood.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::format::{Format, Out, Reader, Seen, Settings, hold, reader};
use crate::queries::{Local, Shared};
use crate::run::Follows;
use crate::source::{AHEAD, BLOCK, Block, LONGEST, Span, block_of};
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
    // What stands before the block ended where it begins.
    let end = hold(format, &block.bytes, true).unwrap_or(whole);
    *bytes -= (block.end - end) as u64;
    block.end = end;
    let mut text = block.bytes[end..].to_vec();
    if half {
        text.extend_from_slice(&rest);
    }
    text
}

/// The block that begins with what was handed over, `own` bytes of it, and sees what follows.
pub fn seam(file: &File, skip: u64, len: u64, before: &[u8], own: usize) -> io::Result<Block> {
    let mut bytes = before.to_vec();
    let mut wanted = AHEAD;
    loop {
        let from = skip + (bytes.len() - before.len()) as u64;
        let more = wanted.min(len.saturating_sub(from) as usize);
        let at = bytes.len();
        bytes.resize(at + more, 0);
        file.read_exact_at(&mut bytes[at..], from)?;
        // A line that goes on beyond what was read.
        if more == 0
            || bytes.len() > LONGEST
            || memchr::memchr(b'\n', &bytes[before.len()..]).is_some()
        {
            break;
        }
        wanted = BLOCK;
    }
    Ok(Block {
        bytes,
        begin: 0,
        end: own,
        number: 0,
    })
}

/// The bytes of a file from one place to another.
pub fn between(file: &File, from: u64, to: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; to.saturating_sub(from) as usize];
    file.read_exact_at(&mut bytes, from)?;
    Ok(bytes)
}

/// How the clock of a log stands at the end of blocks that others read: which passing of an hour a
/// block begins in depends on what stands before it. Of a zone without changes nothing is looked at.
pub struct Ends {
    reader: Option<Box<dyn Reader>>,
    local: Local,
    shared: Shared,
}

/// As much of the end of a block as is looked at first.
const LOOKED_AT: usize = 4 << 10;

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
        let own = &block.bytes[block.begin..block.end];
        self.quick(own).or_else(|| self.whole(own, at_s))
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
        let end = (span.skip + (number + 1) * BLOCK as u64).min(span.end);
        let from = end.saturating_sub(LOOKED_AT as u64).max(span.skip);
        let bytes = between(file, from, end)?;
        Ok(self.quick(&bytes))
    }

    /// The last stamp, where its instant is sure, by the last lines alone.
    fn quick(&mut self, own: &[u8]) -> Option<i64> {
        let last = &own[own.len().saturating_sub(LOOKED_AT)..];
        let begin = memchr::memchr(b'\n', last).map_or(last.len(), |at| at + 1);
        let found = self.read(&last[begin..], None);
        let clock = self.reader.as_mut()?.clock();
        found.filter(|_| clock.is_sure())
    }

    fn whole(&mut self, own: &[u8], at_s: Option<i64>) -> Option<i64> {
        self.read(own, at_s).or(at_s)
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
        let block = Block {
            bytes: bytes.to_vec(),
            begin: 0,
            end: bytes.len(),
            number: 1,
        };
        reader.read(&block, &mut out);
        reader.clock().at_s()
    }
}
