//! One pass over a segment: exact total, the best documents, counts by value.

use std::collections::HashMap;

use tantivy::query::Weight;
use tantivy::{DocId, Score, SegmentReader};

use super::best::{BestByKeys, BestByScore};
use super::candidate::{Candidate, Value, Want};
use super::tally::Tally;
use super::view::SegmentView;
use crate::query::Key;

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
    // A weight goes over deleted documents too.
    let alive = |doc: DocId| reader.alive_bitset().is_none_or(|bits| bits.is_alive(doc));
    let hits = if want.best == 0 {
        if tallies.is_empty() {
            total = u64::from(weight.count(reader)?);
        } else {
            weight.for_each_no_score(reader, &mut |docs| {
                for &doc in docs.iter().filter(|&&doc| alive(doc)) {
                    total += 1;
                    tallies.iter_mut().for_each(|tally| tally.count(doc));
                }
            })?;
        }
        Vec::new()
    } else if want.keys.is_empty() && want.scored {
        let mut best = BestByScore::new(want.best, view);
        if want.prune && tallies.is_empty() {
            total = u64::from(weight.count(reader)?);
            weight.for_each_pruning(Score::MIN, reader, &mut |doc, score| {
                if alive(doc) {
                    best.offer(doc, score);
                }
                best.below_bar()
            })?;
        } else if tallies.is_empty() {
            weight.for_each(reader, &mut |doc, score| {
                if !alive(doc) {
                    return;
                }
                total += 1;
                best.offer(doc, score);
            })?;
        } else {
            weight.for_each(reader, &mut |doc, score| {
                if !alive(doc) {
                    return;
                }
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
                if !alive(doc) {
                    return;
                }
                total += 1;
                best.offer(doc, score);
                tallies.iter_mut().for_each(|tally| tally.count(doc));
            })?;
        } else {
            weight.for_each_no_score(reader, &mut |docs| {
                for &doc in docs.iter().filter(|&&doc| alive(doc)) {
                    total += 1;
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
