//! Longer than most files: the packets at its top serve every test.

use super::super::testing::{assert_cut_anywhere, assert_damage_is_seen_alike, feed_in_pieces};
use super::*;

/// SELECT 1, as a client sends it.
const QUERY: &[u8] = b"\x09\0\0\0\x03SELECT 1";
const OK_PACKET: &[u8] = b"\0\0\0\x02\0\0\0";
const OK_MORE: &[u8] = b"\0\0\0\x0a\0\0\0";
const ERROR: &[u8] = b"\xff\x28\x04#42000You have an error";
const EOF_OLD: &[u8] = b"\xfe\0\0\x02\0";
const EOF_OLD_MORE: &[u8] = b"\xfe\0\0\x0a\0";
/// The end of rows as an OK, with all counts at their longest.
const EOF_NEW: &[u8] =
    b"\xfe\xfe\x01\x02\x03\x04\x05\x06\x07\x08\xfe\x01\x02\x03\x04\x05\x06\x07\x08\x02\0\0\0";
const EOF_NEW_MORE: &[u8] = b"\xfe\0\0\x0a\0\0\0";
const COLUMN: &[u8] = b"\x03def\0\0\0\x011\0\x0c\x3f\0\x01\0\0\0\x03\x81\0\0\0\0";
const ROW: &[u8] = b"\x011\xfb\x03two";

/// A wire after a login in which the end of rows was agreed upon.
fn wire(rows_end_with_ok: bool) -> Mysql {
    let mut wire = Mysql::new(Login::default());
    wire.login.agree_for_test(rows_end_with_ok);
    wire
}

fn packets(first: u8, bodies: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (index, body) in bodies.iter().enumerate() {
        bytes.extend(&(body.len() as u32).to_le_bytes()[..3]);
        bytes.push(first.wrapping_add(index as u8));
        bytes.extend(*body);
    }
    bytes
}

fn reply(outcome: Outcome) -> Option<Reply> {
    Some(Reply {
        outcome,
        ..Reply::ok()
    })
}

/// The bodies are a whole reply, however they are cut, and what follows is not part of it.
fn assert_reply(rows_end_with_ok: bool, bodies: &[&[u8]], wanted: Outcome) {
    let bytes = packets(1, bodies);
    let ends_at = bytes.len();
    let followed = [&bytes[..], b"\x01\0\0\x01\0"].concat();
    let wire = wire(rows_end_with_ok);
    assert_cut_anywhere(&wire, QUERY, &bytes, reply(wanted), ends_at);
    assert_cut_anywhere(&wire, QUERY, &followed, reply(wanted), ends_at);
}

#[test]
fn an_ok_and_an_error_are_whole_replies() {
    assert_reply(false, &[OK_PACKET], Outcome::Ok);
    assert_reply(true, &[OK_PACKET], Outcome::Ok);
    assert_reply(false, &[ERROR], Outcome::EngineError);
    assert_reply(true, &[b"\xff\x28\x04no state"], Outcome::EngineError);
}

#[test]
fn a_result_set_in_the_old_style_ends_with_its_second_eof() {
    assert_reply(
        false,
        &[b"\x02", COLUMN, COLUMN, EOF_OLD, ROW, ROW, EOF_OLD],
        Outcome::Ok,
    );
    assert_reply(false, &[b"\x01", COLUMN, EOF_OLD, EOF_OLD], Outcome::Ok);
}

#[test]
fn a_result_set_in_the_new_style_ends_with_an_ok() {
    assert_reply(
        true,
        &[b"\x02", COLUMN, COLUMN, ROW, ROW, EOF_NEW],
        Outcome::Ok,
    );
    assert_reply(true, &[b"\x01", COLUMN, EOF_NEW], Outcome::Ok);
}

#[test]
fn more_columns_than_a_byte_counts_are_all_passed_over() {
    let columns = [COLUMN; 300];
    let bodies: Vec<&[u8]> = [b"\xfc\x2c\x01".as_slice()]
        .into_iter()
        .chain(columns)
        .chain([EOF_NEW])
        .collect();
    let bytes = packets(1, &bodies);
    let mut wire = wire(true);
    for size in [1, 7, 4096, bytes.len()] {
        wire.begin(QUERY);
        let cuts: Vec<usize> = (size..bytes.len()).step_by(size).collect();
        let (step, used) = feed_in_pieces(&mut wire, &bytes, &cuts);
        assert!(matches!(step, Step::Whole { .. }), "{step:?}");
        assert_eq!(used, bytes.len());
    }
}

#[test]
fn several_results_are_one_reply() {
    let old: &[&[u8]] = &[
        b"\x01",
        COLUMN,
        EOF_OLD,
        ROW,
        EOF_OLD_MORE,
        OK_MORE,
        b"\x01",
        COLUMN,
        EOF_OLD,
        EOF_OLD,
    ];
    assert_reply(false, old, Outcome::Ok);
    let new: &[&[u8]] = &[b"\x01", COLUMN, ROW, EOF_NEW_MORE, OK_PACKET];
    assert_reply(true, new, Outcome::Ok);
}

#[test]
fn an_error_in_any_place_ends_the_reply() {
    assert_reply(
        true,
        &[b"\x01", COLUMN, ROW, EOF_NEW_MORE, ERROR],
        Outcome::EngineError,
    );
    assert_reply(
        false,
        &[b"\x01", COLUMN, EOF_OLD, ROW, ERROR],
        Outcome::EngineError,
    );
    assert_reply(true, &[b"\x02", COLUMN, ERROR], Outcome::EngineError);
}

#[test]
fn a_server_that_wants_a_local_file_is_left() {
    let bytes = packets(1, &[b"\xfb/etc/passwd"]);
    let wanted = Reply {
        outcome: Outcome::Unsupported,
        close: true,
        ..Reply::ok()
    };
    assert_cut_anywhere(&wire(true), QUERY, &bytes, Some(wanted), bytes.len());
}

#[test]
fn a_value_that_begins_like_an_end_is_a_row() {
    // In the old style 0xfe before 8 bytes of length; nine bytes can only be a row.
    let long: &[u8] = b"\xfe\x02\0\0\0\0\0\0\0ab";
    assert_reply(
        false,
        &[b"\x01", COLUMN, EOF_OLD, long, EOF_OLD],
        Outcome::Ok,
    );
}

#[test]
fn numbers_of_packets_wrap() {
    let rows = vec![ROW; 700];
    let bodies: Vec<&[u8]> = [b"\x01".as_slice(), COLUMN]
        .into_iter()
        .chain(rows)
        .chain([EOF_NEW])
        .collect();
    let bytes = packets(1, &bodies);
    let mut wire = wire(true);
    wire.begin(QUERY);
    let (step, used) = feed_in_pieces(&mut wire, &bytes, &[1000, 1001, 5000]);
    assert!(matches!(step, Step::Whole { .. }), "{step:?}");
    assert_eq!(used, bytes.len());
}

#[test]
fn a_row_of_several_packets_is_one_row() {
    // 16 MiB: a full packet and the rest; exactly full: an empty packet follows. Both begin or go
    // on with bytes that would end the rows in a packet of their own.
    for goes_on in [true, false] {
        let mut full = vec![0xfe; FULL_BYTES];
        full[1..9].copy_from_slice(&(16u64 << 20).to_le_bytes());
        for rows_end_with_ok in [true, false] {
            let end = if rows_end_with_ok { EOF_NEW } else { EOF_OLD };
            let rest = if goes_on { end } else { b"" };
            let mut bodies: Vec<&[u8]> = vec![b"\x01", COLUMN, EOF_OLD, &full, rest, end];
            if rows_end_with_ok {
                bodies.remove(2);
            }
            let bytes = packets(1, &bodies);
            let mut wire = wire(rows_end_with_ok);
            let border = bytes.len() - end.len() - 4 - rest.len() - 4;
            for cuts in [
                vec![],
                vec![border],
                vec![border + 2, border + 5],
                (65_536..bytes.len()).step_by(65_536).collect(),
            ] {
                wire.begin(QUERY);
                let (step, used) = feed_in_pieces(&mut wire, &bytes, &cuts);
                let ok = reply(Outcome::Ok).unwrap();
                assert!(
                    matches!(step, Step::Whole { reply, .. } if reply == ok),
                    "{step:?}"
                );
                assert_eq!(used, bytes.len());
            }
        }
    }
}

/// A command of three packets, of which the last is short.
fn three_packets() -> Vec<u8> {
    let mut command = Vec::new();
    for number in 0..2 {
        command.extend([0xff, 0xff, 0xff, number]);
        command.resize(command.len() + FULL_BYTES, b'x');
    }
    [command, b"\x01\0\0\x02y".to_vec()].concat()
}

#[test]
fn the_reply_to_a_command_of_three_packets_is_numbered_after_the_third() {
    let command = three_packets();
    let mut wire = wire(true);
    for (first, whole) in [(3, true), (2, false), (1, false), (4, false), (0, false)] {
        wire.begin(&command);
        let step = wire.feed(&packets(first, &[OK_PACKET]));
        assert_eq!(matches!(step, Step::Whole { .. }), whole, "{step:?}");
    }
}

#[test]
fn a_command_may_be_refused_before_its_last_packet_and_that_costs_the_connection() {
    let command = three_packets();
    for (number, close) in [
        (1, Some(true)),
        (2, Some(true)),
        (3, Some(false)),
        (4, None),
    ] {
        let bytes = packets(number, &[ERROR]);
        let wanted = close.map(|close| Reply {
            outcome: Outcome::EngineError,
            close,
            ..Reply::ok()
        });
        for cut in 1..bytes.len() {
            let mut wire = wire(true);
            wire.begin(&command);
            match (feed_in_pieces(&mut wire, &bytes, &[cut]).0, wanted) {
                (Step::Whole { reply, .. }, Some(wanted)) => assert_eq!(reply, wanted),
                (Step::Malformed, None) => {}
                (got, _) => panic!("{number}: {got:?}, cut at {cut}"),
            }
        }
    }
    // Where the last packet had come, the number of the error tells that the server goes.
    let too_large = packets(1, &[b"\xff\x81\x04#08S01Got a packet bigger than"]);
    let wanted = Reply {
        outcome: Outcome::EngineError,
        close: true,
        ..Reply::ok()
    };
    assert_cut_anywhere(
        &wire(true),
        QUERY,
        &too_large,
        Some(wanted),
        too_large.len(),
    );
    // Not once a reply has begun, and not for a command of one packet.
    let mut wire = wire(false);
    wire.begin(&command);
    assert_eq!(wire.feed(&packets(3, &[OK_MORE])), Step::More);
    assert_eq!(wire.feed(&packets(2, &[ERROR])), Step::Malformed);
    wire.begin(QUERY);
    assert_eq!(wire.feed(&packets(0, &[ERROR])), Step::Malformed);
}

#[test]
fn what_is_no_reply_is_malformed() {
    let nonsense: &[(bool, &[&[u8]])] = &[
        (true, &[b""]),
        (true, &[b"\xfe\0\0\x02\0\0\0"]),
        (true, &[b"\0\0"]),
        (true, &[b"\x02x"]),
        (true, &[b"\xfd\0\0\x01"]),
        (false, &[b"\x01", COLUMN, ROW]),
        (false, &[b"\x01", COLUMN, EOF_OLD, b"\xfe\0"]),
        (true, &[b"\x01", COLUMN, ROW, b"\xfe\0"]),
        (true, &[b"\x01", b""]),
        (false, &[b"\x01", COLUMN, EOF_OLD, b""]),
    ];
    for (rows_end_with_ok, bodies) in nonsense {
        let bytes = packets(1, bodies);
        assert_cut_anywhere(&wire(*rows_end_with_ok), QUERY, &bytes, None, 0);
    }
    let stale = packets(2, &[OK_PACKET]);
    assert_cut_anywhere(&wire(true), QUERY, &stale, None, 0);
    let http = b"HTTP/1.1 400 Bad Request\r\n\r\n";
    assert_cut_anywhere(&wire(true), QUERY, http, None, 0);
}

#[test]
fn a_reply_never_ends_by_the_end_of_the_connection() {
    let mut wire = wire(true);
    wire.begin(QUERY);
    assert_eq!(wire.feed(&packets(1, &[b"\x01", COLUMN, ROW])), Step::More);
    assert_eq!(wire.ended(), None);
}

#[test]
fn a_damaged_reply_is_seen_alike_however_it_is_cut() {
    let old = packets(
        1,
        &[b"\x01", COLUMN, EOF_OLD, ROW, EOF_OLD_MORE, OK_MORE, ERROR],
    );
    assert_damage_is_seen_alike(&wire(false), QUERY, &old);
    let new = packets(
        1,
        &[
            b"\x02",
            COLUMN,
            COLUMN,
            ROW,
            EOF_NEW_MORE,
            OK_MORE,
            OK_PACKET,
        ],
    );
    assert_damage_is_seen_alike(&wire(true), QUERY, &new);
}

// ---- where warnings are minded

/// Ends of rows and OKs as searchd writes them, with a warning and without.
const EOF_WARNED: &[u8] = b"\xfe\x01\0\0\0";
const EOF_WARNED_MORE: &[u8] = b"\xfe\x01\0\x08\0";
const OK_WARNED: &[u8] = b"\0\x01\0\0\0\x01\0";
/// As an OK, with the longest counts, so that the warnings are its last two bytes of 23.
const EOF_NEW_WARNED: &[u8] =
    b"\xfe\xfe\x01\x02\x03\x04\x05\x06\x07\x08\xfe\x01\x02\x03\x04\x05\x06\x07\x08\x02\0\0\x01";

/// Plain, the bodies are a whole answer; where warnings are minded, `wanted`.
fn assert_minded(rows_end_with_ok: bool, bodies: &[&[u8]], wanted: Outcome) {
    let plain = match wanted {
        Outcome::Partial => Outcome::Ok,
        other => other,
    };
    assert_reply(rows_end_with_ok, bodies, plain);
    let mut minding = Mysql::minding_warnings(Login::default());
    minding.login.agree_for_test(rows_end_with_ok);
    let bytes = packets(1, bodies);
    assert_cut_anywhere(&minding, QUERY, &bytes, reply(wanted), bytes.len());
    assert_damage_is_seen_alike(&minding, QUERY, &bytes);
}

#[test]
fn warnings_make_a_reply_partial_where_they_are_minded_and_only_there() {
    let rows = |end| [b"\x01", COLUMN, EOF_OLD, ROW, end];
    assert_minded(false, &rows(EOF_OLD), Outcome::Ok);
    assert_minded(false, &rows(EOF_WARNED), Outcome::Partial);
    assert_minded(
        true,
        &[b"\x01", COLUMN, ROW, EOF_NEW_WARNED],
        Outcome::Partial,
    );
    assert_minded(false, &[OK_WARNED], Outcome::Partial);
    assert_minded(true, &[OK_WARNED], Outcome::Partial);
}

#[test]
fn a_warning_in_any_result_is_one_of_the_reply_and_an_error_is_worse() {
    let warned: &[&[u8]] = &[b"\x01", COLUMN, EOF_OLD, ROW, EOF_WARNED_MORE];
    let meta: &[&[u8]] = &[b"\x02", COLUMN, COLUMN, EOF_OLD, ROW, EOF_OLD];
    assert_minded(false, &[warned, meta].concat(), Outcome::Partial);
    assert_minded(false, &[warned, &[ERROR]].concat(), Outcome::EngineError);
}

#[test]
fn a_warning_is_forgotten_with_its_reply() {
    let mut wire = Mysql::minding_warnings(Login::default());
    for (body, outcome) in [(OK_WARNED, Outcome::Partial), (OK_PACKET, Outcome::Ok)] {
        wire.begin(QUERY);
        let step = wire.feed(&packets(1, &[body]));
        assert!(
            matches!(step, Step::Whole { reply, .. } if reply.outcome == outcome),
            "{step:?}"
        );
    }
}

/// COM_STMT_PREPARE, and COM_STMT_EXECUTE of a statement without parameters.
const PREPARED: &[u8] = b"\x09\0\0\0\x16SELECT ?";
fn execute(number: u8) -> Vec<u8> {
    vec![10, 0, 0, 0, 0x17, number, 0, 0, 0, 0, 1, 0, 0, 0]
}

/// The OK to a statement of this number with a column and two parameters.
fn described(number: u8) -> Vec<u8> {
    vec![0, number, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0]
}

#[test]
fn a_prepared_statement_is_whole_after_its_descriptions() {
    for number in [1, 200] {
        let ok = described(number);
        let old: &[&[u8]] = &[&ok, COLUMN, COLUMN, EOF_OLD, COLUMN, EOF_OLD];
        let new: &[&[u8]] = &[&ok, COLUMN, COLUMN, COLUMN];
        for (rows_end_with_ok, bodies) in [(false, old), (true, new)] {
            let bytes = packets(1, bodies);
            let wire = wire(rows_end_with_ok);
            let whole = reply(Outcome::Ok);
            assert_cut_anywhere(&wire, PREPARED, &bytes, whole, bytes.len());
        }
    }
    let nothing = packets(1, &[b"\0\x01\0\0\0\0\0\0\0\0\0\0"]);
    assert_cut_anywhere(&wire(true), PREPARED, &nothing, reply(Outcome::Ok), 16);
    let refused = packets(1, &[ERROR]);
    let wanted = reply(Outcome::EngineError);
    assert_cut_anywhere(&wire(true), PREPARED, &refused, wanted, refused.len());
}

#[test]
fn several_commands_of_one_exchange_are_whole_after_the_last_and_report_the_worst() {
    let binary = b"\0\0\x05\0\0\0";
    let one = packets(1, &[b"\x01", COLUMN, EOF_OLD, binary, EOF_OLD]);
    let bytes = [one.clone(), packets(1, &[ERROR]), one.clone()].concat();
    let three = [execute(1), execute(1), execute(1)].concat();
    let wanted = reply(Outcome::EngineError);
    assert_cut_anywhere(&wire(false), &three, &bytes, wanted, bytes.len());
    // A command without a reply is not waited for.
    let closing = [&execute(1)[..], b"\x05\0\0\0\x19\x01\0\0\0"].concat();
    assert_cut_anywhere(&wire(false), &closing, &one, reply(Outcome::Ok), one.len());
}

#[test]
fn statements_are_executed_by_the_numbers_that_the_server_counts() {
    let prepare = |wire: &mut Mysql, number: u8| {
        wire.begin(PREPARED);
        let bodies: &[&[u8]] = &[&described(number), COLUMN, COLUMN, COLUMN];
        feed_in_pieces(wire, &packets(1, bodies), &[]).0
    };
    let mut wire = wire(true);
    let sent = |wire: &Mysql, exchange: &[u8]| {
        let mut out = Vec::new();
        let adapted = wire.adapt(exchange, &mut out);
        assert_eq!(adapted, !out.is_empty());
        if adapted { out } else { exchange.to_vec() }
    };
    prepare(&mut wire, 1);
    assert_eq!(sent(&wire, &execute(1)), execute(1));

    let mut out = Vec::new();
    wire.connected(&mut out);
    wire.login.agree_for_test(true);
    // The thread served a connection before that prepared six.
    for number in [7, 8] {
        let step = prepare(&mut wire, number);
        assert!(matches!(step, Step::Whole { reply, .. } if reply.outcome == Outcome::Ok));
    }
    let both = [execute(1), execute(2)].concat();
    assert_eq!(sent(&wire, &both), [execute(7), execute(8)].concat());
    assert_eq!(sent(&wire, QUERY), QUERY);
    // One that does not count cannot be asked for.
    let step = prepare(&mut wire, 12);
    assert!(matches!(step, Step::Whole { reply, .. } if reply.outcome == Outcome::Unsupported));
}

/// LOAD DATA LOCAL with a file of two packets and its end.
fn loading() -> Vec<u8> {
    let mut bytes = packets(0, &[b"\x03LOAD DATA LOCAL"]);
    bytes.extend(packets(2, &[b"1\n2\n", b"3\n", b""]));
    bytes
}

#[test]
fn a_file_that_came_along_is_asked_for_and_then_answered() {
    let asked = packets(1, &[b"\xfbcars"]);
    for (last, outcome) in [(OK_PACKET, Outcome::Ok), (ERROR, Outcome::EngineError)] {
        let bytes = [asked.clone(), packets(5, &[last])].concat();
        assert_cut_anywhere(&wire(true), &loading(), &bytes, reply(outcome), bytes.len());
    }
}

#[test]
fn a_server_that_refuses_the_file_is_left_as_it_would_take_it_for_commands() {
    let bytes = packets(1, &[ERROR]);
    let wanted = Reply {
        outcome: Outcome::EngineError,
        close: true,
        ..Reply::ok()
    };
    assert_cut_anywhere(&wire(true), &loading(), &bytes, Some(wanted), bytes.len());
}

#[test]
fn a_file_is_asked_for_once_and_only_where_one_came_along() {
    let twice = [packets(1, &[b"\xfbcars"]), packets(1, &[b"\xfbcars"])].concat();
    assert_cut_anywhere(&wire(true), &loading(), &twice, None, 0);
    let bytes = packets(1, &[b"\xfbcars"]);
    let wanted = Reply {
        outcome: Outcome::Unsupported,
        close: true,
        ..Reply::ok()
    };
    assert_cut_anywhere(&wire(true), QUERY, &bytes, Some(wanted), bytes.len());
}
