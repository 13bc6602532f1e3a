//! Tables, and the one connection that writes.

use rusqlite::types::{Null, ToSqlOutput, Value as Sql, ValueRef};
use rusqlite::{CachedStatement, Connection, ToSql, params_from_iter};

use crate::engine::{BatchReply, Refused};
use crate::ids::Ids;
use crate::schema::{Document, FieldType, Schema, Value, parse_document};

/// Documents in one transaction at most; more of them only make the log longer.
const DOCUMENTS_PER_TRANSACTION: u64 = 50_000;
/// Bytes that FTS5 gathers in memory before it writes a segment; its own default of 1 MiB makes
/// many small ones, which are merged again and again.
const FTS_MEMORY_BYTES: u32 = 64 << 20;

/// What is done with the documents of a request.
#[derive(Clone, Copy, PartialEq)]
pub enum Change {
    Insert,
    Replace,
    Delete,
}

/// The statements that make the tables, empty; `keys`: with an index of ids.
pub fn tables(schema: &Schema, keys: bool) -> String {
    let mut docs = "CREATE TABLE docs (seq INTEGER PRIMARY KEY, id TEXT NOT NULL".to_owned();
    let mut others = String::new();
    let (mut texts, mut contents) = (Vec::new(), Vec::new());
    for (index, field) in schema.fields.iter().enumerate() {
        let kind = match field.kind {
            FieldType::Text | FieldType::Keyword | FieldType::Keywords => "TEXT",
            FieldType::Integer | FieldType::Date | FieldType::Boolean => "INTEGER",
            FieldType::Float => "REAL",
        };
        if has_column(schema, index) {
            docs += &format!(", c{index} {kind}");
        }
        if field.kind == FieldType::Text {
            texts.push(format!("t{index}"));
            let column = if field.stored {
                format!("c{index}")
            } else {
                "NULL".to_owned()
            };
            contents.push(format!("{column} AS t{index}"));
        }
        if field.kind == FieldType::Keywords {
            others += &format!(
                "CREATE TABLE k{index} (value TEXT NOT NULL, doc INTEGER NOT NULL, \
                 PRIMARY KEY (doc, value)) WITHOUT ROWID;"
            );
        }
    }
    if !texts.is_empty() {
        // FTS5 keeps no text of its own. What it shows of one it reads through the view, which is a
        // name for columns of `docs`: nothing is written twice, nothing read while searching.
        others += &format!(
            "CREATE VIEW texts AS SELECT seq, {} FROM docs;\
             CREATE VIRTUAL TABLE fts USING fts5({}, content = 'texts', content_rowid = 'seq', \
             tokenize = 'declared');\
             INSERT INTO fts (fts, rank) VALUES ('hashsize', {FTS_MEMORY_BYTES});",
            contents.join(", "),
            texts.join(", ")
        );
    }
    if keys {
        others += "CREATE UNIQUE INDEX docs_id ON docs (id);";
    }
    format!("{docs});{others}")
}

/// The statements that settle: the full-text index merged, indexes on what can be filtered,
/// statistics for the planner.
pub fn settling(schema: &Schema, merged: bool) -> String {
    let mut sql = String::new();
    if merged
        && schema
            .fields
            .iter()
            .any(|field| field.kind == FieldType::Text)
    {
        sql += "INSERT INTO fts (fts) VALUES ('optimize');";
    }
    for (index, field) in schema.fields.iter().enumerate() {
        match field.kind {
            FieldType::Text => {}
            FieldType::Keywords => {
                sql +=
                    &format!("CREATE INDEX IF NOT EXISTS k{index}_value ON k{index} (value, doc);");
            }
            _ => sql += &format!("CREATE INDEX IF NOT EXISTS c{index}_docs ON docs (c{index});"),
        }
    }
    sql + "ANALYZE;"
}

/// Whether `docs` has a column for the field: for filters, or to return it.
fn has_column(schema: &Schema, index: usize) -> bool {
    let field = &schema.fields[index];
    field.stored || !matches!(field.kind, FieldType::Text | FieldType::Keywords)
}

/// The writing connection and what it must know.
pub struct Writer {
    pub connection: Connection,
    pub next_seq: i64,
    ids: Option<Ids>,
    in_transaction: u64,
    /// Why nothing more can be written: the documents since the last commit are lost.
    broken: Option<String>,
}

impl Writer {
    /// Goes on after the documents that are there.
    pub fn new(connection: Connection) -> rusqlite::Result<Writer> {
        let next_seq =
            connection.query_row("SELECT coalesce(max(seq), -1) + 1 FROM docs", [], |r| {
                r.get(0)
            })?;
        Ok(Writer {
            connection,
            next_seq,
            ids: None,
            in_transaction: 0,
            broken: None,
        })
    }

    /// Adds, replaces or removes the documents of a request.
    pub fn write(
        &mut self,
        lines: &str,
        schema: &Schema,
        change: Change,
    ) -> Result<BatchReply, String> {
        if let Some(reason) = &self.broken {
            return Err(format!(
                "an earlier batch failed and its documents are lost: {reason}"
            ));
        }
        self.try_write(lines, schema, change).map_err(|error| {
            let reason = format!("SQLite: {error}");
            self.broken = Some(reason.clone());
            reason
        })
    }

    fn try_write(
        &mut self,
        lines: &str,
        schema: &Schema,
        change: Change,
    ) -> rusqlite::Result<BatchReply> {
        let mut reply = BatchReply::default();
        if self.ids.is_none() {
            let mut ids = Ids::new();
            let mut statement = self.connection.prepare("SELECT id FROM docs")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                ids.take(row.get_ref(0)?.as_str()?);
            }
            self.ids = Some(ids);
        }
        let ids = self.ids.as_mut().expect("made above");
        if self.in_transaction == 0 {
            self.connection.execute_batch("BEGIN IMMEDIATE")?;
        }
        let mut inserts = Inserts::new(&self.connection, schema)?;
        for line in lines.lines().filter(|line| !line.trim().is_empty()) {
            let document = match parse_document(line, schema) {
                Ok(document) => document,
                Err((id, reason)) => {
                    reply.refused.push(Refused { id, reason });
                    continue;
                }
            };
            let there = change != Change::Insert && ids.give_back(&document.id);
            if there {
                remove(&self.connection, &document.id, schema)?;
            }
            if change == Change::Delete {
                reply.accepted += u64::from(there);
                if !there {
                    let id = document.id.into_owned();
                    let reason = format!("there is no document with id {id:?}");
                    reply.refused.push(Refused { id, reason });
                }
                continue;
            }
            if !ids.take(&document.id) {
                let id = document.id.into_owned();
                let reason = format!("a document with id {id:?} is in the index already");
                reply.refused.push(Refused { id, reason });
                continue;
            }
            inserts.insert(&document, self.next_seq)?;
            self.next_seq += 1;
            reply.accepted += 1;
        }
        drop(inserts);
        // At least 1, for the transaction is open even if the batch had no document to keep.
        self.in_transaction += reply.accepted.max(1);
        if self.in_transaction >= DOCUMENTS_PER_TRANSACTION {
            self.commit_now()?;
        }
        Ok(reply)
    }

    fn commit_now(&mut self) -> rusqlite::Result<()> {
        if self.in_transaction > 0 {
            self.connection.execute_batch("COMMIT")?;
            self.in_transaction = 0;
        }
        Ok(())
    }

    /// Ends the transaction, if one is open.
    pub fn commit(&mut self) -> Result<(), String> {
        if let Some(reason) = &self.broken {
            return Err(format!(
                "an earlier batch failed and its documents are lost: {reason}"
            ));
        }
        self.commit_now().map_err(|error| {
            let reason = format!("SQLite: {error}");
            self.broken = Some(reason.clone());
            reason
        })
    }
}

/// Takes a document out of the full-text index, the lists and the table.
fn remove(connection: &Connection, id: &str, schema: &Schema) -> rusqlite::Result<()> {
    let seq: i64 = connection
        .prepare_cached("SELECT seq FROM docs WHERE id = ?")?
        .query_row([id], |row| row.get(0))?;
    let of = |kind: FieldType| {
        let all = 0..schema.fields.len();
        all.filter(move |&index| schema.fields[index].kind == kind)
    };
    let texts: Vec<usize> = of(FieldType::Text).collect();
    if !texts.is_empty() {
        let list = |mark: char| {
            let names = texts.iter().map(|index| format!("{mark}{index}"));
            names.collect::<Vec<_>>().join(", ")
        };
        let sql = format!(
            "INSERT INTO fts (fts, rowid, {}) SELECT 'delete', seq, {} FROM docs WHERE seq = ?",
            list('t'),
            list('c')
        );
        connection.prepare_cached(&sql)?.execute([seq])?;
    }
    for index in of(FieldType::Keywords) {
        let sql = format!("DELETE FROM k{index} WHERE doc = ?");
        connection.prepare_cached(&sql)?.execute([seq])?;
    }
    connection
        .prepare_cached("DELETE FROM docs WHERE seq = ?")?
        .execute([seq])?;
    Ok(())
}

/// A value of a document as a parameter, without a copy.
struct Bound<'a>(Option<&'a Value<'a>>);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            None => ToSqlOutput::from(Null),
            Some(Value::Str(text)) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Some(Value::Int(number)) => ToSqlOutput::from(*number),
            Some(Value::Float(number)) => ToSqlOutput::from(*number),
            Some(Value::Bool(flag)) => ToSqlOutput::from(i64::from(*flag)),
            Some(Value::Strs(texts)) => {
                let list = serde_json::to_string(texts).expect("memory takes any JSON");
                ToSqlOutput::Owned(Sql::Text(list))
            }
        })
    }
}

/// The statements of one batch.
struct Inserts<'c> {
    docs: CachedStatement<'c>,
    columns: Vec<usize>,
    fts: Option<CachedStatement<'c>>,
    texts: Vec<usize>,
    lists: Vec<(usize, CachedStatement<'c>)>,
}

impl<'c> Inserts<'c> {
    fn new(connection: &'c Connection, schema: &Schema) -> rusqlite::Result<Inserts<'c>> {
        let all = 0..schema.fields.len();
        let of = |kind: FieldType| {
            all.clone()
                .filter(|&index| schema.fields[index].kind == kind)
                .collect::<Vec<_>>()
        };
        let columns: Vec<usize> = all
            .clone()
            .filter(|&index| has_column(schema, index))
            .collect();
        let marks = |count: usize| vec!["?"; count].join(",");
        let docs = format!("INSERT INTO docs VALUES ({})", marks(columns.len() + 2));
        let texts = of(FieldType::Text);
        let fts = match texts.as_slice() {
            [] => None,
            texts => {
                let names: Vec<String> = texts.iter().map(|index| format!("t{index}")).collect();
                let marks = marks(texts.len() + 1);
                let sql = format!(
                    "INSERT INTO fts (rowid, {}) VALUES ({marks})",
                    names.join(", ")
                );
                Some(connection.prepare_cached(&sql)?)
            }
        };
        let lists = of(FieldType::Keywords)
            .into_iter()
            .map(|index| {
                let sql = format!("INSERT OR IGNORE INTO k{index} (value, doc) VALUES (?, ?)");
                Ok((index, connection.prepare_cached(&sql)?))
            })
            .collect::<rusqlite::Result<_>>()?;
        Ok(Inserts {
            docs: connection.prepare_cached(&docs)?,
            columns,
            fts,
            texts,
            lists,
        })
    }

    fn insert(&mut self, document: &Document, seq: i64) -> rusqlite::Result<()> {
        let value = |index: usize| {
            Bound(
                document
                    .values
                    .iter()
                    .find(|(i, _)| *i == index)
                    .map(|(_, value)| value),
            )
        };
        self.docs.raw_bind_parameter(1, seq)?;
        self.docs.raw_bind_parameter(2, document.id.as_ref())?;
        for (at, &index) in self.columns.iter().enumerate() {
            self.docs.raw_bind_parameter(at + 3, value(index))?;
        }
        self.docs.raw_execute()?;
        if let Some(fts) = &mut self.fts {
            fts.raw_bind_parameter(1, seq)?;
            for (at, &index) in self.texts.iter().enumerate() {
                fts.raw_bind_parameter(at + 2, value(index))?;
            }
            fts.raw_execute()?;
        }
        for (index, list) in &mut self.lists {
            if let Bound(Some(Value::Strs(texts))) = value(*index) {
                for text in texts {
                    let pair: [&dyn ToSql; 2] = [&text.as_ref(), &seq];
                    list.execute(params_from_iter(pair))?;
                }
            }
        }
        Ok(())
    }
}
