//! What is wanted of a segment, and what is compared between segments: values and candidates.

use std::cmp::Ordering;

use serde_json::Value as Json;
use tantivy::columnar::MonotonicallyMappableToU64;
use tantivy::{DocId, Score};

use crate::query::Key;
use crate::schema::FieldType;

/// What is wanted of every segment.
#[derive(Debug, Clone)]
pub struct Want {
    pub keys: Vec<Key>,
    /// How many of the best: offset + limit.
    pub best: usize,
    /// Whether scores tell documents apart; without a match they are all the same.
    pub scored: bool,
    /// The query is one term: its count is in the dictionary, so blocks of documents whose scores
    /// cannot be among the best can be skipped.
    pub prune: bool,
    /// Fields whose values are counted, and how many of the most frequent are wanted.
    pub counted: Vec<(usize, usize)>,
    /// There is one segment in all, so its most frequent values are the most frequent.
    pub alone: bool,
}

/// A value in the order of its field.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Value {
    Num(u64),
    Str(Box<str>),
}

impl Value {
    /// As in the corpus.
    pub fn json(self, kind: FieldType) -> Json {
        match self {
            Value::Str(text) => Json::from(text.into_string()),
            Value::Num(number) => match kind {
                FieldType::Float => Json::from(f64::from_u64(number)),
                FieldType::Boolean => Json::from(bool::from_u64(number)),
                _ => Json::from(i64::from_u64(number)),
            },
        }
    }
}

/// One of the best documents, comparable over all segments and parts.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub score: Score,
    /// One a sort key that is a field; None where the document lacks it.
    pub values: Vec<Option<Value>>,
    pub seq: u64,
    pub part: u32,
    pub segment: u32,
    pub doc: DocId,
}

impl Candidate {
    /// The order of hits.
    pub fn compare(&self, other: &Candidate, keys: &[Key]) -> Ordering {
        if keys.is_empty() {
            return other
                .score
                .total_cmp(&self.score)
                .then(self.seq.cmp(&other.seq));
        }
        let mut at = 0;
        for key in keys {
            let ordering = match key {
                Key::Score { descending: true } => other.score.total_cmp(&self.score),
                Key::Score { descending: false } => self.score.total_cmp(&other.score),
                Key::Field { descending, .. } => {
                    let pair = (&self.values[at], &other.values[at]);
                    at += 1;
                    match pair {
                        (Some(a), Some(b)) if *descending => b.cmp(a),
                        (Some(a), Some(b)) => a.cmp(b),
                        // Missing last, in both directions.
                        (a, b) => a.is_none().cmp(&b.is_none()),
                    }
                }
            };
            if ordering != Ordering::Equal {
                return ordering;
            }
        }
        self.seq.cmp(&other.seq)
    }
}
