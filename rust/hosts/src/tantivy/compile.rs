//! The checked algebra in tantivy's queries.
//!
//! Scores: `any` and `all` sum BM25 over terms and fields; a phrase has BM25 of its own in each
//! field; prefix and fuzzy count 1 for each term and field that matches; filters add nothing.

use std::ops::Bound;

use tantivy::Term;
use tantivy::query::{
    AllQuery, BooleanQuery, ConstScoreQuery, EmptyQuery, FuzzyTermQuery, Occur, PhraseQuery, Query,
    RangeQuery, TermQuery, TermSetQuery,
};
use tantivy::schema::{Field, IndexRecordOption};

use super::fields::Fields;
use crate::query::{Checked, Condition, Matching, Mode, Scalar};

/// From this many values on, a set is looked up by one walk over the dictionary.
const TERM_SET_FROM: usize = 16;

/// The whole query: match and filters.
pub fn compile(query: &Checked, fields: &Fields) -> Box<dyn Query> {
    let matching = compile_match(&query.matching, fields);
    if query.conditions.is_empty() {
        return matching;
    }
    let mut clauses = vec![(Occur::Must, matching)];
    for condition in &query.conditions {
        let (occur, filter) = compile_condition(condition, fields);
        clauses.push((occur, Box::new(ConstScoreQuery::new(filter, 0.0))));
    }
    Box::new(BooleanQuery::new(clauses))
}

fn one_or(
    mut queries: Vec<Box<dyn Query>>,
    many: fn(Vec<Box<dyn Query>>) -> BooleanQuery,
) -> Box<dyn Query> {
    if queries.len() == 1 {
        queries.remove(0)
    } else {
        Box::new(many(queries))
    }
}

fn compile_match(matching: &Matching, fields: &Fields) -> Box<dyn Query> {
    match matching {
        Matching::All => Box::new(AllQuery),
        Matching::Nothing => Box::new(EmptyQuery),
        Matching::Terms {
            mode,
            terms,
            fields: indices,
            distance,
        } => {
            let own: Vec<Field> = indices.iter().map(|&index| fields.own[index]).collect();
            compile_terms(*mode, terms, &own, *distance)
        }
        Matching::Boolean {
            must,
            should,
            must_not,
        } => {
            let mut clauses: Vec<(Occur, Box<dyn Query>)> = Vec::new();
            for (occur, list) in [
                (Occur::Must, must),
                (Occur::Should, should),
                (Occur::MustNot, must_not),
            ] {
                clauses.extend(list.iter().map(|part| (occur, compile_match(part, fields))));
            }
            if must.is_empty() && should.is_empty() {
                clauses.push((Occur::Must, Box::new(AllQuery)));
            }
            let required = usize::from(must.is_empty() && !should.is_empty());
            Box::new(BooleanQuery::with_minimum_required_clauses(
                clauses, required,
            ))
        }
    }
}

fn compile_terms(mode: Mode, terms: &[String], own: &[Field], distance: u8) -> Box<dyn Query> {
    let in_fields = |make: &dyn Fn(Field) -> Box<dyn Query>| {
        one_or(
            own.iter().map(|&field| make(field)).collect(),
            BooleanQuery::union,
        )
    };
    match mode {
        Mode::Any => {
            // Flat, so that tantivy sees a union of terms and can skip by blocks.
            let all = own
                .iter()
                .flat_map(|&field| terms.iter().map(move |t| term(field, t)));
            one_or(all.collect(), BooleanQuery::union)
        }
        Mode::Phrase => in_fields(&|field| {
            if terms.len() == 1 {
                return term(field, &terms[0]);
            }
            Box::new(PhraseQuery::new(
                terms
                    .iter()
                    .map(|t| Term::from_field_text(field, t))
                    .collect(),
            ))
        }),
        Mode::All | Mode::Prefix | Mode::Fuzzy => {
            let each = terms.iter().map(|text| {
                in_fields(&|field| match mode {
                    Mode::All => term(field, text),
                    Mode::Prefix => Box::new(FuzzyTermQuery::new_prefix(
                        Term::from_field_text(field, text),
                        0,
                        true,
                    )),
                    _ => Box::new(FuzzyTermQuery::new(
                        Term::from_field_text(field, text),
                        distance,
                        true,
                    )),
                })
            });
            one_or(each.collect(), BooleanQuery::intersection)
        }
    }
}

fn term(field: Field, text: &str) -> Box<dyn Query> {
    Box::new(TermQuery::new(
        Term::from_field_text(field, text),
        IndexRecordOption::WithFreqs,
    ))
}

fn scalar(field: Field, value: &Scalar) -> Term {
    match value {
        Scalar::Str(text) => Term::from_field_text(field, text),
        Scalar::Int(number) => Term::from_field_i64(field, *number),
        Scalar::Float(number) => Term::from_field_f64(field, *number),
        Scalar::Bool(flag) => Term::from_field_bool(field, *flag),
    }
}

fn compile_condition(condition: &Condition, fields: &Fields) -> (Occur, Box<dyn Query>) {
    match condition {
        Condition::Never => (Occur::Must, Box::new(EmptyQuery)),
        Condition::In {
            field,
            values,
            negated,
        } => {
            let occur = if *negated {
                Occur::MustNot
            } else {
                Occur::Must
            };
            let terms = values.iter().map(|value| scalar(fields.own[*field], value));
            (occur, in_set(terms.collect()))
        }
        Condition::Range { field, low, high } => {
            let field = fields.own[*field];
            let query: Box<dyn Query> = match (low, high) {
                // Both ends open: whoever has a value.
                (Bound::Unbounded, Bound::Unbounded) => exists(field, fields),
                _ if is_bool(low) || is_bool(high) => {
                    let inside = [false, true]
                        .into_iter()
                        .filter(|&flag| holds(flag, low, high));
                    in_set(
                        inside
                            .map(|flag| Term::from_field_bool(field, flag))
                            .collect(),
                    )
                }
                _ => Box::new(RangeQuery::new(
                    low.as_ref().map(|value| scalar(field, value)),
                    high.as_ref().map(|value| scalar(field, value)),
                )),
            };
            (Occur::Must, query)
        }
    }
}

fn exists(field: Field, fields: &Fields) -> Box<dyn Query> {
    let name = fields.tantivy.get_field_name(field).to_owned();
    Box::new(tantivy::query::ExistsQuery::new(name, false))
}

fn in_set(terms: Vec<Term>) -> Box<dyn Query> {
    match terms.len() {
        0 => Box::new(EmptyQuery),
        1..TERM_SET_FROM => one_or(
            terms
                .into_iter()
                .map(|term| {
                    Box::new(TermQuery::new(term, IndexRecordOption::Basic)) as Box<dyn Query>
                })
                .collect(),
            BooleanQuery::union,
        ),
        _ => Box::new(TermSetQuery::new(terms)),
    }
}

fn is_bool(bound: &Bound<Scalar>) -> bool {
    matches!(
        bound,
        Bound::Included(Scalar::Bool(_)) | Bound::Excluded(Scalar::Bool(_))
    )
}

fn holds(flag: bool, low: &Bound<Scalar>, high: &Bound<Scalar>) -> bool {
    let flag = Scalar::Bool(flag);
    let above = match low {
        Bound::Included(low) => flag.compare(low).is_ge(),
        Bound::Excluded(low) => flag.compare(low).is_gt(),
        Bound::Unbounded => true,
    };
    let below = match high {
        Bound::Included(high) => flag.compare(high).is_le(),
        Bound::Excluded(high) => flag.compare(high).is_lt(),
        Bound::Unbounded => true,
    };
    above && below
}
