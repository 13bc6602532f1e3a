//! Snippets: pieces of the stored texts around what was found, and nothing else marked.

mod client;
mod reference;

use std::collections::BTreeSet;

use client::*;
use searchbench_hosts::analysis::{is_term, terms};
use serde_json::{Value, json};

const ENGINES: [&str; 2] = ["tantivy", "sqlite"];

/// Text that is not stored stands first: then columns of text and fields have other numbers.
fn schema() -> Value {
    json!({"fields": [
        {"name": "section", "type": "keyword", "stored": true},
        {"name": "hidden", "type": "text", "stored": false},
        {"name": "title", "type": "text", "stored": true},
        {"name": "the body", "type": "text", "stored": true},
    ]})
}

fn each(documents: &[Value], test: impl Fn(&str, &mut Client)) {
    for engine in ENGINES {
        let directory = Directory::new();
        let host = Running::start(engine, &directory.0, &[]);
        let mut client = host.client();
        client.must(CREATE, &schema());
        assert_eq!(client.batch(documents)["accepted"], documents.len());
        client.settle();
        test(engine, &mut client);
    }
}

fn one(title: &str, body: &str) -> Vec<Value> {
    vec![json!({"id": "1", "v": {"title": title, "the body": body, "hidden": "secret"}})]
}

fn words(mode: &str, terms: &[&str]) -> Value {
    json!({"mode": mode, "terms": terms, "fields": ["hidden", "title", "the body"], "distance": 1})
}

/// The snippets of the only hit.
fn shown(client: &mut Client, matching: &Value) -> Value {
    let query = json!({"match": matching, "snippets": ["title", "the body"]});
    let reply = client.query(&query);
    let hits = reply["hits"].as_array().unwrap();
    assert_eq!(hits.len(), 1, "{reply}");
    hits[0][3].clone()
}

#[test]
fn found_words_are_marked_as_they_stand_in_the_text() {
    let documents = one("Über <i>ÜBER</i> & über-all", "nothing of it");
    each(&documents, |engine, client| {
        let piece = match engine {
            // As tantivy gives it: HTML, without what stands after the last term.
            "tantivy" => "<b>Über</b> &lt;i&gt;<b>ÜBER</b>&lt;/i&gt; &amp; <b>über</b>-all",
            _ => "<b>Über</b> <i><b>ÜBER</b></i> & <b>über</b>-all",
        };
        let found = shown(client, &words("any", &["über", "unheard"]));
        assert_eq!(found, json!({"title": [piece]}), "{engine}");
    });
}

#[test]
fn only_what_may_have_found_the_document_in_that_field_is_marked() {
    each(&one("red fox", "red dog, lazy fox"), |engine, client| {
        let in_title = json!({"mode": "all", "terms": ["fox"], "fields": ["title"]});
        let matching = json!({
            "must": [in_title],
            "should": [words("any", &["dog"]), {
                "must": [words("any", &["absent"])], "must_not": [words("any", &["lazy"])],
            }],
            "must_not": [{"must": [words("any", &["red"]), words("any", &["secret", "no"])],
                "must_not": [words("any", &["fox"])]}],
        });
        let expected =
            json!({"title": ["red <b>fox</b>"], "the body": ["red <b>dog</b>, lazy fox"]});
        assert_eq!(shown(client, &matching), expected, "{engine}");
        // Nothing is looked for in the texts that are shown: found elsewhere, by exclusion, or always.
        let hidden = json!({"mode": "any", "terms": ["secret"], "fields": ["hidden"]});
        let excluded = json!({"must_not": [words("any", &["cat"])]});
        for matching in [hidden, excluded, Value::Null] {
            assert_eq!(shown(client, &matching), json!({}), "{engine} {matching}");
        }
    });
}

#[test]
fn prefixes_phrases_and_similar_words_are_marked_too() {
    let documents = one("Foxes fox", "a red dog, red hot fox dog");
    each(&documents, |engine, client| {
        let found = shown(client, &words("prefix", &["foxe"]));
        assert_eq!(found, json!({"title": ["<b>Foxes</b> fox"]}), "{engine}");
        // tantivy marks the words of a phrase wherever they stand, FTS5 the phrase.
        let found = shown(client, &words("phrase", &["red", "hot"]));
        let body = match engine {
            "tantivy" => "a <b>red</b> dog, <b>red</b> <b>hot</b> fox dog",
            _ => "a red dog, <b>red hot</b> fox dog",
        };
        assert_eq!(found, json!({"the body": [body]}), "{engine}");
        if engine == "tantivy" {
            let found = shown(client, &words("fuzzy", &["fxoes"]));
            assert_eq!(found, json!({"title": ["<b>Foxes</b> fox"]}));
        }
    });
}

#[test]
fn of_a_long_text_the_piece_that_says_most_is_shown() {
    let filler = "word ".repeat(300);
    let body = format!("{filler} common {filler} common rare {filler}");
    let mut documents = one("", &body);
    documents.push(json!({"id": "2", "v": {"the body": "common"}}));
    each(&documents, |engine, client| {
        let found = shown(client, &words("all", &["common", "rare"]));
        let piece = found["the body"][0].as_str().unwrap();
        assert!(
            piece.contains("<b>common</b> <b>rare</b>"),
            "{engine} {piece}"
        );
        assert!(piece.len() < 250, "{engine} {piece}");
    });
}

#[test]
fn a_hit_has_a_fourth_element_only_where_snippets_are_asked() {
    let documents = vec![json!({"id": "1", "v": {"title": "fox", "section": "net"}})];
    each(&documents, |_, client| {
        let fields = ["section", "title"];
        for (asked, expected) in [
            (json!({}), json!(["1", null])),
            (
                json!({"fields": fields}),
                json!(["1", null, {"section": "net", "title": "fox"}]),
            ),
            (
                json!({"snippets": ["title", "the body"]}),
                json!(["1", null, null, {"title": ["<b>fox</b>"]}]),
            ),
            (
                json!({"snippets": ["title", "title"], "fields": ["section"]}),
                json!(["1", null, {"section": "net"}, {"title": ["<b>fox</b>"]}]),
            ),
        ] {
            let mut query = asked.clone();
            query["match"] = words("any", &["fox"]);
            query["sort"] = json!([{"field": "section"}]);
            assert_eq!(client.query(&query)["hits"], json!([expected]), "{asked}");
        }
    });
}

#[test]
fn only_stored_text_has_snippets() {
    each(&one("a", "b"), |engine, client| {
        for (name, part) in [
            ("hidden", "is not stored"),
            ("section", "snippets are pieces of text"),
            ("titel", "did you mean \"title\"?"),
        ] {
            let query = json!({"snippets": [name]}).to_string();
            let error = client.ask(QUERY, query.as_bytes()).error();
            assert!(error.contains(part), "{engine} {error}");
        }
    });
}

#[test]
fn a_word_that_is_too_long_for_the_index_is_not_marked() {
    let long = "x".repeat(70_000);
    each(&one(&format!("fox {long}"), ""), |engine, client| {
        let found = shown(client, &words("any", &["fox", &long]));
        let piece = found["title"][0].as_str().unwrap();
        // FTS5 cuts both, the word of the text and that of the query, at 32,768 bytes.
        assert_eq!(piece.contains(&format!("<b>{long}")), engine == "sqlite");
        assert!(piece.contains("<b>fox</b>"));
    });
}

#[test]
fn parts_show_the_same_as_a_single_index() {
    let documents = reference::corpus(&mut Random(3), 300);
    let mut replies = Vec::new();
    for options in [["--parts", "1"], ["--parts", "4"]] {
        let directory = Directory::new();
        let host = Running::start("tantivy", &directory.0, &options);
        let mut client = host.client();
        client.must(CREATE, &reference::schema());
        client.batch(&documents);
        client.settle();
        let query = json!({
            "match": {"mode": "any", "terms": ["search", "x86", "naïve"], "fields": ["title", "rank"]},
            "sort": [{"field": "year"}], "limit": 300, "snippets": ["title", "rank"],
        });
        replies.push(client.query(&query)["hits"].clone());
    }
    assert!(replies[0].as_array().unwrap().len() > 50);
    assert_eq!(replies[0], replies[1]);
}

/// The terms of `text`, of the field `field`, that may be marked.
fn markable(
    matching: &Value,
    field: &str,
    text: &[String],
    whole_phrases: bool,
) -> BTreeSet<String> {
    let list = |key: &str| matching[key].as_array().cloned().unwrap_or_default();
    if matching.get("mode").is_none() {
        let parts = [list("must"), list("should")].concat();
        let parts = parts.iter();
        return parts
            .flat_map(|part| markable(part, field, text, whole_phrases))
            .collect();
    }
    let mode = matching["mode"].as_str().unwrap();
    let asked = list("terms");
    let mut asked: Vec<&str> = asked.iter().map(|term| term.as_str().unwrap()).collect();
    let before = asked.len();
    asked.retain(|term| is_term(term));
    if !list("fields").contains(&field.into()) || (mode != "any" && asked.len() < before) {
        return BTreeSet::new();
    }
    if mode == "phrase" && whole_phrases {
        let found = text.windows(asked.len()).any(|window| window == asked);
        return found
            .then_some(asked)
            .into_iter()
            .flatten()
            .map(str::to_owned)
            .collect();
    }
    let distance = matching["distance"].as_u64().unwrap() as usize;
    let fits = |term: &&String| {
        asked.iter().any(|word| match mode {
            "prefix" => term.starts_with(word),
            "fuzzy" => reference::edits(term, word) <= distance,
            _ => term == word,
        })
    };
    text.iter().filter(fits).cloned().collect()
}

#[test]
fn whatever_is_asked_there_is_a_piece_exactly_where_something_may_be_marked() {
    for engine in ENGINES {
        let directory = Directory::new();
        let host = Running::start(engine, &directory.0, &[]);
        let mut client = host.client();
        let mut random = Random(21);
        let documents = reference::corpus(&mut random, 200);
        client.must(CREATE, &reference::schema());
        client.batch(&documents);
        client.settle();
        let (mut with, mut without) = (0, 0);
        for _ in 0..600 {
            let mut query = reference::query(&mut random, engine == "tantivy");
            query["snippets"] = json!(["title", "rank"]);
            for hit in client.query(&query)["hits"].as_array().unwrap() {
                let document = documents.iter().find(|d| d["id"] == hit[0]).unwrap();
                for field in ["title", "rank"] {
                    let text = document["v"][field].as_str().unwrap_or_default();
                    let may = match &query["match"] {
                        Value::Null => BTreeSet::new(),
                        matching => markable(matching, field, &terms(text), engine == "sqlite"),
                    };
                    let context = format!("{engine} {query} {hit} {text:?} {may:?}");
                    let Some(piece) = hit[3].get(field) else {
                        without += 1;
                        assert!(may.is_empty(), "{context}");
                        continue;
                    };
                    with += 1;
                    let [piece] = piece.as_array().unwrap().as_slice() else {
                        panic!("one piece a field: {context}");
                    };
                    let piece = piece.as_str().unwrap();
                    let marked: BTreeSet<String> = piece
                        .split("<b>")
                        .skip(1)
                        .flat_map(|rest| terms(rest.split_once("</b>").unwrap().0))
                        .collect();
                    // The texts are so short that the piece is all of them.
                    assert_eq!(marked, may, "{context}");
                    let plain = piece.replace("<b>", "").replace("</b>", "");
                    assert_eq!(plain, text, "{context}");
                }
            }
        }
        assert!(with > 600 && without > 600, "{engine} {with} {without}");
    }
}
