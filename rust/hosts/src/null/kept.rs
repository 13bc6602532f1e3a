//! What the null host keeps of documents: how many there are and, with `publish_ms`, some words.
//!
//! The words that begin with `sb` are kept: those by which a measurement knows its own documents. They
//! are found `publish_ms` after the write was answered, so that what measures such times can be held
//! to a truth. Faults are injected: a document that is acknowledged and not kept, one whose words are
//! kept for another, one that is found later than the rest.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::analysis::terms;
use crate::frame;
use crate::options::Options;

/// The words that are kept begin with it.
const MARK: &str = "sb";

/// The documents, and the words of those that have any.
pub struct Kept {
    pub documents: u64,
    publish: Duration,
    late: Duration,
    /// One in so many is lost, swapped, late; 0: none.
    every: [u64; 3],
    written: u64,
    before: String,
    words: Vec<Words>,
}

struct Words {
    id: String,
    words: Vec<String>,
    visible: Instant,
}

impl Kept {
    /// Nothing yet.
    pub fn new(options: &Options) -> Kept {
        let number = |name| options.int(name) as u64;
        Kept {
            documents: 0,
            publish: Duration::from_millis(number("publish_ms")),
            late: Duration::from_millis(number("late_ms")),
            every: ["lose_every", "swap_every", "late_every"].map(number),
            written: 0,
            before: String::new(),
            words: Vec::new(),
        }
    }

    /// Takes the documents of a request, one a line; how many there were.
    pub fn write(&mut self, verb: u8, payload: &[u8], now: Instant) -> u64 {
        let mut count = 0;
        for line in payload.split(|&byte| byte == b'\n') {
            if line.trim_ascii().is_empty() {
                continue;
            }
            count += 1;
            if verb == frame::DELETE {
                self.documents = self.documents.saturating_sub(1);
            } else if self.publish.is_zero() {
                self.documents += u64::from(verb == frame::BATCH);
            } else {
                self.keep(verb, line, now);
            }
        }
        count
    }

    fn keep(&mut self, verb: u8, line: &[u8], now: Instant) {
        let document: Value = serde_json::from_slice(line).unwrap_or_default();
        let id = document["id"].as_str().unwrap_or_default().to_owned();
        let texts = document["v"]
            .as_object()
            .into_iter()
            .flat_map(|v| v.values());
        let words: Vec<String> = texts
            .filter_map(Value::as_str)
            .flat_map(terms)
            .filter(|word| word.starts_with(MARK))
            .collect();
        // Only documents of a measurement are spoiled: what was there before stays as it is.
        let number = if words.is_empty() {
            0
        } else {
            self.written + 1
        };
        let [lost, swapped, late] = self
            .every
            .map(|every| every > 0 && number > 0 && number % every == 0);
        self.written = self.written.max(number);
        if lost {
            return;
        }
        self.documents += u64::from(verb == frame::BATCH);
        if words.is_empty() {
            return;
        }
        let other = std::mem::replace(&mut self.before, id.clone());
        let wait = if late {
            self.publish + self.late
        } else {
            self.publish
        };
        self.words.push(Words {
            id: if swapped { other } else { id },
            words,
            visible: now + wait,
        });
    }

    /// The answer to a query for such a word; None where it asks for none.
    pub fn find(&self, payload: &[u8], now: Instant) -> Option<Value> {
        if self.publish.is_zero() {
            return None;
        }
        let query: Value = serde_json::from_slice(payload).ok()?;
        let asked: Vec<&str> = query["match"]["terms"]
            .as_array()?
            .iter()
            .filter_map(Value::as_str)
            .filter(|word| word.starts_with(MARK))
            .collect();
        if asked.is_empty() {
            return None;
        }
        let limit = query["limit"].as_u64().unwrap_or(10) as usize;
        let found: Vec<&Words> = self
            .words
            .iter()
            .filter(|kept| kept.visible <= now && kept.words.iter().any(|w| asked.contains(&&**w)))
            .collect();
        let hits: Vec<Value> = found
            .iter()
            .take(limit)
            .map(|kept| json!([kept.id, 1.0]))
            .collect();
        Some(json!({
            "total": found.len(), "hits": hits, "facets": {}, "groups": [], "warnings": [],
        }))
    }
}
