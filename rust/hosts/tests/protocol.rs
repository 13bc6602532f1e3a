//! The framed protocol under bad input, and what a batch refuses.
//!
//! Longer than most files: one list of everything that can be done wrong to a host.

mod client;
mod reference;

use std::io::Read;
use std::net::Shutdown;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use client::*;
use serde_json::{Value, json};

const ENGINES: [&str; 2] = ["tantivy", "sqlite"];

fn small() -> Value {
    json!({"fields": [{"name": "body", "type": "text", "stored": true}, {"name": "year", "type": "integer"}]})
}

fn each(test: impl Fn(&str, &Directory, &Running, &mut Client)) {
    for engine in ENGINES {
        let directory = Directory::new();
        let host = Running::start(engine, &directory.0, &[]);
        let mut client = host.client();
        test(engine, &directory, &host, &mut client);
    }
}

fn total(client: &mut Client, term: &str) -> Value {
    client.query(&json!({"match": {"mode": "any", "terms": [term], "fields": ["body"]}}))["total"]
        .clone()
}

#[test]
fn nothing_works_before_create_and_create_works_once() {
    each(|_, _, _, client| {
        for (verb, payload) in [(BATCH, ""), (SETTLE, "{}"), (COMMIT, "{}"), (QUERY, "{}")] {
            assert!(
                client
                    .ask(verb, payload.as_bytes())
                    .error()
                    .contains("create comes first")
            );
        }
        client.must(CREATE, &small());
        let again = client.ask(CREATE, small().to_string().as_bytes());
        assert!(again.error().contains("already"));
    });
}

#[test]
fn a_bad_document_is_refused_with_its_reason_and_the_others_are_kept() {
    each(|_, _, _, client| {
        client.must(CREATE, &small());
        let lines = [
            r#"{"id": "a", "v": {"body": "one", "year": 1}}"#,
            r#"{"id": "b", "v": {"body": "one", "year": "MMXX"}}"#,
            r#"{"id": "a", "v": {"body": "one"}}"#,
            r#"{"v": {"body": "one"}}"#,
            r#"{"id": "c", "v": {"boddy": "one"}}"#,
            r#"{"id": "d", "v": {"body": null}}"#,
            r#"{"id": "e", "v": {"year": 1.5}}"#,
            r#"{"id": "f", "v": {"year": 99999999999999999999}}"#,
            r#"{"id": "g", "v": {"body": "one", "body": "two"}}"#,
            "not json",
            r#"{"id": "h", "v": {}}"#,
            r#"{"id": "i", "v": {"body": "\u006fne \ud83d\ude00"}}"#,
        ];
        let reply = client.ask(BATCH, lines.join("\n").as_bytes());
        let reply = reply.json();
        assert_eq!(reply["accepted"], 3);
        let refused: Vec<(String, String)> =
            serde_json::from_value::<Vec<Value>>(reply["refused"].clone())
                .unwrap()
                .iter()
                .map(|r| {
                    (
                        r["id"].as_str().unwrap().into(),
                        r["reason"].as_str().unwrap().into(),
                    )
                })
                .collect();
        let expected = [
            ("b", "cannot hold \"MMXX\""),
            ("a", "in the index already"),
            ("", "has no id"),
            ("c", "did you mean \"body\"?"),
            ("d", "is null"),
            ("e", "cannot hold 1.5"),
            ("f", "cannot hold"),
            ("g", "given twice"),
            ("", "not a document in JSON"),
        ];
        assert_eq!(refused.len(), expected.len(), "{refused:?}");
        for ((id, reason), (expected_id, part)) in refused.iter().zip(expected) {
            assert!(id == expected_id && reason.contains(part), "{id}: {reason}");
        }
        client.settle();
        assert_eq!(total(client, "one"), 2);
        assert_eq!(client.must(FACTS, &Value::Null)["documents"], 3);
    });
}

#[test]
fn what_is_added_is_seen_after_commit_and_not_before() {
    each(|_, _, host, client| {
        client.must(CREATE, &small());
        client.batch(&[json!({"id": "1", "v": {"body": "one"}})]);
        assert_eq!(total(client, "one"), 0);
        client.must(COMMIT, &json!({}));
        assert_eq!(total(client, "one"), 1);
        client.settle();
        // After settling more can come, and on another connection too.
        let mut other = host.client();
        other.batch(&[json!({"id": "2", "v": {"body": "one"}})]);
        other.settle();
        assert_eq!(
            (total(client, "one"), total(&mut other, "one")),
            (json!(2), json!(2))
        );
    });
}

#[test]
fn an_index_is_there_again_after_a_restart_and_goes_on() {
    for (engine, options) in [
        ("tantivy", ["--parts", "3"]),
        ("sqlite", ["--cache_mb", "8"]),
    ] {
        let directory = Directory::new();
        let documents: Vec<Value> = (0..10)
            .map(|n| json!({"id": n.to_string(), "v": {"body": "one"}}))
            .collect();
        {
            let host = Running::start(engine, &directory.0, &options);
            let mut client = host.client();
            client.must(CREATE, &small());
            client.batch(&documents);
            client.settle();
        }
        let host = Running::start(engine, &directory.0, &options);
        let mut client = host.client();
        assert_eq!(total(&mut client, "one"), 10);
        let reply = client.batch(&[
            documents[3].clone(),
            json!({"id": "10", "v": {"body": "one"}}),
        ]);
        assert_eq!(
            (&reply["accepted"], &reply["refused"][0]["id"]),
            (&json!(1), &json!("3"))
        );
        client.settle();
        let hits = client.query(&json!({"limit": 20}))["hits"].clone();
        let ids: Vec<&str> = hits
            .as_array()
            .unwrap()
            .iter()
            .map(|hit| hit[0].as_str().unwrap())
            .collect();
        assert_eq!(
            ids,
            ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]
        );
    }
}

#[test]
fn an_index_of_other_parameters_is_refused_in_one_sentence() {
    let directory = Directory::new();
    {
        let host = Running::start("tantivy", &directory.0, &["--parts", "2"]);
        host.client().must(CREATE, &small());
    }
    let error = Running::try_start("tantivy", &directory.0, &["--parts", "4"])
        .err()
        .unwrap();
    assert!(error.contains("has parts 2, not 4"), "{error}");
}

#[test]
fn bad_queries_get_one_sentence_and_the_connection_goes_on() {
    each(|engine, _, _, client| {
        client.must(CREATE, &small());
        for (query, part) in [
            ("{", "not as FORMATS.md says"),
            (r#"{"limits": 1}"#, "limits"),
            (r#"{"match": {"terms": ["a"], "fields": ["body"]}}"#, "mode"),
            (
                r#"{"match": {"mode": "any", "terms": ["a"], "fields": ["bodi"]}}"#,
                "did you mean \"body\"?",
            ),
            (
                r#"{"match": {"mode": "any", "terms": ["a"], "fields": ["year"]}}"#,
                "use a filter",
            ),
            (
                r#"{"filters": [{"in": {"field": "year", "values": ["x"]}}]}"#,
                "cannot be compared",
            ),
            (r#"{"fields": ["nothing"]}"#, "no field"),
        ] {
            let reply = client.ask(QUERY, query.as_bytes());
            assert_eq!(reply.status, 1, "{query}");
            assert!(reply.error().contains(part), "{query}: {}", reply.error());
        }
        let sorted = client.ask(QUERY, br#"{"sort": [{"field": "body"}]}"#);
        assert_eq!(sorted.status, 2, "{engine}");
        let deep = format!(
            "{}{}",
            "{\"match\":{\"must\":[".repeat(10_000),
            "]}}".repeat(10_000)
        );
        assert_eq!(client.ask(QUERY, deep.as_bytes()).status, 1);
        assert_eq!(client.query(&json!({}))["total"], 0);
    });
}

#[test]
fn sqlite_says_that_it_cannot_do_fuzzy() {
    let directory = Directory::new();
    let host = Running::start("sqlite", &directory.0, &[]);
    let mut client = host.client();
    client.must(CREATE, &small());
    let query = json!({"match": {"mode": "fuzzy", "terms": ["a"], "fields": ["body"]}});
    assert_eq!(client.ask(QUERY, query.to_string().as_bytes()).status, 2);
}

#[test]
fn garbage_is_answered_with_an_error_and_the_connection_is_closed() {
    each(|_, _, host, _| {
        let mut huge = (u32::MAX).to_le_bytes().to_vec();
        huge.extend_from_slice(&[QUERY, 0, 0, 0]);
        for bytes in [
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
            frame(99, b""),
            huge,
        ] {
            let mut client = host.client();
            client.send(&bytes);
            assert_eq!(client.receive().unwrap().status, 1);
            assert_eq!(client.0.read(&mut [0; 1]).unwrap(), 0, "closed");
        }
    });
}

#[test]
fn a_client_that_goes_away_in_the_middle_hurts_no_one() {
    each(|_, _, host, client| {
        for cut in [1, 7, 8, 20] {
            let mut leaving = host.client();
            leaving.send(&frame(QUERY, &[b' '; 100])[..cut]);
            drop(leaving);
        }
        let mut half = host.client();
        half.send(&frame(FACTS, b""));
        half.0.shutdown(Shutdown::Write).unwrap();
        assert_eq!(
            half.receive().unwrap().status,
            0,
            "what was asked before is answered"
        );
        client.must(FACTS, &Value::Null);
    });
}

#[test]
fn requests_sent_ahead_are_answered_in_order() {
    each(|_, _, _, client| {
        client.must(CREATE, &small());
        let mut bytes = Vec::new();
        for number in 0..500 {
            bytes.extend(match number % 3 {
                0 => frame(ANALYSE, format!("{{\"text\": \"Nr-{number}\"}}").as_bytes()),
                1 => frame(QUERY, b"{}"),
                _ => frame(QUERY, b"nonsense"),
            });
        }
        client.send(&bytes);
        for number in 0..500 {
            let reply = client.receive().unwrap();
            match number % 3 {
                0 => assert_eq!(reply.json(), json!({"terms": ["nr", number.to_string()]})),
                1 => assert_eq!(reply.json()["total"], 0),
                _ => assert_eq!(reply.status, 1),
            }
            assert!(
                reply.host_ns > 0 && reply.host_ns < 5_000_000_000,
                "{}",
                reply.host_ns
            );
        }
    });
}

#[test]
fn every_engine_sees_the_same_terms() {
    let text = "Straße ΟΔΟΣ İ 日本語、e\u{301} x²_½ the THE \u{0}nul\u{ad}soft";
    let expected = json!({"terms": ["straße", "οδοσ", "i", "日本語", "e", "x²", "½", "the", "the", "nul", "soft"]});
    each(|_, _, _, client| {
        for _ in 0..3 {
            assert_eq!(client.must(ANALYSE, &json!({"text": text})), expected);
        }
        assert_eq!(
            client.must(ANALYSE, &json!({"text": " ...! "})),
            json!({"terms": []})
        );
    });
}

#[test]
fn facts_read_the_parameters_back() {
    let directory = Directory::new();
    let host = Running::start(
        "sqlite",
        &directory.0,
        &["--cache_mb", "7", "--page_size", "8192", "--journal", "off"],
    );
    let mut client = host.client();
    client.must(CREATE, &small());
    let facts = client.must(FACTS, &Value::Null);
    let expected = json!({"cache_mb": 7, "mmap_mb": 256, "page_size": 8192, "keys": false, "merged": true, "journal": "off"});
    assert_eq!(facts["parameters"], expected);
    assert!(
        facts["version"].as_str().unwrap().starts_with("3."),
        "{facts}"
    );
    let directory = Directory::new();
    let host = Running::start("tantivy", &directory.0, &["--parts", "2"]);
    let facts = host.client().must(FACTS, &Value::Null);
    assert_eq!(
        (&facts["parameters"]["parts"], &facts["parameters"]["merge"]),
        (&json!(2), &json!("flat"))
    );
    assert!(
        facts["version"].as_str().unwrap().starts_with("0."),
        "{facts}"
    );
}

#[test]
fn a_full_disk_is_an_error_with_a_sentence() {
    // A limit on the size of files stands for the full disk: it fails a write in the same place.
    for engine in ENGINES {
        let directory = Directory::new();
        let binary = env!("CARGO_BIN_EXE_searchbench-host");
        let script = format!(
            "ulimit -f 2048; trap '' XFSZ; exec {binary} {engine} --data {}",
            directory.0.display()
        );
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut client = Client::connect(listening(&mut child));
        client.must(CREATE, &small());
        let mut random = Random(1);
        let mut said = None;
        for batch in 0..60 {
            let lines: Vec<String> = (0..500)
                .map(|n| {
                    let words: Vec<String> =
                        (0..40).map(|_| random.below(1 << 40).to_string()).collect();
                    json!({"id": format!("{batch}-{n}"), "v": {"body": words.join(" ")}})
                        .to_string()
                })
                .collect();
            let reply = client.ask(BATCH, lines.join("\n").as_bytes());
            if reply.status == 1 {
                said = Some(reply.error());
                break;
            }
        }
        let said = said.unwrap_or_else(|| client.ask(SETTLE, b"{}").error());
        assert!(said.len() > 10, "{engine}: {said}");
        client.must(FACTS, &Value::Null);
        end(child, 0);
    }
}

fn listening(child: &mut std::process::Child) -> std::net::SocketAddr {
    let out = child.stdout.as_mut().unwrap();
    let mut said = Vec::new();
    let mut byte = [0];
    while out.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
        said.push(byte[0]);
    }
    let said = String::from_utf8(said).unwrap();
    said.strip_prefix("listening on ")
        .unwrap_or_else(|| panic!("{said:?}"))
        .parse()
        .unwrap()
}

fn end(mut child: std::process::Child, code: i32) {
    // SAFETY: our own child, not yet waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    let start = Instant::now();
    assert_eq!(child.wait().unwrap().code(), Some(code));
    assert!(
        start.elapsed() < Duration::from_secs(1),
        "{:?}",
        start.elapsed()
    );
}

#[test]
fn sigterm_ends_a_host_with_code_0_within_a_second_even_while_it_works() {
    for engine in ["tantivy", "sqlite", "null"] {
        let directory = Directory::new();
        let mut child = Command::new(env!("CARGO_BIN_EXE_searchbench-host"))
            .args([
                engine,
                "--port",
                "0",
                "--data",
                directory.0.to_str().unwrap(),
            ])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut client = Client::connect(listening(&mut child));
        client.must(CREATE, &reference::schema());
        let documents = reference::corpus(&mut Random(3), 20_000);
        let lines: Vec<String> = documents.iter().map(Value::to_string).collect();
        client.send(&frame(BATCH, lines.join("\n").as_bytes()));
        std::thread::sleep(Duration::from_millis(30));
        end(child, 0);
    }
}

#[test]
fn a_wrong_option_is_one_sentence_and_code_2() {
    let directory = Directory::new();
    let data = directory.0.to_str().unwrap();
    for (words, part) in [
        (vec!["tantivi"], "did you mean tantivy?"),
        (vec!["tantivy"], "--data DIR is missing"),
        (
            vec!["tantivy", "--data", data, "--prts", "2"],
            "did you mean --parts?",
        ),
        (
            vec!["sqlite", "--data", data, "--journal", "wall"],
            "did you mean wal?",
        ),
        (vec!["null", "--delay_us", "x"], "whole number"),
        (vec![], "which engine?"),
    ] {
        let out = Command::new(env!("CARGO_BIN_EXE_searchbench-host"))
            .args(&words)
            .output()
            .unwrap();
        let said = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(2), "{words:?}: {said}");
        assert!(
            said.contains(part) && said.trim_end().lines().count() == 1,
            "{words:?}: {said}"
        );
    }
}

#[test]
fn a_busy_port_is_one_sentence() {
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = holder.local_addr().unwrap().port().to_string();
    let argv: Vec<String> = ["null", "--port", &port].map(String::from).into();
    let said = searchbench_hosts::Host::start(&argv).err().unwrap();
    assert!(said.contains("cannot listen on 127.0.0.1"), "{said}");
}

fn said(id: &str, body: &str) -> Value {
    json!({"id": id, "v": {"body": body}})
}

#[test]
fn documents_are_replaced_and_deleted_by_their_ids_where_these_are_indexed() {
    for engine in ENGINES {
        for keys in ["true", "false"] {
            let directory = Directory::new();
            let host = Running::start(engine, &directory.0, &["--keys", keys]);
            let mut client = host.client();
            client.must(CREATE, &small());
            client.batch(&[
                said("a", "red fox"),
                said("b", "red hen"),
                said("c", "old fox"),
            ]);
            client.settle();
            let blue = said("b", "blue hen").to_string();
            let replaced = client.ask(REPLACE, blue.as_bytes());
            let deleted = client.ask(DELETE, b"{\"id\": \"a\"}\n{\"id\": \"z\"}");
            if keys == "false" {
                assert!(replaced.error().contains("ids are not indexed"), "{engine}");
                assert!(deleted.error().contains("ids are not indexed"), "{engine}");
                continue;
            }
            assert_eq!(replaced.json()["accepted"], 1, "{engine}");
            let deleted = deleted.json();
            assert_eq!(deleted["accepted"], 1, "{engine}");
            assert_eq!(deleted["refused"][0]["id"], "z", "{engine}");
            client.must(COMMIT, &json!({}));
            assert_eq!(client.must(FACTS, &Value::Null)["documents"], 2, "{engine}");
            for (term, found) in [("red", 0), ("blue", 1), ("hen", 1), ("fox", 1)] {
                assert_eq!(total(&mut client, term), found, "{engine} {term}");
            }
        }
    }
}
