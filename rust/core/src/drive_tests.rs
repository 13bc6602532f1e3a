//! Drives against a real server on loopback: what goes well, and how loads are kept.

use super::*;
use crate::options::resolve;
use crate::sample::Outcome;
use crate::schedule::Load;
use crate::testing::*;
use crate::wire::Greeting;
use std::io::Write as _;

fn all(trace: &Trace, outcome: Outcome) -> bool {
    samples(trace)
        .iter()
        .all(|sample| sample.outcome == outcome as u8)
}

fn two_cpus() -> Vec<usize> {
    // SAFETY: an all-zero set is valid; the call fills it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set);
        (0..1024)
            .filter(|&cpu| libc::CPU_ISSET(cpu, &set))
            .take(2)
            .collect()
    }
}

#[test]
fn a_closed_loop_sends_every_request_once_and_in_order() {
    let server = serve(|_, socket, _| say(socket, HELLO));
    let trace = drive(options(server.address, 3, closed(3, 50)));
    assert_eq!(trace.len(), 150);
    assert!(all(&trace, Outcome::Ok));
    for client in 0..3 {
        let mine: Vec<_> = samples(&trace)
            .into_iter()
            .filter(|s| s.connection == client)
            .collect();
        assert_eq!(mine.len(), 50);
        assert_eq!((mine[0].due, mine[0].free), (0, 0));
        for pair in mine.windows(2) {
            assert_eq!(pair[1].due, pair[0].done);
            assert_eq!(pair[1].free, pair[0].done);
        }
        for s in mine {
            assert!(
                s.due <= s.sent && s.sent < s.first_byte && s.first_byte <= s.done,
                "{s:?}"
            );
            assert_eq!(s.bytes as usize, HELLO.len());
            assert_eq!((s.host_low, s.host_high), (u32::MAX, u8::MAX));
        }
    }
    assert_eq!(counted(&trace, "connects"), 3);
    assert_eq!(counted(&trace, "reconnects"), 0);
}

#[test]
fn a_client_thinks_between_a_reply_and_its_next_request() {
    let server = serve(|_, socket, _| say(socket, HELLO));
    let Load::Closed {
        sequence,
        starts,
        repeat,
        stop_after,
        ..
    } = closed(2, 5)
    else {
        unreachable!()
    };
    let load = Load::Closed {
        sequence,
        starts,
        think_ns: 3_000_000,
        repeat,
        stop_after,
    };
    let trace = drive(options(server.address, 2, load));
    let mine: Vec<_> = samples(&trace)
        .into_iter()
        .filter(|s| s.connection == 1)
        .collect();
    for pair in mine.windows(2) {
        assert_eq!(pair[1].due, pair[0].done + 3_000_000);
        assert_eq!(pair[1].free, pair[0].done);
        assert!(pair[1].sent >= pair[1].due);
    }
}

#[test]
fn a_repeating_load_stops_after_exactly_as_many_as_asked_over_all_threads() {
    let server = serve(|_, socket, _| say(socket, HELLO));
    let load = Load::Closed {
        sequence: vec![0; 4],
        starts: vec![0, 1, 2, 3, 4],
        think_ns: 0,
        repeat: true,
        stop_after: Some(1_001),
    };
    let trace = drive(Options {
        cpus: two_cpus(),
        ..options(server.address, 4, load)
    });
    assert_eq!(trace.len(), 1_001);
    assert!(all(&trace, Outcome::Ok));
}

#[test]
fn nothing_is_begun_after_the_stop_and_what_is_in_flight_is_waited_for() {
    let server = serve(|_, socket, _| {
        sleep_ms(30);
        say(socket, HELLO)
    });
    let load = Load::Closed {
        sequence: vec![0],
        starts: vec![0, 1],
        think_ns: 0,
        repeat: true,
        stop_after: None,
    };
    let stop_ns = Some(100_000_000);
    let trace = drive(Options {
        stop_ns,
        ..options(server.address, 1, load)
    });
    let last = trace.sample(trace.len() - 1);
    assert!(
        last.sent < 100_000_000 && last.done > 100_000_000,
        "{last:?}"
    );
    assert!(all(&trace, Outcome::Ok));
}

#[test]
fn an_open_loop_keeps_its_due_times_whatever_the_server_does() {
    // One connection, and a server that stalls 200 ms once: requests due meanwhile queue.
    let server = serve(|number, socket, _| {
        if number == 5 {
            sleep_ms(200);
        }
        say(socket, HELLO)
    });
    let trace = drive(options(server.address, 1, open(40, 10)));
    let samples = samples(&trace);
    assert_eq!(samples.len(), 40);
    for (slot, s) in samples.iter().enumerate() {
        assert_eq!(s.due, slot as i64 * 10_000_000, "first in, first out");
        assert!(s.sent >= s.due);
    }
    assert!(samples[5].done - samples[5].sent > 190_000_000);
    let next = &samples[6];
    assert!(
        next.done - next.due > 180_000_000,
        "response time sees the stall"
    );
    assert!(next.free - next.due > 180_000_000, "as backlog");
    assert!(next.done - next.sent < 100_000_000, "service time does not");
    assert!(
        samples[39].free <= samples[39].due,
        "the backlog is gone in the end"
    );
}

#[test]
fn a_large_pool_lets_requests_pass_a_stalled_one() {
    let server = serve(|number, socket, _| {
        if number == 5 {
            sleep_ms(200);
        }
        say(socket, HELLO)
    });
    let trace = drive(options(server.address, 10, open(30, 5)));
    let late = samples(&trace)
        .iter()
        .filter(|s| s.done - s.due > 150_000_000)
        .count();
    assert_eq!((trace.len(), late), (30, 1));
}

#[test]
fn slots_are_dealt_over_threads_and_connections_numbered_over_all() {
    let cpus = two_cpus();
    let threads = cpus.len();
    let server = serve(|_, socket, _| say(socket, HELLO));
    let trace = drive(Options {
        cpus,
        ..options(server.address, 6, open(40, 1))
    });
    assert!(all(&trace, Outcome::Ok));
    for s in samples(&trace) {
        let slot = (s.due / 1_000_000) as usize;
        assert_eq!(s.connection as usize % threads, slot % threads);
    }
}

#[test]
fn open_slots_at_or_after_the_stop_are_left_out() {
    let server = serve(|_, socket, _| say(socket, HELLO));
    let stop_ns = Some(20_000_000);
    let trace = drive(Options {
        stop_ns,
        ..options(server.address, 2, open(100, 1))
    });
    assert_eq!(trace.len(), 20);
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
    assert_eq!(replies[8], (8, b"HTTP/1.0 200 OK\r\n\r\nhello".as_slice()));
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
    let load = Load::Closed {
        sequence: vec![0, 1, 0],
        starts: vec![0, 3],
        think_ns: 0,
        repeat: false,
        stop_after: None,
    };
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
    assert_eq!(replies[0], (0, [bad.as_slice(), HELLO].concat().as_slice()));
    assert_eq!(replies[1], (1, HELLO));
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
fn a_drive_can_be_stopped_at_once() {
    let server = serve(|_, _, _| Then::Stay);
    let mut drive =
        Drive::start(requests(&[GET]), options(server.address, 2, closed(2, 5))).unwrap();
    drive.wait(Duration::from_millis(50));
    let before = std::time::Instant::now();
    drive.stop();
    assert!(matches!(drive.finish(), Err(Error::Stopped)));
    assert!(before.elapsed() < Duration::from_secs(1));
}

#[test]
fn what_does_not_fit_together_is_refused_with_a_sentence() {
    let target = dead();
    let refused = |options: Options| match Drive::start(requests(&[GET]), options) {
        Err(Error::Invalid(text)) => text,
        other => panic!("{:?}", other.map(|_| ())),
    };
    assert!(refused(options(target, 0, closed(0, 1))).contains("connections"));
    assert!(refused(options(target, 2, closed(3, 1))).contains("client_starts"));
    let beyond = Load::Open {
        sequence: vec![1],
        due_ns: vec![0],
    };
    assert!(refused(options(target, 1, beyond)).contains("only 1"));
    let back = Load::Open {
        sequence: vec![0, 0],
        due_ns: vec![5, 4],
    };
    assert!(refused(options(target, 1, back)).contains("decreases"));
    let endless = Load::Closed {
        sequence: vec![0],
        starts: vec![0, 1],
        think_ns: 0,
        repeat: true,
        stop_after: None,
    };
    assert!(refused(options(target, 1, endless)).contains("never ends"));
    let cpus = vec![0, 0];
    let twice = Options {
        cpus,
        ..options(target, 2, closed(2, 1))
    };
    assert!(refused(twice).contains("twice"));
}

#[test]
fn a_cpu_that_is_not_there_is_named() {
    let cpus = vec![1_000];
    let options = Options {
        cpus,
        ..options(dead(), 1, closed(1, 1))
    };
    match Drive::start(requests(&[GET]), options).unwrap().finish() {
        Err(Error::Machine(error)) => assert!(error.to_string().contains("cpu 1000"), "{error}"),
        other => panic!("{:?}", other.map(|trace| trace.len())),
    }
}

#[test]
fn only_loopback_is_driven() {
    assert!(resolve("127.0.0.1", 80).is_ok());
    assert!(resolve("localhost", 80).is_ok());
    match resolve("192.0.2.1", 80) {
        Err(Error::Invalid(text)) => assert!(text.contains("loopback"), "{text}"),
        other => panic!("{other:?}"),
    }
}
