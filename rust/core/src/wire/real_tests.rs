//! The wires against real servers that somebody has started; only with the feature `real-servers`.
//! A login names each, as `port user password database` with `-` for what is empty, in a variable:
//!
//! - `SEARCHBENCH_TEST_MYSQL`: MariaDB or MySQL, max_allowed_packet 64M
//! - `SEARCHBENCH_TEST_SPHINX`: searchd's or Manticore's MySQL port
//! - `SEARCHBENCH_TEST_SEARCHD`: searchd's MySQL port, with three indexes: `p1` of documents that
//!   have the word hello, `half` of `local = p1` and an agent that nobody listens at, `none` of such
//!   an agent alone
//! - `SEARCHBENCH_TEST_SEARCHD_API`: the port of its native API
//! - `SEARCHBENCH_TEST_POSTGRES`: PostgreSQL, where the login is asked for a password

use std::sync::Arc;

use super::{Login, WireKind};
use crate::sample::Outcome;
use crate::testing::{closed, counted, drive_these, open, options, requests, samples};
use crate::{Load, Options, Requests, Trace};

struct Server {
    port: u16,
    login: Login,
}

fn server(variable: &str) -> Server {
    let text = std::env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set"));
    let parts: Vec<&str> = text.split_whitespace().collect();
    let [port, user, password, database] = parts[..] else {
        panic!("{variable} is not `port user password database`");
    };
    let part = |text: &str| if text == "-" { "" } else { text }.to_string();
    Server {
        port: port.parse().expect("a port"),
        login: Login::new(part(user), part(password), part(database)).unwrap(),
    }
}

/// A command packet of the MySQL protocol.
fn query(text: &str) -> Vec<u8> {
    let mut bytes = (text.len() as u32 + 1).to_le_bytes();
    bytes[3] = 0;
    [bytes.as_slice(), b"\x03", text.as_bytes()].concat()
}

/// A Query message of PostgreSQL.
fn simple(text: &str) -> Vec<u8> {
    let length = (text.len() as u32 + 5).to_be_bytes();
    [b"Q", length.as_slice(), text.as_bytes(), b"\0"].concat()
}

/// All of them in their order over one connection; every reply is kept.
fn ask(port: u16, wire: WireKind, each: &[Vec<u8>]) -> Trace {
    let each: Vec<&[u8]> = each.iter().map(Vec::as_slice).collect();
    ask_these(port, wire, requests(&each))
}

fn ask_these(port: u16, wire: WireKind, requests: Arc<Requests>) -> Trace {
    let load = Load::Closed {
        sequence: (0..requests.len() as u32).collect(),
        starts: vec![0, requests.len() as u32],
        think_ns: 0,
        repeat: false,
        stop_after: None,
    };
    let target = ([127, 0, 0, 1], port).into();
    drive_these(
        requests,
        Options {
            wire,
            capture_every: 1,
            timeout_ns: 60_000_000_000,
            ..options(target, 1, load)
        },
    )
}

fn outcomes(trace: &Trace) -> Vec<Outcome> {
    let known = [
        Outcome::Ok,
        Outcome::EngineError,
        Outcome::Unsupported,
        Outcome::Partial,
    ];
    let known = |code| known.into_iter().find(|outcome| *outcome as u8 == code);
    samples(trace)
        .iter()
        .map(|sample| known(sample.outcome).unwrap_or_else(|| panic!("{sample:?}")))
        .collect()
}

fn reply(trace: &Trace, index: u64) -> &[u8] {
    let found = trace.replies().find(|(sample, _)| *sample == index);
    found.expect("every reply is kept").1
}

/// Packets counted from a captured reply, by their lengths alone.
fn mysql_packets(reply: &[u8]) -> Vec<&[u8]> {
    let mut rest = reply;
    let mut packets = Vec::new();
    while !rest.is_empty() {
        let length = u32::from_le_bytes([rest[0], rest[1], rest[2], 0]) as usize;
        packets.push(&rest[4..4 + length]);
        rest = &rest[4 + length..];
    }
    packets
}

fn postgres_kinds(reply: &[u8]) -> String {
    let mut rest = reply;
    let mut kinds = String::new();
    while !rest.is_empty() {
        kinds.push(char::from(rest[0]));
        let length = u32::from_be_bytes(rest[1..5].try_into().unwrap()) as usize;
        rest = &rest[1 + length..];
    }
    kinds
}

fn refused(port: u16, wire: WireKind, statement: &[u8], outcome: Outcome, why: &str) {
    let target = ([127, 0, 0, 1], port).into();
    let options = Options {
        wire,
        ..options(target, 1, open(1, 0))
    };
    let trace = drive_these(requests(&[statement]), options);
    assert_eq!(trace.sample(0).outcome, outcome as u8);
    let account = trace.accounting();
    assert!(account.contains(why), "{account}");
}

#[test]
fn mysql_replies_of_every_kind_over_one_connection() {
    let server = server("SEARCHBENCH_TEST_MYSQL");
    // More packets than a sequence number counts.
    let rows = "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 900) \
                SELECT i, REPEAT('x', i) AS t, NULL AS z FROM n";
    let huge = "SELECT REPEAT('y', 16777210), 'z'";
    let exact = "SELECT REPEAT('y', 16777211)";
    let trace = ask(
        server.port,
        WireKind::Mysql(server.login),
        &[
            query("SELECT 1"),
            query("SET @a = 1"),
            query(rows),
            query("SELECT 1 FROM DUAL WHERE 1 = 0"),
            query("SELEC 1"),
            query("SELECT 1; SET @b = 2; SELECT 2, 3"),
            query("SELECT 1; SELEC 2"),
            query(huge),
            query(exact),
            query("LOAD DATA LOCAL INFILE '/nowhere' INTO TABLE t"),
            vec![1, 0, 0, 0, 0x0e],
            query("SELECT ''"),
            // A command of two packets.
            [
                &[0xff, 0xff, 0xff, 0],
                &query(&format!("SELECT LENGTH('{}')", "q".repeat(0xff_ffff - 18)))[4..],
                &[1, 0, 0, 1, b' '],
            ]
            .concat(),
        ],
    );
    use Outcome::{EngineError, Ok};
    let wanted = [
        Ok,
        Ok,
        Ok,
        Ok,
        EngineError,
        Ok,
        EngineError,
        Ok,
        Ok,
        EngineError,
        Ok,
        Ok,
        Ok,
    ];
    assert_eq!(outcomes(&trace), wanted);
    assert_eq!(counted(&trace, "connects"), 1);
    assert_eq!(counted(&trace, "reconnects"), 0);
    let packets = mysql_packets(reply(&trace, 2));
    // The count of columns, three columns, rows, the end; in the old style one end more.
    assert!(matches!(packets.len(), 905 | 906), "{}", packets.len());
    assert_eq!(reply(&trace, 7).len() as u64, trace.sample(7).bytes as u64);
    assert!(trace.sample(7).bytes > 16_777_216);
    assert!(
        mysql_packets(reply(&trace, 8))
            .iter()
            .any(|packet| packet.len() == 0xff_ffff)
    );
}

/// A statement of any length as the packets of one command.
fn long_query(text: &str) -> Vec<u8> {
    let command = [b"\x03", text.as_bytes()].concat();
    let mut bytes = Vec::new();
    let mut packets = command.chunks(0xff_ffff).collect::<Vec<_>>();
    if command.len().is_multiple_of(0xff_ffff) {
        packets.push(b"");
    }
    for (number, packet) in packets.into_iter().enumerate() {
        bytes.extend(&(packet.len() as u32).to_le_bytes()[..3]);
        bytes.push(number as u8);
        bytes.extend(packet);
    }
    bytes
}

#[test]
fn mysql_commands_of_many_megabytes_are_sent_and_answered_over_one_connection() {
    let server = server("SEARCHBENCH_TEST_MYSQL");
    let sizes = [4 << 20, 0xff_ffff - 18, 20 << 20, 50 << 20];
    let mut each: Vec<Vec<u8>> = sizes
        .iter()
        .map(|&size| long_query(&format!("SELECT LENGTH('{}')", "q".repeat(size))))
        .collect();
    // The server answers with as much as it is sent.
    each.push(long_query(&format!("SELECT '{}'", "q".repeat(20 << 20))));
    each.push(long_query(&format!("SELEC '{}'", "q".repeat(20 << 20))));
    each.push(query("SELECT 1"));
    let trace = ask(server.port, WireKind::Mysql(server.login), &each);
    use Outcome::{EngineError, Ok};
    assert_eq!(outcomes(&trace), [Ok, Ok, Ok, Ok, Ok, EngineError, Ok]);
    for (index, size) in sizes.iter().enumerate() {
        let packets = mysql_packets(reply(&trace, index as u64));
        let size = size.to_string();
        let row = [&[size.len() as u8], size.as_bytes()].concat();
        assert!(packets.contains(&row.as_slice()), "{size}");
    }
    assert!(counted(&trace, "partial_sends") > 0);
    assert_eq!(counted(&trace, "reconnects"), 0);
}

#[test]
fn mysql_many_connections_and_a_wrong_password() {
    let server = server("SEARCHBENCH_TEST_MYSQL");
    let target = ([127, 0, 0, 1], server.port).into();
    let trace = drive_these(
        requests(&[&query("SELECT 1, 'two', 3.0")]),
        Options {
            wire: WireKind::Mysql(server.login.clone()),
            ..options(target, 8, closed(8, 2_000))
        },
    );
    assert!(outcomes(&trace).iter().all(|o| *o == Outcome::Ok));
    assert_eq!(counted(&trace, "connects"), 8);
    let wrong = Login {
        password: "certainly not it".into(),
        ..server.login
    };
    refused(
        server.port,
        WireKind::Mysql(wrong),
        &query("SELECT 1"),
        Outcome::EngineError,
        "1045: Access denied",
    );
}

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

#[test]
fn postgres_replies_of_every_kind_over_one_connection() {
    let server = server("SEARCHBENCH_TEST_POSTGRES");
    let trace = ask(
        server.port,
        WireKind::Postgres(server.login),
        &[
            simple("SELECT 1"),
            simple(""),
            simple("SET work_mem = '8MB'"),
            simple("SET application_name = 'renamed'"),
            simple("SELECT i, repeat('x', i) FROM generate_series(1, 900) i"),
            simple("SELEC 1"),
            simple("SELECT 1; SELECT 2 WHERE false; SELECT 3"),
            simple("SELECT 1; SELECT 1/0; SELECT 3"),
            simple("DO $$ BEGIN RAISE NOTICE 'hear'; END $$"),
            simple("COPY (SELECT generate_series(1, 3)) TO STDOUT"),
            simple("SELECT repeat('y', 20000000)"),
            simple("LISTEN a; NOTIFY a, 'b'"),
        ],
    );
    use Outcome::{EngineError, Ok};
    assert_eq!(
        outcomes(&trace),
        [
            Ok,
            Ok,
            Ok,
            Ok,
            Ok,
            EngineError,
            Ok,
            EngineError,
            Ok,
            Ok,
            Ok,
            Ok
        ]
    );
    let kinds: Vec<String> = (0..12)
        .map(|index| postgres_kinds(reply(&trace, index)))
        .collect();
    assert_eq!(kinds[0], "TDCZ");
    assert_eq!(kinds[1], "IZ");
    assert_eq!(kinds[3], "CSZ");
    assert_eq!(kinds[4].matches('D').count(), 900);
    assert_eq!(kinds[5], "EZ");
    assert_eq!(kinds[6], "TDCTCTDCZ");
    assert_eq!(kinds[8], "NCZ");
    assert_eq!(kinds[9], "HdddcCZ");
    assert!(kinds[11].contains('A'), "{}", kinds[11]);
    assert!(trace.sample(10).bytes > 20_000_000);
    assert_eq!(counted(&trace, "connects"), 1);
    assert_eq!(counted(&trace, "reconnects"), 0);
}

#[test]
fn postgres_copies_in_and_fatal_errors_end_the_connection_with_an_outcome() {
    let server = server("SEARCHBENCH_TEST_POSTGRES");
    let trace = ask(
        server.port,
        WireKind::Postgres(server.login.clone()),
        &[
            simple("CREATE TEMP TABLE t (a int); COPY t FROM STDIN"),
            simple("SELECT pg_terminate_backend(pg_backend_pid())"),
            simple("SELECT 1"),
        ],
    );
    use Outcome::{EngineError, Ok, Unsupported};
    assert_eq!(outcomes(&trace), [Unsupported, EngineError, Ok]);
    assert_eq!(counted(&trace, "reconnects"), 2);
    let wrong = Login {
        password: "certainly not it".into(),
        ..server.login
    };
    refused(
        server.port,
        WireKind::Postgres(wrong),
        &simple("SELECT 1"),
        Outcome::EngineError,
        "28P01: password authentication failed",
    );
}

/// A Query with the data of its copy: so many rows, the last of them as given, and the end.
fn copy(statement: &str, rows: usize, last: &str) -> Vec<u8> {
    let mut bytes = simple(statement);
    for row in (0..rows).map(|row| format!("{row}\t{}\n", "x".repeat(1000))) {
        bytes.extend(data(&row));
    }
    bytes.extend(data(last));
    [bytes, b"c\0\0\0\x04".to_vec()].concat()
}

fn data(text: &str) -> Vec<u8> {
    let length = (text.len() as u32 + 4).to_be_bytes();
    [b"d", length.as_slice(), text.as_bytes()].concat()
}

#[test]
fn postgres_copies_in_with_their_data_over_one_connection() {
    let server = server("SEARCHBENCH_TEST_POSTGRES");
    let trace = ask(
        server.port,
        WireKind::Postgres(server.login),
        &[
            simple("CREATE TEMP TABLE t (a int, b text)"),
            copy("COPY t FROM STDIN", 5, "7\tend\n"),
            // 8 MB, more than any socket holds.
            copy("COPY t FROM STDIN", 8_000, "7\tend\n"),
            simple("SELECT count(*) FROM t"),
            // The last row is wrong; all has been sent by then.
            copy("COPY t FROM STDIN", 5, "seven\tend\n"),
            copy("COPY nowhere FROM STDIN", 5, "7\tend\n"),
            simple("SELECT count(*) FROM t"),
            [simple("COPY t FROM STDIN"), b"f\0\0\0\x08no!\0".to_vec()].concat(),
            // In a transaction that is given up.
            simple("BEGIN"),
            copy("COPY t FROM STDIN", 5, "seven\tend\n"),
            simple("SELECT 1"),
            simple("ROLLBACK"),
        ],
    );
    use Outcome::{EngineError, Ok};
    assert_eq!(
        outcomes(&trace),
        [
            Ok,
            Ok,
            Ok,
            Ok,
            EngineError,
            EngineError,
            Ok,
            EngineError,
            Ok,
            EngineError,
            EngineError,
            Ok
        ]
    );
    assert_eq!(postgres_kinds(reply(&trace, 2)), "GCZ");
    for count in [3, 6] {
        let said = reply(&trace, count);
        assert!(said.windows(4).any(|four| four == b"8007"), "{said:?}");
    }
    assert!(counted(&trace, "partial_sends") > 0);
    assert_eq!(counted(&trace, "reconnects"), 0);
}

#[test]
fn postgres_says_that_a_copy_is_wrong_before_all_of_it_is_sent() {
    let server = server("SEARCHBENCH_TEST_POSTGRES");
    let notices = "CREATE TEMP TABLE t (a int, b text); CREATE FUNCTION pg_temp.talk() RETURNS \
                   trigger LANGUAGE plpgsql AS 'BEGIN RAISE NOTICE ''%'', repeat(''n'', 2000); \
                   RETURN NEW; END'; CREATE TRIGGER talk BEFORE INSERT ON t FOR EACH ROW EXECUTE \
                   FUNCTION pg_temp.talk()";
    let trace = ask(
        server.port,
        WireKind::Postgres(server.login),
        &[
            // 64 MB for a table that is not there.
            copy("COPY nowhere FROM STDIN", 64_000, "7\tend\n"),
            simple("SELECT 1"),
            simple(notices),
            // The server says 16 MB while it is sent 8: each must be read while sending.
            copy("COPY t FROM STDIN", 8_000, "7\tend\n"),
            simple("SELECT 1"),
        ],
    );
    use Outcome::{EngineError, Ok};
    assert_eq!(outcomes(&trace), [EngineError, Ok, Ok, Ok, Ok]);
    assert!(trace.sample(3).bytes > 16_000_000);
    // The rest of the wrong copy was never sent.
    assert_eq!(counted(&trace, "reconnects"), 1);
}
