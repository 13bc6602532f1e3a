//! Stores: what keeps messages. Each is used by one thread.

mod bucket;
mod buffer;
mod event;
mod file;
#[cfg(test)]
mod keys_tests;
mod multi;
mod names;
mod network;
mod series;
mod spool;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::batch::Batch;
use crate::conf::{Files, Kind};
use crate::counters::{Counts, add};

pub use names::numbers;
pub use network::{Client, Pool};
pub use spool::{Spool, read_records};

pub trait Store: Send {
    /// Keeps these messages in their order; with `fsync`, so that they outlive the machine.
    ///
    /// Ok: all are kept, and what is in `batch` does not matter. Else why not, and in `batch` are
    /// those that are not kept, in their order by category. They are either given again, before
    /// any other, or [`Store::forget`] is called.
    fn keep(&mut self, batch: &mut Batch) -> Result<(), String>;

    /// What was not kept will not come again.
    fn forget(&mut self) {}

    /// Could it keep something now? Opens files and connections.
    fn ready(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Called every `check_interval`: rotation, tries, replay. Full: how full the queue is, as a
    /// share of `max_queue_size`.
    fn check(&mut self, _full: f64) {}

    /// Writes what is held back, and closes what is open.
    fn close(&mut self) {}

    /// What is wrong with it, for fb303's status.
    fn trouble(&self) -> Option<String> {
        None
    }
}

/// What a store is built for.
#[derive(Clone)]
pub struct Purpose {
    /// As in the configuration (`web*`), or as messages have it where this is a copy.
    pub category: String,
    /// A copy of a model for one category: its files lie in a folder of that name.
    pub copied: bool,
    /// Messages of several categories come to it.
    pub shared: bool,
    pub fsync: bool,
    pub counts: Arc<Counts>,
    pub pool: Arc<Pool>,
}

impl Purpose {
    /// Folder and base name of its files.
    fn place(&self, files: &Files) -> (PathBuf, String) {
        let mut folder = files.path.clone();
        let base = if self.copied {
            folder.push(&self.category);
            self.category.clone()
        } else {
            files.base.clone().unwrap_or_else(|| self.category.clone())
        };
        if let Some(sub) = &files.sub_directory {
            folder.push(sub);
        }
        (folder, base)
    }
}

pub fn build(kind: &Kind, purpose: &Purpose) -> Box<dyn Store> {
    match kind {
        Kind::File(files) => Box::new(file::FileStore::new(files, purpose, file::Form::Plain)),
        Kind::ThriftFile(files, events) => Box::new(file::FileStore::new(
            files,
            purpose,
            file::Form::Events(events.clone()),
        )),
        Kind::Network(network) => Box::new(network::Upstream::new(network, purpose)),
        Kind::Buffer(buffer) => Box::new(buffer::Buffered::new(buffer, purpose)),
        Kind::Bucket(buckets) => Box::new(bucket::Bucketed::new(buckets, purpose)),
        Kind::Null => Box::new(Null(purpose.counts.clone())),
        Kind::Multi(multi) => Box::new(multi::Several::new(multi, purpose)),
        Kind::PerCategory(model) => Box::new(multi::EachCategory::new(model, purpose)),
    }
}

/// Where the buffered files of this store's copies lie, so that those of an earlier run are found.
pub fn spools(kind: &Kind) -> Vec<&Files> {
    match kind {
        Kind::Buffer(buffer) if buffer.replay => match &buffer.secondary {
            Kind::File(files) => vec![files],
            _ => vec![],
        },
        Kind::Multi(multi) => multi.stores.iter().flat_map(spools).collect(),
        Kind::Bucket(buckets) => buckets.stores.iter().flat_map(spools).collect(),
        Kind::PerCategory(model) => spools(model),
        _ => vec![],
    }
}

/// Bytes of the largest message that such a store can take.
pub fn largest(kind: &Kind) -> usize {
    let of_all = |kinds: &[Kind]| kinds.iter().map(largest).min().unwrap_or(usize::MAX);
    match kind {
        Kind::ThriftFile(files, events) if !events.simple => {
            let chunk = if files.chunk_bytes > 0 {
                files.chunk_bytes
            } else {
                event::CHUNK
            };
            (chunk as usize).saturating_sub(4)
        }
        Kind::Buffer(buffer) => largest(&buffer.primary).min(largest(&buffer.secondary)),
        Kind::Bucket(buckets) => of_all(&buckets.stores),
        Kind::Multi(multi) => of_all(&multi.stores),
        Kind::PerCategory(model) => largest(model),
        _ => usize::MAX,
    }
}

/// Takes everything and keeps nothing.
struct Null(Arc<Counts>);

impl Store for Null {
    fn keep(&mut self, batch: &mut Batch) -> Result<(), String> {
        self.0
            .ignored
            .fetch_add(batch.len() as u64, Ordering::Relaxed);
        Ok(())
    }
}

/// What a store gives up although it was answered with OK.
fn lose(counts: &Counts, count: usize) {
    add(&counts.lost, count);
}
