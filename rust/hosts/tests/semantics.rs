//! Every engine gives what the algebra says: hundreds of random queries against a naive reference.

mod client;
mod reference;

use client::{Client, Directory, Random, Running};
use serde_json::Value;

fn fill(client: &mut Client, documents: &[Value]) {
    client.must(client::CREATE, &reference::schema());
    for batch in documents.chunks(37) {
        let reply = client.batch(batch);
        assert_eq!(reply["accepted"], batch.len(), "{reply}");
    }
    client.settle();
}

/// Holds one reply to the truth.
fn hold(query: &Value, reply: &Value, documents: &[Value]) {
    let truth = reference::answer(documents, query);
    let shown = format!("{query}\n{reply}");
    assert_eq!(reply["total"], truth.total, "total of {shown}");
    let hits = reply["hits"].as_array().unwrap();
    let ids: Vec<&str> = hits.iter().map(|hit| hit[0].as_str().unwrap()).collect();
    let (offset, limit) = (
        query["offset"].as_u64().unwrap(),
        query["limit"].as_u64().unwrap(),
    );
    let expected = (truth.total as u64).saturating_sub(offset).min(limit);
    assert_eq!(ids.len() as u64, expected, "length of the page of {shown}");
    if let Some(page) = &truth.page {
        assert_eq!(&ids, page, "order of {shown}");
    }
    let place = |id: &str| {
        documents
            .iter()
            .position(|document| document["id"] == id)
            .unwrap()
    };
    for hit in hits {
        let document = &documents[place(hit[0].as_str().unwrap())];
        assert!(
            truth.matched.contains(&document),
            "{} does not match {shown}",
            hit[0]
        );
        for field in query["fields"].as_array().into_iter().flatten() {
            let field = field.as_str().unwrap();
            assert_eq!(
                hit[2].get(field),
                document["v"].get(field),
                "field {field} of {shown}"
            );
        }
        assert_eq!(
            hit[1].is_null(),
            query.get("sort").is_some(),
            "score of {shown}"
        );
    }
    for pair in hits.windows(2).filter(|pair| !pair[0][1].is_null()) {
        let (a, b) = (pair[0][1].as_f64().unwrap(), pair[1][1].as_f64().unwrap());
        assert!(a >= b, "scores fall: {shown}");
        if a == b {
            let order = (
                place(pair[0][0].as_str().unwrap()),
                place(pair[1][0].as_str().unwrap()),
            );
            assert!(
                order.0 < order.1,
                "ties are in the order of ingest: {shown}"
            );
        }
    }
    let mut distinct = ids.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), ids.len(), "no hit twice: {shown}");
    assert_eq!(reply["facets"], truth.facets, "facets of {shown}");
    assert_eq!(reply["groups"], truth.groups, "groups of {shown}");
}

fn suite(engine: &str, options: &[&str], queries: usize, fuzzy: bool) {
    let directory = Directory::new();
    let host = Running::start(engine, &directory.0, options);
    let mut client = host.client();
    let mut random = Random(7);
    let documents = reference::corpus(&mut random, 400);
    fill(&mut client, &documents);
    let mut matched = 0;
    for _ in 0..queries {
        let query = reference::query(&mut random, fuzzy);
        let reply = client.query(&query);
        matched += usize::from(reply["total"] != 0);
        hold(&query, &reply, &documents);
    }
    assert!(
        matched > queries / 3,
        "only {matched} of {queries} queries match anything"
    );
}

#[test]
fn tantivy_in_one_part_answers_as_the_algebra_says() {
    suite("tantivy", &[], 600, true);
}

#[test]
fn tantivy_in_five_parts_of_many_segments_answers_as_the_algebra_says() {
    suite(
        "tantivy",
        &[
            "--parts",
            "5",
            "--segments",
            "as-is",
            "--split",
            "hash",
            "--refresh_ms",
            "1",
        ],
        400,
        true,
    );
}

#[test]
fn tantivy_with_a_pool_and_two_level_merge_answers_as_the_algebra_says() {
    let options = [
        "--parts",
        "7",
        "--search_threads",
        "3",
        "--merge",
        "two-level",
        "--searcher",
        "per-thread",
    ];
    suite("tantivy", &options, 400, true);
}

#[test]
fn tantivy_from_memory_with_local_statistics_answers_as_the_algebra_says() {
    suite(
        "tantivy",
        &[
            "--parts",
            "3",
            "--directory",
            "ram",
            "--statistics",
            "local",
        ],
        400,
        true,
    );
}

#[test]
fn sqlite_answers_as_the_algebra_says() {
    suite("sqlite", &[], 600, false);
}

#[test]
fn sqlite_without_journal_or_merge_answers_as_the_algebra_says() {
    suite(
        "sqlite",
        &[
            "--journal",
            "off",
            "--merged",
            "false",
            "--page_size",
            "1024",
        ],
        200,
        false,
    );
}
