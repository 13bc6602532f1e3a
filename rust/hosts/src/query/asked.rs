//! A query as it crosses the wire: shapes and defaults, nothing of a schema.

use serde::Deserialize;
use serde_json::Value;

/// A query payload; absent keys have the defaults of FORMATS.md.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Query {
    #[serde(rename = "match")]
    pub matching: Option<Match>,
    pub filters: Vec<Filter>,
    pub sort: Vec<Sort>,
    pub facets: Vec<Facet>,
    pub group_by: Option<String>,
    pub offset: usize,
    pub limit: usize,
    pub fields: Vec<String>,
    pub snippets: Vec<String>,
}

impl Default for Query {
    fn default() -> Query {
        Query {
            matching: None,
            filters: Vec::new(),
            sort: Vec::new(),
            facets: Vec::new(),
            group_by: None,
            offset: 0,
            limit: 10,
            fields: Vec::new(),
            snippets: Vec::new(),
        }
    }
}

/// How a run of terms is to be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    Any,
    All,
    Phrase,
    Prefix,
    Fuzzy,
}

/// Terms in fields, or a composition.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "RawMatch")]
pub enum Match {
    Terms {
        mode: Mode,
        terms: Vec<String>,
        fields: Vec<String>,
        distance: u8,
    },
    Boolean {
        must: Vec<Match>,
        should: Vec<Match>,
        must_not: Vec<Match>,
    },
}

/// Both shapes at once: cheaper than trying one after another, and mistakes are named.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMatch {
    mode: Option<Mode>,
    terms: Option<Vec<String>>,
    fields: Option<Vec<String>>,
    distance: Option<u8>,
    must: Option<Vec<Match>>,
    should: Option<Vec<Match>>,
    must_not: Option<Vec<Match>>,
}

impl TryFrom<RawMatch> for Match {
    type Error = &'static str;
    fn try_from(raw: RawMatch) -> Result<Match, &'static str> {
        let composed = raw.must.is_some() || raw.should.is_some() || raw.must_not.is_some();
        match raw.mode {
            Some(_) if composed => Err("a match is either terms or a composition, not both"),
            Some(mode) => Ok(Match::Terms {
                mode,
                terms: raw.terms.ok_or("a match of terms needs \"terms\"")?,
                fields: raw.fields.ok_or("a match of terms needs \"fields\"")?,
                distance: raw.distance.unwrap_or(1),
            }),
            None if composed => Ok(Match::Boolean {
                must: raw.must.unwrap_or_default(),
                should: raw.should.unwrap_or_default(),
                must_not: raw.must_not.unwrap_or_default(),
            }),
            None => Err("a match has a \"mode\", or \"must\", \"should\" or \"must_not\""),
        }
    }
}

/// A condition that leaves scores alone.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Filter {
    Range(Range),
    In(Values),
    NotIn(Values),
}

/// A field between two bounds.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Range {
    pub field: String,
    #[serde(default)]
    pub low: Value,
    #[serde(default)]
    pub high: Value,
    #[serde(default = "yes")]
    pub include_low: bool,
    #[serde(default = "yes")]
    pub include_high: bool,
}

fn yes() -> bool {
    true
}

/// A field and some values.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Values {
    pub field: String,
    pub values: Vec<Value>,
}

/// One sort key; the field `_score` is relevance.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sort {
    pub field: String,
    #[serde(default)]
    pub descending: bool,
}

/// The most frequent values of a field.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facet {
    pub field: String,
    #[serde(default = "ten")]
    pub limit: usize,
}

fn ten() -> usize {
    10
}
