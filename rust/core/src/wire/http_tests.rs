//! Replies as servers really write them, cut at every byte.

use super::super::testing::assert_cut_anywhere;
use super::*;

const GET: &[u8] = b"GET / HTTP/1.1\r\n\r\n";

fn ok(close: bool) -> Option<Reply> {
    Some(Reply {
        close,
        ..Reply::ok()
    })
}

fn error() -> Option<Reply> {
    Some(Reply {
        outcome: Outcome::HttpError,
        ..Reply::ok()
    })
}

fn check(bytes: &[u8], reply: Option<Reply>) {
    assert_cut_anywhere(&Http::default(), GET, bytes, reply, bytes.len());
}

#[test]
fn a_body_of_known_length() {
    check(
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        ok(false),
    );
    check(
        b"HTTP/1.1 200\r\nserver: x\r\ncOnTeNt-lEnGtH:5 \r\n\r\nhello",
        ok(false),
    );
    check(b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", ok(false));
    check(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", ok(false));
}

#[test]
fn what_follows_the_body_is_not_part_of_it() {
    let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1";
    assert_cut_anywhere(&Http::default(), GET, bytes, ok(false), bytes.len() - 8);
}

#[test]
fn chunks_with_extensions_and_trailers() {
    check(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        ok(false),
    );
    check(
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, Chunked\r\n\r\n1A;a=b\r\nabcdefghijklmnopqrst\
          uvwxyz\r\n2 \r\n\r\n\r\n000\r\nExpires: never\r\nX: y\r\n\r\n",
        ok(false),
    );
}

#[test]
fn replies_that_never_have_a_body() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    assert_cut_anywhere(
        &Http::default(),
        b"HEAD / HTTP/1.1\r\n\r\n",
        head,
        ok(false),
        head.len(),
    );
    check(b"HTTP/1.1 204 No Content\r\n\r\n", ok(false));
    check(
        b"HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n",
        ok(false),
    );
}

#[test]
fn interim_replies_are_passed_over() {
    check(
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nContent-Length: 9\r\n\r\n\
          HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        ok(false),
    );
    check(b"HTTP/1.1 101 Switching Protocols\r\n\r\n", None);
}

#[test]
fn status_400_and_above_is_an_error() {
    check(
        b"HTTP/1.1 400 Bad Request\r\nContent-Length: 2\r\n\r\nno",
        error(),
    );
    check(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", error());
    check(
        b"HTTP/1.1 399 Whatever\r\nContent-Length: 0\r\n\r\n",
        ok(false),
    );
}

#[test]
fn whether_the_connection_lives_on() {
    check(
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx",
        ok(true),
    );
    check(
        b"HTTP/1.1 200 OK\r\nConnection: foo, CLOSE\r\nContent-Length: 1\r\n\r\nx",
        ok(true),
    );
    check(b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", ok(true));
    check(
        b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\nx",
        ok(false),
    );
}

#[test]
fn a_body_without_length_ends_with_the_connection() {
    for head in [
        &b"HTTP/1.1 200 OK\r\n\r\n"[..],
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
    ] {
        let mut wire = Http::default();
        wire.begin(GET);
        for byte in [head, b"some body"].concat() {
            assert_eq!(wire.feed(&[byte]), Step::More);
        }
        assert_eq!(wire.ended(), ok(true));
    }
}

#[test]
fn the_end_of_the_connection_anywhere_else_is_no_reply() {
    for bytes in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell"[..],
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
        b"HTTP/1.1 200 OK\r\n",
    ] {
        let mut wire = Http::default();
        wire.begin(GET);
        assert_eq!(wire.feed(bytes), Step::More);
        assert_eq!(wire.ended(), None);
    }
}

#[test]
fn folded_lines_continue_the_field_before_them() {
    check(
        b"HTTP/1.1 200 OK\r\nX: a\r\n  b: c\r\nContent-Length: 1\r\n\r\nx",
        ok(false),
    );
    check(
        b"HTTP/1.1 200 OK\r\nContent-Length:\r\n 1\r\n\r\nx",
        ok(false),
    );
    check(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n\tchunked\r\n\r\n0\r\n\r\n",
        ok(false),
    );
    check(b"HTTP/1.1 200 OK\r\n folded nothing\r\n\r\n", None);
    check(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n 2\r\n\r\n", None);
}

#[test]
fn lengths_that_agree_are_one_and_lengths_that_conflict_are_none() {
    check(
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
        ok(false),
    );
    check(
        b"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok",
        ok(false),
    );
    check(
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n",
        None,
    );
    check(b"HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\n", None);
}

#[test]
fn an_encoding_outweighs_a_length_but_the_connection_is_not_used_again() {
    check(
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ok(true),
    );
}

#[test]
fn garbage_is_malformed() {
    for bytes in [
        &b"garbage"[..],
        b"\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 099 Low\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n: nameless\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
    ] {
        check(bytes, None);
    }
}

#[test]
fn a_head_without_end_is_malformed_beyond_64_kib() {
    let mut wire = Http::default();
    wire.begin(GET);
    assert_eq!(wire.feed(b"HTTP/1.1 200 OK\r\n"), Step::More);
    let field = [b"X: ".as_slice(), &[b'y'; 1000], b"\r\n"].concat();
    let fed = (0..100).find(|_| wire.feed(&field) == Step::Malformed);
    assert!(matches!(fed, Some(60..70)), "{fed:?}");

    let mut wire = Http::default();
    wire.begin(GET);
    assert_eq!(wire.feed(b"HTTP/1.1 200 "), Step::More);
    assert_eq!(wire.feed(&vec![b'x'; MAX_HEAD_BYTES]), Step::Malformed);
}

#[test]
fn an_exchange_begun_anew_forgets_a_half_read_reply() {
    let mut wire = Http::default();
    wire.begin(GET);
    assert_eq!(
        wire.feed(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Le"),
        Step::More
    );
    wire.begin(GET);
    let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    assert_eq!(
        wire.feed(bytes),
        Step::Whole {
            used: bytes.len(),
            reply: Reply::ok()
        }
    );
}

// ---- marks

fn marked(each: &[&[u8]]) -> Http {
    Http::new(Marks::new(each.iter().map(|mark| mark.to_vec()).collect()).unwrap())
}

fn partial(close: bool) -> Option<Reply> {
    Some(Reply {
        outcome: Outcome::Partial,
        close,
        ..Reply::ok()
    })
}

/// With marks, however the bytes are cut.
fn check_marked(each: &[&[u8]], bytes: &[u8], reply: Option<Reply>) {
    assert_cut_anywhere(&marked(each), GET, bytes, reply, bytes.len());
}

#[test]
fn a_reply_that_has_every_mark_is_whole_and_one_that_lacks_one_is_partial() {
    let body =
        b"HTTP/1.1 200 OK\r\nContent-Length: 37\r\n\r\n{\"timed_out\":false,\"_shards\":[2,2,0]}";
    check_marked(&[b"\"timed_out\":false"], body, ok(false));
    check_marked(&[b"[2,2,0]", b"{\"timed"], body, ok(false));
    check_marked(&[b"\"timed_out\":false", b"[2,2,1]"], body, partial(false));
    check_marked(&[b"Content-Length"], body, partial(false));
}

#[test]
fn marks_are_looked_for_without_the_framing_of_chunks() {
    let chunks: &[u8] = b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n\
        3;x=mark\r\n..m\r\n2\r\nar\r\n4\r\nk...\r\n0\r\nX: trailing\r\n\r\n";
    check_marked(&[b"mark..."], chunks, ok(false));
    check_marked(&[b"..mark..."], chunks, ok(false));
    check_marked(&[b"x=mark"], chunks, partial(false));
    check_marked(&[b"trailing"], chunks, partial(false));
}

#[test]
fn marks_are_looked_for_in_a_body_that_lasts_until_the_end() {
    let head = b"HTTP/1.0 200 OK\r\n\r\n";
    for (body, wanted) in [(&b"..mark"[..], ok(true)), (b"..mar", partial(true))] {
        let bytes = [&head[..], body].concat();
        for cut in 1..bytes.len() {
            let mut wire = marked(&[b"mark"]);
            wire.begin(GET);
            assert_eq!(wire.feed(&bytes[..cut]), Step::More);
            assert_eq!(wire.feed(&bytes[cut..]), Step::More);
            assert_eq!(wire.ended(), wanted, "cut at {cut}");
        }
    }
}

#[test]
fn marks_are_looked_for_in_the_first_512_bytes() {
    for (before, wanted) in [(508, ok(false)), (509, partial(false))] {
        let body = [vec![b'.'; before], b"mark".to_vec(), vec![b'.'; 5000]].concat();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        let known = [head.as_bytes(), &body].concat();
        let mut chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        for piece in body.chunks(100) {
            chunks.extend(format!("{:x}\r\n", piece.len()).into_bytes());
            chunks.extend([piece, b"\r\n"].concat());
        }
        chunks.extend(b"0\r\n\r\n");
        for bytes in [known, chunks] {
            check_marked(&[b"mark"], &bytes, wanted);
        }
    }
}

#[test]
fn marks_are_asked_of_success_alone_and_a_body_that_is_not_there_has_none() {
    let each: &[&[u8]] = &[b"mark"];
    check_marked(
        each,
        b"HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\nno",
        error(),
    );
    check_marked(
        each,
        b"HTTP/1.1 302 Found\r\nContent-Length: 2\r\n\r\nno",
        ok(false),
    );
    check_marked(
        each,
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        partial(false),
    );
    check_marked(each, b"HTTP/1.1 204 No Content\r\n\r\n", partial(false));
}

#[test]
fn marks_of_one_reply_are_not_those_of_the_next() {
    let mut wire = marked(&[b"mark"]);
    for (body, outcome) in [
        ("mark", Outcome::Ok),
        ("dark", Outcome::Partial),
        ("mar", Outcome::Partial),
        ("k...", Outcome::Partial),
        ("mark", Outcome::Ok),
    ] {
        wire.begin(GET);
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let step = wire.feed(head.as_bytes());
        assert!(
            matches!(step, Step::Whole { reply, .. } if reply.outcome == outcome),
            "{body}: {step:?}"
        );
    }
}
