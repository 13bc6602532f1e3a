//! Numbered files, one after another: which is the next, when it is time for it, and how one ends.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use super::Purpose;
use super::names::{make_folder, numbers, suffixed, sync_folder};
use crate::conf::{Files, Period};
use crate::sys::Local;

/// The file that is written now.
pub struct Open {
    pub file: File,
    pub path: PathBuf,
    /// Bytes of it that are kept.
    pub kept: u64,
    pub events: u64,
    /// Somebody else writes into it too.
    pub shared: bool,
    /// Of all stores that have it open: one writes at a time.
    pub turn: Arc<Mutex<()>>,
    pub inode: u64,
    /// When, by which of the periods.
    began: Local,
    since: Instant,
    pub synced: Instant,
    pub unsynced: bool,
}

/// The turn of a file, by its device and number. Not a lock of the file: others may hold one for long,
/// such as who reads it.
fn turn_of(about: &fs::Metadata) -> Arc<Mutex<()>> {
    type Turns = BTreeMap<(u64, u64), Weak<Mutex<()>>>;
    static TURNS: Mutex<Turns> = Mutex::new(Turns::new());
    let mut turns = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    let place = (about.dev(), about.ino());
    if let Some(turn) = turns.get(&place).and_then(Weak::upgrade) {
        return turn;
    }
    // Now and then, so that ten thousand files are not gone through for each that is opened.
    if turns.len().is_power_of_two() {
        turns.retain(|_, turn| turn.strong_count() > 0);
    }
    let turn = Arc::default();
    turns.insert(place, Arc::downgrade(&turn));
    turn
}

pub struct Series {
    pub conf: Files,
    pub folder: PathBuf,
    pub base: String,
    pub fsync: bool,
    /// Of events, each start of which has a file of its own.
    events: bool,
    opened_before: bool,
}

impl Series {
    pub fn new(conf: &Files, purpose: &Purpose, events: bool) -> Series {
        let (folder, base) = purpose.place(conf);
        let (conf, fsync) = (conf.clone(), purpose.fsync);
        Series {
            conf,
            folder,
            base,
            fsync,
            events,
            opened_before: false,
        }
    }

    /// The newest file of now to append to, or (`rotated`) the one after it.
    pub fn open_next(&mut self, rotated: bool) -> io::Result<Open> {
        let now = Local::now();
        let base = match self.conf.period {
            Period::Never => self.base.clone(),
            _ => format!("{}-{}", self.base, now.date()),
        };
        make_folder(&self.folder, self.fsync)?;
        let first = if self.conf.period == Period::Hourly {
            now.hour.into()
        } else {
            0
        };
        let anew = self.events || self.conf.rotate_on_reopen && !self.opened_before;
        let number = match numbers(&self.folder, &base)?.last() {
            // The hour is only for a start: scribed counts from what is there when it rotates.
            None if rotated || anew => 0,
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
        if self.conf.add_newlines && kept > 0 && !self.events {
            kept += end_line(&mut file, kept)?;
        }
        if self.fsync {
            sync_folder(&self.folder)?;
        }
        self.link(&path)?;
        self.opened_before = true;
        let (instant, inode) = (Instant::now(), about.ino());
        Ok(Open {
            file,
            path,
            kept,
            events: 0,
            shared: false,
            turn: turn_of(&about),
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

    /// The last words of a file.
    pub fn end(&self, mut open: Open, next: Option<&Path>) -> io::Result<()> {
        if let (false, true, Some(next)) = (self.events, self.conf.write_meta, next) {
            let newline = if self.conf.add_newlines { "\n" } else { "" };
            let meta = format!("scribe_meta<new_logfile>: {}{newline}", next.display());
            open.file.write_all(meta.as_bytes())?;
        }
        if open.unsynced || self.fsync {
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

    pub fn due(&self, open: &Open) -> bool {
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
