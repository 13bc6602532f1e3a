//! PostgreSQL: replies of every kind, and copies from us.

use super::*;

/// A Query message of PostgreSQL.
fn simple(text: &str) -> Vec<u8> {
    let length = (text.len() as u32 + 5).to_be_bytes();
    [b"Q", length.as_slice(), text.as_bytes(), b"\0"].concat()
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
