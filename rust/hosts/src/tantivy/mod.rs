//! The tantivy host: several indexes ("parts") in one process, searched as one.

pub mod best;
pub mod candidate;
pub mod collect;
pub mod compile;
pub mod fields;
mod open;
pub mod pool;
pub mod search;
mod snippets;
pub mod store;
pub mod tally;
pub mod view;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::thread;
use std::time::Duration;

use ::tantivy::IndexReader;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::engine::{BatchReply, Engine, Session};
use crate::failure::Failure;
use crate::options::{Kind, Options, Spec};
use crate::query::Query;
use crate::schema::Schema;
use fields::Fields;
use open::{Open, refresh};
use pool::Pool;
use search::{Manner, failure, search};
use store::{Part, Writing, bytes_on_disk, searchers};
use view::View;

/// The parameters; ENGINES.md says what each means.
pub const OPTIONS: &[Spec] = &[
    Spec {
        name: "parts",
        kind: Kind::Int(1, 64),
        default: "1",
    },
    Spec {
        name: "split",
        kind: Kind::Choice(&["round-robin", "hash"]),
        default: "round-robin",
    },
    Spec {
        name: "search_threads",
        kind: Kind::Int(0, 256),
        default: "0",
    },
    Spec {
        name: "statistics",
        kind: Kind::Choice(&["global", "local"]),
        default: "global",
    },
    Spec {
        name: "merge",
        kind: Kind::Choice(&["flat", "two-level"]),
        default: "flat",
    },
    Spec {
        name: "searcher",
        kind: Kind::Choice(&["shared", "per-thread"]),
        default: "shared",
    },
    Spec {
        name: "indexing_threads",
        kind: Kind::Int(1, 64),
        default: "2",
    },
    Spec {
        name: "indexing_memory_mb",
        kind: Kind::Int(15, 65536),
        default: "256",
    },
    Spec {
        name: "segments",
        kind: Kind::Choice(&["merged", "as-is"]),
        default: "merged",
    },
    Spec {
        name: "keys",
        kind: Kind::Bool,
        default: "false",
    },
    Spec {
        name: "refresh_ms",
        kind: Kind::Int(0, 3_600_000),
        default: "0",
    },
    Spec {
        name: "directory",
        kind: Kind::Choice(&["mmap", "ram"]),
        default: "mmap",
    },
];

/// tantivy's own lower bound of memory for an indexing thread.
const LEAST_BYTES_PER_THREAD: usize = 15_000_000;
/// And its upper bound, with a margin.
const MOST_BYTES_PER_THREAD: usize = 4_000_000_000;

/// `searchbench.json`, written last when an index is made: without it there is none.
#[derive(Serialize, Deserialize)]
pub struct Manifest {
    pub format: u32,
    pub parts: usize,
    pub split: String,
    #[serde(default)]
    pub keys: bool,
    pub schema: Schema,
}

/// The host.
pub struct Tantivy {
    data: PathBuf,
    options: Options,
    manner: Manner,
    pool: Option<Pool>,
    open: RwLock<Option<Arc<Open>>>,
}

impl Tantivy {
    /// Opens what is in `data`, if anything; the error is one sentence.
    pub fn open(data: &Path, options: &Options) -> Result<Arc<Tantivy>, String> {
        let threads = options.size("search_threads");
        let pool = if threads == 0 {
            None
        } else {
            Some(Pool::new(threads).map_err(|e| e.to_string())?)
        };
        let host = Arc::new(Tantivy {
            data: data.to_owned(),
            options: options.clone(),
            manner: Manner {
                global: options.text("statistics") == "global",
                two_level: options.text("merge") == "two-level",
            },
            pool,
            open: RwLock::new(None),
        });
        if let Ok(text) = fs::read(host.manifest()) {
            let manifest: Manifest = serde_json::from_slice(&text)
                .map_err(|error| format!("{} is damaged: {error}", host.manifest().display()))?;
            for (name, is) in [
                ("parts", json!(manifest.parts)),
                ("split", json!(manifest.split)),
                ("keys", json!(manifest.keys)),
            ] {
                let asked = &options.values(OPTIONS)[name];
                if *asked != is {
                    return Err(format!(
                        "the index in {} has {name} {is}, not {asked}: use another --data or ingest anew",
                        data.display()
                    ));
                }
            }
            let opened = host.open_parts(manifest.schema, false);
            host.set(opened.map_err(|error| {
                format!("cannot open the index in {}: {error}", data.display())
            })?);
        }
        Ok(host)
    }

    fn manifest(&self) -> PathBuf {
        self.data.join("searchbench.json")
    }

    fn writing(&self) -> Writing {
        let parts = self.options.size("parts");
        let threads = (self.options.size("indexing_threads") / parts).max(1);
        let bytes = (self.options.size("indexing_memory_mb") << 20) / (threads * parts);
        Writing {
            threads,
            bytes_per_thread: bytes.clamp(LEAST_BYTES_PER_THREAD, MOST_BYTES_PER_THREAD),
            merge_along: self.options.int("refresh_ms") > 0
                || self.options.text("segments") == "as-is",
        }
    }

    fn open_parts(&self, schema: Schema, create: bool) -> ::tantivy::Result<Open> {
        let fields = Fields::new(&schema, self.options.flag("keys"));
        let in_ram = self.options.text("directory") == "ram";
        let parts = (0..self.options.size("parts"))
            .map(|n| {
                Part::open(
                    self.data.join(format!("part-{n}")),
                    &fields,
                    create,
                    in_ram,
                    self.writing(),
                )
            })
            .collect::<::tantivy::Result<Vec<_>>>()?;
        let readers = parts
            .iter()
            .map(Part::reader)
            .collect::<::tantivy::Result<Vec<_>>>()?;
        let view = View::new(searchers(&readers), &fields, &schema)?;
        let segments = view.parts.iter().flat_map(|part| &part.segments);
        let next_seq = segments
            .map(|segment| segment.seq.max_value() + 1)
            .max()
            .unwrap_or(0);
        Ok(Open {
            schema,
            fields,
            parts,
            by_hash: self.options.text("split") == "hash",
            next_seq: AtomicU64::new(next_seq),
            ids: Mutex::new(None),
            readers,
            view: RwLock::new(Arc::new(view)),
            generation: AtomicU64::new(0),
            publishing: Mutex::new(()),
            dirty: AtomicBool::new(false),
        })
    }

    fn set(&self, open: Open) {
        let open = Arc::new(open);
        let every = self.options.int("refresh_ms") as u64;
        if every > 0 {
            let weak = Arc::downgrade(&open);
            thread::spawn(move || refresh(&weak, Duration::from_millis(every)));
        }
        *self.open.write().expect("no panic while held") = Some(open);
    }

    fn opened(&self) -> Result<Arc<Open>, Failure> {
        let open = self.open.read().expect("no panic while held");
        open.clone()
            .ok_or_else(|| Failure::error("there is no index yet: create comes first"))
    }
}

impl Engine for Tantivy {
    fn facts(&self) -> Result<Value, Failure> {
        let writing = self.writing();
        let mut facts = json!({
            "engine": "tantivy",
            "version": version(),
            "documents": 0,
            "index_bytes": bytes_on_disk(&self.data),
            "parameters": self.options.values(OPTIONS),
            "extra": {
                "tantivy": ::tantivy::version_string(),
                "indexing_threads_per_part": writing.threads,
                "indexing_memory_bytes_per_thread": writing.bytes_per_thread,
            },
        });
        if let Ok(open) = self.opened() {
            let view = open.shared_view();
            facts["documents"] = json!(view.documents());
            let segments: Vec<usize> = view.parts.iter().map(|part| part.segments.len()).collect();
            facts["extra"]["segments_by_part"] = json!(segments);
            let documents: Vec<u64> = view
                .parts
                .iter()
                .map(|part| part.searcher.num_docs())
                .collect();
            facts["extra"]["documents_by_part"] = json!(documents);
        }
        Ok(facts)
    }

    fn create(&self, schema: Schema) -> Result<(), Failure> {
        let io = |error: std::io::Error| {
            Failure::Error(format!(
                "cannot make an index in {}: {error}",
                self.data.display()
            ))
        };
        let held = self.open.read().expect("no panic while held").is_some();
        if held || self.manifest().exists() {
            let place = self.data.display();
            return Err(Failure::Error(format!(
                "there is an index in {place} already"
            )));
        }
        // What an interrupted create has left.
        for entry in fs::read_dir(&self.data).map_err(io)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with("part-") {
                fs::remove_dir_all(entry.path()).map_err(io)?;
            }
        }
        let open = self.open_parts(schema, true).map_err(failure)?;
        let manifest = Manifest {
            format: 1,
            parts: self.options.size("parts"),
            split: self.options.text("split").to_owned(),
            keys: self.options.flag("keys"),
            schema: open.schema.clone(),
        };
        let temporary = self.data.join("searchbench.json.new");
        let text = serde_json::to_vec_pretty(&manifest).expect("memory takes any JSON");
        fs::write(&temporary, text)
            .and_then(|()| fs::rename(&temporary, self.manifest()))
            .map_err(io)?;
        self.set(open);
        Ok(())
    }

    fn batch(&self, lines: &[u8]) -> Result<BatchReply, Failure> {
        self.opened()?.add(utf8(lines)?)
    }

    fn replace(&self, lines: &[u8]) -> Result<BatchReply, Failure> {
        self.opened()?.replace(utf8(lines)?)
    }

    fn delete(&self, lines: &[u8]) -> Result<BatchReply, Failure> {
        self.opened()?.delete(utf8(lines)?)
    }

    fn settle(&self) -> Result<(), Failure> {
        let merged = self.options.text("segments") == "merged";
        self.opened()?.publish(
            |part| part.settle(merged),
            self.options.size("indexing_threads"),
        )
    }

    fn commit(&self) -> Result<(), Failure> {
        self.opened()?
            .publish(Part::commit, self.options.size("indexing_threads"))
    }

    fn analyse(&self, text: &str) -> Result<Vec<String>, Failure> {
        Ok(fields::analyse(text))
    }

    fn session(self: Arc<Self>) -> Box<dyn Session> {
        let own = self.options.text("searcher") == "per-thread";
        Box::new(Connection {
            host: self,
            open: None,
            own,
            readers: Vec::new(),
            seen: 0,
            view: None,
        })
    }
}

fn utf8(lines: &[u8]) -> Result<&str, Failure> {
    std::str::from_utf8(lines).map_err(|error| Failure::Error(format!("a batch is UTF-8: {error}")))
}

/// tantivy's version as a number alone.
fn version() -> String {
    let text = ::tantivy::version_string();
    let word = text.split_whitespace().find(|word| word.starts_with('v'));
    word.map_or(text, |word| word.trim_matches(|c| c == 'v' || c == ','))
        .to_owned()
}

/// One connection's view, renewed when the index has changed.
struct Connection {
    host: Arc<Tantivy>,
    open: Option<Arc<Open>>,
    /// Readers of its own rather than the shared ones.
    own: bool,
    readers: Vec<IndexReader>,
    seen: u64,
    view: Option<Arc<View>>,
}

impl Connection {
    fn renew(&mut self, open: &Arc<Open>) -> Result<Arc<View>, Failure> {
        let now = open.generation.load(Ordering::SeqCst);
        if let Some(view) = &self.view
            && self.seen == now
        {
            return Ok(Arc::clone(view));
        }
        let view = if self.own {
            if self.readers.is_empty() {
                let made = open
                    .parts
                    .iter()
                    .map(Part::reader)
                    .collect::<::tantivy::Result<_>>();
                self.readers = made.map_err(failure)?;
            } else {
                for reader in &self.readers {
                    reader.reload().map_err(failure)?;
                }
            }
            Arc::new(
                View::new(searchers(&self.readers), &open.fields, &open.schema).map_err(failure)?,
            )
        } else {
            open.shared_view()
        };
        (self.seen, self.view) = (now, Some(Arc::clone(&view)));
        Ok(view)
    }
}

impl Session for Connection {
    fn query(&mut self, query: &Query, out: &mut Vec<u8>) -> Result<(), Failure> {
        let open = match &self.open {
            Some(open) => Arc::clone(open),
            None => Arc::clone(self.open.insert(self.host.opened()?)),
        };
        let checked = query.check(&open.schema)?;
        let view = self.renew(&open)?;
        let host = &self.host;
        search(
            &checked,
            &open.schema,
            &open.fields,
            &view,
            host.manner,
            host.pool.as_ref(),
        )?
        .write(out);
        Ok(())
    }
}
