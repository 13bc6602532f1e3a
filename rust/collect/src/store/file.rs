//! Stores `file` and `thriftfile`: messages into numbered files, one after another.
//!
//! What was not kept is not left in the file either: after a write that failed (a full disk) the
//! file is cut back to what was kept, so that a message is in it whole and once, or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::names::{numbers, suffixed, sync_folder};
use super::{Purpose, Store, event};
use crate::batch::Batch;
use crate::conf::{Events, Files, Period};
use crate::counters::add;
use crate::sys::Local;

/// How a message is written.
#[derive(Clone)]
pub enum Form {
    Plain,
    Events(Events),
}

struct Open {
    file: File,
    path: PathBuf,
    /// Bytes of it that are kept.
    kept: u64,
    events: u64,
    inode: u64,
    /// When, by which of the periods.
    began: Local,
    since: Instant,
    synced: Instant,
    unsynced: bool,
}

pub struct FileStore {
    conf: Files,
    form: Form,
    folder: PathBuf,
    base: String,
    purpose: Purpose,
    open: Option<Open>,
    trouble: Option<String>,
    opened_before: bool,
    buffer: Vec<u8>,
}

impl FileStore {
    pub fn new(conf: &Files, purpose: &Purpose, form: Form) -> FileStore {
        let (folder, base) = purpose.place(conf);
        FileStore {
            conf: conf.clone(),
            form,
            folder,
            base,
            purpose: purpose.clone(),
            open: None,
            trouble: None,
            opened_before: false,
            buffer: Vec::new(),
        }
    }

    fn opened(&mut self) -> Result<&mut Open, String> {
        if self.open.is_none() {
            let place = self.folder.join(&self.base);
            let opened = self.open_next(false);
            let opened = opened.map_err(|error| format!("{}: {error}", place.display()))?;
            self.open = Some(opened);
        }
        Ok(self.open.as_mut().expect("just opened"))
    }

    /// The newest file of now to append to, or (`rotated`) the one after it.
    fn open_next(&mut self, rotated: bool) -> io::Result<Open> {
        let now = Local::now();
        let base = match self.conf.period {
            Period::Never => self.base.clone(),
            _ => format!("{}-{}", self.base, now.date()),
        };
        let deeper = !self.folder.is_dir();
        fs::create_dir_all(&self.folder)?;
        let first = if self.conf.period == Period::Hourly {
            now.hour.into()
        } else {
            0
        };
        let anew = matches!(self.form, Form::Events(_))
            || self.conf.rotate_on_reopen && !self.opened_before;
        let number = match numbers(&self.folder, &base)?.last() {
            None => first,
            Some(newest) if rotated => newest + 1,
            Some(newest) if anew && !self.is_empty(&base, *newest) => newest + 1,
            Some(newest) => *newest,
        };
        let path = self.folder.join(suffixed(&base, number));
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .read(true)
            .open(&path)?;
        let about = file.metadata()?;
        let mut kept = about.len();
        if self.conf.add_newlines && kept > 0 && matches!(self.form, Form::Plain) {
            kept += end_line(&mut file, kept)?;
        }
        if self.purpose.fsync {
            sync_folder(&self.folder)?;
            if deeper && let Some(above) = self.folder.parent() {
                sync_folder(above)?;
            }
        }
        self.link(&path)?;
        self.opened_before = true;
        let (instant, inode) = (Instant::now(), about.ino());
        Ok(Open {
            file,
            path,
            kept,
            events: 0,
            inode,
            began: now,
            since: instant,
            synced: instant,
            unsynced: false,
        })
    }

    /// A file that nothing came into is used again, lest a full disk leave one for each try.
    fn is_empty(&self, base: &str, number: u64) -> bool {
        let path = self.folder.join(suffixed(base, number));
        fs::metadata(path).is_ok_and(|about| about.len() == 0)
    }

    /// `BASE_current` leads to the file that is written. Made beside and renamed, so that it is
    /// never missing.
    fn link(&self, path: &Path) -> io::Result<()> {
        if !self.conf.create_symlink {
            return Ok(());
        }
        let base = self.conf.base_symlink.as_ref().unwrap_or(&self.base);
        let link = self.folder.join(format!("{base}_current"));
        let target = path.file_name().unwrap_or_default();
        if fs::read_link(&link).is_ok_and(|now| now.as_os_str() == target) {
            return Ok(());
        }
        let beside = self.folder.join(format!(".{base}_current.new"));
        let _ = fs::remove_file(&beside);
        symlink(target, &beside)?;
        fs::rename(&beside, &link)
    }

    /// Ends the file and opens the one after it.
    fn rotate(&mut self) -> Result<(), String> {
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        let next = self.open_next(true);
        let next = next.map_err(|error| format!("{}: {error}", self.folder.display()))?;
        let ended = self.end(open, Some(&next.path));
        self.open = Some(next);
        ended.map_err(|error| format!("{}: {error}", self.folder.display()))
    }

    /// The last words of a file.
    fn end(&self, mut open: Open, next: Option<&Path>) -> io::Result<()> {
        if let (Form::Plain, true, Some(next)) = (&self.form, self.conf.write_meta, next) {
            let newline = if self.conf.add_newlines { "\n" } else { "" };
            let meta = format!("scribe_meta<new_logfile>: {}{newline}", next.display());
            open.file.write_all(meta.as_bytes())?;
        }
        if open.unsynced || self.purpose.fsync {
            open.file.sync_data()?;
        }
        if self.conf.write_stats {
            let now = Local::now();
            let line = format!(
                "[{}-{:02}:{:02}] wrote <{}> bytes in <{}> events to file <{}>\n",
                now.date(),
                now.hour,
                now.minute,
                open.kept,
                open.events,
                open.path.display()
            );
            let stats = self.folder.join("scribe_stats");
            OpenOptions::new()
                .create(true)
                .append(true)
                .open(stats)?
                .write_all(line.as_bytes())?;
        }
        Ok(())
    }

    fn due(&self, open: &Open) -> bool {
        let now = Local::now();
        let began = open.began;
        let past = now.minute >= self.conf.rotate_minute;
        match self.conf.period {
            Period::Never => false,
            Period::Hourly => (now.hour != began.hour || now.date() != began.date()) && past,
            Period::Daily => {
                let hour = self.conf.rotate_hour;
                now.date() != began.date() && (now.hour > hour || now.hour == hour && past)
            }
            Period::Every(period) => open.since.elapsed() >= period,
        }
    }

    /// Appends messages from `from` on to the buffer, up to one write; where they end.
    fn format(&mut self, batch: &Batch, from: usize, offset: u64) -> Result<usize, String> {
        self.buffer.clear();
        let mut next = from;
        for (name, message) in batch.from(from) {
            match &self.form {
                Form::Plain => {
                    let category = if self.conf.write_category {
                        name.len() + 1
                    } else {
                        0
                    };
                    let length = category + message.len() + usize::from(self.conf.add_newlines);
                    pad(&mut self.buffer, offset, length, self.conf.chunk_bytes);
                    if self.conf.write_category {
                        self.buffer.extend_from_slice(name);
                        self.buffer.push(b'\n');
                    }
                    self.buffer.extend_from_slice(message);
                    if self.conf.add_newlines {
                        self.buffer.push(b'\n');
                    }
                }
                Form::Events(events) if events.simple => self.buffer.extend_from_slice(message),
                Form::Events(_) => {
                    let chunk = if self.conf.chunk_bytes > 0 {
                        self.conf.chunk_bytes
                    } else {
                        event::CHUNK
                    };
                    event::put(&mut self.buffer, offset, message, chunk)?;
                }
            }
            next += 1;
            if self.buffer.len() >= self.conf.max_write_bytes {
                break;
            }
        }
        Ok(next)
    }

    /// Messages are written as they lie in a batch.
    fn bare(&self) -> bool {
        matches!(&self.form, Form::Plain)
            && !(self.conf.write_category || self.conf.add_newlines || self.conf.chunk_bytes > 0)
    }

    /// Writes from `from` on, up to one write; where it ended.
    fn write_some(&mut self, batch: &Batch, from: usize) -> Result<usize, String> {
        let offset = self.opened()?.kept;
        let (next, slice) = if self.bare() {
            let start = if from == 0 { 0 } else { batch.end(from - 1) };
            let most = start + self.conf.max_write_bytes;
            let mut next = from + 1;
            while next < batch.len() && batch.end(next) <= most {
                next += 1;
            }
            (next, &batch.bytes()[start..batch.end(next - 1)])
        } else {
            (self.format(batch, from, offset)?, self.buffer.as_slice())
        };
        let open = self.open.as_mut().expect("opened above");
        if let Err(error) = open.file.write_all(slice) {
            let why = format!("{}: {error}", open.path.display());
            // What was written of it in part is taken back.
            if open.file.set_len(open.kept).is_err() {
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
        let open = self.open.as_ref();
        self.conf.max_bytes > 0 && open.is_some_and(|open| open.kept > self.conf.max_bytes)
    }

    /// To disk; on failure nothing since the last time counts as kept, and the file is cut there.
    fn sync(&mut self, safe: u64) -> Result<(), String> {
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        if let Err(error) = open.file.sync_data() {
            let why = format!("{}: {error}", open.path.display());
            let _ = open.file.set_len(safe);
            self.open = None;
            return Err(why);
        }
        open.unsynced = false;
        open.synced = Instant::now();
        Ok(())
    }

    fn write_all(&mut self, batch: &Batch, kept: &mut usize) -> Result<(), String> {
        let mut safe = self.opened()?.kept;
        let mut next = 0;
        while next < batch.len() {
            match self.write_some(batch, next) {
                Ok(written) => next = written,
                Err(why) => {
                    if self.purpose.fsync && self.open.is_some() {
                        self.sync(safe)?;
                        *kept = next;
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
        let (kept, flush) = (
            open.kept,
            match &self.form {
                Form::Events(events) => {
                    open.unsynced && open.synced.elapsed() >= events.flush_every
                }
                Form::Plain => false,
            },
        );
        let done = if moved {
            self.open = None;
            self.opened().map(|_| ())
        } else if self.due(self.open.as_ref().expect("is open")) {
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
            self.trouble = self.end(open, None).err().map(|error| error.to_string());
        }
    }

    fn trouble(&self) -> Option<String> {
        self.trouble.clone()
    }
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

/// A line that a crash left half is ended, so that the next message has one of its own.
fn end_line(file: &mut File, length: u64) -> io::Result<u64> {
    use std::os::unix::fs::FileExt;
    let mut last = [0];
    file.read_exact_at(&mut last, length - 1)?;
    if last == *b"\n" {
        return Ok(0);
    }
    file.write_all(b"\n")?;
    Ok(1)
}
