//! The best documents of a segment, by score or by sort keys, in memory for as many as are wanted.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use tantivy::columnar::Column;
use tantivy::{DocId, Score};

use super::candidate::{Candidate, Value, Want};
use super::view::{FastColumn, SegmentView};
use crate::query::Key;

/// The best by score, ties by order of ingest. The heap's top is the worst that is kept.
pub struct BestByScore<'v> {
    size: usize,
    /// A score below it is not among the best.
    bar: Score,
    view: &'v SegmentView,
    heap: BinaryHeap<Scored>,
}

#[derive(PartialEq)]
struct Scored {
    score: Score,
    seq: u64,
    doc: DocId,
}

impl Eq for Scored {}

impl PartialOrd for Scored {
    fn partial_cmp(&self, other: &Scored) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scored {
    fn cmp(&self, other: &Scored) -> Ordering {
        other
            .score
            .total_cmp(&self.score)
            .then(self.seq.cmp(&other.seq))
    }
}

impl<'v> BestByScore<'v> {
    pub fn new(size: usize, view: &'v SegmentView) -> BestByScore<'v> {
        BestByScore {
            size,
            bar: Score::NEG_INFINITY,
            view,
            heap: BinaryHeap::with_capacity(size.min(1024)),
        }
    }

    /// Takes notice of a document; nearly all are below the bar and cost one comparison.
    #[inline]
    pub fn offer(&mut self, doc: DocId, score: Score) {
        if score >= self.bar {
            self.consider(doc, score);
        }
    }

    #[cold]
    fn consider(&mut self, doc: DocId, score: Score) {
        let seq = self.view.seq.get_val(doc);
        let entry = Scored { score, seq, doc };
        if self.heap.len() < self.size {
            self.heap.push(entry);
        } else if let Some(mut worst) = self.heap.peek_mut()
            && entry < *worst
        {
            *worst = entry;
        }
        if self.heap.len() == self.size
            && let Some(worst) = self.heap.peek()
        {
            self.bar = worst.score;
        }
    }

    /// What a score must exceed to be of interest: one that only equals the worst kept can still
    /// be earlier in the order of ingest, so it is just below the bar.
    pub fn below_bar(&self) -> Score {
        self.bar.next_down()
    }

    pub fn candidates(self, (part, segment): (u32, u32)) -> Vec<Candidate> {
        let sorted = self.heap.into_sorted_vec();
        sorted
            .into_iter()
            .map(|Scored { score, seq, doc }| Candidate {
                score,
                values: Vec::new(),
                seq,
                part,
                segment,
                doc,
            })
            .collect()
    }
}

/// The best by sort keys. Within a segment a key is a number: the ordinal of a string, a number
/// in its order, a score; complemented where descending, above all others where missing.
pub struct BestByKeys<'v> {
    size: usize,
    readers: Vec<KeyReader<'v>>,
    view: &'v SegmentView,
    heap: BinaryHeap<Keyed>,
    /// Ordinals need no strings where they are compared with those of no other segment.
    alone: bool,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Keyed {
    first: u128,
    rest: Box<[u128]>,
    seq: u64,
    doc: DocId,
    score: Reverse<u32>,
}

const MISSING: u128 = u128::MAX;

struct KeyReader<'v> {
    descending: bool,
    source: Source<'v>,
}

enum Source<'v> {
    Score,
    Nothing,
    Column {
        numbers: &'v Column<u64>,
        column: &'v FastColumn,
    },
}

impl KeyReader<'_> {
    fn key(&self, doc: DocId, score: Score) -> u128 {
        let number = match &self.source {
            Source::Nothing => return MISSING,
            Source::Score => u64::from(ordered(score)),
            Source::Column { numbers, .. } => {
                // Of several values the one that brings the document furthest to the front.
                let mut values = numbers.values_for_doc(doc);
                let Some(first) = values.next() else {
                    return MISSING;
                };
                if self.descending {
                    values.fold(first, u64::max)
                } else {
                    values.fold(first, u64::min)
                }
            }
        };
        u128::from(if self.descending { !number } else { number })
    }
}

/// A score as a number of the same order.
fn ordered(score: Score) -> u32 {
    let bits = score.to_bits();
    if bits >> 31 == 0 {
        bits | 1 << 31
    } else {
        !bits
    }
}

fn from_ordered(bits: u32) -> Score {
    Score::from_bits(if bits >> 31 == 1 {
        bits & !(1 << 31)
    } else {
        !bits
    })
}

impl<'v> BestByKeys<'v> {
    pub fn new(want: &Want, view: &'v SegmentView) -> BestByKeys<'v> {
        let readers = want.keys.iter().map(|key| match *key {
            Key::Score { descending } => KeyReader {
                descending,
                source: Source::Score,
            },
            Key::Field { field, descending } => {
                let column = &view.columns[field];
                let source = match column {
                    FastColumn::Absent => Source::Nothing,
                    FastColumn::Str(strings) => Source::Column {
                        numbers: strings.ords(),
                        column,
                    },
                    FastColumn::Num(numbers) => Source::Column { numbers, column },
                };
                KeyReader { descending, source }
            }
        });
        BestByKeys {
            size: want.best,
            readers: readers.collect(),
            view,
            heap: BinaryHeap::with_capacity(want.best.min(1024)),
            alone: want.alone,
        }
    }

    pub fn offer(&mut self, doc: DocId, score: Score) {
        let (head, tail) = match self.readers.split_first() {
            Some((head, tail)) => (head.key(doc, score), tail),
            None => (0, &[][..]),
        };
        let full = self.heap.len() == self.size;
        if full && self.heap.peek().is_some_and(|worst| head > worst.first) {
            return;
        }
        let entry = Keyed {
            first: head,
            rest: tail.iter().map(|reader| reader.key(doc, score)).collect(),
            seq: self.view.seq.get_val(doc),
            doc,
            score: Reverse(ordered(score)),
        };
        if !full {
            self.heap.push(entry);
        } else if let Some(mut worst) = self.heap.peek_mut()
            && entry < *worst
        {
            *worst = entry;
        }
    }

    pub fn candidates(self, (part, segment): (u32, u32)) -> tantivy::Result<Vec<Candidate>> {
        let BestByKeys {
            readers,
            heap,
            alone,
            ..
        } = self;
        heap.into_sorted_vec()
            .into_iter()
            .map(|entry| {
                let keys = std::iter::once(entry.first).chain(entry.rest.iter().copied());
                let mut values = Vec::new();
                for (reader, key) in readers.iter().zip(keys) {
                    let number = if reader.descending {
                        !(key as u64)
                    } else {
                        key as u64
                    };
                    match &reader.source {
                        Source::Score => {}
                        _ if key == MISSING => values.push(None),
                        Source::Nothing => values.push(None),
                        Source::Column {
                            column: FastColumn::Str(strings),
                            ..
                        } if !alone => {
                            let mut text = String::new();
                            strings.ord_to_str(number, &mut text)?;
                            values.push(Some(Value::Str(text.into())));
                        }
                        Source::Column { .. } => values.push(Some(Value::Num(number))),
                    }
                }
                let score = from_ordered(entry.score.0);
                Ok(Candidate {
                    score,
                    values,
                    seq: entry.seq,
                    part,
                    segment,
                    doc: entry.doc,
                })
            })
            .collect()
    }
}
