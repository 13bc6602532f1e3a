//! The wires against real servers that somebody has started; only with the feature `real-servers`.
//! A login names each, as `port user password database` with `-` for what is empty, in a variable:
//!
//! - `SEARCHBENCH_TEST_MYSQL`: MariaDB or MySQL, max_allowed_packet 64M
//! - `SEARCHBENCH_TEST_SPHINX`: searchd's or Manticore's MySQL port
//! - `SEARCHBENCH_TEST_POSTGRES`: PostgreSQL, where the login is asked for a password

use super::{Login, WireKind};
use crate::sample::Outcome;
use crate::testing::{closed, counted, drive_these, open, options, requests, samples};
use crate::{Load, Options, Trace};

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
    let load = Load::Closed {
        sequence: (0..each.len() as u32).collect(),
        starts: vec![0, each.len() as u32],
        think_ns: 0,
        repeat: false,
        stop_after: None,
    };
    let target = ([127, 0, 0, 1], port).into();
    drive_these(
        requests(&each),
        Options {
            wire,
            capture_every: 1,
            timeout_ns: 60_000_000_000,
            ..options(target, 1, load)
        },
    )
}

fn outcomes(trace: &Trace) -> Vec<Outcome> {
    let known = [Outcome::Ok, Outcome::EngineError, Outcome::Unsupported];
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
