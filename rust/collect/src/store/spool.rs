//! Buffered files: what a primary did not take, in files of records, sent again in their order.
//!
//! A record is a length of four bytes, little-endian, and that many bytes; where a spool has
//! several categories, a record `CATEGORY\n` stands before each. This is scribed's own form, but an
//! empty message is kept too. Each start begins a new file: a record that a crash left half is the
//! end of its file, and nothing follows it.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::names::{make_folder, numbers, suffixed, sync_folder};
use crate::batch::{Batch, Name};

pub struct Spool {
    folder: PathBuf,
    base: String,
    category: Name,
    shared: bool,
    max_bytes: u64,
    fsync: bool,
    /// The numbers of its files, the oldest first; None before the folder was looked at.
    numbers: Option<VecDeque<u64>>,
    /// What is written now, the last of them, and its bytes that are kept.
    open: Option<(File, u64)>,
    buffer: Vec<u8>,
}

/// A buffered file, read.
pub struct Spooled {
    pub number: u64,
    pub messages: Batch,
    /// Bytes at its end that are no whole record.
    pub torn: usize,
}

impl Spool {
    pub fn new(
        folder: PathBuf,
        base: String,
        category: &str,
        shared: bool,
        max_bytes: u64,
        fsync: bool,
    ) -> Spool {
        let category = Arc::from(category.as_bytes());
        Spool {
            folder,
            base,
            category,
            shared,
            max_bytes,
            fsync,
            numbers: None,
            open: None,
            buffer: Vec::new(),
        }
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(suffixed(&self.base, number))
    }

    fn said(&self, error: &io::Error) -> String {
        format!("{}: {error}", self.folder.join(&self.base).display())
    }

    /// Its files. The folder is read once: an hour's files may be very many.
    fn known(&mut self) -> io::Result<&mut VecDeque<u64>> {
        if self.numbers.is_none() {
            self.numbers = Some(numbers(&self.folder, &self.base)?.into());
        }
        Ok(self.numbers.as_mut().expect("just read"))
    }

    /// Appends these messages; after a failure those that it has not taken are left in `batch`.
    pub fn append(&mut self, batch: &mut Batch) -> Result<(), String> {
        let mut kept = 0;
        let done = self.append_all(batch, &mut kept);
        batch.drop_front(kept);
        done.map_err(|error| self.said(&error))
    }

    fn append_all(&mut self, batch: &Batch, kept: &mut usize) -> io::Result<()> {
        const WRITE_BYTES: usize = 4 << 20;
        while *kept < batch.len() {
            if self.open.is_none() {
                self.open = Some((self.next()?, 0));
            }
            let (file, length) = self.open.as_mut().expect("just opened");
            let most = if self.max_bytes == 0 {
                u64::MAX
            } else {
                self.max_bytes
            };
            let room = most.saturating_sub(*length);
            self.buffer.clear();
            let mut count = 0;
            for (name, message) in batch.from(*kept) {
                put_record(&mut self.buffer, self.shared.then_some(name), message);
                count += 1;
                if self.buffer.len() as u64 >= room || self.buffer.len() >= WRITE_BYTES {
                    break;
                }
            }
            let written = file.write_all(&self.buffer);
            let written = written.and_then(|()| if self.fsync { file.sync_data() } else { Ok(()) });
            if let Err(error) = written {
                // A file whose end is unknown is written no further.
                let _ = file.set_len(*length);
                self.open = None;
                return Err(error);
            }
            *length += self.buffer.len() as u64;
            *kept += count;
            if *length >= most {
                self.open = None;
            }
        }
        Ok(())
    }

    fn next(&mut self) -> io::Result<File> {
        make_folder(&self.folder, self.fsync)?;
        let number = match self.known()?.back().copied() {
            // A full disk may have left an empty one.
            Some(newest) if fs::metadata(self.path(newest)).is_ok_and(|file| file.len() == 0) => {
                newest
            }
            Some(newest) => newest + 1,
            None => 0,
        };
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.path(number))?;
        let known = self.known()?;
        if known.back() != Some(&number) {
            known.push_back(number);
        }
        if self.fsync {
            sync_folder(&self.folder)?;
        }
        Ok(file)
    }

    /// The files, the oldest first.
    pub fn files(&self) -> Result<Vec<PathBuf>, String> {
        let all = numbers(&self.folder, &self.base).map_err(|error| self.said(&error))?;
        Ok(all.into_iter().map(|number| self.path(number)).collect())
    }

    /// Is there nothing to send?
    pub fn is_empty(&mut self) -> Result<bool, String> {
        let empty = self.known().map(|numbers| numbers.is_empty());
        empty.map_err(|error| self.said(&error))
    }

    /// The oldest file. What is appended later goes to another.
    pub fn oldest(&mut self) -> Result<Option<Spooled>, String> {
        self.read_oldest().map_err(|error| self.said(&error))
    }

    fn read_oldest(&mut self) -> io::Result<Option<Spooled>> {
        while let Some(number) = self.known()?.front().copied() {
            if self.known()?.len() == 1 {
                self.open = None;
            }
            let bytes = match fs::read(self.path(number)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    // Somebody removed it.
                    self.known()?.pop_front();
                    continue;
                }
                read => read?,
            };
            let (messages, whole) = read_records(&bytes, (!self.shared).then_some(&self.category));
            let torn = bytes.len() - whole;
            if torn > 0 {
                self.set_aside(number, &bytes[whole..])?;
            }
            return Ok(Some(Spooled {
                number,
                messages,
                torn,
            }));
        }
        Ok(None)
    }

    /// What cannot be read is not deleted with the rest.
    fn set_aside(&self, number: u64, bytes: &[u8]) -> io::Result<()> {
        let mut beside = self.path(number).into_os_string();
        beside.push(".torn");
        fs::write(beside, bytes)
    }

    /// The oldest file has been sent.
    pub fn remove(&mut self, number: u64) -> Result<(), String> {
        fs::remove_file(self.path(number)).map_err(|error| self.said(&error))?;
        if let Some(numbers) = &mut self.numbers {
            numbers.pop_front_if(|oldest| *oldest == number);
        }
        Ok(())
    }

    /// Puts the rest of a file in its place; after a crash there is the one or the other.
    pub fn replace(&self, number: u64, rest: &Batch) -> Result<(), String> {
        let mut bytes = Vec::new();
        for (name, message) in rest.iter() {
            put_record(&mut bytes, self.shared.then_some(name), message);
        }
        let mut beside = self.path(number).into_os_string();
        beside.push(".new");
        let beside = PathBuf::from(beside);
        let put = |beside: &Path| {
            let mut file = File::create(beside)?;
            file.write_all(&bytes)?;
            file.sync_data()?;
            fs::rename(beside, self.path(number))
        };
        put(&beside).map_err(|error| self.said(&error))
    }

    pub fn close(&mut self) {
        if let Some((file, _)) = self.open.take() {
            let _ = file.sync_data();
        }
    }
}

fn put_record(out: &mut Vec<u8>, name: Option<&Name>, message: &[u8]) {
    if let Some(name) = name {
        out.extend_from_slice(&(name.len() as u32 + 1).to_le_bytes());
        out.extend_from_slice(name);
        out.push(b'\n');
    }
    out.extend_from_slice(&(message.len() as u32).to_le_bytes());
    out.extend_from_slice(message);
}

/// The messages of a buffered file, and how many of its bytes are whole records. `category`: that
/// of all of them; None where each has its own before it.
pub fn read_records(bytes: &[u8], category: Option<&Name>) -> (Batch, usize) {
    let mut batch = Batch::default();
    let (mut whole, mut at) = (0, 0);
    let mut last: Option<Name> = None;
    while let Some((first, after)) = record(bytes, at) {
        let (message, after) = match category {
            Some(name) => {
                batch.push(name, first);
                whole = after;
                at = after;
                continue;
            }
            None => match record(bytes, after) {
                Some((message, after)) => (message, after),
                None => break,
            },
        };
        let named = first.strip_suffix(b"\n").unwrap_or(first);
        let name = match &last {
            Some(name) if **name == *named => name.clone(),
            _ => Arc::from(named),
        };
        batch.push(&name, message);
        last = Some(name);
        (whole, at) = (after, after);
    }
    (batch, whole)
}

fn record(bytes: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let length = bytes.get(at..at + 4)?;
    let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
    let end = (at + 4).checked_add(length)?;
    Some((bytes.get(at + 4..end)?, end))
}
