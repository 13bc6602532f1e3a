//! Where the bytes of a log come from, and how they are cut into blocks.
//!
//! A block owns the lines that begin in it. Behind them stand bytes of what follows (`AHEAD`), and as
//! many as it takes to see the last entry to its end, whatever block its end is in. What the first
//! lines belong to, if they begin no entry, is told by what stands before them (`Before`). Files that
//! are not compressed are read in any order; all else is a stream. Files are read and not mapped:
//! one that is cut short while it is read must not end the process.
//!
//! Longer than 450 lines with its tests: a block is cut alike out of a file and out of a stream.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crate::damage::{Damage, UpToDamage};
use crate::format::{Before, Format, after, behind, goes_before, whole};

/// Bytes of a block, and of what follows it.
pub const BLOCK: usize = 2 << 20;
pub const AHEAD: usize = 256 << 10;

/// The sizes of blocks. The answer must not depend on the first: tests have other ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    pub block: usize,
    pub ahead: usize,
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes {
            block: BLOCK,
            ahead: AHEAD,
        }
    }
}

/// A line that is longer is cut there, and the rest of it is passed over.
pub const LONGEST: usize = 64 << 20;
/// Bytes by which a format is told.
pub const HEAD: usize = 64 << 10;

pub struct Block {
    pub bytes: Vec<u8>,
    /// Lines that begin in `begin..end` are those of this block.
    pub begin: usize,
    pub end: usize,
    pub number: u64,
    /// What its first lines belong to.
    pub before: Before,
    /// As many bytes follow each of its lines, if the source has them: no reader looks further.
    pub ahead: usize,
}

impl Block {
    /// All there is.
    pub fn all(bytes: Vec<u8>) -> Block {
        Block {
            begin: 0,
            end: bytes.len(),
            bytes,
            number: 0,
            before: Before::default(),
            ahead: AHEAD,
        }
    }

    /// Whether nothing follows it.
    pub fn is_last(&self) -> bool {
        self.end == self.bytes.len()
    }
}

/// One source, opened.
pub enum Opened {
    /// A file that can be read anywhere, and its length.
    File(Arc<File>, u64),
    /// What can only be read from its beginning, and why it ends too early.
    Stream(Box<dyn Read + Send>, Damage),
}

/// Opens a file, or standard input where the path is "-", and reads its head, unpacked. Where the first
/// line is longer than a head, the head is its beginning and the lines that follow it.
///
/// Err with a sentence where it cannot be read, or is packed in a way that is not read.
pub fn open(path: &str) -> Result<(Opened, Vec<u8>), String> {
    let failed = |e: io::Error| format!("{path} cannot be read: {e}");
    let raw: Box<dyn Read + Send> = if path == "-" {
        Box::new(io::stdin())
    } else {
        let file = File::open(path).map_err(failed)?;
        let kind = file.metadata().map_err(failed)?;
        if kind.is_dir() {
            return Err(format!("{path} is a directory; name the files in it"));
        }
        if kind.is_file() {
            let mut magic = [0; 6];
            let n = file.read_at(&mut magic, 0).map_err(failed)?;
            if packed(&magic[..n]).is_none() {
                let mut head = vec![0; HEAD];
                let n = file.read_at(&mut head, 0).map_err(failed)?;
                head.truncate(n);
                if n == HEAD && memchr::memchr(b'\n', &head).is_none() {
                    let from = line_end(&file, n as u64).map_err(failed)?;
                    head.resize(2 * HEAD, 0);
                    let more = read_at(&file, &mut head[HEAD..], from).map_err(failed)?;
                    head.truncate(HEAD + more);
                }
                return Ok((Opened::File(Arc::new(file), kind.len()), head));
            }
        }
        Box::new(file)
    };
    let mut raw = BufReader::with_capacity(1 << 20, raw);
    let magic = {
        use io::BufRead;
        packed(raw.fill_buf().map_err(failed)?)
    };
    let damage = Damage::default();
    let unpacked = |packed: Box<dyn Read + Send>| {
        let damage = damage.clone();
        Box::new(UpToDamage::new(packed, damage))
    };
    let mut plain: Box<dyn Read + Send> = match magic {
        None => Box::new(raw),
        Some("gzip") => unpacked(Box::new(flate2::bufread::MultiGzDecoder::new(raw))),
        Some("zstd") => {
            let decoder = zstd::stream::read::Decoder::with_buffer(raw).map_err(failed)?;
            unpacked(Box::new(decoder))
        }
        Some(other) => {
            let tool = if other == "xz" { "xz" } else { "bzip2" };
            return Err(format!(
                "{path} is packed by {other}, which is not read: {tool} -dc {path} | searchbench \
                 logs -"
            ));
        }
    };
    let mut head = Vec::with_capacity(HEAD);
    (&mut plain)
        .take(HEAD as u64)
        .read_to_end(&mut head)
        .map_err(failed)?;
    if let Some(why) = damage.why().filter(|_| head.is_empty()) {
        return Err(format!("{path} is damaged: {why}"));
    }
    let mut read = head.clone();
    if head.len() == HEAD && memchr::memchr(b'\n', &head).is_none() {
        while read.len() < LONGEST && memchr::memchr(b'\n', &read[head.len()..]).is_none() {
            let (at, most) = (read.len(), (LONGEST - read.len()).min(BLOCK));
            (&mut plain)
                .take(most as u64)
                .read_to_end(&mut read)
                .map_err(failed)?;
            if read.len() == at {
                break;
            }
        }
        let end = memchr::memchr(b'\n', &read[head.len()..]).map(|n| head.len() + n);
        let next = &read[end.unwrap_or(read.len())..];
        head.extend_from_slice(&next[..next.len().min(HEAD)]);
    }
    let whole = io::Cursor::new(read).chain(plain);
    Ok((Opened::Stream(Box::new(whole), damage), head))
}

/// Where the line that goes on at `from` ends, before its line break; where it is too long, somewhere.
fn line_end(file: &File, from: u64) -> io::Result<u64> {
    let (mut at, mut bytes) = (from, vec![0; BLOCK]);
    while at < LONGEST as u64 {
        let n = read_at(file, &mut bytes, at)?;
        match memchr::memchr(b'\n', &bytes[..n]) {
            Some(end) => return Ok(at + end as u64),
            None if n < bytes.len() => return Ok(at + n as u64),
            None => at += n as u64,
        }
    }
    Ok(at)
}

fn packed(head: &[u8]) -> Option<&'static str> {
    match head {
        [0x1f, 0x8b, ..] => Some("gzip"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some("zstd"),
        [0xfd, b'7', b'z', b'X', b'Z', ..] => Some("xz"),
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some("bzip2"),
        _ => None,
    }
}

/// What of a file is to be read: its entries begin in `skip..end`, and may go on up to `len`.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub skip: u64,
    pub end: u64,
    pub len: u64,
    /// It begins within a line, which is read elsewhere.
    pub within: bool,
    pub format: Format,
    pub sizes: Sizes,
}

impl Span {
    /// Where the `number`-th block ends.
    pub fn upto(&self, number: u64) -> u64 {
        (self.skip + (number + 1) * self.sizes.block as u64).min(self.end)
    }
}

/// The `number`-th block of a span of a file, but for what its first lines belong to (`seam`). It is
/// read into `bytes`, those of an earlier block: new memory for each would be as much work as the
/// reading.
pub fn block_of(file: &File, span: Span, number: u64, mut bytes: Vec<u8>) -> io::Result<Block> {
    let (skip, len) = (span.skip, span.len);
    let Sizes { block, ahead } = span.sizes;
    let start = skip + number * block as u64;
    let end = span.upto(number);
    // The byte before says whether a line begins at the start.
    let from = start - u64::from(start > skip);
    bytes.resize(((end + ahead as u64).min(len) - from) as usize, 0);
    let read = read_at(file, &mut bytes, from)?;
    bytes.truncate(read);
    let own_end = ((end - from) as usize).min(bytes.len());
    let begin = if from == start && !span.within {
        0
    } else {
        memchr::memchr(b'\n', &bytes[..own_end]).map_or(own_end, |at| at + 1)
    };
    // A line, or an entry of several, that goes on beyond what was read.
    while from + (bytes.len() as u64) < len
        && bytes.len() < LONGEST + own_end
        && !whole(span.format, &bytes, begin, own_end)
    {
        let at = bytes.len();
        let more = (len - from - at as u64).min(BLOCK as u64);
        bytes.resize(at + more as usize, 0);
        let more = read_at(file, &mut bytes[at..], from + at as u64)?;
        bytes.truncate(at + more);
        if more == 0 {
            break;
        }
    }
    Ok(Block {
        end: own_end.max(begin),
        bytes,
        begin,
        number,
        before: Before::default(),
        ahead,
    })
}

fn read_at(file: &File, into: &mut [u8], from: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < into.len() {
        match file.read_at(&mut into[filled..], from + filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}

/// Cuts a stream into blocks.
pub struct Cutter<R> {
    from: R,
    format: Format,
    sizes: Sizes,
    held: Vec<u8>,
    number: u64,
    ended: bool,
    /// What is held goes on with a line that was too long.
    within: bool,
    /// How much of what is held was given back.
    given: usize,
    before: Before,
    /// Bytes that were read, unpacked.
    pub bytes: u64,
    /// The bytes of a block that was read, into which one of the next may be read.
    pub spare: Vec<u8>,
}

impl<R: Read> Cutter<R> {
    pub fn new(mut from: R, skip: u64, format: Format, sizes: Sizes) -> io::Result<Cutter<R>> {
        io::copy(&mut (&mut from).take(skip), &mut io::sink())?;
        Ok(Cutter {
            from,
            format,
            sizes,
            held: Vec::new(),
            number: 0,
            ended: false,
            within: false,
            given: 0,
            before: Before::default(),
            bytes: 0,
            spare: Vec::new(),
        })
    }

    /// The next block; None at the end.
    pub fn cut(&mut self) -> io::Result<Option<Block>> {
        let Sizes { block, ahead } = self.sizes;
        let given = std::mem::take(&mut self.given);
        let mut wanted = given + block + ahead;
        loop {
            self.fill(wanted)?;
            if self.ended || self.held.len() >= given + LONGEST + ahead {
                break;
            }
            // The block ends after a line; one that is longer than it is read to its end.
            if memchr::memrchr(b'\n', &self.held[given..self.held.len() - ahead]).is_some() {
                break;
            }
            wanted = self.held.len() + block;
        }
        if self.held.is_empty() {
            return Ok(None);
        }
        let mut end = if self.ended && self.held.len() <= given + block + ahead {
            self.held.len()
        } else {
            // Behind what was given back: else the same block would come again.
            let own = self.held.len() - ahead;
            let last = memchr::memrchr(b'\n', &self.held[given..own]);
            last.map_or(own, |at| given + at + 1)
        };
        // A line is not parted, though it goes on beyond: whoever reads on has it whole.
        if self.held[end - 1] != b'\n' {
            match memchr::memchr(b'\n', &self.held[end..]) {
                Some(n) => end += n + 1,
                None if self.ended => end = self.held.len(),
                None => {}
            }
        }
        let begin = if self.within {
            memchr::memchr(b'\n', &self.held[..end]).map_or(end, |at| at + 1)
        } else {
            0
        };
        // The last entry is seen to its end; if that is the end of all, nothing is left for another block.
        while self.held[end - 1] == b'\n' {
            if whole(self.format, &self.held, begin, end) {
                if !goes_before(self.format, &self.held[begin..end]) {
                    break;
                }
                end = behind(&self.held, end);
            } else if self.ended {
                end = self.held.len();
                break;
            } else if self.held.len() >= end + LONGEST {
                break;
            } else {
                self.fill(self.held.len() + BLOCK)?;
            }
        }
        self.within = end > 0 && self.held[end - 1] != b'\n';
        let before = after(self.format, &self.held, begin, end, &self.before);
        let mut rest = std::mem::take(&mut self.spare);
        rest.clear();
        rest.extend_from_slice(&self.held[end..]);
        let bytes = std::mem::replace(&mut self.held, rest);
        self.number += 1;
        Ok(Some(Block {
            bytes,
            begin,
            end,
            number: self.number - 1,
            before: std::mem::replace(&mut self.before, before),
            ahead,
        }))
    }

    /// Takes back the end of the last block, which its reader left: the next one begins with it.
    pub fn give_back(&mut self, left: &[u8]) {
        if !left.is_empty() {
            self.held.splice(..0, left.iter().copied());
            (self.given, self.within) = (left.len(), false);
        }
    }

    fn fill(&mut self, wanted: usize) -> io::Result<()> {
        let missing = wanted.saturating_sub(self.held.len()) as u64;
        if missing > 0 && !self.ended {
            let read = (&mut self.from).take(missing).read_to_end(&mut self.held)? as u64;
            self.bytes += read;
            self.ended = read < missing;
        }
        Ok(())
    }
}

/// The lines of a block that begin in it, and those ahead.
pub struct Lines<'a> {
    bytes: &'a [u8],
    pub at: usize,
}

impl<'a> Lines<'a> {
    pub fn new(block: &'a Block) -> Lines<'a> {
        Lines {
            bytes: &block.bytes,
            at: block.begin,
        }
    }

    /// Where the line begins, and the line without its end.
    #[inline]
    pub fn step(&mut self) -> Option<(usize, &'a [u8])> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let start = self.at;
        let rest = &self.bytes[start..];
        let line = match memchr::memchr(b'\n', rest) {
            Some(n) => {
                self.at += n + 1;
                &rest[..n]
            }
            None => {
                self.at = self.bytes.len();
                rest
            }
        };
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        Some((start, &line[..line.len().min(LONGEST)]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_of(len: u64) -> Span {
        Span {
            skip: 0,
            end: len,
            len,
            within: false,
            format: Format::Access,
            sizes: Sizes::default(),
        }
    }

    fn cutter(text: &[u8]) -> Cutter<&[u8]> {
        Cutter::new(text, 0, Format::Access, Sizes::default()).unwrap()
    }

    fn owned(block: &Block) -> Vec<Vec<u8>> {
        let mut lines = Lines::new(block);
        let mut found = Vec::new();
        while lines.at < block.end {
            let Some((_, line)) = lines.step() else { break };
            found.push(line.to_vec());
        }
        found
    }

    fn text() -> Vec<u8> {
        let mut text = Vec::new();
        for i in 0..400_000u64 {
            let long = if i == 250_000 {
                9 << 20
            } else {
                i as usize % 90
            };
            text.extend_from_slice(i.to_string().as_bytes());
            text.extend(std::iter::repeat_n(b'x', long));
            text.push(b'\n');
        }
        text.extend_from_slice(b"half");
        text
    }

    #[test]
    fn a_line_that_is_too_long_is_cut_and_the_rest_is_no_line() {
        for long in [LONGEST - 10, LONGEST + 10, LONGEST + 2 * BLOCK] {
            let mut text = b"first\nsecond ".to_vec();
            text.extend(std::iter::repeat_n(b'x', long));
            text.extend_from_slice(b"\nthird\n");
            text.extend(std::iter::repeat_n(b'y', BLOCK));
            text.extend_from_slice(b"\nlast\n");
            let path =
                std::env::temp_dir().join(format!("searchbench-long-{}", std::process::id()));
            std::fs::write(&path, &text).unwrap();
            let file = File::open(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
            let len = text.len() as u64;
            let span = all_of(len);
            let in_file: Vec<usize> = (0..len.div_ceil(BLOCK as u64))
                .flat_map(|n| owned(&block_of(&file, span, n, Vec::new()).unwrap()))
                .map(|line| line.len())
                .collect();
            let mut cutter = cutter(&text);
            let mut in_stream = Vec::new();
            while let Some(block) = cutter.cut().unwrap() {
                in_stream.extend(owned(&block).iter().map(Vec::len));
            }
            assert_eq!(in_file, [5, (long + 7).min(LONGEST), 5, BLOCK, 4], "{long}");
            assert_eq!(in_stream, in_file, "{long}");
        }
    }

    #[test]
    fn each_line_is_in_one_block_of_a_file_or_a_stream() {
        let text = text();
        let lines: Vec<Vec<u8>> = text.split(|&b| b == b'\n').map(<[u8]>::to_vec).collect();
        let path = std::env::temp_dir().join(format!("searchbench-logs-{}", std::process::id()));
        std::fs::write(&path, &text).unwrap();
        let file = File::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let len = text.len() as u64;
        let mut found = Vec::new();
        let mut bytes = Vec::new();
        let span = all_of(len);
        for number in 0..len.div_ceil(BLOCK as u64) {
            let block = block_of(&file, span, number, bytes).unwrap();
            found.extend(owned(&block));
            bytes = block.bytes;
        }
        assert!(found == lines);
        let mut cutter = cutter(&text);
        let mut found = Vec::new();
        while let Some(block) = cutter.cut().unwrap() {
            found.extend(owned(&block));
        }
        assert!(found == lines);
        assert_eq!(cutter.bytes, len);
    }
}
