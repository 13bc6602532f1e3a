//! One pass over a segment: exact total, the best documents, counts by value.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap};

use serde_json::Value as Json;
use tantivy::columnar::{Column, MonotonicallyMappableToU64};
use tantivy::query::Weight;
use tantivy::{DocId, Score, SegmentReader};

use super::view::{FastColumn, SegmentView};
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

/// What a segment, a part, or all parts yield.
#[derive(Debug, Default)]
pub struct Found {
    pub total: u64,
    /// Best first.
    pub hits: Vec<Candidate>,
    /// One a counted field.
    pub counts: Vec<HashMap<Value, u64>>,
}

/// Collects one segment of one part.
pub fn collect(
    want: &Want,
    weight: &dyn Weight,
    reader: &SegmentReader,
    view: &SegmentView,
    place: (u32, u32),
) -> tantivy::Result<Found> {
    let mut tallies: Vec<Tally> = want
        .counted
        .iter()
        .map(|&(field, _)| Tally::new(&view.columns[field]))
        .collect();
    let mut total = 0u64;
    let hits = if want.best == 0 {
        if tallies.is_empty() {
            total = u64::from(weight.count(reader)?);
        } else {
            weight.for_each_no_score(reader, &mut |docs| {
                total += docs.len() as u64;
                docs.iter()
                    .for_each(|&doc| tallies.iter_mut().for_each(|tally| tally.count(doc)));
            })?;
        }
        Vec::new()
    } else if want.keys.is_empty() && want.scored {
        let mut best = BestByScore::new(want.best, view);
        if want.prune && tallies.is_empty() {
            total = u64::from(weight.count(reader)?);
            weight.for_each_pruning(Score::MIN, reader, &mut |doc, score| {
                best.offer(doc, score);
                best.below_bar()
            })?;
        } else if tallies.is_empty() {
            weight.for_each(reader, &mut |doc, score| {
                total += 1;
                best.offer(doc, score);
            })?;
        } else {
            weight.for_each(reader, &mut |doc, score| {
                total += 1;
                best.offer(doc, score);
                tallies.iter_mut().for_each(|tally| tally.count(doc));
            })?;
        }
        best.candidates(place)
    } else {
        let mut best = BestByKeys::new(want, view);
        if want.scored && want.keys.iter().any(|key| matches!(key, Key::Score { .. })) {
            weight.for_each(reader, &mut |doc, score| {
                total += 1;
                best.offer(doc, score);
                tallies.iter_mut().for_each(|tally| tally.count(doc));
            })?;
        } else {
            weight.for_each_no_score(reader, &mut |docs| {
                total += docs.len() as u64;
                for &doc in docs {
                    best.offer(doc, 1.0);
                    tallies.iter_mut().for_each(|tally| tally.count(doc));
                }
            })?;
        }
        best.candidates(place)?
    };
    let counts = tallies
        .into_iter()
        .zip(&want.counted)
        .map(|(tally, &(_, limit))| tally.by_value(want.alone.then_some(limit)))
        .collect::<tantivy::Result<_>>()?;
    Ok(Found {
        total,
        hits,
        counts,
    })
}

/// The best by score, ties by order of ingest. The heap's top is the worst that is kept.
struct BestByScore<'v> {
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
    fn new(size: usize, view: &'v SegmentView) -> BestByScore<'v> {
        BestByScore {
            size,
            bar: Score::NEG_INFINITY,
            view,
            heap: BinaryHeap::with_capacity(size.min(1024)),
        }
    }

    /// Takes notice of a document; nearly all are below the bar and cost one comparison.
    #[inline]
    fn offer(&mut self, doc: DocId, score: Score) {
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
    fn below_bar(&self) -> Score {
        self.bar.next_down()
    }

    fn candidates(self, (part, segment): (u32, u32)) -> Vec<Candidate> {
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
struct BestByKeys<'v> {
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
    fn new(want: &Want, view: &'v SegmentView) -> BestByKeys<'v> {
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

    fn offer(&mut self, doc: DocId, score: Score) {
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

    fn candidates(self, (part, segment): (u32, u32)) -> tantivy::Result<Vec<Candidate>> {
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

/// Counts of the values of one field in one segment.
enum Tally<'v> {
    Nothing,
    Str {
        column: &'v tantivy::columnar::StrColumn,
        counts: Vec<u32>,
        seen: Vec<u64>,
    },
    Num {
        column: &'v Column<u64>,
        counts: HashMap<u64, u32>,
    },
}

impl<'v> Tally<'v> {
    fn new(column: &'v FastColumn) -> Tally<'v> {
        match column {
            FastColumn::Absent => Tally::Nothing,
            FastColumn::Str(column) => Tally::Str {
                column,
                counts: vec![0; column.num_terms()],
                seen: Vec::new(),
            },
            FastColumn::Num(column) => Tally::Num {
                column,
                counts: HashMap::new(),
            },
        }
    }

    /// A document counts once for each of its distinct values.
    fn count(&mut self, doc: DocId) {
        match self {
            Tally::Nothing => {}
            Tally::Str {
                column,
                counts,
                seen,
            } => {
                seen.clear();
                for ord in column.ords().values_for_doc(doc) {
                    if !seen.contains(&ord) {
                        seen.push(ord);
                        counts[ord as usize] += 1;
                    }
                }
            }
            Tally::Num { column, counts } => {
                if let Some(number) = column.first(doc) {
                    *counts.entry(number).or_default() += 1;
                }
            }
        }
    }

    /// Counts by value; only the `limit` most frequent if given, ties by value.
    fn by_value(self, limit: Option<usize>) -> tantivy::Result<HashMap<Value, u64>> {
        let mut out = HashMap::new();
        match self {
            Tally::Nothing => {}
            Tally::Num { counts, .. } => {
                out.extend(
                    counts
                        .into_iter()
                        .map(|(number, n)| (Value::Num(number), u64::from(n))),
                );
            }
            Tally::Str { column, counts, .. } => {
                let mut present: Vec<(u64, u32)> = (0u64..)
                    .zip(counts)
                    .filter(|&(_, count)| count > 0)
                    .collect();
                if let Some(limit) = limit
                    && limit < present.len()
                {
                    // Ordinals are in the order of their values.
                    present
                        .select_nth_unstable_by_key(limit, |&(ord, count)| (Reverse(count), ord));
                    present.truncate(limit);
                    present.sort_unstable();
                }
                let (ords, counts): (Vec<u64>, Vec<u32>) = present.into_iter().unzip();
                let mut counts = counts.into_iter();
                column.dictionary().sorted_ords_to_term_cb(&ords, |term| {
                    let count = counts.next().unwrap_or(0);
                    out.insert(
                        Value::Str(String::from_utf8_lossy(term).into()),
                        u64::from(count),
                    );
                })?;
            }
        }
        Ok(out)
    }
}
