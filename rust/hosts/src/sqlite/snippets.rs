//! Pieces of the stored texts around found words, by FTS5's own `snippet()`.
//!
//! It is asked of a hit once the hit is found, one field at a time and with an expression of what
//! is to be marked in that field. So it is not evaluated for every matching row, it marks nothing
//! that is excluded, and where it has nothing to mark there is no row: by itself it
//! would show the beginning of the text.

use rusqlite::{CachedStatement, Connection, Error, OptionalExtension, ffi};
use serde_json::{Map, Value as Json, json};

use super::compile::compile_sought;
use crate::query::Checked;
use crate::schema::{FieldType, Schema};

/// Terms in a piece: about as much as tantivy shows. FTS5 takes up to 64.
const PIECE_TERMS: u32 = 25;

/// What to show of every hit of one query.
pub struct Snippets<'c> {
    fields: Vec<OfField<'c>>,
}

struct OfField<'c> {
    name: &'c str,
    expression: String,
    statement: CachedStatement<'c>,
}

impl<'c> Snippets<'c> {
    /// Gathers what `query` looks for.
    pub fn new(
        connection: &'c Connection,
        query: &Checked,
        schema: &'c Schema,
    ) -> rusqlite::Result<Snippets<'c>> {
        let mut fields = Vec::new();
        for &index in &query.snippets {
            let Some(expression) = compile_sought(&query.matching, index) else {
                continue;
            };
            // Its place among the columns of the full-text table, which are the text fields.
            let before = schema.fields[..index].iter();
            let column = before.filter(|field| field.kind == FieldType::Text).count();
            let sql = format!(
                "SELECT snippet(fts, {column}, '<b>', '</b>', '…', {PIECE_TERMS}) FROM fts \
                 WHERE fts MATCH ? AND rowid = ?"
            );
            fields.push(OfField {
                name: &schema.fields[index].name,
                expression,
                statement: connection.prepare_cached(&sql)?,
            });
        }
        Ok(Snippets { fields })
    }

    /// The pieces of one document, by field; a field in which nothing is marked has none.
    pub fn of(&mut self, seq: i64) -> rusqlite::Result<Json> {
        let mut out = Map::new();
        for of_field in &mut self.fields {
            let asked = (&of_field.expression, seq);
            let row: Option<Option<String>> = of_field
                .statement
                .query_row(asked, |row| row.get(0))
                .optional()?;
            if let Some(piece) = row {
                let piece = piece.ok_or_else(no_texts)?;
                out.insert(of_field.name.to_owned(), json!([piece]));
            }
        }
        Ok(Json::Object(out))
    }
}

/// An index of an earlier version has no view of the texts: FTS5 finds what it cannot show.
fn no_texts() -> Error {
    let said = "this index was made without what snippets are read from: ingest anew".to_owned();
    Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_ERROR), Some(said))
}

#[cfg(test)]
mod tests {
    use super::super::ingest::tables;
    use super::super::tokenizer::register;
    use super::*;
    use crate::query::Query;

    #[test]
    fn an_index_without_a_view_of_its_texts_says_so_and_shows_nothing_wrong() {
        let schema: Schema = serde_json::from_str(
            r#"{"fields": [{"name": "hidden", "type": "text", "stored": false},
                {"name": "title", "type": "text", "stored": true}]}"#,
        )
        .unwrap();
        let query: Query = serde_json::from_str(
            r#"{"match": {"mode": "any", "terms": ["fox"], "fields": ["hidden", "title"]},
                "snippets": ["title"]}"#,
        )
        .unwrap();
        let query = query.check(&schema).unwrap();
        let connection = Connection::open_in_memory().unwrap();
        register(&connection).unwrap();
        let now = tables(&schema, false);
        let before = now.replace("content = 'texts', content_rowid = 'seq'", "content = ''");
        assert_ne!(now, before);
        let fill = "INSERT INTO docs VALUES (0, 'a', 'A fox!');
            INSERT INTO fts (rowid, t0, t1) VALUES (0, 'x', 'A fox!');";
        connection.execute_batch(&now).unwrap();
        connection.execute_batch(fill).unwrap();
        let shown = Snippets::new(&connection, &query, &schema)
            .unwrap()
            .of(0)
            .unwrap();
        assert_eq!(shown, json!({"title": ["A <b>fox</b>!"]}));
        connection
            .execute_batch("DROP TABLE fts; DROP VIEW texts; DROP TABLE docs;")
            .unwrap();
        connection.execute_batch(&before).unwrap();
        connection.execute_batch(fill).unwrap();
        let error = Snippets::new(&connection, &query, &schema)
            .unwrap()
            .of(0)
            .unwrap_err();
        assert!(error.to_string().contains("ingest anew"), "{error}");
    }
}
