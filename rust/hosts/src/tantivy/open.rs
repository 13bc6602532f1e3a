//! An index that is open: documents going in, and the view that searches see.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard, Weak};
use std::thread;
use std::time::Duration;

use tantivy::schema::Field;
use tantivy::{IndexReader, IndexWriter, TantivyDocument, Term};

use super::fields::{Fields, read_id};
use super::search::failure;
use super::store::{Part, searchers};
use super::view::View;
use crate::engine::{BatchReply, Refused};
use crate::failure::Failure;
use crate::ids::Ids;
use crate::schema::{Schema, parse_document};

type Held<'a> = RwLockReadGuard<'a, Option<IndexWriter>>;

/// An index that exists.
pub struct Open {
    pub schema: Schema,
    pub fields: Fields,
    pub parts: Vec<Part>,
    pub by_hash: bool,
    pub next_seq: AtomicU64,
    /// None until the first batch needs it.
    pub ids: Mutex<Option<Ids>>,
    pub readers: Vec<IndexReader>,
    pub view: RwLock<Arc<View>>,
    /// Grows when the view changes, for searchers of connections' own.
    pub generation: AtomicU64,
    /// Held while committing and reloading.
    pub publishing: Mutex<()>,
    /// Documents were added since the last commit.
    pub dirty: AtomicBool,
}

/// Commits and reloads every so often while there is something new.
pub fn refresh(open: &Weak<Open>, every: Duration) {
    loop {
        thread::sleep(every);
        let Some(open) = open.upgrade() else { return };
        if open.dirty.load(Ordering::SeqCst)
            && let Err(Failure::Error(reason) | Failure::Unsupported(reason)) =
                open.publish(Part::commit, 1)
        {
            eprintln!("refresh failed: {reason}");
        }
    }
}

impl Open {
    /// Does `step` for each part, on up to `threads` threads, then shows the result to searches.
    pub fn publish(
        &self,
        step: impl Fn(&Part) -> tantivy::Result<()> + Sync,
        threads: usize,
    ) -> Result<(), Failure> {
        let _alone = self.publishing.lock().expect("no panic while held");
        self.dirty.store(false, Ordering::SeqCst);
        let next = AtomicU64::new(0);
        let worker = || {
            while let Some(part) = self
                .parts
                .get(next.fetch_add(1, Ordering::Relaxed) as usize)
            {
                step(part)?;
            }
            Ok(())
        };
        thread::scope(|scope| {
            let others: Vec<_> = (1..threads.min(self.parts.len()))
                .map(|_| scope.spawn(worker))
                .collect();
            let mut done = worker();
            for other in others {
                done = done.and(other.join().expect("a step does not panic"));
            }
            done
        })
        .map_err(failure)?;
        for reader in &self.readers {
            reader.reload().map_err(failure)?;
        }
        let view =
            View::new(searchers(&self.readers), &self.fields, &self.schema).map_err(failure)?;
        *self.view.write().expect("no panic while held") = Arc::new(view);
        self.generation.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    pub fn shared_view(&self) -> Arc<View> {
        Arc::clone(&self.view.read().expect("no panic while held"))
    }

    /// Adds the documents of a batch; each line is parsed on this thread while the indexing
    /// threads work on those before.
    pub fn add(&self, lines: &str) -> Result<BatchReply, Failure> {
        self.change(lines, |_| false)
    }

    /// Adds documents; `replaces` says whether what has an id is to be removed first.
    fn change(&self, lines: &str, replaces: impl Fn(&str) -> bool) -> Result<BatchReply, Failure> {
        let writers = self.writers()?;
        let mut reply = BatchReply::default();
        for line in lines.lines().filter(|line| !line.trim().is_empty()) {
            match self.add_one(line, &replaces) {
                Ok((part, document, old)) => {
                    if let Some(id) = old {
                        self.remove(&writers, &id)?;
                    }
                    let writer = writers[part].as_ref().expect("made by Part::writer");
                    writer.add_document(document).map_err(failure)?;
                    reply.accepted += 1;
                }
                Err((id, reason)) => reply.refused.push(Refused { id, reason }),
            }
        }
        self.dirty.store(true, Ordering::SeqCst);
        Ok(reply)
    }

    /// Puts each document in the place of the one with its id: removed there, added as the last.
    pub fn replace(&self, lines: &str) -> Result<BatchReply, Failure> {
        self.key()?;
        self.change(lines, |id| {
            self.give_back(id);
            true
        })
    }

    /// Removes the documents whose ids stand in the lines.
    pub fn delete(&self, lines: &str) -> Result<BatchReply, Failure> {
        self.key()?;
        let writers = self.writers()?;
        let mut reply = BatchReply::default();
        for line in lines.lines().filter(|line| !line.trim().is_empty()) {
            let id = match parse_document(line, &self.schema) {
                Ok(document) => document.id.into_owned(),
                Err((id, reason)) => {
                    reply.refused.push(Refused { id, reason });
                    continue;
                }
            };
            if self.give_back(&id) {
                self.remove(&writers, &id)?;
                reply.accepted += 1;
            } else {
                let reason = format!("there is no document with id {id:?}");
                reply.refused.push(Refused { id, reason });
            }
        }
        self.dirty.store(true, Ordering::SeqCst);
        Ok(reply)
    }

    /// The field of ids, without which no document can be found by its own.
    fn key(&self) -> Result<Field, Failure> {
        self.fields.key.ok_or_else(|| {
            Failure::error("ids are not indexed (keys), so no document can be found by its id")
        })
    }

    fn remove(&self, writers: &[Held<'_>], id: &str) -> Result<(), Failure> {
        let term = Term::from_field_text(self.key()?, id);
        for writer in writers {
            let writer = writer.as_ref().expect("made by Part::writer");
            writer.delete_term(term.clone());
        }
        Ok(())
    }

    fn writers(&self) -> Result<Vec<Held<'_>>, Failure> {
        let writers = self.parts.iter().map(Part::writer);
        writers.collect::<tantivy::Result<_>>().map_err(failure)
    }

    fn add_one(
        &self,
        line: &str,
        replaces: impl Fn(&str) -> bool,
    ) -> Result<(usize, TantivyDocument, Option<String>), (String, String)> {
        let document = parse_document(line, &self.schema)?;
        let id = document.id.as_ref();
        let mut out = self
            .fields
            .document(&document, line.len())
            .map_err(|reason| (id.to_owned(), reason))?;
        let old = replaces(id).then(|| id.to_owned());
        if !self.take_id(id) {
            return Err((
                id.to_owned(),
                format!("a document with id {id:?} is in the index already"),
            ));
        }
        let seq = self.next_seq.fetch_add(1, Ordering::Relaxed);
        out.add_u64(self.fields.seq, seq);
        let spread = if self.by_hash { stable_hash(id) } else { seq };
        Ok(((spread % self.parts.len() as u64) as usize, out, old))
    }

    fn take_id(&self, id: &str) -> bool {
        self.with_ids(|ids| ids.take(id))
    }

    fn give_back(&self, id: &str) -> bool {
        self.with_ids(|ids| ids.give_back(id))
    }

    fn with_ids<T>(&self, with: impl FnOnce(&mut Ids) -> T) -> T {
        let mut held = self.ids.lock().expect("no panic while held");
        let ids = held.get_or_insert_with(|| {
            let mut ids = Ids::new();
            for part in &self.shared_view().parts {
                for (ord, segment) in part.segments.iter().enumerate() {
                    for doc in part.searcher.segment_reader(ord as u32).doc_ids_alive() {
                        ids.take(&read_id(&segment.id, doc));
                    }
                }
            }
            ids
        });
        with(ids)
    }
}

/// FNV-1a, 64 bits, with its upper half folded in: the same on every machine and in every
/// version.
fn stable_hash(id: &str) -> u64 {
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    hash ^ hash >> 32
}
