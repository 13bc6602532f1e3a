//! Servers that go on for ever, stop in the middle, or speak something else: each its own outcome,
//! nothing asked twice, and the run ends when it should.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use crate::sample::Outcome;
use crate::testing::*;
use crate::{Login, Options, Trace, WireKind};

fn outcomes(trace: &Trace) -> Vec<Outcome> {
    use Outcome::*;
    let all = [
        Ok,
        HttpError,
        EngineError,
        Unsupported,
        Partial,
        TimedOut,
        Refused,
        Reset,
        Truncated,
        Malformed,
        Unfinished,
    ];
    samples(trace)
        .iter()
        .map(|s| all[s.outcome as usize])
        .collect()
}

/// Each request gets the next of `replies`, in pieces, and then what `then` says.
fn pieces(replies: &'static [&'static [&'static [u8]]], last: fn() -> Then) -> Trace {
    let server = serve(move |number, socket, _| {
        for piece in replies[number] {
            if let Then::Close = say(socket, piece) {
                return Then::Close;
            }
            sleep_ms(3);
        }
        last()
    });
    drive(options(server.address, 1, closed(1, replies.len() as u32)))
}

/// Says `piece` again and again, with pauses, until the other side has enough of it.
fn for_ever(begin: &'static [u8], piece: &'static [u8], pause_ms: u64) -> Server {
    serve(move |_, socket, _| {
        say(socket, begin);
        while let Then::Stay = say(socket, piece) {
            if pause_ms > 0 {
                sleep_ms(pause_ms);
            }
        }
        Then::Close
    })
}

fn driven(server: &Server, timeout_ms: i64) -> (Vec<Outcome>, Duration) {
    let began = Instant::now();
    let trace = drive(Options {
        timeout_ns: timeout_ms * 1_000_000,
        ..options(server.address, 1, closed(1, 3))
    });
    (outcomes(&trace), began.elapsed())
}

#[test]
fn headers_without_end_are_malformed_as_soon_as_they_are_too_many() {
    let server = for_ever(b"HTTP/1.1 200 OK\r\n", b"X-More: and more\r\n", 0);
    let (outcomes, took) = driven(&server, 60_000);
    assert_eq!(outcomes, [Outcome::Malformed; 3]);
    assert!(took < Duration::from_secs(50), "not by the timeout");
    let server = for_ever(
        b"HTTP/1.1 200 OK\r\nX-Long: ",
        b"and so on, without a line's end",
        0,
    );
    assert_eq!(driven(&server, 60_000).0, [Outcome::Malformed; 3]);
    let server = for_ever(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0);
    assert_eq!(driven(&server, 60_000).0, [Outcome::Malformed; 3]);
}

#[test]
fn what_trickles_is_timed_out_however_much_of_it_comes() {
    let headers = for_ever(b"HTTP/1.1 200 OK\r\n", b"X-More: and more\r\n", 10);
    let body = for_ever(
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n",
        b"x",
        10,
    );
    let chunks = for_ever(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"1\r\nx\r\n",
        10,
    );
    for server in [headers, body, chunks] {
        let (outcomes, took) = driven(&server, 250);
        assert_eq!(outcomes, [Outcome::TimedOut; 3]);
        assert!(took >= Duration::from_millis(750));
        assert_eq!(
            server.accepted.load(SeqCst),
            3,
            "each over a connection of its own"
        );
    }
}

#[test]
fn a_body_without_end_is_timed_out_though_something_can_always_be_read() {
    static MUCH: [u8; 64 << 10] = [b'x'; 64 << 10];
    let server = for_ever(b"HTTP/1.1 200 OK\r\n\r\n", &MUCH, 0);
    assert_eq!(driven(&server, 250).0, [Outcome::TimedOut; 3]);
}

#[test]
fn chunks_cut_short_are_truncated_wherever_it_was() {
    let trace = pieces(
        &[
            &[b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel"],
            &[b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"],
            &[b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n"],
            &[
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                b"5",
            ],
            &[b"HTTP/1.1 200 OK\r\nContent-"],
        ],
        || Then::Close,
    );
    assert_eq!(outcomes(&trace), [Outcome::Truncated; 5]);
    assert!(
        samples(&trace)
            .iter()
            .all(|s| s.first_byte > 0 && s.done == -1)
    );
    assert_eq!(counted(&trace, "reconnects"), 4);
}

#[test]
fn a_chunk_that_is_longer_than_it_said_is_malformed() {
    let trace = pieces(
        &[&[b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n"]],
        || Then::Stay,
    );
    assert_eq!(outcomes(&trace), [Outcome::Malformed]);
}

#[test]
fn a_reset_in_mid_reply_is_truncated_and_one_before_it_a_reset() {
    let trace = pieces(
        &[
            &[b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe"],
            &[b"HTTP/1.1 200"],
            &[],
        ],
        || Then::Abort,
    );
    assert_eq!(
        outcomes(&trace),
        [Outcome::Truncated, Outcome::Truncated, Outcome::Reset]
    );
}

#[test]
fn interim_answers_and_redirects_are_replies_that_are_counted_once_and_not_followed() {
    let trace = pieces(
        &[
            &[
                b"HTTP/1.1 100 Continue\r\n\r\n",
                b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n",
                HELLO,
            ],
            &[b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 4\r\n\r\nhere"],
            &[HELLO],
        ],
        || Then::Stay,
    );
    assert_eq!(outcomes(&trace), [Outcome::Ok; 3]);
    assert_eq!(trace.len(), 3);
    assert!(trace.sample(0).bytes as usize > HELLO.len());
    assert_eq!(counted(&trace, "reconnects"), 0);
}

#[test]
fn a_compressed_body_is_bytes_like_any_other() {
    // gzip of a short text: line ends, zeros and what looks like chunks are no framing.
    let trace = pieces(
        &[
            &[
                b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 27\r\n\r\n",
                b"\x1f\x8b\x08\0\0\0\0\0\0\x03\r\n\r\n0\r\n\r\n",
                b"\0\0\xff\xff\x03\0\0\0",
            ],
            &[HELLO],
        ],
        || Then::Stay,
    );
    assert_eq!(outcomes(&trace), [Outcome::Ok; 2]);
    assert_eq!(counted(&trace, "unsolicited"), 0);
}

#[test]
fn what_follows_an_answer_later_costs_the_connection_and_is_counted() {
    let server = serve(|number, socket, _| {
        say(socket, HELLO);
        if number == 1 {
            sleep_ms(30);
            say(socket, b"and another thing");
        }
        Then::Stay
    });
    let trace = drive(options(server.address, 1, open(4, 100)));
    assert_eq!(outcomes(&trace), [Outcome::Ok; 4]);
    assert_eq!(counted(&trace, "unsolicited"), 1);
    assert_eq!(counted(&trace, "reconnects"), 1);
}

#[test]
fn no_request_is_ever_sent_twice() {
    for load in [|| closed(3, 40), || open(120, 1)] {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let server = serve(move |_, socket, _| match count.fetch_add(1, SeqCst) % 8 {
            1 => Then::Close,
            3 => Then::Abort,
            5 => {
                say(socket, &HELLO[..HELLO.len() - 1]);
                Then::Close
            }
            6 => say(socket, b"nonsense"),
            _ => say(socket, HELLO),
        });
        let trace = drive(options(server.address, 3, load()));
        assert_eq!(trace.len(), 120, "each has exactly one sample");
        let sent = samples(&trace).iter().filter(|s| s.sent >= 0).count();
        // One that met a connection just closed was sent and not read: never the reverse.
        assert!(asked.load(SeqCst) <= sent, "{} {sent}", asked.load(SeqCst));
        let ok = outcomes(&trace)
            .iter()
            .filter(|&&o| o == Outcome::Ok)
            .count();
        assert!((30..=75).contains(&ok), "failures are not made good: {ok}");
    }
}

#[test]
fn a_pool_whose_connections_die_is_kept_full_and_the_load_goes_on() {
    let server = serve(|number, socket, _| {
        say(socket, HELLO);
        if number % 5 == 4 {
            Then::Abort
        } else {
            Then::Stay
        }
    });
    let trace = drive(options(server.address, 4, open(200, 1)));
    let samples = samples(&trace);
    assert_eq!(samples.len(), 200);
    let opened = counted(&trace, "connects") + counted(&trace, "reconnects");
    assert!(opened >= 4 + 20, "{opened}");
    assert!(server.accepted.load(SeqCst) as i64 >= opened - 4);
    let late = &samples[150..];
    assert!(
        late.iter()
            .filter(|s| s.outcome == Outcome::Ok as u8)
            .count()
            >= 25
    );
}

/// Greets each connection with these bytes and, once asked something, says the others and ends.
fn stranger(greeting: &'static [u8], answer: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let talk = move |mut socket: TcpStream| {
        let _ = socket.write_all(greeting);
        if socket.read(&mut [0; 4096]).is_ok_and(|count| count > 0) && !answer.is_empty() {
            let _ = socket.write_all(answer);
        } else {
            // Waits to be asked in its own protocol.
            let _ = socket.read(&mut [0; 4096]);
        }
    };
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let Ok(socket) = socket else { return };
            std::thread::spawn(move || talk(socket));
        }
    });
    address
}

fn asked_as(wire: WireKind, address: SocketAddr) -> Vec<Outcome> {
    let trace = drive(Options {
        wire,
        timeout_ns: 300_000_000,
        ..options(address, 1, closed(1, 3))
    });
    let mut outcomes = outcomes(&trace);
    outcomes.dedup();
    outcomes
}

#[test]
fn a_server_of_another_protocol_is_no_success_of_any_request() {
    let web = || {
        stranger(
            b"",
            b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
        )
    };
    let database = || stranger(b"\x4a\0\0\0\x0a8.0.40\0\x08\0\0\0abcdefgh\0", b"");
    let http = || WireKind::Http(Default::default());
    let login = || Login::new("me".into(), "pw".into(), "db".into()).unwrap();
    // Neither speaks first: both wait.
    assert_eq!(
        asked_as(WireKind::Mysql(login()), web()),
        [Outcome::TimedOut]
    );
    assert_eq!(
        asked_as(WireKind::Postgres(login()), web()),
        [Outcome::Malformed]
    );
    assert_eq!(asked_as(WireKind::Frames, web()), [Outcome::Malformed]);
    assert_eq!(asked_as(http(), database()), [Outcome::Malformed]);
    assert_eq!(asked_as(WireKind::Sphinx, database()), [Outcome::Malformed]);
}
