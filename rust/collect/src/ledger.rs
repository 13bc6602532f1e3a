//! What is acknowledged and not yet kept, by category, in a file that outlives the process: after
//! a `kill -9` the next start knows what was lost. (After a loss of power it may not.)

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use memmap2::MmapRaw;

use crate::batch::Batch;
use crate::store::Spool;

const ROWS: usize = 4096;
const ROW_BYTES: usize = 256;
const NAME_BYTES: usize = ROW_BYTES - 24;

/// The folder of a collector's state. One process at a time has it.
pub struct Ledger {
    folder: PathBuf,
    rows: Arc<Rows>,
    used: AtomicUsize,
    names: Mutex<Vec<String>>,
    _lock: File,
}

struct Rows(MmapRaw);

impl Rows {
    /// Accepted (0) or settled (1) of a row.
    fn cell(&self, row: usize, which: usize) -> &AtomicU64 {
        let at = row * ROW_BYTES + which * 8;
        // SAFETY: inside the map and aligned (rows are of 256 bytes, the map of a page); all access
        // is atomic, and the map lives as long as `self`.
        unsafe { &*self.0.as_mut_ptr().add(at).cast::<AtomicU64>() }
    }
}

/// The line of one queue.
#[derive(Clone)]
pub struct Row {
    rows: Arc<Rows>,
    index: usize,
}

impl Row {
    pub fn accept(&self, count: usize) {
        self.rows
            .cell(self.index, 0)
            .fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Kept, or counted as lost.
    pub fn settle(&self, count: usize) {
        self.rows
            .cell(self.index, 1)
            .fetch_add(count as u64, Ordering::Relaxed);
    }
}

impl Ledger {
    /// Opens the folder; with it, category and number of what the last process lost.
    pub fn open(folder: &Path) -> Result<(Ledger, Vec<(String, u64)>), String> {
        let said = |error| {
            format!(
                "{}: {error}; name another folder in the configuration: state_path=FOLDER",
                folder.display()
            )
        };
        let open = |name: &str| {
            let path = folder.join(name);
            OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(path)
        };
        fs::create_dir_all(folder).map_err(said)?;
        let lock = open("lock").map_err(said)?;
        if lock.try_lock().is_err() {
            return Err(format!(
                "{}: another collector uses it; give each a state_path of its own",
                folder.display()
            ));
        }
        let file = open("ledger").map_err(said)?;
        let bytes = (ROWS * ROW_BYTES) as u64;
        let mut lost = Vec::new();
        if file.metadata().map_err(said)?.len() == bytes {
            let read = fs::read(folder.join("ledger")).map_err(said)?;
            lost = read.chunks(ROW_BYTES).filter_map(unsettled).collect();
        }
        file.set_len(0).map_err(said)?;
        file.set_len(bytes).map_err(said)?;
        let map = MmapRaw::map_raw(&file).map_err(said)?;
        let rows = Arc::new(Rows(map));
        let (used, names) = (AtomicUsize::new(1), Mutex::default());
        Ok((
            Ledger {
                folder: folder.into(),
                rows,
                used,
                names,
                _lock: lock,
            },
            lost,
        ))
    }

    /// The line of this category. Those that find no room share the first.
    pub fn row(&self, category: &str) -> Row {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = names.iter().position(|name| name == category) {
            return Row {
                rows: self.rows.clone(),
                index: index + 1,
            };
        }
        if names.len() + 1 >= ROWS || category.len() > NAME_BYTES {
            return Row {
                rows: self.rows.clone(),
                index: 0,
            };
        }
        names.push(category.into());
        let index = self.used.fetch_add(1, Ordering::Relaxed);
        let at = index * ROW_BYTES + 16;
        // SAFETY: inside the map; nobody reads or writes a row's name but here, under the lock.
        unsafe {
            let to = self.rows.0.as_mut_ptr().add(at);
            to.cast::<u64>().write(category.len() as u64);
            std::ptr::copy_nonoverlapping(category.as_ptr(), to.add(8), category.len());
        }
        Row {
            rows: self.rows.clone(),
            index,
        }
    }

    fn left(&self) -> Spool {
        Spool::new(self.folder.clone(), "left".into(), "", true, 0, true)
    }

    /// What stores had not taken when the collector was stopped.
    pub fn save(&self, batch: &mut Batch) -> Result<(), String> {
        self.left().append(batch)
    }

    /// Nothing is owed: all is kept, or saved.
    pub fn clear(&self) {
        for row in 0..self.used.load(Ordering::Relaxed) {
            self.rows.cell(row, 0).store(0, Ordering::Relaxed);
            self.rows.cell(row, 1).store(0, Ordering::Relaxed);
        }
    }

    /// What an earlier process saved, and its files.
    pub fn saved(&self) -> Result<(Batch, Vec<PathBuf>), String> {
        let mut all = Batch::default();
        let paths = self.left().files()?;
        for path in &paths {
            let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
            all.append(&crate::store::read_records(&bytes, None).0);
        }
        Ok((all, paths))
    }
}

fn unsettled(row: &[u8]) -> Option<(String, u64)> {
    let number = |at: usize| u64::from_ne_bytes(row[at..at + 8].try_into().expect("eight bytes"));
    let lost = number(0).checked_sub(number(8)).filter(|lost| *lost > 0)?;
    let length = (number(16) as usize).min(NAME_BYTES);
    let name = String::from_utf8_lossy(&row[24..24 + length]).into_owned();
    Some((
        if name.is_empty() {
            "others".into()
        } else {
            name
        },
        lost,
    ))
}
