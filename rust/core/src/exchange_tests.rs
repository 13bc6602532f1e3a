//! Replies of every kind, several exchanges a request, kept replies, and wires that greet.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use crate::sample::Outcome;
use crate::testing::*;
use crate::wire::{Greeting, Wire};
use crate::{ClosedLoop, Drive, Load, Options, Requests, Trace, WireKind};

fn all(trace: &Trace, outcome: Outcome) -> bool {
    samples(trace)
        .iter()
        .all(|sample| sample.outcome == outcome as u8)
}

#[test]
fn every_kind_of_body_is_framed() {
    let server = serve(|number, socket, _| match number % 3 {
        0 => say(socket, HELLO),
        1 => {
            let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            say(socket, head);
            sleep_ms(2);
            say(socket, b"5\r\nhello\r\n");
            sleep_ms(2);
            say(socket, b"0\r\n\r\n")
        }
        _ => {
            say(socket, b"HTTP/1.0 200 OK\r\n\r\nhel");
            sleep_ms(2);
            say(socket, b"lo");
            Then::Close
        }
    });
    let trace = drive(Options {
        capture_every: 1,
        ..options(server.address, 1, closed(1, 9))
    });
    assert!(all(&trace, Outcome::Ok), "{:?}", samples(&trace));
    let replies: Vec<_> = trace.replies().collect();
    assert_eq!(replies.len(), 9);
    assert_eq!(replies[0].1, HELLO);
    assert!(replies[4].1.ends_with(b"\r\n\r\n5\r\nhello\r\n0\r\n\r\n"));
    assert_eq!(replies[8], (8, b"HTTP/1.0 200 OK\r\n\r\nhello"[..].into()));
    // The last connection that was closed had no request left to be opened for.
    assert_eq!(counted(&trace, "reconnects"), 2);
}

#[test]
fn a_server_that_closes_after_each_reply_is_connected_to_again_before_the_next() {
    let server = serve(|_, socket, _| {
        say(
            socket,
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        );
        Then::Close
    });
    let trace = drive(options(server.address, 2, closed(2, 20)));
    assert!(all(&trace, Outcome::Ok));
    assert_eq!(counted(&trace, "reconnects"), 38);
    assert_eq!(counted(&trace, "pauses"), 0);
    let again = samples(&trace).into_iter().filter(|s| s.due > 0);
    for s in again {
        assert!(
            s.free > s.due && s.sent >= s.free,
            "free is when it was connected: {s:?}"
        );
    }

    let trace = drive(options(server.address, 3, open(30, 2)));
    assert_eq!(trace.len(), 30);
    assert!(all(&trace, Outcome::Ok));
}

#[test]
fn exchanges_of_a_request_follow_each_other_on_one_connection() {
    let server = serve(|_, socket, request| {
        if request.starts_with(b"GET /bad") {
            return say(socket, b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n");
        }
        say(socket, HELLO)
    });
    let first = b"GET /bad HTTP/1.1\r\n\r\n";
    let arena = [first.as_slice(), GET, GET].concat();
    let ends = vec![
        first.len() as u64,
        (first.len() + GET.len()) as u64,
        arena.len() as u64,
    ];
    let requests = Arc::new(Requests::new(arena, ends, vec![2, 3]).unwrap());
    let load = Load::Closed(ClosedLoop {
        sequence: vec![0, 1, 0],
        starts: vec![0, 3],
        think_ns: 0,
        repeat: false,
        stop_after: None,
    });
    let options = Options {
        capture_every: 1,
        ..options(server.address, 1, load)
    };
    let trace = drive_these(requests, options);
    let outcomes: Vec<u8> = samples(&trace).iter().map(|s| s.outcome).collect();
    assert_eq!(
        outcomes,
        [
            Outcome::HttpError as u8,
            Outcome::Ok as u8,
            Outcome::HttpError as u8
        ]
    );
    let bad = b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(trace.sample(0).bytes as usize, bad.len() + HELLO.len());
    let replies: Vec<_> = trace.replies().collect();
    assert_eq!(replies[0], (0, [bad.as_slice(), HELLO].concat().into()));
    assert_eq!(replies[1], (1, HELLO.into()));
    assert_eq!(replies.len(), 3);
}

#[test]
fn every_nth_reply_is_kept_with_the_sample_it_belongs_to() {
    let server = serve(|number, socket, _| {
        let body = format!("{number:05}");
        say(
            socket,
            format!("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{body}").as_bytes(),
        )
    });
    let trace = drive(Options {
        capture_every: 10,
        ..options(server.address, 1, closed(1, 35))
    });
    let kept: Vec<_> = trace
        .replies()
        .map(|(sample, bytes)| {
            (
                sample,
                String::from_utf8_lossy(&bytes[bytes.len() - 5..]).into(),
            )
        })
        .collect::<Vec<(u64, String)>>();
    let wanted = [(0, "00000"), (10, "00010"), (20, "00020"), (30, "00030")];
    assert_eq!(
        kept,
        wanted.map(|(sample, body)| (sample, body.to_string()))
    );
}

#[test]
fn a_reply_larger_than_any_buffer_is_whole() {
    let server = serve(|_, socket, _| {
        say(
            socket,
            b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n",
        );
        say(socket, &vec![b'x'; 3_000_000])
    });
    let trace = drive(Options {
        capture_every: 1,
        ..options(server.address, 2, closed(2, 3))
    });
    assert!(all(&trace, Outcome::Ok));
    for (_, reply) in trace.replies() {
        assert_eq!(reply.len(), 44 + 3_000_000);
    }
    assert_eq!(trace.replies().count(), 6);
}

#[test]
fn a_request_larger_than_the_kernel_takes_at_once_is_sent_whole() {
    let server = serve(|_, socket, request| {
        sleep_ms(20);
        let length = request.len().to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{length}",
            length.len()
        );
        say(socket, head.as_bytes())
    });
    let large = [
        b"GET /".as_slice(),
        &vec![b'a'; 8 << 20],
        b" HTTP/1.1\r\n\r\n",
    ]
    .concat();
    let options = Options {
        capture_every: 1,
        ..options(server.address, 1, closed(1, 2))
    };
    let trace = drive_these(requests(&[&large]), options);
    assert!(all(&trace, Outcome::Ok), "{:?}", samples(&trace));
    assert!(counted(&trace, "partial_sends") > 0);
    for (_, reply) in trace.replies() {
        assert!(reply.ends_with(large.len().to_string().as_bytes()));
    }
}

/// A request of a head and `bytes` of body that its head says nothing of: the server must read it.
fn with_body(bytes: usize) -> Vec<u8> {
    [GET, &vec![b'b'; bytes]].concat()
}

#[test]
fn a_server_that_answers_at_length_before_it_has_read_all_is_read_while_sending() {
    const BODY: usize = 12 << 20;
    // Neither side's buffers hold what the other says: who only sends waits for ever.
    let server = serve(|_, socket, _| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", BODY + 1);
        say(socket, head.as_bytes());
        say(socket, &vec![b'x'; BODY]);
        let mut rest = vec![0; BODY];
        match socket.read_exact(&mut rest) {
            Ok(()) => say(socket, b"!"),
            Err(_) => Then::Close,
        }
    });
    let trace = drive_these(
        requests(&[&with_body(BODY + (64 << 10))]),
        options(server.address, 1, closed(1, 1)),
    );
    assert!(all(&trace, Outcome::Ok), "{:?}", samples(&trace));
    assert!(trace.sample(0).bytes as usize > BODY);
    assert!(counted(&trace, "partial_sends") > 0);
}

#[test]
fn a_reply_that_is_whole_before_all_is_sent_counts_and_costs_the_connection() {
    let (went_on, goes) = std::sync::mpsc::channel();
    let (went_on, goes) = (Mutex::new(went_on), Mutex::new(goes));
    let server = serve(move |number, socket, _| match number {
        0 => {
            say(
                socket,
                b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n",
            );
            // Does not read on, and goes only once the client went on over another connection; if
            // it never does, the drive has ended by then with other outcomes.
            let patience = std::time::Duration::from_secs(20);
            let _ = goes.lock().unwrap().recv_timeout(patience);
            Then::Close
        }
        _ => {
            let _ = went_on.lock().unwrap().send(());
            say(socket, HELLO)
        }
    });
    let large = with_body(32 << 20);
    let load = Load::Closed(ClosedLoop {
        sequence: vec![0, 1, 1],
        starts: vec![0, 3],
        think_ns: 0,
        repeat: false,
        stop_after: None,
    });
    let trace = drive_these(requests(&[&large, GET]), options(server.address, 1, load));
    let outcomes: Vec<u8> = samples(&trace).iter().map(|s| s.outcome).collect();
    let wanted = [Outcome::HttpError, Outcome::Ok, Outcome::Ok];
    assert_eq!(outcomes, wanted.map(|outcome| outcome as u8));
    assert_eq!(counted(&trace, "reconnects"), 1);
}

#[test]
fn frames_carry_the_processing_time_of_the_host() {
    // The request ends as an HTTP one does, for the sake of the little server.
    let server = serve(|number, socket, _| {
        let mut frame = vec![2, 0, 0, 0, (number % 4) as u8, 0, 0, 0];
        frame.extend(0x12_3456_7890u64.to_le_bytes());
        frame.extend(b"{}");
        say(socket, &frame)
    });
    let wire = WireKind::Frames;
    let trace = drive(Options {
        wire,
        ..options(server.address, 1, closed(1, 4))
    });
    let outcomes: Vec<u8> = samples(&trace).iter().map(|s| s.outcome).collect();
    assert_eq!(
        outcomes,
        [0, 2, 3, 4],
        "ok, engine_error, unsupported, partial"
    );
    assert_eq!(
        (trace.sample(0).host_high, trace.sample(0).host_low),
        (0x12, 0x3456_7890)
    );
}

/// A protocol that is greeted and must answer before it can be asked; then as HTTP.
#[derive(Clone, Default)]
struct Polite {
    seen: Vec<u8>,
    http: crate::wire::Http,
}

impl Wire for Polite {
    fn connected(&mut self, _out: &mut Vec<u8>) -> Greeting {
        self.seen.clear();
        Greeting::More
    }

    fn greet(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Greeting {
        self.seen.extend_from_slice(piece);
        match self.seen.as_slice() {
            b"who?" => {
                out.extend_from_slice(b"me\r\n\r\n");
                Greeting::More
            }
            b"who?come in" => Greeting::Ready,
            seen if b"who?come in".starts_with(seen) => Greeting::More,
            _ => Greeting::Failed(Outcome::EngineError),
        }
    }

    fn begin(&mut self, exchange: &[u8]) {
        self.http.begin(exchange);
    }

    fn feed(&mut self, piece: &[u8]) -> crate::wire::Step {
        self.http.feed(piece)
    }
}

/// Greets each connection with `last`, then answers its requests, closing after every second.
fn polite_server(last: &'static [u8]) -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            std::thread::spawn(move || {
                use std::io::Read;
                let mut buffer = [0; 1000];
                for said in [b"who?".as_slice(), last, HELLO, HELLO] {
                    let _ = socket.write_all(said);
                    if socket.read(&mut buffer).is_ok_and(|count| count == 0) {
                        return;
                    }
                }
            });
        }
    });
    address
}

#[test]
fn a_wire_may_greet_before_it_is_asked_and_again_after_a_reconnect() {
    let target = polite_server(b"come in");
    let options = options(target, 2, closed(2, 6));
    let trace = Drive::spawn(requests(&[GET]), options, Polite::default()).unwrap();
    let trace = trace.finish().unwrap();
    assert_eq!(trace.len(), 12);
    let ok = samples(&trace)
        .iter()
        .filter(|s| s.outcome == Outcome::Ok as u8)
        .count();
    assert!(ok >= 6, "{:?}", samples(&trace));
    assert!(counted(&trace, "reconnects") >= 2);
}

#[test]
fn a_login_that_is_refused_is_the_outcome_of_the_request() {
    let target = polite_server(b"go away");
    let options = options(target, 1, closed(1, 2));
    let trace = Drive::spawn(requests(&[GET]), options, Polite::default()).unwrap();
    let trace = trace.finish().unwrap();
    assert_eq!(trace.len(), 2);
    assert!(all(&trace, Outcome::EngineError));
    assert_eq!((trace.sample(0).free, trace.sample(0).sent), (-1, -1));
}

#[test]
fn replies_of_many_megabytes_are_read_to_their_end() {
    let body: Vec<u8> = (0..9_000_000u32).map(|n| (n % 251) as u8).collect();
    let mut reply =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
    reply.extend_from_slice(&body);
    let sent = reply.clone();
    let server = serve(move |_, socket, _| {
        say(socket, &sent);
        // Nothing more comes that would wake the reader.
        sleep_ms(20);
        Then::Stay
    });
    let trace = drive(Options {
        capture_every: 1,
        ..options(server.address, 2, closed(2, 3))
    });
    assert_eq!(trace.len(), 6);
    assert!(trace.replies().all(|(_, bytes)| bytes == reply));
    assert_eq!(trace.replies().count(), 6);
}

#[test]
fn a_server_that_speaks_or_goes_at_once_is_heard_on_a_connection_opened_anew() {
    // Each reply ends the connection, so every other request opens one; on those the server's
    // first words, or its end, may come before the connection was seen to be open.
    for words in [&b""[..], b"220 welcome\r\n"] {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let target = listener.local_addr().unwrap();
        let thread = std::thread::spawn(move || {
            for (number, socket) in listener.incoming().enumerate() {
                let mut socket = socket.unwrap();
                if number > 0 {
                    say(&mut socket, words);
                }
                drop(socket);
                if number == 5 {
                    return;
                }
            }
        });
        // Far longer than all of it takes: a request that waits for it was not heard.
        let trace = drive(Options {
            timeout_ns: 60_000_000_000,
            ..options(target, 1, closed(1, 6))
        });
        assert_eq!(trace.len(), 6);
        for s in samples(&trace) {
            assert_ne!(s.outcome, Outcome::TimedOut as u8, "it waited: {s:?}");
            let lost = [
                Outcome::Reset,
                Outcome::Malformed,
                Outcome::Refused,
                Outcome::Truncated,
            ];
            assert!(lost.iter().any(|&o| s.outcome == o as u8), "{s:?}");
        }
        drop(thread);
    }
}
