//! The SQLite host: FTS5 for text, a table for everything else, a connection a client.

mod compile;
mod ingest;
mod search;
mod snippets;
mod tokenizer;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Once, RwLock};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, ffi};
use serde_json::{Value, json};

use crate::engine::{BatchReply, Engine, Session};
use crate::failure::Failure;
use crate::options::{Kind, Options, Spec};
use crate::query::Query;
use crate::schema::{FieldType, Schema};
use ingest::{Change, Writer};
use search::{failure, search};

/// The parameters; ENGINES.md says what each means.
pub const OPTIONS: &[Spec] = &[
    Spec {
        name: "cache_mb",
        kind: Kind::Int(0, 65536),
        default: "64",
    },
    Spec {
        name: "mmap_mb",
        kind: Kind::Int(0, 2047),
        default: "256",
    },
    Spec {
        name: "page_size",
        kind: Kind::Int(512, 65536),
        default: "4096",
    },
    Spec {
        name: "merged",
        kind: Kind::Bool,
        default: "true",
    },
    Spec {
        name: "journal",
        kind: Kind::Choice(&["wal", "off"]),
        default: "wal",
    },
    Spec {
        name: "keys",
        kind: Kind::Bool,
        default: "false",
    },
];

/// Prepared statements that a connection keeps.
const STATEMENTS: usize = 256;

/// The host.
pub struct Sqlite {
    data: PathBuf,
    options: Options,
    open: RwLock<Option<Arc<Open>>>,
    /// A database in memory that only says how texts are analysed.
    analyser: Mutex<Connection>,
}

/// A database that exists.
struct Open {
    schema: Schema,
    writer: Mutex<Writer>,
}

impl Sqlite {
    /// Opens what is in `data`, if anything; the error is one sentence.
    pub fn open(data: &Path, options: &Options) -> Result<Arc<Sqlite>, String> {
        static ONCE: Once = Once::new();
        // Without its memory statistics SQLite takes no common lock at each allocation.
        // SAFETY: called before SQLite is used for the first time.
        ONCE.call_once(|| unsafe {
            ffi::sqlite3_config(ffi::SQLITE_CONFIG_MEMSTATUS, 0);
        });
        if !options.size("page_size").is_power_of_two() {
            return Err(format!(
                "--page_size is a power of two, not {}",
                options.size("page_size")
            ));
        }
        let analyser = analyser().map_err(|error| format!("SQLite: {error}"))?;
        let host = Sqlite {
            data: data.to_owned(),
            options: options.clone(),
            open: RwLock::new(None),
            analyser: Mutex::new(analyser),
        };
        if host.path().exists() {
            let place = host.path().display().to_string();
            let found = host
                .reopen()
                .map_err(|error| format!("cannot open {place}: {error}"))?;
            let is = host.page_size(&found).map_err(|error| error.to_string())?;
            let asked = options.int("page_size");
            if found.is_some() && is != asked {
                return Err(format!(
                    "{place} has page_size {is}, not {asked}: use another --data or ingest anew"
                ));
            }
            *host.open.write().expect("no panic while held") = found;
        }
        Ok(Arc::new(host))
    }

    fn path(&self) -> PathBuf {
        self.data.join("index.db")
    }

    fn reopen(&self) -> rusqlite::Result<Option<Arc<Open>>> {
        let connection = self.connect()?;
        let made: bool = connection.query_row(
            "SELECT count(*) FROM sqlite_schema WHERE name = 'searchbench'",
            [],
            |row| row.get(0),
        )?;
        if !made {
            return Ok(None);
        }
        let text: String =
            connection.query_row("SELECT schema FROM searchbench", [], |row| row.get(0))?;
        let schema = serde_json::from_str(&text)
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
        Ok(Some(Arc::new(Open {
            schema,
            writer: Mutex::new(Writer::new(connection)?),
        })))
    }

    fn page_size(&self, open: &Option<Arc<Open>>) -> rusqlite::Result<i64> {
        let Some(open) = open else {
            return Ok(self.options.int("page_size"));
        };
        let writer = open.writer.lock().expect("no panic while held");
        writer
            .connection
            .pragma_query_value(None, "page_size", |row| row.get(0))
    }

    /// A connection with this host's parameters and tokenizer.
    pub fn connect(&self) -> rusqlite::Result<Connection> {
        let connection = Connection::open(self.path())?;
        connection.busy_timeout(Duration::from_secs(10))?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        // The size of pages counts only while the file is empty.
        connection.pragma_update(None, "page_size", self.options.int("page_size"))?;
        let journal = self.options.text("journal");
        connection.pragma_update_and_check(None, "journal_mode", journal, |_| Ok(()))?;
        let safe = if journal == "off" { "OFF" } else { "NORMAL" };
        connection.pragma_update(None, "synchronous", safe)?;
        connection.pragma_update(None, "cache_size", -(self.options.int("cache_mb") << 10))?;
        let mapped = self.options.int("mmap_mb") << 20;
        connection.pragma_update_and_check(None, "mmap_size", mapped, |_| Ok(()))?;
        connection.pragma_update(None, "temp_store", "MEMORY")?;
        tokenizer::register(&connection)?;
        Ok(connection)
    }

    fn opened(&self) -> Result<Arc<Open>, Failure> {
        let open = self.open.read().expect("no panic while held");
        open.clone()
            .ok_or_else(|| Failure::error("there is no index yet: create comes first"))
    }

    fn write(&self, lines: &[u8], change: Change) -> Result<BatchReply, Failure> {
        let lines = std::str::from_utf8(lines)
            .map_err(|error| Failure::Error(format!("a batch is UTF-8: {error}")))?;
        let open = self.opened()?;
        if change != Change::Insert {
            self.can_remove(&open.schema)?;
        }
        let mut writer = open.writer.lock().expect("no panic while held");
        writer
            .write(lines, &open.schema, change)
            .map_err(Failure::Error)
    }

    /// A document is found by its id, and FTS5 must be told the texts that are to leave it.
    fn can_remove(&self, schema: &Schema) -> Result<(), Failure> {
        if !self.options.flag("keys") {
            return Err(Failure::error(
                "ids are not indexed (keys), so no document can be found by its id",
            ));
        }
        let text = |field: &&crate::schema::Field| field.kind == FieldType::Text && !field.stored;
        match schema.fields.iter().find(text) {
            Some(field) => Err(Failure::Unsupported(format!(
                "the text {:?} is not stored, and FTS5 must be told what leaves it",
                field.name
            ))),
            None => Ok(()),
        }
    }

    /// Commits, and brings the log into the database.
    fn publish(&self, settle: bool) -> Result<(), Failure> {
        let open = self.opened()?;
        let mut writer = open.writer.lock().expect("no panic while held");
        writer.commit().map_err(Failure::Error)?;
        if settle {
            let sql = ingest::settling(&open.schema, self.options.flag("merged"));
            writer.connection.execute_batch(&sql).map_err(failure)?;
        }
        if self.options.text("journal") == "wal" {
            let truncate = "PRAGMA wal_checkpoint(TRUNCATE)";
            writer
                .connection
                .query_row(truncate, [], |_| Ok(()))
                .optional()
                .map_err(failure)?;
        }
        Ok(())
    }
}

fn analyser() -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    tokenizer::register(&connection)?;
    connection.execute_batch(
        "CREATE VIRTUAL TABLE text USING fts5(x, tokenize = 'declared');\
         CREATE VIRTUAL TABLE terms USING fts5vocab(text, 'instance');",
    )?;
    Ok(connection)
}

impl Engine for Sqlite {
    fn facts(&self) -> Result<Value, Failure> {
        let mut documents = 0;
        let mut parameters = self.options.values(OPTIONS);
        if let Ok(open) = self.opened() {
            // Over a connection of its own, so that it shows what is committed and what took.
            let connection = self.connect().map_err(failure)?;
            // To count rows takes all of a table, or of an index if there is one.
            let last = match self.options.flag("keys") {
                true => "SELECT count(*) FROM docs",
                false => "SELECT coalesce(max(seq), -1) + 1 FROM docs",
            };
            documents = connection
                .query_row(last, [], |row| row.get::<_, i64>(0))
                .map_err(failure)?;
            let pragma =
                |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
            parameters["page_size"] = json!(pragma("page_size").map_err(failure)?);
            parameters["cache_mb"] = json!(-pragma("cache_size").map_err(failure)? >> 10);
            parameters["mmap_mb"] = json!(pragma("mmap_size").map_err(failure)? >> 20);
            let journal =
                connection.pragma_query_value(None, "journal_mode", |row| row.get::<_, String>(0));
            parameters["journal"] = json!(journal.map_err(failure)?);
            drop(open);
        }
        let files = fs::read_dir(&self.data).map(|entries| {
            entries
                .flatten()
                .filter_map(|entry| entry.metadata().ok())
                .map(|meta| meta.len())
                .sum::<u64>()
        });
        Ok(json!({
            "engine": "sqlite",
            "version": rusqlite::version(),
            "documents": documents,
            "index_bytes": files.unwrap_or(0),
            "parameters": parameters,
            "extra": { "tokenizer": "declared" },
        }))
    }

    fn create(&self, schema: Schema) -> Result<(), Failure> {
        let mut open = self.open.write().expect("no panic while held");
        if open.is_some() {
            let place = self.path();
            return Err(Failure::Error(format!(
                "there is an index in {} already",
                place.display()
            )));
        }
        // What an interrupted create has left.
        for name in ["index.db", "index.db-wal", "index.db-shm"] {
            let _ = fs::remove_file(self.data.join(name));
        }
        let text = serde_json::to_string(&schema).expect("memory takes any JSON");
        let made = self.connect().and_then(|connection| {
            connection.execute_batch(&format!(
                "BEGIN; {} CREATE TABLE searchbench (schema TEXT NOT NULL);",
                ingest::tables(&schema, self.options.flag("keys"))
            ))?;
            connection.execute("INSERT INTO searchbench VALUES (?)", [text])?;
            connection.execute_batch("COMMIT")?;
            Writer::new(connection)
        });
        let writer = Mutex::new(made.map_err(failure)?);
        *open = Some(Arc::new(Open { schema, writer }));
        Ok(())
    }

    fn batch(&self, lines: &[u8]) -> Result<BatchReply, Failure> {
        self.write(lines, Change::Insert)
    }

    fn replace(&self, lines: &[u8]) -> Result<BatchReply, Failure> {
        self.write(lines, Change::Replace)
    }

    fn delete(&self, lines: &[u8]) -> Result<BatchReply, Failure> {
        self.write(lines, Change::Delete)
    }

    fn settle(&self) -> Result<(), Failure> {
        self.publish(true)
    }

    fn commit(&self) -> Result<(), Failure> {
        self.publish(false)
    }

    fn analyse(&self, text: &str) -> Result<Vec<String>, Failure> {
        let connection = self.analyser.lock().expect("no panic while held");
        let terms = || -> rusqlite::Result<Vec<String>> {
            connection.execute("DELETE FROM text", [])?;
            connection.execute("INSERT INTO text (rowid, x) VALUES (1, ?)", [text])?;
            // The vocabulary is read through its own view of the table: it sees what is written.
            let mut statement =
                connection.prepare_cached("SELECT term FROM terms ORDER BY offset")?;
            statement.query_map([], |row| row.get(0))?.collect()
        };
        terms().map_err(failure)
    }

    fn session(self: Arc<Self>) -> Box<dyn Session> {
        Box::new(Client {
            host: self,
            open: None,
        })
    }
}

/// One client's connection to the database, made at its first query.
struct Client {
    host: Arc<Sqlite>,
    open: Option<(Arc<Open>, Connection)>,
}

impl Session for Client {
    fn query(&mut self, query: &Query, out: &mut Vec<u8>) -> Result<(), Failure> {
        if self.open.is_none() {
            let open = self.host.opened()?;
            self.open = Some((open, self.host.connect().map_err(failure)?));
        }
        let (open, connection) = self.open.as_ref().expect("made above");
        let checked = query.check(&open.schema)?;
        search(connection, &checked, &open.schema)?.write(out);
        Ok(())
    }
}
