//! A query held to a schema: names resolved, values fitted to the types of their fields, so that
//! every engine refuses the same things in the same words.

use std::cmp::Ordering;
use std::ops::Bound;

use serde_json::Value;

use super::asked::{Filter, Match, Mode, Query, Sort};
use crate::analysis::is_term;
use crate::failure::Failure;
use crate::schema::{FieldType, Schema};

/// A value that fits the type of its field: dates are integers.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar {
    Str(String),
    Int(i64),
    Float(f64),
    Bool(bool),
}

impl Scalar {
    /// The order of values of one type; both must be of the type of one field.
    pub fn compare(&self, other: &Scalar) -> Ordering {
        match (self, other) {
            (Scalar::Str(a), Scalar::Str(b)) => a.cmp(b),
            (Scalar::Int(a), Scalar::Int(b)) => a.cmp(b),
            (Scalar::Float(a), Scalar::Float(b)) => a.total_cmp(b),
            (Scalar::Bool(a), Scalar::Bool(b)) => a.cmp(b),
            _ => unreachable!("both fit the type of one field"),
        }
    }
}

/// A checked match; fields by index, all of type text. Terms that no analysis yields are gone,
/// and so is what they make impossible.
#[derive(Debug, Clone)]
pub enum Matching {
    /// Every document.
    All,
    /// None.
    Nothing,
    Terms {
        mode: Mode,
        terms: Vec<String>,
        fields: Vec<usize>,
        distance: u8,
    },
    Boolean {
        must: Vec<Matching>,
        should: Vec<Matching>,
        must_not: Vec<Matching>,
    },
}

/// A checked filter.
#[derive(Debug, Clone)]
pub enum Condition {
    /// No document passes.
    Never,
    Range {
        field: usize,
        low: Bound<Scalar>,
        high: Bound<Scalar>,
    },
    In {
        field: usize,
        values: Vec<Scalar>,
        negated: bool,
    },
}

/// A checked sort key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    Score { descending: bool },
    Field { field: usize, descending: bool },
}

/// A query that fits a schema.
#[derive(Debug, Clone)]
pub struct Checked {
    pub matching: Matching,
    pub conditions: Vec<Condition>,
    /// Empty: by relevance, highest first.
    pub keys: Vec<Key>,
    pub facets: Vec<(usize, usize)>,
    pub group_by: Option<usize>,
    pub offset: usize,
    pub limit: usize,
    pub fields: Vec<usize>,
    /// Stored text fields, each once.
    pub snippets: Vec<usize>,
}

impl Checked {
    /// Whether hits carry a score: sorted by relevance, or by keys of which relevance is one.
    pub fn scored(&self) -> bool {
        self.keys.is_empty() || self.keys.iter().any(|key| matches!(key, Key::Score { .. }))
    }
}

impl Query {
    /// Resolves names and values against `schema`.
    pub fn check(&self, schema: &Schema) -> Result<Checked, Failure> {
        let matching = match &self.matching {
            None => Matching::All,
            Some(matching) => check_match(matching, schema)?,
        };
        let conditions = self
            .filters
            .iter()
            .map(|filter| check_filter(filter, schema))
            .collect::<Result<_, _>>()?;
        let keys = self
            .sort
            .iter()
            .map(|sort| check_sort(sort, schema))
            .collect::<Result<_, _>>()?;
        let mut facets = Vec::new();
        for facet in &self.facets {
            facets.push((whole(&facet.field, schema, "counted")?, facet.limit));
        }
        let group_by = self
            .group_by
            .as_ref()
            .map(|name| whole(name, schema, "grouped by"))
            .transpose()?;
        let mut fields = Vec::new();
        for name in &self.fields {
            let index = schema.index_of(name).map_err(Failure::Error)?;
            if !schema.fields[index].stored {
                return Err(Failure::Error(format!(
                    "field {name:?} is not stored, so it cannot be returned"
                )));
            }
            fields.push(index);
        }
        let mut snippets = Vec::new();
        for name in &self.snippets {
            let index = shown(name, schema)?;
            if !snippets.contains(&index) {
                snippets.push(index);
            }
        }
        self.offset
            .checked_add(self.limit)
            .ok_or_else(|| Failure::error("offset + limit is too large"))?;
        Ok(Checked {
            matching,
            conditions,
            keys,
            facets,
            group_by,
            offset: self.offset,
            limit: self.limit,
            fields,
            snippets,
        })
    }
}

/// The index of a field of which pieces can be shown.
fn shown(name: &str, schema: &Schema) -> Result<usize, Failure> {
    let index = schema.index_of(name).map_err(Failure::Error)?;
    let field = &schema.fields[index];
    if field.kind != FieldType::Text {
        return Err(Failure::Error(format!(
            "field {name:?} is {}; snippets are pieces of text",
            field.kind
        )));
    }
    if !field.stored {
        return Err(Failure::Error(format!(
            "field {name:?} is not stored, so there are no snippets of it"
        )));
    }
    Ok(index)
}

/// The index of a field that is matched whole.
fn whole(name: &str, schema: &Schema, what: &str) -> Result<usize, Failure> {
    let index = schema.index_of(name).map_err(Failure::Error)?;
    match schema.fields[index].kind {
        FieldType::Text => Err(Failure::Unsupported(format!(
            "field {name:?} is text; only fields that are matched whole can be {what}"
        ))),
        _ => Ok(index),
    }
}

fn check_match(matching: &Match, schema: &Schema) -> Result<Matching, Failure> {
    match matching {
        Match::Terms {
            mode,
            terms,
            fields,
            distance,
        } => {
            let mut indices = Vec::new();
            for name in fields {
                let index = schema.index_of(name).map_err(Failure::Error)?;
                let kind = schema.fields[index].kind;
                if kind != FieldType::Text {
                    return Err(Failure::Error(format!(
                        "field {name:?} is {kind}; terms are searched in text, use a filter"
                    )));
                }
                if !indices.contains(&index) {
                    indices.push(index);
                }
            }
            if *mode == Mode::Fuzzy && *distance > 2 {
                return Err(Failure::Error(format!(
                    "the distance of fuzzy is 0 to 2, not {distance}"
                )));
            }
            let known: Vec<String> = terms.iter().filter(|term| is_term(term)).cloned().collect();
            let lost = known.len() < terms.len();
            Ok(match mode {
                _ if known.is_empty() || indices.is_empty() => Matching::Nothing,
                Mode::Any => Matching::Terms {
                    mode: *mode,
                    terms: known,
                    fields: indices,
                    distance: 1,
                },
                _ if lost => Matching::Nothing,
                _ => Matching::Terms {
                    mode: *mode,
                    terms: known,
                    fields: indices,
                    distance: *distance,
                },
            })
        }
        Match::Boolean {
            must,
            should,
            must_not,
        } => {
            let all = |list: &[Match]| -> Result<Vec<Matching>, Failure> {
                list.iter().map(|part| check_match(part, schema)).collect()
            };
            let (must, should, must_not) = (all(must)?, all(should)?, all(must_not)?);
            Ok(
                if must.is_empty() && should.is_empty() && must_not.is_empty() {
                    Matching::All
                } else {
                    Matching::Boolean {
                        must,
                        should,
                        must_not,
                    }
                },
            )
        }
    }
}

fn check_sort(sort: &Sort, schema: &Schema) -> Result<Key, Failure> {
    let descending = sort.descending;
    if sort.field == "_score" {
        return Ok(Key::Score { descending });
    }
    Ok(Key::Field {
        field: whole(&sort.field, schema, "sorted by")?,
        descending,
    })
}

fn check_filter(filter: &Filter, schema: &Schema) -> Result<Condition, Failure> {
    match filter {
        Filter::Range(range) => {
            let field = whole(&range.field, schema, "filtered")?;
            let kind = schema.fields[field].kind;
            let low = bound(&range.low, range.include_low, true, kind, &range.field)?;
            let high = bound(&range.high, range.include_high, false, kind, &range.field)?;
            let (Some(low), Some(high)) = (low, high) else {
                return Ok(Condition::Never);
            };
            if let (
                Bound::Included(a) | Bound::Excluded(a),
                Bound::Included(b) | Bound::Excluded(b),
            ) = (&low, &high)
            {
                let both = matches!((&low, &high), (Bound::Included(_), Bound::Included(_)));
                match a.compare(b) {
                    Ordering::Greater => return Ok(Condition::Never),
                    Ordering::Equal if !both => return Ok(Condition::Never),
                    _ => {}
                }
            }
            Ok(Condition::Range { field, low, high })
        }
        Filter::In(list) | Filter::NotIn(list) => {
            let field = whole(&list.field, schema, "filtered")?;
            let kind = schema.fields[field].kind;
            let mut values = Vec::new();
            for value in &list.values {
                if let Some(scalar) = exact(value, kind, &list.field)? {
                    values.push(scalar);
                }
            }
            let negated = matches!(filter, Filter::NotIn(_));
            Ok(match (values.is_empty(), negated) {
                (true, false) => Condition::Never,
                _ => Condition::In {
                    field,
                    values,
                    negated,
                },
            })
        }
    }
}

fn misfit(value: &Value, kind: FieldType, name: &str) -> Failure {
    Failure::Error(format!(
        "field {name:?} is of type {kind} and cannot be compared with {value}"
    ))
}

/// A value to be equal to; None where no value of that type can be (1.5 for an integer).
fn exact(value: &Value, kind: FieldType, name: &str) -> Result<Option<Scalar>, Failure> {
    use FieldType as T;
    Ok(match (kind, value) {
        (T::Keyword | T::Keywords, Value::String(text)) => Some(Scalar::Str(text.clone())),
        (T::Boolean, Value::Bool(flag)) => Some(Scalar::Bool(*flag)),
        (T::Integer | T::Date, Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => Some(Scalar::Int(number)),
            (None, Some(number)) if number.fract() == 0.0 && number.abs() < 9.2e18 => {
                Some(Scalar::Int(number as i64))
            }
            _ => None,
        },
        (T::Float, Value::Number(number)) => Some(Scalar::Float(
            number.as_f64().ok_or_else(|| misfit(value, kind, name))? + 0.0,
        )),
        _ => return Err(misfit(value, kind, name)),
    })
}

/// One bound of a range; None where nothing can be beyond it.
fn bound(
    value: &Value,
    include: bool,
    is_low: bool,
    kind: FieldType,
    name: &str,
) -> Result<Option<Bound<Scalar>>, Failure> {
    if value.is_null() {
        return Ok(Some(Bound::Unbounded));
    }
    let wrap = |scalar| {
        if include {
            Bound::Included(scalar)
        } else {
            Bound::Excluded(scalar)
        }
    };
    if let (FieldType::Integer | FieldType::Date, Value::Number(number)) = (kind, value)
        && number.as_i64().is_none()
    {
        // A fraction, or beyond 64 bits: the nearest integer inside the range.
        let number = number.as_f64().ok_or_else(|| misfit(value, kind, name))?;
        let limit = i64::MAX as f64;
        let inside = if is_low {
            number.ceil()
        } else {
            number.floor()
        };
        let whole = number.fract() == 0.0 && number.abs() < limit;
        return Ok(match (is_low, inside) {
            (true, inside) if inside >= limit => None,
            (false, inside) if inside < -limit => None,
            (true, inside) if inside < -limit => Some(Bound::Unbounded),
            (false, inside) if inside >= limit => Some(Bound::Unbounded),
            (_, inside) if whole => Some(wrap(Scalar::Int(inside as i64))),
            (_, inside) => Some(Bound::Included(Scalar::Int(inside as i64))),
        });
    }
    match exact(value, kind, name)? {
        Some(scalar) => Ok(Some(wrap(scalar))),
        None => Err(misfit(value, kind, name)),
    }
}
