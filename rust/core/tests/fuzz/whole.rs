//! Whole replies of every kind, made by proptest: each ends at its last byte, whatever follows it and
//! however it is cut, and goes on at every byte before.

use proptest::collection::vec;
use proptest::prelude::*;
use searchbench_core::Outcome;
use searchbench_core::wire::{Frames, Http, Mysql, Postgres, Reply, Sphinx, Step, Wire};

use crate::said::{self, MYSQL_FLAGS, OLD_FLAGS, frame, let_in, messages, packets, sphinx};

fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..most)
}

/// The reply is whole at its last byte, in pieces of these lengths (over and over) and in one.
fn assert_whole(
    wire: &impl Wire,
    exchange: &[u8],
    reply: &[u8],
    after: &[u8],
    lengths: &[usize],
) -> Reply {
    let all = [reply, after].concat();
    let found = |lengths: &[usize]| {
        let mut wire = wire.clone();
        wire.begin(exchange);
        let mut at = 0;
        for &length in lengths.iter().cycle() {
            let piece = &all[at..(at + length).min(all.len())];
            match wire.feed(piece) {
                Step::Whole { used, reply } => return (at + used, reply),
                Step::More => at += piece.len(),
                Step::Malformed => panic!("malformed in the piece at {at} of {all:?}"),
            }
            assert!(at < all.len(), "more is awaited after {all:?}");
        }
        unreachable!("pieces are cycled")
    };
    let (end, said) = found(&[usize::MAX >> 1]);
    assert_eq!(end, reply.len(), "{all:?}");
    assert_eq!(found(lengths), (end, said), "{all:?} in {lengths:?}");
    assert_eq!(found(&[1]), (end, said), "{all:?} byte by byte");
    said
}

/// A head with fields that do not matter, and a body in one piece or in chunks.
fn http_reply() -> impl Strategy<Value = (u16, Vec<u8>)> {
    let status = prop_oneof![Just(200u16), Just(201), Just(404), Just(503), Just(299)];
    let fields = vec(("[A-Za-z-]{1,9}", "[ -~]{0,20}"), 0..5);
    let interim = vec(Just("HTTP/1.1 100 Continue\r\n\r\n"), 0..3);
    let chunks = vec(vec(any::<u8>(), 1..40), 0..5);
    let end = prop_oneof![Just("\r\n"), Just("\n")];
    (
        status,
        fields,
        interim,
        chunks,
        any::<bool>(),
        any::<bool>(),
        end,
    )
        .prop_map(
            |(status, fields, interim, chunks, chunked, extended, end)| {
                let mut reply = interim.concat().into_bytes();
                reply.extend(format!("HTTP/1.1 {status} Words{end}").bytes());
                for (name, value) in fields {
                    // "X-" is before it, so it is none of those that matter.
                    reply.extend(format!("X-{name}: {value}{end}").bytes());
                }
                if chunked {
                    reply.extend(format!("Transfer-Encoding: chunked{end}{end}").bytes());
                    for chunk in chunks {
                        let extension = if extended { ";name=\"value\"" } else { "" };
                        reply.extend(format!("{:x}{extension}{end}", chunk.len()).bytes());
                        reply.extend(chunk);
                        reply.extend(end.bytes());
                    }
                    let trailer = if extended { "Expires: never" } else { "" };
                    reply.extend(format!("0{end}").bytes());
                    if extended {
                        reply.extend(format!("{trailer}{end}").bytes());
                    }
                    reply.extend(end.bytes());
                } else {
                    let body = chunks.concat();
                    reply.extend(format!("Content-Length: {}{end}{end}", body.len()).bytes());
                    reply.extend(body);
                }
                (status, reply)
            },
        )
}

/// A packet's body that begins a row: neither an error nor an end of rows.
fn row() -> impl Strategy<Value = Vec<u8>> {
    (0u8..0xfc, bytes(60)).prop_map(|(first, rest)| [&[first], &rest[..]].concat())
}

/// Result sets one after another, in either style; the number of warnings at the end of each.
fn mysql_reply(rows_end_with_ok: bool) -> impl Strategy<Value = (bool, Vec<u8>)> {
    let result = (1usize..6, vec(row(), 0..6), 0u8..2);
    vec(result, 1..4).prop_map(move |results| {
        let mut bodies: Vec<Vec<u8>> = Vec::new();
        let (mut warned, last) = (false, results.len() - 1);
        for (number, (columns, rows, warnings)) in results.into_iter().enumerate() {
            let status = if number < last { 0x0a } else { 0x02 };
            let eof = |status| vec![0xfe, warnings, 0, status, 0];
            bodies.push(vec![columns as u8]);
            bodies.extend((0..columns).map(|column| vec![3, b'd', b'e', b'f', column as u8]));
            if !rows_end_with_ok {
                bodies.push(eof(0x02));
            }
            bodies.extend(rows);
            bodies.push(match rows_end_with_ok {
                true => vec![0xfe, 0, 0, status, 0, warnings, 0],
                false => eof(status),
            });
            warned |= warnings > 0;
        }
        let bodies: Vec<&[u8]> = bodies.iter().map(Vec::as_slice).collect();
        (warned, packets(1, &bodies))
    })
}

fn postgres_reply() -> impl Strategy<Value = (bool, Vec<u8>)> {
    let kind = prop::sample::select(&b"TDCINSAHdc123tnE"[..]);
    vec((kind, bytes(50)), 0..12).prop_map(|each| {
        let failed = each.iter().any(|(kind, _)| *kind == b'E');
        let mut all: Vec<(u8, &[u8])> =
            each.iter().map(|(kind, body)| (*kind, &body[..])).collect();
        all.push((b'Z', b"I"));
        (failed, messages(&all))
    })
}

fn pieces() -> impl Strategy<Value = Vec<usize>> {
    vec(1usize..50, 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_frame((status, payload) in (0u8..4, bytes(300)), after in bytes(20), cut in pieces()) {
        let reply = frame(status, 5, &payload);
        let said = assert_whole(&Frames::default(), b"x", &reply, &after, &cut);
        prop_assert_eq!(said.host_ns, 5);
    }

    #[test]
    fn a_reply_over_http((status, reply) in http_reply(), after in bytes(20), cut in pieces()) {
        let said = assert_whole(&Http::default(), b"GET / HTTP/1.1\r\n\r\n", &reply, &after, &cut);
        prop_assert_eq!(said.outcome == Outcome::HttpError, status >= 400);
        prop_assert!(!said.close);
    }

    #[test]
    fn results_of_mysql(
        (_, reply) in mysql_reply(true), after in bytes(20), cut in pieces(),
    ) {
        let wire = let_in(Mysql::new(said::login()), MYSQL_FLAGS);
        let asked = packets(0, &[b"\x03SELECT 1"]);
        let said = assert_whole(&wire, &asked, &reply, &after, &cut);
        prop_assert_eq!(said.outcome, Outcome::Ok);
    }

    #[test]
    fn results_of_sphinxql(
        (warned, reply) in mysql_reply(false), after in bytes(20), cut in pieces(),
    ) {
        let wire = let_in(Mysql::minding_warnings(said::login()), OLD_FLAGS);
        let asked = packets(0, &[b"\x03SELECT 1"]);
        let said = assert_whole(&wire, &asked, &reply, &after, &cut);
        prop_assert_eq!(said.outcome == Outcome::Partial, warned);
    }

    #[test]
    fn results_of_postgres((failed, reply) in postgres_reply(), after in bytes(20), cut in pieces()) {
        let asked = messages(&[(b'Q', b"SELECT 1\0")]);
        let said = assert_whole(&Postgres::new(said::login()), &asked, &reply, &after, &cut);
        prop_assert_eq!(said.outcome == Outcome::EngineError, failed);
    }

    #[test]
    fn results_of_sphinx(
        status in prop::sample::select(vec![0u32, 1, 3]), rest in bytes(200), after in bytes(20),
        cut in pieces(),
    ) {
        let reply = sphinx(0, &[&status.to_be_bytes()[..], &rest].concat());
        let asked = b"\0\0\x01\x1e\0\0\0\x08\0\0\0\0\0\0\0\x01";
        let said = assert_whole(&Sphinx::default(), asked, &reply, &after, &cut);
        let wanted = [Outcome::Ok, Outcome::EngineError, Outcome::Ok, Outcome::Partial];
        prop_assert_eq!(said.outcome, wanted[status as usize]);
    }
}
