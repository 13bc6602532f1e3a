//! searchd: SphinxQL with its warnings, and the native API.

use super::*;

#[test]
fn sphinx_replies_of_every_kind_over_one_connection() {
    let server = server("SEARCHBENCH_TEST_SPHINX");
    let trace = ask(
        server.port,
        WireKind::Mysql(server.login),
        &[
            query("SHOW STATUS"),
            query("SHOW TABLES"),
            query("SELECT @@version"),
            query("SET AUTOCOMMIT = 1"),
            query("SHOW WARNINGS; SHOW META"),
            query("SELECT * FROM no_such_index"),
            query("this is not SphinxQL"),
            query("SHOW VARIABLES"),
        ],
    );
    use Outcome::{EngineError, Ok};
    let seen = outcomes(&trace);
    assert_eq!(seen[..5], [Ok; 5]);
    assert_eq!(seen[5..], [EngineError, EngineError, Ok]);
    assert_eq!(counted(&trace, "connects"), 1);
    assert_eq!(counted(&trace, "reconnects"), 0);
}

#[test]
fn sphinxql_counts_the_warnings_of_an_agent_that_does_not_answer() {
    let server = server("SEARCHBENCH_TEST_SEARCHD");
    let select = |index: &str| format!("SELECT id FROM {index} WHERE MATCH('hello') LIMIT 1");
    let with_meta = |index: &str| query(&format!("{}; SHOW META", select(index)));
    let exchanges = [
        with_meta("p1"),
        with_meta("half"),
        with_meta("none"),
        query(&select("half")),
        // A select and its meta as two exchanges.
        query(&select("half")),
        query("SHOW META"),
        query(&select("p1")),
        query("SHOW META"),
    ];
    let two_selects = query(&format!("{}; {}; SHOW META", select("half"), select("p1")));
    let exchanges = [&exchanges[..], &[two_selects]].concat();
    let ends = exchanges.iter().scan(0, |end, exchange| {
        *end += exchange.len() as u64;
        Some(*end)
    });
    let requests = Arc::new(
        Requests::new(
            exchanges.concat(),
            ends.collect(),
            vec![1, 2, 3, 4, 6, 8, 9],
        )
        .unwrap(),
    );
    use Outcome::{EngineError, Ok, Partial};
    let sphinxql = WireKind::Sphinxql(server.login.clone());
    let minded = ask_these(server.port, sphinxql, Arc::clone(&requests));
    assert_eq!(
        outcomes(&minded),
        [Ok, Partial, EngineError, Partial, Partial, Ok, Partial]
    );
    // Plain MySQL does not mind them.
    let plain = ask_these(server.port, WireKind::Mysql(server.login), requests);
    assert_eq!(outcomes(&plain), [Ok, Ok, EngineError, Ok, Ok, Ok, Ok]);
    for trace in [minded, plain] {
        assert_eq!(counted(&trace, "reconnects"), 0);
    }
}

/// A command of Sphinx's native API.
fn command(code: u16, version: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = code.to_be_bytes().to_vec();
    bytes.extend(version.to_be_bytes());
    bytes.extend((body.len() as u32).to_be_bytes());
    bytes.extend(body);
    bytes
}

fn sized(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat()
}

/// A SEARCH for hello in these indexes, one query each.
fn search(indexes: &[&str]) -> Vec<u8> {
    let numbers = |each: &[u32]| -> Vec<u8> {
        each.iter()
            .flat_map(|number| number.to_be_bytes())
            .collect()
    };
    let mut body = numbers(&[0, indexes.len() as u32]);
    for index in indexes {
        body.extend(
            [
                // Flags, offset, limit, mode, ranker; sort and what by.
                numbers(&[0, 0, 10, 0, 0, 0, 0]),
                sized("hello"),
                // No weights; the index; ids of 64 bits, of any value; no filters.
                numbers(&[0]),
                sized(index),
                numbers(&[1, 0, 0, 0, 0, 0]),
                // Groups: function, by; at most so many matches; their order.
                numbers(&[0, 0, 1000]),
                sized("@group desc"),
                // Cut-off, retries and their pause, distinct; anchor, weights, time, weights.
                numbers(&[0, 0, 0, 0, 0, 0, 0, 0]),
                // Comment, overrides, select list; the outer order, offset, limit, and whether.
                numbers(&[0, 0]),
                sized("*"),
                numbers(&[0, 0, 0, 0]),
            ]
            .concat(),
        );
    }
    command(0, 0x11e, &body)
}

#[test]
fn the_native_api_of_searchd_over_one_connection_as_long_as_it_lasts() {
    let server = server("SEARCHBENCH_TEST_SEARCHD_API");
    let update = |index: &str| {
        // One integer attribute of one document.
        let body = [
            sized(index),
            vec![0, 0, 0, 1, 0, 0, 0, 0],
            sized("num"),
            vec![0, 0, 0, 0, 0, 0, 0, 1],
            1_u64.to_be_bytes().to_vec(),
            vec![0, 0, 0, 5],
        ];
        command(2, 0x103, &body.concat())
    };
    let trace = ask(
        server.port,
        WireKind::Sphinx,
        &[
            search(&["p1"]),
            search(&["half"]),
            search(&["none"]),
            search(&["nope"]),
            search(&["half", "p1"]),
            // Of a batch the first alone is seen.
            search(&["p1", "half"]),
            command(5, 0x100, &[0, 0, 0, 1]),
            update("p1"),
            // Says nothing of the agent that it did not reach.
            update("half"),
            search(&["p1"; 32]),
            search(&["p1"; 33]),
            command(99, 0, b""),
            search(&["p1"]),
        ],
    );
    use Outcome::{EngineError, Ok, Partial};
    assert_eq!(
        outcomes(&trace),
        [
            Ok,
            Partial,
            EngineError,
            EngineError,
            Partial,
            Ok,
            Ok,
            Ok,
            Ok,
            Ok,
            EngineError,
            EngineError,
            Ok
        ]
    );
    // The two errors for a whole reply.
    assert_eq!(counted(&trace, "reconnects"), 2);
    assert_eq!(counted(&trace, "unsolicited"), 0);
}

#[test]
fn the_native_api_of_searchd_over_many_connections() {
    let server = server("SEARCHBENCH_TEST_SEARCHD_API");
    let target = ([127, 0, 0, 1], server.port).into();
    let trace = drive_these(
        requests(&[&search(&["p1"])]),
        Options {
            wire: WireKind::Sphinx,
            ..options(target, 8, closed(8, 500))
        },
    );
    assert!(outcomes(&trace).iter().all(|o| *o == Outcome::Ok));
    assert_eq!(counted(&trace, "connects"), 8);
    assert_eq!(counted(&trace, "reconnects"), 0);
}
