//! Parts searched as one: with global statistics nobody can tell, with local ones everybody can.

mod client;
mod reference;

use client::*;
use serde_json::{Value, json};

fn fill(options: &[&str], documents: &[Value]) -> (Directory, Running) {
    let directory = Directory::new();
    let host = Running::start("tantivy", &directory.0, options);
    let mut client = host.client();
    client.must(CREATE, &reference::schema());
    client.batch(documents);
    client.settle();
    (directory, host)
}

/// Ids and scores rounded to six digits: sums of 32-bit numbers in another order differ beyond.
fn hits(client: &mut Client, query: &Value) -> Vec<(String, String)> {
    let reply = client.query(query);
    let list = reply["hits"].as_array().unwrap().iter();
    list.map(|hit| {
        (
            hit[0].to_string(),
            format!("{:.5e}", hit[1].as_f64().unwrap()),
        )
    })
    .collect()
}

#[test]
fn with_global_statistics_300_of_300_queries_equal_the_single_index_and_with_local_ones_they_differ()
 {
    let documents = reference::corpus(&mut Random(11), 3_000);
    let (_one, single) = fill(&[], &documents);
    let (_four, global) = fill(
        &[
            "--parts",
            "4",
            "--search_threads",
            "2",
            "--merge",
            "two-level",
        ],
        &documents,
    );
    let (_local, local) = fill(&["--parts", "4", "--statistics", "local"], &documents);
    let mut clients = [&single, &global, &local].map(Running::client);
    let mut random = Random(5);
    let (mut equal, mut local_equal) = (0, 0);
    for _ in 0..300 {
        let mode = *random.pick(&["any", "any", "all", "phrase"]);
        let words: Vec<String> = (0..1 + random.below(3))
            .map(|_| {
                searchbench_hosts::analysis::terms(random.pick::<&str>(&reference::WORDS)).remove(0)
            })
            .collect();
        let query = json!({"match": {"mode": mode, "terms": words, "fields": ["title", "body"]}, "limit": 3000});
        let [one, four, alone] = clients.each_mut().map(|client| {
            let mut list = hits(client, &query);
            // Scores that round to the same may stand in either order.
            list.sort();
            list
        });
        assert_eq!(one.len(), four.len());
        if !one.is_empty() {
            equal += usize::from(one == four);
            local_equal += usize::from(one == alone);
        } else {
            equal += 1;
        }
    }
    assert_eq!(equal, 300);
    assert!(
        local_equal < 30,
        "{local_equal} of 300 are equal with local statistics"
    );
}

#[test]
fn documents_go_to_parts_in_turn_or_by_a_hash_that_never_changes() {
    let documents = reference::corpus(&mut Random(2), 1_000);
    for (split, expected) in [
        ("round-robin", Some(json!([250, 250, 250, 250]))),
        ("hash", None),
    ] {
        let (_directory, host) = fill(&["--parts", "4", "--split", split], &documents);
        let facts = host.client().must(FACTS, &Value::Null);
        let by_part = &facts["extra"]["documents_by_part"];
        if let Some(expected) = expected {
            assert_eq!(*by_part, expected);
        }
        assert_eq!(facts["extra"]["segments_by_part"], json!([1, 1, 1, 1]));
        let counts: Vec<u64> = serde_json::from_value(by_part.clone()).unwrap();
        assert!(
            counts.iter().all(|count| (200..=300).contains(count)),
            "{split}: {counts:?}"
        );
    }
}

#[test]
fn documents_sent_on_several_connections_at_once_are_all_there() {
    for engine in ["tantivy", "sqlite"] {
        let directory = Directory::new();
        let host = Running::start(engine, &directory.0, &[]);
        host.client().must(CREATE, &reference::schema());
        let documents = reference::corpus(&mut Random(4), 4_000);
        std::thread::scope(|scope| {
            for share in documents.chunks(1_000) {
                let mut client = host.client();
                scope.spawn(move || {
                    for batch in share.chunks(50) {
                        assert_eq!(client.batch(batch)["accepted"], 50);
                    }
                });
            }
        });
        let mut client = host.client();
        client.settle();
        assert_eq!(client.query(&json!({}))["total"], 4_000);
    }
}

#[test]
fn searches_see_more_and_more_while_a_refreshing_host_takes_documents() {
    for searcher in ["shared", "per-thread"] {
        let directory = Directory::new();
        let options = ["--refresh_ms", "20", "--parts", "2", "--searcher", searcher];
        let host = Running::start("tantivy", &directory.0, &options);
        let mut writing = host.client();
        writing.must(CREATE, &reference::schema());
        let documents = reference::corpus(&mut Random(6), 4_000);
        let seen = std::thread::scope(|scope| {
            let mut reading = host.client();
            let reader = scope.spawn(move || {
                let mut seen = vec![0];
                while *seen.last().unwrap() < 4_000 {
                    let total = reading.query(&json!({"limit": 3}))["total"]
                        .as_u64()
                        .unwrap();
                    assert!(total >= *seen.last().unwrap(), "documents do not vanish");
                    if total > *seen.last().unwrap() {
                        seen.push(total);
                    }
                }
                seen
            });
            for batch in documents.chunks(100) {
                writing.batch(batch);
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            reader.join().unwrap()
        });
        assert!(seen.len() > 4, "{seen:?}");
    }
}
