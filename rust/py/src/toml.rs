//! Where the keys and values of a TOML text stand, and the text with one of them changed.

use std::ops::Range;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use toml_edit::{Array, Document, DocumentMut, InlineTable, Item, Table, TableLike, Value};

/// Byte offsets to lines and columns, both from 1, columns in characters.
struct Places<'a> {
    text: &'a str,
    line_starts: Vec<usize>,
}

impl<'a> Places<'a> {
    fn new(text: &'a str) -> Places<'a> {
        let after_breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        Places {
            text,
            line_starts: std::iter::once(0).chain(after_breaks).collect(),
        }
    }

    fn place(&self, offset: usize) -> (usize, usize) {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.line_starts.partition_point(|&start| start <= offset);
        let start = self.line_starts[line - 1];
        (line, self.text[start..offset].chars().count() + 1)
    }
}

/// (path, key line, key column, value line, value column)
type Row = (Vec<String>, usize, usize, usize, usize);

struct Walk<'a> {
    places: Places<'a>,
    rows: Vec<Row>,
}

impl Walk<'_> {
    fn row(&mut self, path: &[String], key: Option<Range<usize>>, value: Option<Range<usize>>) {
        // What has no place of its own (a table that only its children's headers name) stands
        // where its key stands, and an element of an array where its value stands.
        let Some(first) = key.as_ref().or(value.as_ref()) else {
            return;
        };
        let (key_line, key_column) = self.places.place(first.start);
        let (value_line, value_column) = self
            .places
            .place(value.as_ref().map_or(first.start, |range| range.start));
        self.rows.push((
            path.to_vec(),
            key_line,
            key_column,
            value_line,
            value_column,
        ));
    }

    fn table(&mut self, path: &mut Vec<String>, table: &dyn TableLike) {
        for (name, item) in table.iter() {
            let key = table.get_key_value(name).and_then(|(key, _)| key.span());
            path.push(name.to_string());
            self.row(path, key, item.span());
            self.item(path, item);
            path.pop();
        }
    }

    fn item(&mut self, path: &mut Vec<String>, item: &Item) {
        if let Some(table) = item.as_table_like() {
            self.table(path, table);
        } else if let Some(array) = item.as_array() {
            self.array(path, array);
        } else if let Some(tables) = item.as_array_of_tables() {
            for (index, table) in tables.iter().enumerate() {
                path.push(index.to_string());
                self.row(path, None, table.span());
                self.table(path, table);
                path.pop();
            }
        }
    }

    fn array(&mut self, path: &mut Vec<String>, array: &Array) {
        for (index, value) in array.iter().enumerate() {
            path.push(index.to_string());
            self.row(path, None, value.span());
            match value {
                Value::Array(inner) => self.array(path, inner),
                Value::InlineTable(inner) => self.table(path, inner),
                _ => {}
            }
            path.pop();
        }
    }
}

type PyRow<'py> = (Bound<'py, PyTuple>, usize, usize, usize, usize);

/// Place of every key of a TOML text: (path, key line, key column, value line, value column).
///
/// Lines and columns count from 1, columns in characters. Array elements have their index as a
/// path part. ValueError with ``line:column: message`` where the text is not TOML.
#[pyfunction]
pub fn toml_spans<'py>(py: Python<'py>, text: &str) -> PyResult<Vec<PyRow<'py>>> {
    let mut walk = Walk {
        places: Places::new(text),
        rows: Vec::new(),
    };
    let document = Document::parse(text).map_err(|error| {
        let (line, column) = walk.places.place(error.span().map_or(0, |span| span.start));
        let message = error.message().trim().replace('\n', ", ");
        PyValueError::new_err(format!("{line}:{column}: {message}"))
    })?;
    walk.table(&mut Vec::new(), document.as_table());
    walk.rows
        .into_iter()
        .map(|(path, a, b, c, d)| Ok((PyTuple::new(py, path)?, a, b, c, d)))
        .collect()
}

/// A TOML text with one value set; comments and all else stay as they are.
///
/// ``path`` as in ``toml_spans``. Tables that are missing are made; what is put into an array goes
/// to its end. ``value``: one TOML value. ValueError where either text is not TOML, and where the
/// path leads through what is no table.
#[pyfunction]
pub fn toml_set(text: &str, path: Vec<String>, value: &str) -> PyResult<String> {
    let not_toml = |error: toml_edit::TomlError| {
        PyValueError::new_err(error.message().trim().replace('\n', ", "))
    };
    let mut document: DocumentMut = text.parse().map_err(not_toml)?;
    let value: Value = value.trim().parse().map_err(not_toml)?;
    let no_table = |part: &str| PyValueError::new_err(format!("`{part}` is not in a table"));
    let Some((last, before)) = path.split_last() else {
        return Err(no_table(""));
    };
    let mut at = document.as_item_mut();
    for part in before {
        let inline = at.is_inline_table();
        let missing = || match inline {
            true => Item::Value(InlineTable::new().into()),
            false => Item::Table(Table::new()),
        };
        let table = at.as_table_like_mut().ok_or_else(|| no_table(part))?;
        at = table.entry(part).or_insert_with(missing);
    }
    if let Some(table) = at.as_table_like_mut() {
        let item = table.entry(last).or_insert(Item::None);
        let decor = item.as_value().map(|old| old.decor().clone());
        let mut value = value;
        if let Some(decor) = decor {
            *value.decor_mut() = decor;
        }
        *item = Item::Value(value);
    } else if let (Some(tables), Value::InlineTable(table)) =
        (at.as_array_of_tables_mut(), value.clone())
    {
        tables.push(table.into_table());
    } else if let Some(array) = at.as_array_mut() {
        array.push(value);
    } else {
        return Err(no_table(last));
    }
    Ok(document.to_string())
}
