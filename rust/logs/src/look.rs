//! What a source is, before it is read: its format, and how much of it there is to read.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::clock::TWICE;
use crate::detect::detect;
use crate::format::{
    Format, Out, Seen, Settings, begins_slow, hold, looks, looks_text, reader, waits,
};
use crate::queries::{Local, Shared};
use crate::run::Source;
use crate::source::{Block, LONGEST, Opened, open};
use crate::tally::Tally;

/// What a source is, before it is read.
pub struct Looked {
    pub format: Option<Format>,
    /// Why it cannot be read, where there is no format.
    pub refused: String,
    /// Bytes that are to be read, with `skip`, of a file that can be read anywhere.
    pub len: Option<u64>,
}

/// Opens a source, and says its format; Err with a sentence where it cannot be read.
pub fn opened(source: &Source) -> Result<(Opened, Format), String> {
    let (opened, format, _) = opened_with_head(source)?;
    Ok((opened, format))
}

fn opened_with_head(source: &Source) -> Result<(Opened, Format, Vec<u8>), String> {
    let (opened, head) = open(&source.path)?;
    let format = if source.format.is_empty() {
        detect(&head, &source.path)
    } else {
        Format::named(&source.format).ok_or_else(|| {
            let names: Vec<&str> = Format::ALL.iter().map(|f| f.name()).collect();
            format!(
                "{:?} is no format; there are {}",
                source.format,
                names.join(", ")
            )
        })
    };
    Ok((opened, format?, head))
}

/// What a source is; nothing is counted.
pub fn look(source: &Source, keep_tail: bool) -> Looked {
    match opened(source) {
        Ok((opened, format)) => Looked {
            format: Some(format),
            refused: String::new(),
            len: match opened {
                Opened::File(file, now) => Some(end_of(&file, now, keep_tail)),
                Opened::Stream(..) => None,
            },
        },
        Err(refused) => Looked {
            format: None,
            refused,
            len: None,
        },
    }
}

/// Where reading a file ends: its length, or its last line break.
pub fn end_of(file: &File, now: u64, keep_tail: bool) -> u64 {
    if keep_tail {
        whole_lines(file, now)
    } else {
        now
    }
}

/// Where a reading of a file ends, if more may follow.
pub struct Held {
    /// Where the next one begins.
    pub end: u64,
    /// How much of what stands before the file is read.
    pub begun: usize,
    /// What stands in the file from `end` up to its last line break: an entry that may go on.
    pub text: Vec<u8>,
}

/// Where a reading of a file from `skip` to `len`, its last line break, ends. `before`: what was
/// handed over by the file before it.
pub fn open_from(file: &File, format: Format, skip: u64, len: u64, before: &[u8]) -> Held {
    let mut wanted = 64 << 10;
    let all = || Held {
        end: len.max(skip),
        begun: before.len(),
        text: Vec::new(),
    };
    loop {
        let from = len.saturating_sub(wanted).max(skip);
        let begins = from == skip;
        let first = if begins { before } else { b"" };
        let mut bytes = first.to_vec();
        bytes.resize(first.len() + len.saturating_sub(from) as usize, 0);
        if file.read_exact_at(&mut bytes[first.len()..], from).is_err() {
            return all();
        }
        // Of a line that began before there may be no end yet.
        let whole = if bytes.len() > first.len() {
            bytes.len()
        } else {
            memchr::memrchr(b'\n', &bytes).map_or(0, |at| at + 1)
        };
        if let Some(at) = hold(format, &bytes[..whole], begins) {
            if at < first.len() {
                return Held {
                    end: skip,
                    begun: at,
                    text: bytes.split_off(first.len()),
                };
            }
            return Held {
                end: from + (at - first.len()) as u64,
                begun: before.len(),
                text: bytes.split_off(at),
            };
        }
        if wanted > LONGEST as u64 {
            return all();
        }
        wanted *= 8;
    }
}

/// The ends of a source, by which it is known whether it goes on with another.
#[derive(Default)]
pub struct AtEnds {
    /// Its format; None where it cannot be read.
    pub format: Option<Format>,
    /// The first entry at its beginning.
    pub first_ns: Option<i64>,
    /// Its first line begins an entry.
    pub begins: bool,
    /// Its first stamp is in an hour that passed twice.
    pub twice: bool,
    /// A line at its end waits for another, as far as that can be seen without unpacking it.
    pub waits: bool,
}

/// Lines at the beginning that are looked at for an entry.
const FIRST_LINES: usize = 200;

/// Whether the first line may be the end of one: it has nothing but its end; or its format reads any
/// prefix, but this one has no stamp, and the lines below have one, or there are none.
fn is_rest(format: Format, head: &[u8]) -> bool {
    if head.starts_with(b"\n") || head.starts_with(b"\r\n") {
        return true;
    }
    let begun = |line: &&[u8]| !line.is_empty() && !line.starts_with(b"\t");
    let mut lines = head.split(|&b| b == b'\n').filter(begun);
    if format != Format::PostgresText || lines.next().is_none_or(looks_text) {
        return false;
    }
    let mut below = lines.take(FIRST_LINES).peekable();
    below.peek().is_none() || below.any(looks_text)
}

/// Whether a line begins an entry, where a line that was cut may go on. `before`: the part of that
/// one; a part of a line may read as one, as `0.0.1 - - [..` does.
fn is_begun(format: Format, line: &[u8], before: &[u8]) -> bool {
    let label = |of: &[u8]| of.split(|&b| b == b':').next().map(<[u8]>::to_vec);
    match format {
        Format::MysqlSlow => begins_slow(line),
        Format::Ltsv => label(line) == label(before),
        Format::Csv | Format::Pattern => true,
        _ => looks(line) == Some(format),
    }
}

/// Looks at the beginning and at the end of a source. `before`: a line that was cut at the end of the
/// file before it, as far as it is there.
pub fn look_at_ends(source: &Source, settings: &Settings, before: &[u8]) -> AtEnds {
    let Ok((opened, format, head)) = opened_with_head(source) else {
        return AtEnds::default();
    };
    let settings = settings.of_server(source.server.as_bytes());
    let (mut local, shared) = (Local::default(), Shared::new(0));
    let upto = |lines: usize| {
        let end = memchr::memchr_iter(b'\n', &head).nth(lines - 1);
        &head[..end.map_or(head.len(), |at| at + 1)]
    };
    let mut read = |bytes: &[u8]| {
        let bytes = bytes.to_vec();
        let mut tally = Tally::keeping();
        let mut out = Out {
            tally: &mut tally,
            queries: &mut local,
            shared: &shared,
            source: b"",
            seen: Seen::default(),
        };
        let mut reader = reader(format, &settings);
        reader.read(&Block::all(bytes), &mut out);
        reader.end(&mut out);
        (out.seen, !reader.clock().is_sure())
    };
    let first = upto(1);
    let (first_line, _) = read(first);
    let mut bad = first_line.examples.iter().any(|&(line, ..)| line == 1) || is_rest(format, &head);
    bad |= format == Format::MysqlSlow && !begins_slow(first);
    if !before.is_empty() && !bad {
        let line = first.strip_suffix(b"\n").unwrap_or(first);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let goes_on = read(before).0.unread > 0 && read(&[before, first].concat()).0.unread == 0;
        bad = goes_on || !is_begun(format, line, before);
    }
    // Of a line that was cut the stamp may be, at either end.
    let lines = upto(FIRST_LINES);
    let whole = memchr::memrchr(b'\n', lines).map_or(0, |at| at + 1);
    let begin = if bad { first.len().min(whole) } else { 0 };
    let (first_lines, _) = read(&lines[begin..whole]);
    let twice = first_lines.notes.iter().any(|&(what, _)| what == TWICE);
    let waits = match opened {
        Opened::File(file, now) => {
            let len = whole_lines(&file, now);
            let from = len.saturating_sub(256 << 10);
            let mut bytes = vec![0; (len - from) as usize];
            file.read_exact_at(&mut bytes, from).is_ok() && waits(format, &bytes)
        }
        Opened::Stream(..) => false,
    };
    AtEnds {
        format: Some(format),
        first_ns: first_lines.first_ns,
        begins: !bad,
        twice,
        waits,
    }
}

/// How long a file is up to its last line break.
fn whole_lines(file: &File, len: u64) -> u64 {
    let mut end = len;
    let mut buffer = vec![0; 64 << 10];
    while end > 0 {
        let from = end.saturating_sub(buffer.len() as u64);
        let part = &mut buffer[..(end - from) as usize];
        if file.read_exact_at(part, from).is_err() {
            return len;
        }
        if let Some(at) = memchr::memrchr(b'\n', part) {
            return from + at as u64 + 1;
        }
        end = from;
    }
    0
}
