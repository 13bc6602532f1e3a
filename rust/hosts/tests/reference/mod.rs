//! What the algebra means, computed naively: every document is looked at for every query.
#![allow(dead_code)]

use std::cmp::Ordering;
use std::collections::BTreeMap;

use searchbench_hosts::analysis::terms;
use serde_json::{Map, Value, json};

use crate::client::Random;

pub const WORDS: [&str; 24] = [
    "the",
    "of",
    "search",
    "searcher",
    "sea",
    "index",
    "indices",
    "naïve",
    "ÉTÉ",
    "été",
    "日本語",
    "東京",
    "İstanbul",
    "ΟΔΟΣ",
    "x86",
    "64",
    "c",
    "engine",
    "engines",
    "egnine",
    "lock",
    "block",
    "clock",
    "flocks",
];
const SECTIONS: [&str; 6] = ["net", "web", "Doc", "été", "a b", "zz\"'"];
const TAGS: [&str; 7] = ["red", "green", "blue", "blue-ish", "日本", "", "Z"];

pub fn schema() -> Value {
    json!({"fields": [
        {"name": "title", "type": "text", "stored": true},
        {"name": "section", "type": "keyword", "stored": true},
        {"name": "body", "type": "text", "stored": false},
        {"name": "tags", "type": "keywords", "stored": true},
        {"name": "year", "type": "integer", "stored": true},
        {"name": "weight.kg", "type": "float", "stored": true},
        {"name": "seen", "type": "date", "stored": true},
        {"name": "free", "type": "boolean", "stored": true},
        {"name": "rank", "type": "text", "stored": true},
    ]})
}

const TEXTS: [&str; 3] = ["title", "body", "rank"];

fn text(random: &mut Random, longest: usize) -> String {
    let words: Vec<&str> = (0..=random.below(longest))
        .map(|_| *random.pick(&WORDS))
        .collect();
    words.join(*random.pick(&[" ", ", ", " -- ", "/"]))
}

pub fn corpus(random: &mut Random, count: usize) -> Vec<Value> {
    (0..count)
        .map(|number| {
            let mut v = Map::new();
            if !random.chance(8) {
                v.insert("title".into(), text(random, 5).into());
            }
            if !random.chance(6) {
                v.insert("body".into(), text(random, 25).into());
            }
            if random.chance(3) {
                v.insert("rank".into(), text(random, 3).into());
            }
            if !random.chance(5) {
                v.insert("section".into(), (*random.pick(&SECTIONS)).into());
            }
            if !random.chance(4) {
                // With repetitions within a document, which count once.
                let tags: Vec<&str> = (0..=random.below(3)).map(|_| *random.pick(&TAGS)).collect();
                v.insert("tags".into(), tags.into());
            }
            if !random.chance(5) {
                v.insert(
                    "year".into(),
                    (*random.pick(&[-3i64, 0, 1999, 2000, 2001, i64::MAX, i64::MIN])).into(),
                );
            }
            if !random.chance(5) {
                v.insert(
                    "weight.kg".into(),
                    (*random.pick(&[-1.5f64, 0.0, 0.25, 3.0, 1e300])).into(),
                );
            }
            if !random.chance(5) {
                v.insert(
                    "seen".into(),
                    (1_700_000_000_000i64 + random.below(5) as i64).into(),
                );
            }
            if !random.chance(4) {
                v.insert("free".into(), random.chance(2).into());
            }
            json!({"id": format!("doc/{number}-{}", "é".repeat(number % 4)), "v": v})
        })
        .collect()
}

/// A random query of the algebra; fuzzy only where the engine can.
pub fn query(random: &mut Random, fuzzy: bool) -> Value {
    let mut query = Map::new();
    if !random.chance(6) {
        query.insert("match".into(), matching(random, fuzzy, 2));
    }
    let filters: Vec<Value> = (0..random.below(3)).map(|_| filter(random)).collect();
    query.insert("filters".into(), filters.into());
    if random.chance(2) {
        let keys = ["section", "tags", "year", "weight.kg", "seen", "free"];
        let sort: Vec<Value> = (0..=random.below(3))
            .map(|_| json!({"field": random.pick(&keys), "descending": random.chance(2)}))
            .collect();
        query.insert("sort".into(), sort.into());
    }
    let counted = ["section", "tags", "year", "free"];
    if random.chance(3) {
        let facets: Vec<Value> = (0..=random.below(2))
            .map(|at| json!({"field": counted[(at + random.below(2) * 2) % 4], "limit": random.below(6)}))
            .collect();
        if facets.len() < 2 || facets[0]["field"] != facets[1]["field"] {
            query.insert("facets".into(), facets.into());
        }
    }
    if random.chance(4) {
        query.insert("group_by".into(), (*random.pick(&counted)).into());
    }
    query.insert(
        "offset".into(),
        (*random.pick(&[0usize, 0, 0, 1, 7, 1000])).into(),
    );
    query.insert(
        "limit".into(),
        (*random.pick(&[10usize, 10, 0, 1, 3, 500])).into(),
    );
    if random.chance(3) {
        query.insert(
            "fields".into(),
            json!(["title", "tags", "weight.kg", "free", "section"]),
        );
    }
    Value::Object(query)
}

fn matching(random: &mut Random, fuzzy: bool, depth: usize) -> Value {
    if depth > 0 && random.chance(3) {
        let part = |random: &mut Random, most: usize| -> Vec<Value> {
            (0..random.below(most))
                .map(|_| matching(random, fuzzy, depth - 1))
                .collect()
        };
        return json!({
            "must": part(random, 3), "should": part(random, 3), "must_not": part(random, 2)
        });
    }
    let modes = ["any", "all", "phrase", "prefix", "fuzzy"];
    let mode = modes[random.below(if fuzzy { 5 } else { 4 })];
    let count = match mode {
        "phrase" | "all" => 1 + random.below(2),
        _ => 1 + random.below(3),
    };
    let words: Vec<String> = (0..count)
        .map(|_| {
            let word = terms(random.pick::<&str>(&WORDS)).remove(0);
            match mode {
                "prefix" => word.chars().take(1 + random.below(4)).collect(),
                "fuzzy" if random.chance(2) => word.chars().skip(1).chain(['k']).collect(),
                _ if random.chance(25) => "No Such\"Term".into(),
                _ => word,
            }
        })
        .collect();
    let fields: Vec<&str> = match random.below(4) {
        0 => vec!["title"],
        1 => vec!["body", "rank"],
        _ => TEXTS.to_vec(),
    };
    json!({"mode": mode, "terms": words, "fields": fields, "distance": 1 + random.below(2)})
}

fn filter(random: &mut Random) -> Value {
    let values = |field: &str| -> Vec<Value> {
        match field {
            "section" => SECTIONS.iter().map(|&v| v.into()).collect(),
            "tags" => TAGS.iter().map(|&v| v.into()).collect(),
            "year" => vec![
                json!(-3),
                json!(0),
                json!(1999),
                json!(2000),
                json!(i64::MIN),
                json!(7),
            ],
            "weight.kg" => vec![json!(-1.5), json!(0), json!(-0.0), json!(3), json!(0.25)],
            "seen" => (0..5).map(|n| json!(1_700_000_000_000i64 + n)).collect(),
            _ => vec![json!(true), json!(false)],
        }
    };
    let field = *random.pick(&["section", "tags", "year", "weight.kg", "seen", "free"]);
    let values = values(field);
    if random.chance(2) {
        let list: Vec<&Value> = (0..random.below(4)).map(|_| random.pick(&values)).collect();
        let kind = random.pick(&["in", "not_in"]);
        return json!({ *kind: {"field": field, "values": list} });
    }
    let bound = |random: &mut Random| match (random.below(5), field) {
        (0, _) => Value::Null,
        (1, "year") => json!(1999.5),
        _ => random.pick(&values).clone(),
    };
    let (low, high) = (bound(random), bound(random));
    json!({"range": {"field": field, "low": low, "high": high,
        "include_low": random.chance(2), "include_high": random.chance(2)}})
}

fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::String(a), Value::String(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        _ => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => a
                .as_f64()
                .unwrap()
                .partial_cmp(&b.as_f64().unwrap())
                .unwrap(),
        },
    }
}

/// The values of a field, none if the document lacks it.
fn values<'d>(document: &'d Value, field: &str) -> Vec<&'d Value> {
    match document["v"].get(field) {
        None => Vec::new(),
        Some(Value::Array(list)) => list.iter().collect(),
        Some(value) => vec![value],
    }
}

/// Changes of a character, and neighbours swapped, that lead from one word to the other.
pub fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            table[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let same = usize::from(a[i - 1] != b[j - 1]);
                let mut least = (table[i - 1][j] + 1)
                    .min(table[i][j - 1] + 1)
                    .min(table[i - 1][j - 1] + same);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    least = least.min(table[i - 2][j - 2] + 1);
                }
                least
            };
        }
    }
    table[a.len()][b.len()]
}

fn matches(document: &Value, matching: &Value) -> bool {
    if matching.is_null() {
        return true;
    }
    let list = |key: &str| matching[key].as_array().cloned().unwrap_or_default();
    if matching.get("mode").is_none() {
        let (must, should) = (list("must"), list("should"));
        return must.iter().all(|part| matches(document, part))
            && (!must.is_empty()
                || should.is_empty()
                || should.iter().any(|part| matches(document, part)))
            && !list("must_not").iter().any(|part| matches(document, part));
    }
    let wanted: Vec<String> = list("terms")
        .iter()
        .map(|t| t.as_str().unwrap().to_owned())
        .collect();
    let texts: Vec<Vec<String>> = list("fields")
        .iter()
        .filter_map(|field| document["v"].get(field.as_str().unwrap()))
        .map(|text| terms(text.as_str().unwrap()))
        .collect();
    let distance = matching["distance"].as_u64().unwrap() as usize;
    let any = |test: &dyn Fn(&str) -> bool| texts.iter().flatten().any(|term| test(term));
    match matching["mode"].as_str().unwrap() {
        "any" => wanted.iter().any(|w| any(&|term| term == w)),
        "all" => wanted.iter().all(|w| any(&|term| term == w)),
        "prefix" => wanted
            .iter()
            .all(|w| any(&|term| term.starts_with(w.as_str()) && terms(w) == [w.clone()])),
        "fuzzy" => wanted
            .iter()
            .all(|w| any(&|term| edits(term, w) <= distance && terms(w) == [w.clone()])),
        "phrase" => texts
            .iter()
            .any(|text| text.windows(wanted.len()).any(|run| run == wanted)),
        other => panic!("{other}"),
    }
}

fn passes(document: &Value, filter: &Value) -> bool {
    let (kind, body) = filter.as_object().unwrap().iter().next().unwrap();
    let values = values(document, body["field"].as_str().unwrap());
    if kind == "range" {
        let (low, high) = (&body["low"], &body["high"]);
        return values.iter().any(|value| {
            let above = low.is_null()
                || compare(value, low).is_gt()
                || body["include_low"] == true && compare(value, low).is_eq();
            let below = high.is_null()
                || compare(value, high).is_lt()
                || body["include_high"] == true && compare(value, high).is_eq();
            above && below
        });
    }
    let listed = body["values"].as_array().unwrap();
    let has = values
        .iter()
        .any(|value| listed.iter().any(|other| compare(value, other).is_eq()));
    has == (kind == "in")
}

fn counts(matched: &[&Value], field: &str, limit: usize) -> Value {
    let mut found: Vec<(Value, u64)> = Vec::new();
    let mut index: BTreeMap<String, usize> = BTreeMap::new();
    for document in matched {
        let mut distinct: Vec<&Value> = values(document, field);
        distinct.sort_by(|a, b| compare(a, b));
        distinct.dedup();
        for value in distinct {
            let at = *index.entry(value.to_string()).or_insert_with(|| {
                found.push((value.clone(), 0));
                found.len() - 1
            });
            found[at].1 += 1;
        }
    }
    found.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| compare(&a.0, &b.0)));
    found.truncate(limit);
    json!(found)
}

/// What is true of the answer to a query.
pub struct Truth<'d> {
    pub total: usize,
    /// The page, where the query sorts by fields or has no match; else all that match.
    pub page: Option<Vec<&'d str>>,
    pub matched: Vec<&'d Value>,
    pub facets: Value,
    pub groups: Value,
}

pub fn answer<'d>(documents: &'d [Value], query: &Value) -> Truth<'d> {
    let filters = query["filters"].as_array().cloned().unwrap_or_default();
    let mut matched: Vec<&Value> = documents
        .iter()
        .filter(|document| matches(document, &query["match"]))
        .filter(|document| filters.iter().all(|filter| passes(document, filter)))
        .collect();
    let (offset, limit) = (
        query["offset"].as_u64().unwrap() as usize,
        query["limit"].as_u64().unwrap() as usize,
    );
    let mut facets = Map::new();
    for facet in query["facets"].as_array().into_iter().flatten() {
        let field = facet["field"].as_str().unwrap();
        facets.insert(
            field.into(),
            counts(&matched, field, facet["limit"].as_u64().unwrap() as usize),
        );
    }
    let groups = query["group_by"]
        .as_str()
        .map_or(json!([]), |field| counts(&matched, field, limit));
    let sort = query["sort"].as_array().cloned().unwrap_or_default();
    // The sort is stable and documents are in the order of ingest.
    matched.sort_by(|a, b| {
        for key in &sort {
            let descending = key["descending"] == true;
            let best = |document| {
                let values = values(document, key["field"].as_str().unwrap());
                let least = values.iter().copied().min_by(|a, b| compare(a, b));
                let most = values.iter().copied().max_by(|a, b| compare(a, b));
                if descending { most } else { least }
            };
            let ordering = match (best(a), best(b)) {
                (Some(a), Some(b)) if descending => compare(b, a),
                (Some(a), Some(b)) => compare(a, b),
                (a, b) => a.is_none().cmp(&b.is_none()),
            };
            if ordering.is_ne() {
                return ordering;
            }
        }
        Ordering::Equal
    });
    let certain = !sort.is_empty() || query["match"].is_null();
    let page = certain.then(|| {
        matched
            .iter()
            .skip(offset)
            .take(limit)
            .map(|d| d["id"].as_str().unwrap())
            .collect()
    });
    Truth {
        total: matched.len(),
        page,
        matched,
        facets: Value::Object(facets),
        groups,
    }
}
