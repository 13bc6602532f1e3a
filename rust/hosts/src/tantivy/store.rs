//! The parts on disk: made, opened, written, committed, merged, and copied into memory.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, RwLock, RwLockReadGuard};

use tantivy::directory::{Directory, RamDirectory};
use tantivy::indexer::{IndexWriterOptions, LogMergePolicy, NoMergePolicy};
use tantivy::{Index, IndexReader, IndexWriter, ReloadPolicy, Searcher, TantivyDocument};

use super::fields::Fields;

/// How parts are written.
#[derive(Debug, Clone, Copy)]
pub struct Writing {
    /// Indexing threads of each part.
    pub threads: usize,
    /// Memory of each of them before a segment is written.
    pub bytes_per_thread: usize,
    /// Merge while writing, because commits come often; else only at the end.
    pub merge_along: bool,
}

/// One part: an index of its own.
pub struct Part {
    directory: PathBuf,
    disk: Index,
    ram: Option<(RamDirectory, Mutex<HashSet<PathBuf>>)>,
    writer: RwLock<Option<IndexWriter>>,
    writing: Writing,
}

impl Part {
    /// Opens the index in `directory`, or makes one there.
    pub fn open(
        directory: PathBuf,
        fields: &Fields,
        create: bool,
        in_ram: bool,
        writing: Writing,
    ) -> tantivy::Result<Part> {
        let disk = if create {
            fs::create_dir_all(&directory)?;
            Index::create_in_dir(&directory, fields.tantivy.clone())?
        } else {
            Index::open_in_dir(&directory)?
        };
        Fields::register(&disk);
        let ram = in_ram.then(|| (RamDirectory::create(), Mutex::default()));
        let part = Part {
            directory,
            disk,
            ram,
            writer: RwLock::new(None),
            writing,
        };
        part.copy_to_ram()?;
        Ok(part)
    }

    /// A reader of its own, sharing nothing with other readers but the files.
    pub fn reader(&self) -> tantivy::Result<IndexReader> {
        let index = match &self.ram {
            Some((ram, _)) => Index::open(ram.clone())?,
            None => Index::open_in_dir(&self.directory)?,
        };
        index
            .reader_builder()
            .reload_policy(ReloadPolicy::Manual)
            .try_into()
    }

    /// A writer to add documents to; made at the first need.
    pub fn writer(&self) -> tantivy::Result<RwLockReadGuard<'_, Option<IndexWriter>>> {
        loop {
            let held = self.writer.read().expect("no panic while held");
            if held.is_some() {
                return Ok(held);
            }
            drop(held);
            let mut empty = self.writer.write().expect("no panic while held");
            if empty.is_none() {
                let writer =
                    self.new_writer(self.writing.threads, self.writing.bytes_per_thread)?;
                if self.writing.merge_along {
                    writer.set_merge_policy(Box::new(LogMergePolicy::default()));
                } else {
                    writer.set_merge_policy(Box::new(NoMergePolicy));
                }
                *empty = Some(writer);
            }
        }
    }

    fn new_writer(
        &self,
        threads: usize,
        bytes: usize,
    ) -> tantivy::Result<IndexWriter<TantivyDocument>> {
        let options = IndexWriterOptions::builder()
            .num_worker_threads(threads)
            .memory_budget_per_thread(bytes)
            .num_merge_threads(threads.clamp(1, 4))
            .build();
        self.disk.writer_with_options(options)
    }

    /// Makes what was added durable and visible to new searchers.
    pub fn commit(&self) -> tantivy::Result<()> {
        if let Some(writer) = self.writer.write().expect("no panic while held").as_mut() {
            writer.commit()?;
        }
        self.copy_to_ram()
    }

    /// Commits; merges into one segment if asked; waits until nothing runs in the background and
    /// gives the indexing memory back.
    pub fn settle(&self, one_segment: bool) -> tantivy::Result<()> {
        let mut held = self.writer.write().expect("no panic while held");
        if let Some(mut writer) = held.take() {
            writer.commit()?;
            writer.wait_merging_threads()?;
        }
        let segments = self.disk.searchable_segment_ids()?;
        if one_segment && segments.len() > 1 {
            let mut writer = self.new_writer(1, 15_000_000)?;
            writer.set_merge_policy(Box::new(NoMergePolicy));
            writer.merge(&segments).wait()?;
            writer.garbage_collect_files().wait()?;
            writer.wait_merging_threads()?;
        }
        drop(held);
        self.copy_to_ram()
    }

    /// Brings the copy in memory to the state on disk. Files of segments never change, so only
    /// new ones are copied.
    fn copy_to_ram(&self) -> tantivy::Result<()> {
        let Some((ram, known)) = &self.ram else {
            return Ok(());
        };
        let mut known = known.lock().expect("no panic while held");
        let mut attempt = 0;
        loop {
            match self.copy_files(ram, &mut known) {
                // A merge in the background has replaced what was being copied.
                Err(_) if attempt < 10 => attempt += 1,
                done => return done,
            }
        }
    }

    fn copy_files(&self, ram: &RamDirectory, known: &mut HashSet<PathBuf>) -> tantivy::Result<()> {
        let meta = fs::read(self.directory.join("meta.json"))?;
        let mut wanted = HashSet::new();
        let segments = self.disk.load_metas()?.segments;
        let live: Vec<String> = segments
            .iter()
            .map(|segment| segment.id().uuid_string())
            .collect();
        for entry in fs::read_dir(&self.directory)? {
            let name = entry?.file_name();
            if live
                .iter()
                .any(|id| name.to_string_lossy().starts_with(id.as_str()))
            {
                wanted.insert(PathBuf::from(name));
            }
        }
        for file in wanted.difference(known).cloned().collect::<Vec<_>>() {
            ram.atomic_write(&file, &fs::read(self.directory.join(&file))?)?;
            known.insert(file);
        }
        ram.atomic_write(Path::new("meta.json"), &meta)?;
        for file in known.difference(&wanted).cloned().collect::<Vec<_>>() {
            // Searchers that are open hold the bytes themselves.
            let _ = ram.delete(&file);
            known.remove(&file);
        }
        Ok(())
    }
}

/// The searchers of these readers as they are now.
pub fn searchers(readers: &[IndexReader]) -> Vec<Searcher> {
    readers.iter().map(IndexReader::searcher).collect()
}

/// Bytes of all files below `directory`.
pub fn bytes_on_disk(directory: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(directory) else {
        return 0;
    };
    entries
        .flatten()
        .map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => bytes_on_disk(&entry.path()),
            _ => entry.metadata().map_or(0, |meta| meta.len()),
        })
        .sum()
}
