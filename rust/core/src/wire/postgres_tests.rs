use super::super::testing::{assert_cut_anywhere, assert_damage_is_seen_alike};
use super::*;

const QUERY: &[u8] = b"Q\0\0\0\x0dSELECT 1\0";

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[kind], length.as_slice(), body].concat()
}

fn messages(each: &[(u8, &[u8])]) -> Vec<u8> {
    each.iter()
        .flat_map(|(kind, body)| message(*kind, body))
        .collect()
}

const ROWS: &[u8] = b"\0\x01?column?\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0";
const ROW: &[u8] = b"\0\x01\0\0\0\x011";
const DONE: &[u8] = b"SELECT 1\0";
const ERROR: &[u8] = b"SERROR\0C42601\0Msyntax error\0\0";
const IDLE: &[u8] = b"I";

fn wire() -> Postgres {
    Postgres::new(Login::default())
}

/// The messages are a whole reply, however they are cut, and what follows is not part of it.
fn assert_reply(each: &[(u8, &[u8])], outcome: Outcome) {
    let bytes = messages(each);
    let followed = [bytes.clone(), message(b'Z', IDLE)].concat();
    let reply = Reply {
        outcome,
        ..Reply::ok()
    };
    assert_cut_anywhere(&wire(), QUERY, &bytes, Some(reply), bytes.len());
    assert_cut_anywhere(&wire(), QUERY, &followed, Some(reply), bytes.len());
}

#[test]
fn rows_end_when_the_server_is_ready() {
    assert_reply(
        &[
            (b'T', ROWS),
            (b'D', ROW),
            (b'D', ROW),
            (b'C', DONE),
            (b'Z', IDLE),
        ],
        Outcome::Ok,
    );
    assert_reply(&[(b'T', ROWS), (b'C', DONE), (b'Z', IDLE)], Outcome::Ok);
}

#[test]
fn a_command_without_rows_and_an_empty_query() {
    assert_reply(
        &[(b'C', b"SET\0"), (b'S', b"a\0b\0"), (b'Z', b"T")],
        Outcome::Ok,
    );
    assert_reply(&[(b'I', b""), (b'Z', IDLE)], Outcome::Ok);
}

#[test]
fn several_statements_are_one_reply() {
    assert_reply(
        &[
            (b'T', ROWS),
            (b'D', ROW),
            (b'C', DONE),
            (b'C', b"SET\0"),
            (b'T', ROWS),
            (b'C', DONE),
            (b'Z', IDLE),
        ],
        Outcome::Ok,
    );
}

#[test]
fn an_error_makes_the_whole_reply_one_and_the_connection_lives_on() {
    assert_reply(&[(b'E', ERROR), (b'Z', IDLE)], Outcome::EngineError);
    assert_reply(
        &[
            (b'T', ROWS),
            (b'D', ROW),
            (b'C', DONE),
            (b'E', ERROR),
            (b'Z', b"E"),
        ],
        Outcome::EngineError,
    );
    let mut wire = wire();
    for (kind, outcome) in [(b'E', Outcome::EngineError), (b'N', Outcome::Ok)] {
        wire.begin(QUERY);
        let step = wire.feed(&messages(&[(kind, ERROR), (b'Z', IDLE)]));
        assert!(
            matches!(step, Step::Whole { reply, .. } if reply.outcome == outcome && !reply.close),
            "{step:?}"
        );
    }
}

#[test]
fn notices_and_notifications_are_passed_over() {
    assert_reply(
        &[
            (b'N', b"SNOTICE\0Mhear\0\0"),
            (b'C', b"DO\0"),
            (b'A', b"\0\0\0\x01a\0b\0"),
            (b'Z', IDLE),
        ],
        Outcome::Ok,
    );
}

#[test]
fn a_copy_to_us_is_passed_over_and_one_from_us_without_data_is_refused() {
    assert_reply(
        &[
            (b'H', b"\0\0\x01\0\0"),
            (b'd', b"1\n"),
            (b'd', b"2\n"),
            (b'c', b""),
            (b'C', b"COPY 2\0"),
            (b'Z', IDLE),
        ],
        Outcome::Ok,
    );
    for kind in [b'G', b'W'] {
        let bytes = messages(&[(b'C', b"SET\0"), (kind, b"\0\0\x01\0\0")]);
        assert_cut_anywhere(&wire(), QUERY, &bytes, refused(), bytes.len());
    }
}

fn refused() -> Option<Reply> {
    Some(Reply {
        outcome: Outcome::Unsupported,
        close: true,
        ..Reply::ok()
    })
}

const COPY_IN: (u8, &[u8]) = (b'G', b"\0\0\x01\0\0");

/// The messages answer an exchange of a Query and these messages behind it, however they are cut.
fn assert_copied(data: &[(u8, &[u8])], each: &[(u8, &[u8])], wanted: Option<Reply>) {
    let exchange = [message(b'Q', b"COPY t FROM STDIN\0"), messages(data)].concat();
    let bytes = messages(each);
    assert_cut_anywhere(&wire(), &exchange, &bytes, wanted, bytes.len());
    assert_damage_is_seen_alike(&wire(), &exchange, &bytes);
}

#[test]
fn a_copy_from_us_is_answered_where_its_data_and_its_end_are_in_the_exchange() {
    let ok = Some(Reply::ok());
    let failed = Some(Reply {
        outcome: Outcome::EngineError,
        ..Reply::ok()
    });
    let rows: &[(u8, &[u8])] = &[(b'd', b"1\n"), (b'd', b"c\0\0\0\x04\n"), (b'c', b"")];
    let done: &[(u8, &[u8])] = &[COPY_IN, (b'C', b"COPY 2\0"), (b'Z', IDLE)];
    assert_copied(rows, done, ok);
    assert_copied(&[(b'c', b"")], done, ok);
    let gave_up: &[(u8, &[u8])] = &[COPY_IN, (b'E', ERROR), (b'Z', IDLE)];
    assert_copied(rows, gave_up, failed);
    assert_copied(&[(b'd', b"1\n"), (b'f', b"enough\0")], gave_up, failed);
    // The statement itself was wrong: nothing of the data is asked for or answered.
    assert_copied(rows, &[(b'E', ERROR), (b'Z', IDLE)], failed);
}

#[test]
fn each_copy_from_us_needs_an_end_of_its_own() {
    let rows: &[(u8, &[u8])] = &[(b'd', b"1\n"), (b'c', b"")];
    let twice: &[(u8, &[u8])] = &[
        COPY_IN,
        (b'C', b"COPY 1\0"),
        COPY_IN,
        (b'C', b"COPY 1\0"),
        (b'Z', IDLE),
    ];
    assert_copied(&[rows, rows].concat(), twice, Some(Reply::ok()));
    assert_copied(rows, &twice[..3], refused());
    // Data without an end, an end in the midst of data, an end that is cut off.
    assert_copied(&[(b'd', b"1\n")], &[COPY_IN], refused());
    assert_copied(&[(b'd', b"c\0\0\0\x04")], &[COPY_IN], refused());
    let cut = [message(b'Q', b"COPY t FROM STDIN\0"), b"c\0\0\0".to_vec()].concat();
    let bytes = messages(&[COPY_IN]);
    assert_cut_anywhere(&wire(), &cut, &bytes, refused(), bytes.len());
}

#[test]
fn a_row_of_many_pieces_is_passed_over() {
    let row = vec![b'Z'; 300_000];
    let bytes = messages(&[(b'T', ROWS), (b'D', &row), (b'C', DONE), (b'Z', IDLE)]);
    let mut wire = wire();
    wire.begin(QUERY);
    let mut pieces = bytes.chunks(4096).peekable();
    while let Some(piece) = pieces.next() {
        let step = wire.feed(piece);
        let last = pieces.peek().is_none();
        assert_eq!(matches!(step, Step::Whole { .. }), last, "{step:?}");
    }
}

#[test]
fn what_is_no_reply_is_malformed() {
    for bytes in [
        b"HTTP/1.1 400 Bad Request\r\n".to_vec(),
        message(b'R', b"\0\0\0\0"),
        message(b'Z', b""),
        message(b'Z', b"II"),
        b"D\0\0\0\x03".to_vec(),
        b"D\xff\xff\xff\xff".to_vec(),
    ] {
        assert_cut_anywhere(&wire(), QUERY, &bytes, None, 0);
    }
}

#[test]
fn a_fatal_error_and_the_end_are_a_reply_and_any_other_end_is_none() {
    let fatal = messages(&[(b'T', ROWS), (b'E', b"SFATAL\0C57P01\0\0")]);
    let mut wire = wire();
    wire.begin(QUERY);
    assert_eq!(wire.feed(&fatal), Step::More);
    let reply = wire.ended().expect("the server said why");
    assert_eq!((reply.outcome, reply.close), (Outcome::EngineError, true));

    for cut in 0..fatal.len() {
        wire.begin(QUERY);
        if cut > 0 {
            assert_eq!(wire.feed(&fatal[..cut]), Step::More);
        }
        assert_eq!(wire.ended(), None, "cut at {cut}");
    }
    wire.begin(QUERY);
    wire.feed(&messages(&[(b'T', ROWS), (b'D', ROW)]));
    assert_eq!(wire.ended(), None);
}

#[test]
fn a_damaged_reply_is_seen_alike_however_it_is_cut() {
    let bytes = messages(&[
        (b'T', ROWS),
        (b'D', ROW),
        (b'C', DONE),
        (b'N', b"Mhear\0\0"),
        (b'E', ERROR),
        (b'Z', IDLE),
    ]);
    assert_damage_is_seen_alike(&wire(), QUERY, &bytes);
}

#[test]
fn messages_of_the_extended_protocol_are_whole_after_their_last_sync() {
    let parse = message(b'P', b"s1\0SELECT $1\0\0\0");
    let execute = [
        message(b'B', b"\0s1\0\0\0\0\0\0\0"),
        message(b'D', b"P\0"),
        message(b'E', b"\0\0\0\0\0"),
    ]
    .concat();
    let sync = message(b'S', b"");
    let reply = |outcome| {
        Some(Reply {
            outcome,
            ..Reply::ok()
        })
    };
    let prepared = messages(&[(b'1', b""), (b'Z', IDLE)]);
    let asked = [&parse[..], &sync].concat();
    assert_cut_anywhere(
        &wire(),
        &asked,
        &prepared,
        reply(Outcome::Ok),
        prepared.len(),
    );

    let one: &[(u8, &[u8])] = &[(b'2', b""), (b'T', ROWS), (b'D', ROW), (b'C', DONE)];
    // In a row with one Sync, and each with its own.
    let row = [messages(one), messages(one), messages(&[(b'Z', IDLE)])].concat();
    let asked = [&execute[..], &execute, &sync].concat();
    assert_cut_anywhere(&wire(), &asked, &row, reply(Outcome::Ok), row.len());
    let refused = messages(&[(b'E', ERROR), (b'Z', IDLE)]);
    let each = [messages(one), messages(&[(b'Z', IDLE)]), refused].concat();
    let asked = [&execute[..], &sync, &execute, &sync].concat();
    assert_cut_anywhere(
        &wire(),
        &asked,
        &each,
        reply(Outcome::EngineError),
        each.len(),
    );
}
