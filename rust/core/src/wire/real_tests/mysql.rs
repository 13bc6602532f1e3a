//! MariaDB and MySQL: replies of every kind, and commands of many packets.

use super::*;

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
            query("CREATE TEMPORARY TABLE t (n INT)"),
            // The statement, the file in two packets, its end.
            [
                &query("LOAD DATA LOCAL INFILE 'rows' INTO TABLE t")[..],
                b"\x04\0\0\x021\n2\n\x02\0\0\x033\n\0\0\0\x04",
            ]
            .concat(),
            query("SELECT COUNT(*) FROM t"),
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
        Ok,
        Ok,
        Ok,
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
        mysql_packets(reply(&trace, 11))
            .iter()
            .any(|packet| packet == b"\x013")
    );
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
fn mysql_refuses_a_command_that_is_too_large_and_says_so() {
    let server = server("SEARCHBENCH_TEST_MYSQL");
    // Above the 64 MiB that it takes: it says so before the last of six packets, or after five.
    let trace = ask(
        server.port,
        WireKind::Mysql(server.login),
        &[
            long_query(&format!("SELECT LENGTH('{}')", "q".repeat(90 << 20))),
            query("SELECT 1"),
            long_query(&format!("SELECT LENGTH('{}')", "q".repeat(66 << 20))),
            query("SELECT 1"),
        ],
    );
    use Outcome::{EngineError, Ok};
    assert_eq!(outcomes(&trace), [EngineError, Ok, EngineError, Ok]);
    assert_eq!(counted(&trace, "reconnects"), 2);
}
