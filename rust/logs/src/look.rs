//! What a source is, before it is read: its format, and how much of it there is to read.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::detect::detect;
use crate::format::{Format, hold};
use crate::run::Source;
use crate::source::{LONGEST, Opened, open};

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
    Ok((opened, format?))
}

/// What a source is; nothing is counted.
pub fn look(source: &Source, keep_tail: bool) -> Looked {
    match opened(source) {
        Ok((opened, format)) => Looked {
            format: Some(format),
            refused: String::new(),
            len: match opened {
                Opened::File(file, now) => Some(end_of(&file, now, keep_tail)),
                Opened::Stream(_) => None,
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

/// Where the next reading of a file begins, and what stands from there up to `len`, its last line
/// break: an entry that may go on. Nothing before `skip` is looked at.
pub fn open_from(file: &File, format: Format, skip: u64, len: u64) -> (u64, Vec<u8>) {
    let mut wanted = 64 << 10;
    loop {
        let from = len.saturating_sub(wanted).max(skip);
        let mut bytes = vec![0; len.saturating_sub(from) as usize];
        if file.read_exact_at(&mut bytes, from).is_err() {
            return (len, Vec::new());
        }
        if let Some(at) = hold(format, &bytes, from == skip) {
            return (from + at as u64, bytes.split_off(at));
        }
        if wanted > LONGEST as u64 {
            return (len, Vec::new());
        }
        wanted *= 8;
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
