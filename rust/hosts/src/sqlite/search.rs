//! One query on one connection.

use rusqlite::types::{Value as Sql, ValueRef};
use rusqlite::{Connection, params_from_iter};
use serde_json::{Map, Value as Json};

use super::compile::{Base, compile_match, order};
use super::snippets::Snippets;
use crate::failure::Failure;
use crate::query::{Checked, Key, Matching};
use crate::reply::{Answer, Counts, Hit};
use crate::schema::{FieldType, Schema};

/// Answers `query`.
pub fn search<'s>(
    connection: &Connection,
    query: &Checked,
    schema: &'s Schema,
) -> Result<Answer<'s>, Failure> {
    let (matched, factor) = compile_match(&query.matching, schema)?;
    let sorted_by_field = query
        .keys
        .iter()
        .any(|key| matches!(key, Key::Field { .. }));
    let plain = Base::new(&matched, factor, &query.conditions, schema, sorted_by_field);
    let with_docs = Base::new(&matched, factor, &query.conditions, schema, true);
    let (Some(plain), Some(with_docs)) = (plain, with_docs) else {
        let facets = query
            .facets
            .iter()
            .map(|&(f, _)| (schema.fields[f].name.as_str(), Vec::new()));
        return Ok(Answer {
            facets: facets.collect(),
            ..Answer::default()
        });
    };
    let hits = hits(connection, query, schema, &plain).map_err(failure)?;
    let here = hits.len();
    // A page that is not full is the last one, and says how many there are.
    let total = if here < query.limit && (here > 0 || query.offset == 0) {
        (query.offset + here) as u64
    } else {
        let base = match sorted_by_field && query.conditions.is_empty() {
            true => Base::new(&matched, factor, &[], schema, false).unwrap_or(plain),
            false => plain,
        };
        count(connection, &base).map_err(failure)?
    };
    let mut facets = Vec::new();
    for &(field, limit) in &query.facets {
        let counts = counts(connection, schema, &with_docs, field, limit).map_err(failure)?;
        facets.push((schema.fields[field].name.as_str(), counts));
    }
    let groups = match query.group_by {
        None => Vec::new(),
        Some(field) => {
            counts(connection, schema, &with_docs, field, query.limit).map_err(failure)?
        }
    };
    Ok(Answer {
        total,
        hits,
        facets,
        groups,
    })
}

fn hits(
    connection: &Connection,
    query: &Checked,
    schema: &Schema,
    base: &Base,
) -> rusqlite::Result<Vec<Hit>> {
    if query.limit == 0 {
        return Ok(Vec::new());
    }
    let scored = query.scored();
    let score = if scored { base.score.as_str() } else { "NULL" };
    // Without a match all are equally relevant: the order of ingest needs no sorting.
    let constant = matches!(query.matching, Matching::All) && query.keys.is_empty();
    let order = if constant {
        base.seq.to_owned()
    } else {
        order(&query.keys, schema, base.seq)
    };
    let sql = format!(
        "SELECT {} AS seq, {score} AS score{} ORDER BY {order} LIMIT ? OFFSET ?",
        base.seq, base.sql
    );
    let mut values = base.values.clone();
    values.push(Sql::Integer(query.limit.min(i64::MAX as usize) as i64));
    values.push(Sql::Integer(query.offset.min(i64::MAX as usize) as i64));
    let mut columns = vec!["id".to_owned()];
    columns.extend(query.fields.iter().map(|index| format!("c{index}")));
    let fetch = format!("SELECT {} FROM docs WHERE seq = ?", columns.join(", "));
    let mut fetch = connection.prepare_cached(&fetch)?;
    let mut snippets = match query.snippets.as_slice() {
        [] => None,
        _ => Some(Snippets::new(connection, query, schema)?),
    };
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut hits = Vec::new();
    while let Some(row) = rows.next()? {
        let (seq, score): (i64, Option<f64>) = (row.get(0)?, row.get(1)?);
        let (id, fields) = fetch.query_row([seq], |row| {
            let id: String = row.get(0)?;
            if query.fields.is_empty() {
                return Ok((id, None));
            }
            let mut stored = Map::new();
            for (at, &index) in query.fields.iter().enumerate() {
                let field = &schema.fields[index];
                if let Some(value) = json(row.get_ref(at + 1)?, field.kind) {
                    stored.insert(field.name.clone(), value);
                }
            }
            Ok((id, Some(Json::Object(stored))))
        })?;
        hits.push(Hit {
            id,
            score: score.map(|score| score as f32),
            fields,
            snippets: match &mut snippets {
                None => None,
                Some(snippets) => Some(snippets.of(seq)?),
            },
        });
    }
    Ok(hits)
}

fn count(connection: &Connection, base: &Base) -> rusqlite::Result<u64> {
    let sql = format!("SELECT count(*){}", base.sql);
    let mut statement = connection.prepare_cached(&sql)?;
    statement
        .query_row(params_from_iter(&base.values), |row| row.get::<_, i64>(0))
        .map(|n| n as u64)
}

fn counts(
    connection: &Connection,
    schema: &Schema,
    base: &Base,
    field: usize,
    limit: usize,
) -> rusqlite::Result<Counts> {
    debug_assert!(base.has_docs);
    let kind = schema.fields[field].kind;
    let sql = if kind == FieldType::Keywords {
        // A subquery, because the filters after FROM name their own values.
        format!(
            "SELECT value, count(*) AS n FROM (SELECT docs.seq AS seq{}) AS matched \
             CROSS JOIN k{field} ON k{field}.doc = matched.seq GROUP BY value",
            base.sql
        )
    } else {
        format!(
            "SELECT value, count(*) AS n FROM (SELECT docs.c{field} AS value{}) \
             WHERE value IS NOT NULL GROUP BY value",
            base.sql
        )
    };
    let sql = format!("{sql} ORDER BY n DESC, value LIMIT ?");
    let mut values = base.values.clone();
    values.push(Sql::Integer(limit.min(i64::MAX as usize) as i64));
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut counts = Vec::new();
    while let Some(row) = rows.next()? {
        let single = if kind == FieldType::Keywords {
            FieldType::Keyword
        } else {
            kind
        };
        if let Some(value) = json(row.get_ref(0)?, single) {
            counts.push((value, row.get::<_, i64>(1)? as u64));
        }
    }
    Ok(counts)
}

/// A column's value as in the corpus; None where the document has none.
fn json(value: ValueRef<'_>, kind: FieldType) -> Option<Json> {
    Some(match (value, kind) {
        (ValueRef::Null, _) => return None,
        (ValueRef::Text(text), FieldType::Keywords) => {
            let list: Vec<Json> = serde_json::from_slice(text).unwrap_or_default();
            if list.is_empty() {
                return None;
            }
            Json::from(list)
        }
        (ValueRef::Text(text), _) => Json::from(String::from_utf8_lossy(text)),
        (ValueRef::Integer(number), FieldType::Boolean) => Json::from(number != 0),
        (ValueRef::Integer(number), _) => Json::from(number),
        (ValueRef::Real(number), _) => Json::from(number),
        (ValueRef::Blob(_), _) => return None,
    })
}

/// SQLite's error as status 1.
pub fn failure(error: rusqlite::Error) -> Failure {
    Failure::Error(format!("SQLite: {error}"))
}
