//! Replies as searchd 2.2.11 writes them, cut at every byte.

use super::super::testing::{assert_cut_anywhere, assert_damage_is_seen_alike, feed_in_pieces};
use super::*;

/// The beginning of a SEARCH of version 0x11e; the rest is the server's to read.
const ASK: &[u8] = b"\0\0\x01\x1e\0\0\0\x08\0\0\0\0\0\0\0\x01";
const STATUS: &[u8] = b"\0\x05\x01\0\0\0\0\x04\0\0\0\x01";
/// What searchd says where it has too many connections: its version, and a reply to nothing.
const MAXED_OUT: &[u8] =
    b"\0\0\0\x01\0\x02\0\0\0\0\0\x27\0\0\0\x23server maxed out, retry in a second";

fn answer(status: u16, body: &[u8]) -> Vec<u8> {
    let mut bytes = status.to_be_bytes().to_vec();
    bytes.extend(0x011f_u16.to_be_bytes());
    bytes.extend((body.len() as u32).to_be_bytes());
    bytes.extend(body);
    bytes
}

fn text(words: &str) -> Vec<u8> {
    [&(words.len() as u32).to_be_bytes(), words.as_bytes()].concat()
}

/// The result of a query that found something, with its status.
fn found(status: u32, warning: &str) -> Vec<u8> {
    let mut body = status.to_be_bytes().to_vec();
    if !warning.is_empty() {
        body.extend(text(warning));
    }
    body.extend(b"\0\0\0\x01\0\0\0\x04text\0\0\0\0\0\0\0\x01\0\0\0\x01");
    body.extend(b"\0\0\0\0\0\0\0\x07\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0\0");
    body
}

fn reply(outcome: Outcome, close: bool) -> Option<Reply> {
    Some(Reply {
        outcome,
        close,
        ..Reply::ok()
    })
}

/// The bytes are a whole reply, however they are cut, and what follows is not part of it.
fn assert_reply(ask: &[u8], bytes: &[u8], wanted: Option<Reply>) {
    let followed = [bytes, b"\0\0\x01\x1f"].concat();
    assert_cut_anywhere(&Sphinx::default(), ask, bytes, wanted, bytes.len());
    assert_cut_anywhere(&Sphinx::default(), ask, &followed, wanted, bytes.len());
}

#[test]
fn the_status_of_a_query_is_that_of_its_search() {
    assert_reply(ASK, &answer(0, &found(0, "")), reply(Outcome::Ok, false));
    let agent = "index half: agent 127.0.0.1:1: connect() failed: errno=111";
    assert_reply(
        ASK,
        &answer(0, &found(3, agent)),
        reply(Outcome::Partial, false),
    );
    let error = [
        b"\0\0\0\x01".to_vec(),
        text("unknown local index 'nope' in search request"),
    ];
    assert_reply(
        ASK,
        &answer(0, &error.concat()),
        reply(Outcome::EngineError, false),
    );
}

#[test]
fn of_a_batch_the_first_status_counts() {
    let both = [found(0, ""), found(3, "late")].concat();
    assert_reply(ASK, &answer(0, &both), reply(Outcome::Ok, false));
    let both = [found(3, "early"), found(0, "")].concat();
    assert_reply(ASK, &answer(0, &both), reply(Outcome::Partial, false));
}

#[test]
fn an_error_for_the_whole_reply_costs_the_connection() {
    let many = text("bad multi-query count 33 (must be in 1..32 range)");
    assert_reply(ASK, &answer(1, &many), reply(Outcome::EngineError, true));
    assert_reply(STATUS, &answer(1, &many), reply(Outcome::EngineError, true));
    let busy = text("server maxed out, retry in a second");
    assert_reply(ASK, &answer(2, &busy), reply(Outcome::EngineError, true));
    assert_reply(
        ASK,
        &answer(1, &text("")),
        reply(Outcome::EngineError, true),
    );
}

#[test]
fn a_warning_for_the_whole_reply_makes_it_partial() {
    let body = [text("index half: agent is gone"), b"\0\0\0\x02".to_vec()].concat();
    assert_reply(STATUS, &answer(3, &body), reply(Outcome::Partial, false));
    assert_reply(
        STATUS,
        &answer(3, &text("only this")),
        reply(Outcome::Partial, false),
    );
}

#[test]
fn other_commands_may_answer_anything_or_nothing() {
    assert_reply(STATUS, &answer(0, b""), reply(Outcome::Ok, false));
    assert_reply(STATUS, &answer(0, b"\0"), reply(Outcome::Ok, false));
    assert_reply(
        STATUS,
        &answer(0, b"\0\0\0\x43\0\0\0\x02"),
        reply(Outcome::Ok, false),
    );
}

#[test]
fn a_large_reply_is_passed_over_in_pieces() {
    let mut body = found(0, "");
    body.resize(3_000_000, 1);
    let bytes = answer(0, &body);
    let mut wire = Sphinx::default();
    for _ in 0..2 {
        wire.begin(ASK);
        let cuts: Vec<usize> = (4096..bytes.len()).step_by(4096).collect();
        let (step, used) = feed_in_pieces(&mut wire, &bytes, &cuts);
        assert!(matches!(step, Step::Whole { .. }), "{step:?}");
        assert_eq!(used, bytes.len());
    }
}

#[test]
fn what_is_no_reply_is_malformed() {
    for (ask, bytes) in [
        (STATUS, answer(4, &text("no such status"))),
        (ASK, answer(0, &found(2, ""))),
        (ASK, answer(0, &found(0x1_0000, ""))),
        (ASK, answer(0, b"\0\0\0")),
        (ASK, answer(1, b"\0\0\0\x02x")),
        (ASK, answer(1, b"\0\0")),
        (ASK, answer(3, b"\0\0\0\x02x")),
        (ASK, b"\0\0\x01\x1f\x80\0\0\0\0\0\0\0".to_vec()),
        (ASK, b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
    ] {
        assert_cut_anywhere(&Sphinx::default(), ask, &bytes, None, 0);
    }
}

#[test]
fn a_damaged_reply_is_seen_alike_however_it_is_cut() {
    for body in [found(0, ""), found(3, "index half: agent is gone")] {
        assert_damage_is_seen_alike(&Sphinx::default(), ASK, &answer(0, &body));
    }
    let error = answer(1, &text("bad multi-query count 33"));
    assert_damage_is_seen_alike(&Sphinx::default(), ASK, &error);
}

#[test]
fn a_reply_never_ends_by_the_end_of_the_connection() {
    let mut wire = Sphinx::default();
    wire.begin(ASK);
    assert_eq!(wire.feed(&answer(0, &found(0, ""))[..20]), Step::More);
    assert_eq!(wire.ended(), None);
}

// ---- opening

/// What is said after all of `bytes`, in pieces that end at `cuts`, and what is sent.
fn greeted(wire: &mut Sphinx, bytes: &[u8], cuts: &[usize]) -> (Greeting, Vec<u8>) {
    let mut out = Vec::new();
    assert_eq!(wire.connected(&mut out), Greeting::More);
    let mut at = 0;
    for &cut in cuts.iter().chain([&bytes.len()]) {
        match wire.greet(&bytes[at..cut], &mut out) {
            Greeting::More => at = cut,
            said => return (said, out),
        }
    }
    (Greeting::More, out)
}

#[test]
fn a_connection_is_asked_to_stay_and_carries_requests_at_once() {
    let mut wire = Sphinx::default();
    for cuts in [&[][..], &[1], &[3], &[1, 2, 3]] {
        let (said, out) = greeted(&mut wire, &VERSION, cuts);
        assert_eq!(said, Greeting::Ready);
        assert_eq!(out, b"\0\0\0\x01\0\x04\0\0\0\0\0\x04\0\0\0\x01");
        assert_eq!(wire.complaint(), None);
    }
}

#[test]
fn a_server_that_sends_us_away_is_quoted() {
    let mut wire = Sphinx::default();
    for first in 5..MAXED_OUT.len() {
        // Not cut before: a server's version alone lets us in, and what follows is a reply.
        let (said, out) = greeted(&mut wire, MAXED_OUT, &[first]);
        assert_eq!(
            said,
            Greeting::Failed(Outcome::EngineError),
            "cut at {first}"
        );
        assert!(out.is_empty());
        assert_eq!(
            wire.complaint(),
            Some("server maxed out, retry in a second")
        );
    }
    // Where the rest comes alone, it is the reply to whatever was asked.
    assert_eq!(greeted(&mut wire, &MAXED_OUT[..4], &[]).0, Greeting::Ready);
    wire.begin(ASK);
    let step = wire.feed(&MAXED_OUT[4..]);
    assert!(
        matches!(step, Step::Whole { reply, .. }
            if reply.close && reply.outcome == Outcome::EngineError),
        "{step:?}"
    );
}

#[test]
fn a_stranger_is_known_by_its_first_words() {
    let mut wire = Sphinx::default();
    for bytes in [
        &b"J\0\0\0\n5.5"[..],
        b"\0\0\0\x02",
        b"\0\0\x01",
        b"\0\0\0\x01\0\0\0\0\0\0\0\x04\0\0\0\x01",
        b"\0\0\0\x01\0\x02\0\0\x7f\0\0\0",
        b"\0\0\0\x01\0\x02\0\0\0\0\0\x03abc",
    ] {
        let (said, out) = greeted(&mut wire, bytes, &[]);
        assert_eq!(said, Greeting::Failed(Outcome::Malformed), "{bytes:?}");
        assert!(out.is_empty());
        assert!(wire.complaint().unwrap().contains("native API"));
    }
}
