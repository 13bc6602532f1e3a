//! How many documents have each value of a field.

use std::cmp::Reverse;
use std::collections::HashMap;

use tantivy::DocId;
use tantivy::columnar::Column;

use super::candidate::Value;
use super::view::FastColumn;

/// Counts of the values of one field in one segment.
pub enum Tally<'v> {
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
    pub fn new(column: &'v FastColumn) -> Tally<'v> {
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
    pub fn count(&mut self, doc: DocId) {
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
    pub fn by_value(self, limit: Option<usize>) -> tantivy::Result<HashMap<Value, u64>> {
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
