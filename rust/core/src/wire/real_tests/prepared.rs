//! Prepared statements on real servers: prepared once on each connection, executed one by one and in
//! a row, by the server's own numbers.

use super::*;

fn execute(number: u32, value: i64) -> Vec<u8> {
    let mut body = vec![0x17];
    body.extend(number.to_le_bytes());
    body.extend([0, 1, 0, 0, 0, 0, 1, 8, 0]);
    body.extend(value.to_le_bytes());
    let mut packet = (body.len() as u32).to_le_bytes().to_vec();
    packet.extend(body);
    packet
}

fn prepare(text: &str) -> Vec<u8> {
    let mut packet = query(text);
    packet[4] = 0x16;
    packet
}

#[test]
fn mysql_statements_are_prepared_once_and_executed_one_by_one_and_in_a_row() {
    let server = server("SEARCHBENCH_TEST_MYSQL");
    let each = [
        execute(1, 5),
        [execute(2, 6), execute(1, 7), execute(2, 8)].concat(),
    ];
    let each: Vec<&[u8]> = each.iter().map(Vec::as_slice).collect();
    // A server that reuses threads goes on counting: the second time its numbers are others.
    for _ in 0..3 {
        let load = Load::Closed(ClosedLoop {
            sequence: vec![0, 1, 0],
            starts: vec![0, 3],
            think_ns: 0,
            repeat: false,
            stop_after: None,
        });
        let options = Options {
            wire: WireKind::Mysql(server.login.clone()),
            prelude: vec![
                query("SET @a = 1"),
                prepare("SELECT ?"),
                prepare("SELECT ?, @a FROM DUAL"),
            ],
            capture_every: 1,
            ..options(([127, 0, 0, 1], server.port).into(), 1, load)
        };
        let trace = drive_these(requests(&each), options);
        assert_eq!(outcomes(&trace), [Outcome::Ok; 3]);
        let five = 5i64.to_le_bytes();
        let (_, first) = trace.replies().next().unwrap();
        assert!(first.windows(8).any(|eight| eight == five));
        let (_, row) = trace.replies().nth(1).unwrap();
        for value in 6i64..9 {
            assert!(row.windows(8).any(|eight| eight == value.to_le_bytes()));
        }
    }
}

#[test]
fn mysql_a_statement_that_cannot_be_prepared_fails_the_connection_with_the_servers_words() {
    let server = server("SEARCHBENCH_TEST_MYSQL");
    let options = Options {
        wire: WireKind::Mysql(server.login),
        prelude: vec![prepare("SELEC ?")],
        ..options(([127, 0, 0, 1], server.port).into(), 1, closed(1, 1))
    };
    let trace = drive_these(requests(&[&query("SELECT 1")]), options);
    assert_eq!(outcomes(&trace), [Outcome::EngineError]);
    let said = trace.accounting().json();
    assert!(
        said.contains("You have an error in your SQL syntax"),
        "{said}"
    );
}
