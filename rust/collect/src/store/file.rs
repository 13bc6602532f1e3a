//! Stores `file` and `thriftfile`: messages into numbered files, one after another.
//!
//! What was not kept is not left in the file either: after a write that failed (a full disk) the
//! file is cut back to what was kept, so that a message is in it whole and once, or not at all. Stores of
//! one file take turns; where another writes into it, only the write that failed is cut off: what else
//! would go is the other's, too.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::time::Instant;

use super::series::{Open, Series};
use super::{Purpose, Store, event};
use crate::batch::Batch;
use crate::conf::{Events, Files};
use crate::counters::add;

/// How a message is written.
#[derive(Clone)]
pub enum Form {
    Plain,
    Events(Events),
}

pub struct FileStore {
    series: Series,
    form: Form,
    purpose: Purpose,
    open: Option<Open>,
    trouble: Option<String>,
    buffer: Vec<u8>,
}

impl FileStore {
    pub fn new(conf: &Files, purpose: &Purpose, form: Form) -> FileStore {
        let events = matches!(form, Form::Events(_));
        FileStore {
            series: Series::new(conf, purpose, events),
            form,
            purpose: purpose.clone(),
            open: None,
            trouble: None,
            buffer: Vec::new(),
        }
    }

    fn opened(&mut self) -> Result<&mut Open, String> {
        if self.open.is_none() {
            let place = self.series.folder.join(&self.series.base);
            let opened = self.series.open_next(false);
            let opened = opened.map_err(|error| format!("{}: {error}", place.display()))?;
            self.open = Some(opened);
        }
        Ok(self.open.as_mut().expect("just opened"))
    }

    /// Ends the file and opens the one after it.
    fn rotate(&mut self) -> Result<(), String> {
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        let next = self.series.open_next(true);
        let next = next.map_err(|error| format!("{}: {error}", self.series.folder.display()))?;
        let ended = self.series.end(open, Some(&next.path));
        self.open = Some(next);
        ended.map_err(|error| format!("{}: {error}", self.series.folder.display()))
    }

    /// Appends messages from `from` on to the buffer, up to one write; where they end.
    fn format(&mut self, batch: &Batch, from: usize, offset: u64) -> Result<usize, String> {
        let (conf, buffer) = (&self.series.conf, &mut self.buffer);
        let chunk = match conf.chunk_bytes {
            0 => event::CHUNK,
            bytes => bytes,
        };
        buffer.clear();
        let mut next = from;
        for (name, message) in batch.from(from) {
            match &self.form {
                Form::Events(events) if events.simple => buffer.extend_from_slice(message),
                Form::Events(_) => event::put(buffer, offset, message, chunk)?,
                Form::Plain => {
                    let category = conf.write_category.then_some(&name[..]);
                    let around = category.map_or(0, |name| name.len() + 1);
                    let length = around + message.len() + usize::from(conf.add_newlines);
                    pad(buffer, offset, length, conf.chunk_bytes);
                    if let Some(name) = category {
                        buffer.extend_from_slice(name);
                        buffer.push(b'\n');
                    }
                    buffer.extend_from_slice(message);
                    if conf.add_newlines {
                        buffer.push(b'\n');
                    }
                }
            }
            next += 1;
            if buffer.len() >= conf.max_write_bytes {
                break;
            }
        }
        Ok(next)
    }

    /// Messages are written as they lie in a batch.
    fn bare(&self) -> bool {
        let conf = &self.series.conf;
        let added = conf.write_category || conf.add_newlines || conf.chunk_bytes > 0;
        matches!(self.form, Form::Plain) && !added
    }

    /// Writes from `from` on, up to one write; where it ended.
    fn write_some(&mut self, batch: &Batch, from: usize) -> Result<usize, String> {
        let offset = self.opened()?.kept;
        let (next, slice) = if self.bare() {
            let start = if from == 0 { 0 } else { batch.end(from - 1) };
            let most = start + self.series.conf.max_write_bytes;
            let mut next = from + 1;
            while next < batch.len() && batch.end(next) <= most {
                next += 1;
            }
            (next, &batch.bytes()[start..batch.end(next - 1)])
        } else {
            (self.format(batch, from, offset)?, self.buffer.as_slice())
        };
        let open = self.open.as_mut().expect("opened above");
        let turn = open.turn.clone();
        let taken = turn.lock();
        look_for_others(open);
        let written = open.file.write_all(slice);
        // What was written of it in part is taken back.
        let cut = written.is_ok() || open.file.set_len(open.kept).is_ok();
        drop(taken);
        if let Err(error) = written {
            let why = format!("{}: {error}", open.path.display());
            if !cut {
                self.open = None;
            }
            return Err(why);
        }
        open.kept += slice.len() as u64;
        open.events += (next - from) as u64;
        open.unsynced = true;
        Ok(next)
    }

    fn full(&self) -> bool {
        let most = self.series.conf.max_bytes;
        most > 0 && self.open.as_ref().is_some_and(|open| open.kept > most)
    }

    /// To disk; on failure nothing since the last time counts as kept, and the file is cut there.
    fn sync(&mut self, safe: u64) -> Result<(), String> {
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        if let Err(error) = open.file.sync_data() {
            let why = format!("{}: {error}", open.path.display());
            if !open.shared {
                let _ = open.file.set_len(safe);
            }
            self.open = None;
            return Err(why);
        }
        open.unsynced = false;
        open.synced = Instant::now();
        Ok(())
    }

    /// With `fsync` a client hears TRY_LATER and sends all again, so all of it goes.
    fn take_back(&mut self, safe: u64, events: usize) {
        if let Some(open) = &mut self.open {
            if open.shared {
                return;
            }
            if open.file.set_len(safe).is_ok() {
                open.kept = safe;
                open.events -= events as u64;
            } else {
                self.open = None;
            }
        }
    }

    fn write_all(&mut self, batch: &Batch, kept: &mut usize) -> Result<(), String> {
        let mut safe = self.opened()?.kept;
        let mut next = 0;
        while next < batch.len() {
            match self.write_some(batch, next) {
                Ok(written) => next = written,
                Err(why) => {
                    if self.purpose.fsync {
                        self.take_back(safe, next - *kept);
                    }
                    return Err(why);
                }
            }
            if !self.purpose.fsync {
                *kept = next;
            }
            if self.full() {
                if self.purpose.fsync {
                    self.sync(safe)?;
                    *kept = next;
                }
                self.rotate()?;
                safe = self.opened()?.kept;
            }
        }
        if self.purpose.fsync {
            self.sync(safe)?;
            *kept = next;
        }
        Ok(())
    }
}

impl Store for FileStore {
    fn keep(&mut self, batch: &mut Batch) -> Result<(), String> {
        let mut kept = 0;
        let done = self.write_all(batch, &mut kept);
        add(&self.purpose.counts.written, kept);
        batch.drop_front(kept);
        self.trouble = done.as_ref().err().cloned();
        done
    }

    fn ready(&mut self) -> Result<(), String> {
        let opened = self.opened().map(|_| ());
        self.trouble = opened.as_ref().err().cloned();
        opened
    }

    fn check(&mut self, _full: f64) {
        let Some(open) = &self.open else {
            return;
        };
        // Somebody renamed or removed it: scribed would write on into what is no longer there.
        let moved = fs::metadata(&open.path).map_or(true, |now| now.ino() != open.inode);
        let kept = open.kept;
        let flush = match &self.form {
            Form::Events(events) => open.unsynced && open.synced.elapsed() >= events.flush_every,
            Form::Plain => false,
        };
        let due = self.series.due(open);
        let done = if moved {
            self.open = None;
            self.opened().map(|_| ())
        } else if due {
            self.rotate()
        } else if flush {
            self.sync(kept)
        } else {
            return;
        };
        self.trouble = done.err();
    }

    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            let ended = self.series.end(open, None);
            self.trouble = ended.err().map(|error| error.to_string());
        }
    }

    fn trouble(&self) -> Option<String> {
        self.trouble.clone()
    }
}

/// Sees by its length whether somebody else writes into a file.
fn look_for_others(open: &mut Open) {
    let length = open.file.metadata().map_or(open.kept, |now| now.len());
    open.shared |= length != open.kept;
    open.kept = length;
}

/// NULs up to the next chunk where a record does not fit into the rest of this one.
fn pad(buffer: &mut Vec<u8>, offset: u64, length: usize, chunk: u64) {
    if chunk == 0 {
        return;
    }
    let used = (offset + buffer.len() as u64) % chunk;
    if used > 0 && used + length as u64 > chunk {
        buffer.resize(buffer.len() + (chunk - used) as usize, 0);
    }
}
