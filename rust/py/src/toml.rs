//! Where the keys and values of a TOML text stand.

use std::ops::Range;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use toml_edit::{Array, Document, Item, TableLike, Value};

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
