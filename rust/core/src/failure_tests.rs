//! A server that fails is an outcome of each request: never an exception, a retry or a lower load.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use crate::sample::Outcome;
use crate::testing::*;
use crate::{Options, Trace};

fn tally(trace: &Trace) -> Vec<usize> {
    let mut tally = vec![0; 11];
    for sample in samples(trace) {
        tally[sample.outcome as usize] += 1;
    }
    tally
}

fn count(trace: &Trace, outcome: Outcome) -> usize {
    tally(trace)[outcome as usize]
}

#[test]
fn a_connection_closed_before_the_reply_is_a_reset_and_the_next_request_goes_on() {
    let server = serve(|number, socket, _| match number {
        3 => Then::Close,
        6 => Then::Abort,
        _ => say(socket, HELLO),
    });
    let trace = drive(options(server.address, 1, closed(1, 10)));
    let outcomes: Vec<u8> = samples(&trace).iter().map(|s| s.outcome).collect();
    assert_eq!(outcomes, [0, 0, 0, 7, 0, 0, 7, 0, 0, 0]);
    let lost = trace.sample(3);
    assert_eq!((lost.first_byte, lost.done, lost.bytes), (-1, -1, 0));
    assert!(lost.sent >= 0);
    assert_eq!(counted(&trace, "reconnects"), 2);
}

#[test]
fn a_reply_shorter_than_promised_is_truncated() {
    let server = serve(|number, socket, _| match number {
        1 => {
            say(socket, &HELLO[..HELLO.len() - 2]);
            Then::Close
        }
        2 => {
            say(socket, &HELLO[..10]);
            sleep_ms(5);
            Then::Abort
        }
        _ => say(socket, HELLO),
    });
    let options = Options {
        capture_every: 1,
        ..options(server.address, 1, closed(1, 4))
    };
    let trace = drive(options);
    let outcomes: Vec<u8> = samples(&trace).iter().map(|s| s.outcome).collect();
    assert_eq!(outcomes, [0, 8, 8, 0]);
    assert!(trace.sample(1).first_byte >= 0);
    assert_eq!(trace.sample(1).done, -1);
    assert_eq!(trace.sample(2).bytes, 10);
    assert_eq!(
        trace.replies().nth(2),
        Some((2, HELLO[..10].into())),
        "what came is kept"
    );
}

#[test]
fn a_server_that_never_answers_is_timed_out_and_its_connection_opened_anew() {
    let server = serve(|number, socket, _| match number {
        0 | 2 => Then::Stay,
        _ => say(socket, HELLO),
    });
    let timeout_ns = 300_000_000;
    let trace = drive(Options {
        timeout_ns,
        ..options(server.address, 1, closed(1, 4))
    });
    let outcomes: Vec<u8> = samples(&trace).iter().map(|s| s.outcome).collect();
    assert_eq!(outcomes, [5, 0, 5, 0]);
    let (lost, next) = (trace.sample(0), trace.sample(1));
    assert!(
        (300_000_000..3_000_000_000).contains(&(next.due - lost.sent)),
        "{lost:?} {next:?}"
    );
    assert_eq!(counted(&trace, "reconnects"), 2);
}

#[test]
fn a_late_reply_is_not_taken_for_the_reply_to_the_next_request() {
    let server = serve(|number, socket, _| {
        if number == 0 {
            sleep_ms(600);
            return say(socket, b"HTTP/1.1 500 Late\r\nContent-Length: 0\r\n\r\n");
        }
        sleep_ms(150);
        say(socket, HELLO)
    });
    let timeout_ns = 400_000_000;
    let trace = drive(Options {
        timeout_ns,
        ..options(server.address, 1, closed(1, 5))
    });
    assert_eq!(count(&trace, Outcome::TimedOut), 1);
    assert_eq!(count(&trace, Outcome::Ok), 4);
}

#[test]
fn garbage_and_replies_that_nobody_asked_for_are_malformed() {
    let server = serve(|number, socket, _| match number {
        1 => say(socket, b"SSH-2.0-OpenSSH\r\n"),
        3 => say(socket, &[HELLO, HELLO].concat()),
        _ => say(socket, HELLO),
    });
    let trace = drive(options(server.address, 1, closed(1, 6)));
    let outcomes: Vec<u8> = samples(&trace).iter().map(|s| s.outcome).collect();
    assert_eq!(outcomes, [0, 9, 0, 9, 0, 0]);
}

#[test]
fn http_errors_are_replies_with_an_outcome() {
    let server = serve(|number, socket, _| match number {
        1 => say(
            socket,
            b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy",
        ),
        _ => say(socket, HELLO),
    });
    let trace = drive(options(server.address, 1, closed(1, 3)));
    assert_eq!(trace.sample(1).outcome, Outcome::HttpError as u8);
    assert!(trace.sample(1).done > 0);
    assert_eq!(counted(&trace, "reconnects"), 0);
    let statuses = &trace.accounting().statuses;
    assert_eq!(*statuses, [(200, 2), (503, 1)].into());
}

#[test]
fn a_dead_server_refuses_each_request_of_a_closed_loop_at_a_bearable_pace() {
    let began = Instant::now();
    let trace = drive(options(dead(), 2, closed(2, 5)));
    assert_eq!(count(&trace, Outcome::Refused), 10);
    for s in samples(&trace) {
        assert_eq!((s.free, s.sent, s.first_byte, s.done), (-1, -1, -1, -1));
        assert!(s.connect >= s.due, "{s:?}");
    }
    // 1 + 2 + 4 + 8 ms of pauses between five attempts.
    assert!(began.elapsed() >= Duration::from_millis(15));
    assert!(counted(&trace, "pauses") >= 8);
}

#[test]
fn a_dead_server_refuses_each_slot_of_an_open_loop_when_it_is_due() {
    let trace = drive(options(dead(), 4, open(200, 1)));
    assert_eq!(count(&trace, Outcome::Refused), 200);
    assert!(
        counted(&trace, "elapsed_ns") >= 199_000_000,
        "the offered load is kept"
    );
    assert!(
        counted(&trace, "refused_connects") < 30,
        "without knocking all the time"
    );
}

#[test]
fn a_server_that_comes_back_is_found_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap();
    drop(listener);
    std::thread::spawn(move || {
        sleep_ms(100);
        let listener = TcpListener::bind(target).unwrap();
        serve_on(listener, |_, socket, _| say(socket, HELLO));
    });
    let trace = drive(options(target, 4, open(400, 1)));
    assert_eq!(trace.len(), 400);
    let (ok, refused) = (count(&trace, Outcome::Ok), count(&trace, Outcome::Refused));
    assert_eq!(ok + refused, 400, "{:?}", tally(&trace));
    assert!(ok >= 1 && refused >= 50, "{ok} {refused}");
    assert!(counted(&trace, "connects") >= 2, "the pool is filled again");
}

#[test]
fn a_server_that_accepts_and_closes_does_not_make_the_drive_spin() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            drop(socket);
        }
    });
    let trace = drive(options(target, 3, open(100, 2)));
    assert_eq!(trace.len(), 100);
    assert_eq!(count(&trace, Outcome::Ok), 0);
    assert!(
        counted(&trace, "reconnects") < 60,
        "{:?}",
        trace.accounting()
    );

    let trace = drive(options(target, 1, closed(1, 6)));
    assert_eq!(trace.len(), 6);
    assert_eq!(count(&trace, Outcome::Ok), 0);
    assert!(counted(&trace, "pauses") >= 5, "{:?}", trace.accounting());
}

#[test]
fn connections_that_the_server_closes_while_idle_are_opened_again_before_they_are_needed() {
    let server = serve(|_, socket, _| {
        say(socket, HELLO);
        sleep_ms(5);
        Then::Close
    });
    let trace = drive(options(server.address, 2, open(6, 60)));
    assert_eq!(count(&trace, Outcome::Ok), 6, "{:?}", tally(&trace));
    for s in samples(&trace) {
        assert!(s.free <= s.due, "{s:?}");
        // Two connections were opened before the start, the others with time to spare.
        assert!(s.connect < s.due, "{s:?}");
    }
    let opened = samples(&trace).iter().filter(|s| s.connect >= 0).count();
    assert!(opened >= 4, "{opened}");
}

#[test]
fn the_first_request_over_a_connection_knows_when_opening_it_began() {
    let last = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
    let server = serve(move |number, socket, _| match number % 2 {
        0 => say(socket, HELLO),
        _ => say(socket, last),
    });
    let trace = drive(options(server.address, 1, closed(1, 8)));
    for (index, s) in samples(&trace).iter().enumerate() {
        if index > 0 && index % 2 == 0 {
            assert!(s.due <= s.connect && s.connect < s.free, "{s:?}");
            assert!(s.free <= s.sent, "{s:?}");
        } else {
            // The first connection was opened before the start: no part of the drive.
            assert_eq!(s.connect, -1);
        }
    }
    assert_eq!(counted(&trace, "reconnects"), 3);
}

#[test]
fn slots_that_never_got_a_connection_are_recorded_as_unfinished() {
    let server = serve(|_, socket, _| {
        sleep_ms(40);
        say(socket, HELLO)
    });
    let timeout_ns = 100_000_000;
    let trace = drive(Options {
        timeout_ns,
        ..options(server.address, 1, open(20, 0))
    });
    assert_eq!(trace.len(), 20);
    let ok = count(&trace, Outcome::Ok);
    assert!(ok <= 3, "{:?}", tally(&trace));
    let unsent = samples(&trace).iter().filter(|s| s.sent == -1).count();
    let waited = count(&trace, Outcome::Unfinished) + count(&trace, Outcome::TimedOut);
    assert_eq!(waited, 20 - ok);
    assert_eq!(counted(&trace, "unsent") as usize, unsent);
    assert!(unsent >= 16);
}

#[test]
fn a_pool_larger_than_the_server_accepts_at_once_is_filled() {
    let server = serve(|_, socket, _| say(socket, HELLO));
    let trace = drive(options(server.address, 300, closed(300, 2)));
    assert_eq!(count(&trace, Outcome::Ok), 600);
    assert_eq!(counted(&trace, "connects"), 300);
    assert_eq!(
        server.accepted.load(std::sync::atomic::Ordering::SeqCst),
        300
    );
}
