//! The checked algebra in FTS5's query language and SQL.
//!
//! FTS5 has AND, OR and NOT between two matches, but no "every document" and no "optional". So a
//! match becomes an expression, or the complement of one: those two are closed under all of the
//! algebra.

use rusqlite::types::Value as Sql;

use std::ops::Bound;

use crate::failure::Failure;
use crate::query::{Condition, Key, Matching, Mode, Scalar};
use crate::schema::{FieldType, Schema};

/// A match as FTS5 can ask it.
#[derive(Debug, Clone, PartialEq)]
pub enum Matched {
    /// No document.
    Nothing,
    /// Every document.
    All,
    /// What the expression finds.
    Found(String),
    /// All but what it finds.
    Except(String),
}

use Matched::{All, Except, Found, Nothing};

fn and(a: Matched, b: Matched) -> Matched {
    match (a, b) {
        (Nothing, _) | (_, Nothing) => Nothing,
        (All, other) | (other, All) => other,
        (Found(a), Found(b)) => Found(format!("({a}) AND ({b})")),
        (Found(a), Except(b)) | (Except(b), Found(a)) => Found(format!("({a}) NOT ({b})")),
        (Except(a), Except(b)) => Except(format!("({a}) OR ({b})")),
    }
}

fn not(a: Matched) -> Matched {
    match a {
        Nothing => All,
        All => Nothing,
        Found(a) => Except(a),
        Except(a) => Found(a),
    }
}

fn or(a: Matched, b: Matched) -> Matched {
    match (a, b) {
        (All, _) | (_, All) => All,
        (Nothing, other) | (other, Nothing) => other,
        (Found(a), Found(b)) => Found(format!("({a}) OR ({b})")),
        (a, b) => not(and(not(a), not(b))),
    }
}

/// The match, and by how much its BM25 comes out too large.
pub fn compile_match(matching: &Matching, schema: &Schema) -> Result<(Matched, f64), Failure> {
    Ok(match matching {
        Matching::All => (All, 1.0),
        Matching::Nothing => (Nothing, 1.0),
        Matching::Terms {
            mode,
            terms,
            fields,
            ..
        } => (compile_terms(*mode, terms, fields, schema)?, 1.0),
        Matching::Boolean {
            must,
            should,
            must_not,
        } => {
            let list = |parts: &[Matching]| -> Result<Vec<Matched>, Failure> {
                parts
                    .iter()
                    .map(|part| Ok(compile_match(part, schema)?.0))
                    .collect()
            };
            let (musts, shoulds, nots) = (list(must)?, list(should)?, list(must_not)?);
            let any_should = shoulds.into_iter().reduce(or);
            let (mut whole, mut factor) = match (musts.into_iter().reduce(and), any_should) {
                (None, None) => (All, 1.0),
                (None, Some(should)) => (should, 1.0),
                (Some(Found(must)), Some(Found(should))) => {
                    // Every phrase of the expression that is in a row counts for its BM25, so
                    // all are named twice: twice the score that is meant.
                    (
                        Found(format!(
                            "({must}) AND (({must}) OR ({should}) OR ({should}))"
                        )),
                        2.0,
                    )
                }
                (Some(must), _) => (must, 1.0),
            };
            for excluded in nots {
                whole = and(whole, not(excluded));
            }
            if !matches!(whole, Found(_)) {
                factor = 1.0;
            }
            (whole, factor)
        }
    })
}

fn compile_terms(
    mode: Mode,
    terms: &[String],
    fields: &[usize],
    schema: &Schema,
) -> Result<Matched, Failure> {
    let words = |between: &str, after: &str| {
        let list: Vec<String> = terms.iter().map(|term| quote(term) + after).collect();
        list.join(between)
    };
    let expression = match mode {
        Mode::Any => words(" OR ", ""),
        Mode::All => words(" AND ", ""),
        Mode::Prefix => words(" AND ", " *"),
        Mode::Phrase => quote(&terms.join(" ")),
        Mode::Fuzzy => {
            return Err(Failure::Unsupported(
                "FTS5 finds terms and their beginnings, not similar terms".into(),
            ));
        }
    };
    let texts = schema
        .fields
        .iter()
        .filter(|field| field.kind == FieldType::Text)
        .count();
    Ok(Found(if fields.len() == texts {
        expression
    } else {
        let columns: Vec<String> = fields.iter().map(|index| format!("t{index}")).collect();
        format!("{{{}}} : ({expression})", columns.join(" "))
    }))
}

/// What snippets mark in the `index`-th field, and nothing else; None where nothing is sought.
pub fn compile_sought(matching: &Matching, index: usize) -> Option<String> {
    let mut marked: Vec<String> = Vec::new();
    for sought in matching.sought(index) {
        let phrases: Vec<String> = match sought.mode {
            Mode::Phrase => vec![quote(&sought.terms.join(" "))],
            Mode::Prefix => sought.terms.iter().map(|t| quote(t) + " *").collect(),
            Mode::Any | Mode::All => sought.terms.iter().map(|term| quote(term)).collect(),
            // Refused before.
            Mode::Fuzzy => Vec::new(),
        };
        for phrase in phrases {
            if !marked.contains(&phrase) {
                marked.push(phrase);
            }
        }
    }
    (!marked.is_empty()).then(|| format!("{{t{index}}} : ({})", marked.join(" OR ")))
}

fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// FROM and WHERE of a query, with the values to bind.
#[derive(Debug, Clone)]
pub struct Base {
    pub sql: String,
    pub values: Vec<Sql>,
    /// Relevance, higher is better.
    pub score: String,
    /// The number of the document.
    pub seq: &'static str,
    /// Whether `docs` is among the tables.
    pub has_docs: bool,
}

impl Base {
    /// None where no document can match. `needs_docs`: its columns are used outside the filters.
    pub fn new(
        matched: &Matched,
        factor: f64,
        conditions: &[Condition],
        schema: &Schema,
        needs_docs: bool,
    ) -> Option<Base> {
        let mut values = Vec::new();
        let mut wheres = Vec::new();
        let has_docs = needs_docs || !conditions.is_empty() || !matches!(matched, Found(_));
        let mut score = "1.0".to_owned();
        let from = match matched {
            Nothing => return None,
            All => "docs",
            Found(expression) => {
                values.push(Sql::Text(expression.clone()));
                wheres.push("fts MATCH ?".to_owned());
                score = format!("-bm25(fts) / {factor:?}");
                // CROSS JOIN keeps the order: the index is asked once, rows are looked up.
                if has_docs {
                    "fts CROSS JOIN docs ON docs.seq = fts.rowid"
                } else {
                    "fts"
                }
            }
            Except(expression) => {
                values.push(Sql::Text(expression.clone()));
                wheres.push("docs.seq NOT IN (SELECT rowid FROM fts WHERE fts MATCH ?)".to_owned());
                "docs"
            }
        };
        for condition in conditions {
            wheres.push(filter(condition, schema, &mut values)?);
        }
        let mut sql = format!(" FROM {from}");
        if !wheres.is_empty() {
            sql += " WHERE ";
            sql += &wheres.join(" AND ");
        }
        let seq = if has_docs { "docs.seq" } else { "fts.rowid" };
        Some(Base {
            sql,
            values,
            score,
            seq,
            has_docs,
        })
    }
}

fn bind(scalar: &Scalar) -> Sql {
    match scalar {
        Scalar::Str(text) => Sql::Text(text.clone()),
        Scalar::Int(number) => Sql::Integer(*number),
        Scalar::Float(number) => Sql::Real(*number),
        Scalar::Bool(flag) => Sql::Integer(i64::from(*flag)),
    }
}

/// SQL of one filter; None where no document passes.
fn filter(condition: &Condition, schema: &Schema, values: &mut Vec<Sql>) -> Option<String> {
    match condition {
        Condition::Never => None,
        Condition::In {
            field,
            values: list,
            negated,
        } => {
            let marks = vec!["?"; list.len()].join(",");
            values.extend(list.iter().map(bind));
            let several = schema.fields[*field].kind == FieldType::Keywords;
            Some(match (several, negated) {
                (true, false) => {
                    format!("docs.seq IN (SELECT doc FROM k{field} WHERE value IN ({marks}))")
                }
                (true, true) => {
                    format!("docs.seq NOT IN (SELECT doc FROM k{field} WHERE value IN ({marks}))")
                }
                (false, false) => format!("docs.c{field} IN ({marks})"),
                (false, true) => {
                    format!("(docs.c{field} IS NULL OR docs.c{field} NOT IN ({marks}))")
                }
            })
        }
        Condition::Range { field, low, high } => {
            let several = schema.fields[*field].kind == FieldType::Keywords;
            let column = if several {
                "value".to_owned()
            } else {
                format!("docs.c{field}")
            };
            let mut tests = Vec::new();
            for (bound, included, excluded) in [(low, ">=", ">"), (high, "<=", "<")] {
                let (operator, scalar) = match bound {
                    Bound::Unbounded => continue,
                    Bound::Included(scalar) => (included, scalar),
                    Bound::Excluded(scalar) => (excluded, scalar),
                };
                values.push(bind(scalar));
                tests.push(format!("{column} {operator} ?"));
            }
            if tests.is_empty() {
                tests.push(format!("{column} IS NOT NULL"));
            }
            let tests = tests.join(" AND ");
            Some(if several {
                format!("docs.seq IN (SELECT doc FROM k{field} WHERE {tests})")
            } else {
                tests
            })
        }
    }
}

/// ORDER BY: the keys, then the order of ingest. `score` names the column of relevance.
pub fn order(keys: &[Key], schema: &Schema, seq: &str) -> String {
    let mut parts = Vec::new();
    if keys.is_empty() {
        parts.push("score DESC".to_owned());
    }
    for key in keys {
        parts.push(match *key {
            Key::Score { descending } => format!("score {}", direction(descending)),
            Key::Field { field, descending } => {
                let value = match schema.fields[field].kind {
                    // Of several values the one that brings the document furthest to the front.
                    FieldType::Keywords => {
                        let best = if descending { "max" } else { "min" };
                        format!("(SELECT {best}(value) FROM k{field} WHERE doc = docs.seq)")
                    }
                    _ => format!("docs.c{field}"),
                };
                format!("{value} {} NULLS LAST", direction(descending))
            }
        });
    }
    parts.push(seq.to_owned());
    parts.join(", ")
}

fn direction(descending: bool) -> &'static str {
    if descending { "DESC" } else { "ASC" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Matched {
        Found(text.into())
    }

    #[test]
    fn complements_are_closed_under_the_algebra() {
        assert_eq!(and(found("a"), not(found("b"))), found("(a) NOT (b)"));
        assert_eq!(
            and(not(found("a")), not(found("b"))),
            Except("(a) OR (b)".into())
        );
        assert_eq!(
            or(found("a"), not(found("b"))),
            Except("(b) NOT (a)".into())
        );
        assert_eq!(
            or(not(found("a")), not(found("b"))),
            Except("(a) AND (b)".into())
        );
        assert_eq!(
            (and(All, found("a")), or(Nothing, found("a"))),
            (found("a"), found("a"))
        );
        assert_eq!((not(All), or(All, Nothing)), (Nothing, All));
    }

    #[test]
    fn a_quotation_mark_in_a_term_stays_inside_the_string() {
        assert_eq!(quote("a\" OR b"), "\"a\"\" OR b\"");
    }
}
