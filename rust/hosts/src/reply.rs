//! Writing the reply to a query.

use std::io::Write;

use serde::Serialize;
use serde_json::Value;

/// One returned document.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    pub id: String,
    /// None where sorted by fields alone.
    pub score: Option<f32>,
    /// None where no fields were asked for.
    pub fields: Option<Value>,
    /// Pieces by field; None where no snippets were asked for.
    pub snippets: Option<Value>,
}

/// Values and how many of the matching documents have each.
pub type Counts = Vec<(Value, u64)>;

/// What a query yields.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer<'a> {
    pub total: u64,
    pub hits: Vec<Hit>,
    pub facets: Vec<(&'a str, Counts)>,
    pub groups: Counts,
}

impl Answer<'_> {
    /// Appends the JSON of FORMATS.md to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"total\":");
        put(out, &self.total);
        out.extend_from_slice(b",\"hits\":[");
        for (i, hit) in self.hits.iter().enumerate() {
            out.extend_from_slice(if i == 0 { b"[" } else { b",[" });
            put(out, &hit.id);
            out.push(b',');
            put(out, &hit.score);
            if hit.fields.is_some() || hit.snippets.is_some() {
                out.push(b',');
                put(out, &hit.fields);
            }
            if let Some(snippets) = &hit.snippets {
                out.push(b',');
                put(out, snippets);
            }
            out.push(b']');
        }
        out.extend_from_slice(b"],\"facets\":{");
        for (i, (name, counts)) in self.facets.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            put(out, name);
            out.push(b':');
            put(out, counts);
        }
        out.extend_from_slice(b"},\"groups\":");
        put(out, &self.groups);
        out.extend_from_slice(b",\"warnings\":[]}");
    }
}

fn put<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(out.by_ref(), value).expect("memory takes any JSON");
}
