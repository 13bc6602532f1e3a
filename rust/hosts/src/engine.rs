//! What a library host must be able to do, whatever library is inside.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;
use crate::query::Query;
use crate::schema::Schema;

/// What became of a batch.
#[derive(Debug, Default, Serialize)]
pub struct BatchReply {
    /// Documents taken.
    pub accepted: u64,
    /// Documents left out; the others of the batch are in.
    pub refused: Vec<Refused>,
}

/// One document that was left out, and why.
#[derive(Debug, Serialize)]
pub struct Refused {
    /// Its id, empty where it has none.
    pub id: String,
    /// One sentence.
    pub reason: String,
}

/// One library behind the framed protocol.
pub trait Engine: Send + Sync + 'static {
    /// The reply to `facts`.
    fn facts(&self) -> Result<Value, Failure>;
    /// Makes an empty index; an index that exists is an error.
    fn create(&self, schema: Schema) -> Result<(), Failure>;
    /// Takes documents, one JSON line each.
    fn batch(&self, lines: &[u8]) -> Result<BatchReply, Failure>;
    /// Puts each document in the place of the one with its id; it is then the last of all.
    fn replace(&self, lines: &[u8]) -> Result<BatchReply, Failure>;
    /// Removes the documents whose ids stand in the lines.
    fn delete(&self, lines: &[u8]) -> Result<BatchReply, Failure>;
    /// Commits, merges as the parameters say, reloads.
    fn settle(&self) -> Result<(), Failure>;
    /// Commits and reloads without merging.
    fn commit(&self) -> Result<(), Failure>;
    /// The terms of a text as the library sees them.
    fn analyse(&self, text: &str) -> Result<Vec<String>, Failure>;
    /// What one connection keeps to itself: its searcher, its prepared statements.
    fn session(self: Arc<Self>) -> Box<dyn Session>;
}

/// One connection's side of an engine.
pub trait Session: Send {
    /// Appends the JSON reply to `out`; on failure `out` may hold a part of one.
    fn query(&mut self, query: &Query, out: &mut Vec<u8>) -> Result<(), Failure>;
}
