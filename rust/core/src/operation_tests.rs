//! Operations: set-up and clean-up around what is timed, failures, what is said on a connection.

use std::sync::{Arc, Mutex};

use crate::sample::Outcome;
use crate::testing::*;
use crate::wire::{Greeting, Reply, Step, Wire};
use crate::{ExchangeTimes, Options, Requests, Trace};

const ERROR: &[u8] = b"HTTP/1.1 500 No\r\nContent-Length: 4\r\n\r\nfail";
const SLOW_MS: u64 = 60;

/// One operation: /setup, /one, /two, /clean.
fn operation() -> Arc<Requests> {
    operation_after(1)
}

/// The same; so many of its exchanges are set-up.
fn operation_after(set_up: u32) -> Arc<Requests> {
    let paths = ["/setup", "/one", "/two", "/clean"];
    let exchanges: Vec<_> = paths
        .map(|path| format!("GET {path} HTTP/1.1\r\n\r\n"))
        .to_vec();
    let mut ends = Vec::new();
    let mut end = 0;
    for exchange in &exchanges {
        end += exchange.len() as u64;
        ends.push(end);
    }
    let requests = Requests::new(exchanges.concat().into_bytes(), ends, vec![4]).unwrap();
    Arc::new(requests.into_operations(vec![set_up], vec![1]).unwrap())
}

/// The trace of two operations, and the paths that the server was asked for. `failing`: the path
/// that it refuses.
fn asked(failing: &'static str, slow: &'static [&'static str]) -> (Trace, Vec<String>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    let server = serve(move |_, socket, request| {
        let text = String::from_utf8_lossy(request);
        let path = text.split(' ').nth(1).unwrap_or_default().to_string();
        kept.lock().unwrap().push(path.clone());
        if slow.contains(&path.as_str()) {
            sleep_ms(SLOW_MS);
        }
        say(socket, if path == failing { ERROR } else { HELLO })
    });
    let options = Options {
        capture_every: 1,
        ..options(server.address, 1, closed(1, 2))
    };
    let trace = drive_these(operation(), options);
    let seen = seen.lock().unwrap().clone();
    (trace, seen)
}

#[test]
fn set_up_and_clean_up_are_sent_and_are_no_part_of_the_time() {
    let (trace, seen) = asked("", &["/setup", "/clean"]);
    assert_eq!(seen, ["/setup", "/one", "/two", "/clean"].repeat(2));
    let both = samples(&trace);
    for sample in &both {
        assert_eq!(sample.outcome, Outcome::Ok as u8);
        assert_eq!(sample.bytes as usize, 2 * HELLO.len());
        assert!(sample.due <= sample.free && sample.free <= sample.sent);
        // Both slow ones lie outside of it: it is much shorter than what lies between two of them.
        let took = sample.done - sample.sent;
        let between = both[1].sent - both[0].done;
        assert!(2 * took < between, "{took} ns against {between} ns");
    }
    let replies: Vec<_> = trace.replies().map(|(_, reply)| reply.to_vec()).collect();
    assert_eq!(replies, vec![HELLO.repeat(2); 2]);
}

#[test]
fn what_is_timed_is_timed() {
    let (trace, _) = asked("", &["/two"]);
    let both = samples(&trace);
    let took = both[0].done - both[0].sent;
    assert!(took > 2 * (both[1].sent - both[0].done), "{both:?}");
}

#[test]
fn an_operation_that_fails_goes_on_with_its_clean_up() {
    let (trace, seen) = asked("/one", &[]);
    assert_eq!(seen, ["/setup", "/one", "/clean"].repeat(2));
    assert!(
        samples(&trace)
            .iter()
            .all(|s| s.outcome == Outcome::HttpError as u8)
    );
    assert_eq!(trace.replies().next().unwrap().1, ERROR);

    let (trace, seen) = asked("/setup", &[]);
    assert_eq!(seen, ["/setup", "/clean"].repeat(2));
    assert!(
        samples(&trace)
            .iter()
            .all(|s| s.outcome == Outcome::HttpError as u8)
    );
    assert_eq!(trace.replies().next().unwrap().1, ERROR);

    let (trace, _) = asked("/clean", &[]);
    assert!(
        samples(&trace)
            .iter()
            .all(|s| s.outcome == Outcome::HttpError as u8)
    );
}

/// The paths that a server was asked for which lets the first `/one` wait (or hangs up), and the
/// samples of two operations.
fn broken_off(hangs_up: bool, set_up: u32) -> (Vec<String>, Vec<crate::Sample>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&seen);
    let server = serve(move |_, socket, request| {
        let text = String::from_utf8_lossy(request);
        let path = text.split(' ').nth(1).unwrap_or_default().to_string();
        let mut seen = kept.lock().unwrap();
        seen.push(path.clone());
        let first = seen.iter().filter(|each| **each == path).count() == 1;
        drop(seen);
        match path.as_str() {
            "/one" if first && hangs_up => Then::Close,
            "/one" if first => {
                sleep_ms(4 * SLOW_MS);
                Then::Close
            }
            // That it fails is nobody's concern any more, and what it takes is not timed.
            "/clean" if first => {
                sleep_ms(SLOW_MS);
                say(socket, ERROR)
            }
            _ => say(socket, HELLO),
        }
    });
    let options = Options {
        timeout_ns: 2 * SLOW_MS as i64 * 1_000_000,
        ..options(server.address, 1, closed(1, 2))
    };
    let trace = drive_these(operation_after(set_up), options);
    let seen = seen.lock().unwrap().clone();
    (seen, samples(&trace))
}

#[test]
fn what_broke_off_is_cleaned_up_on_the_next_connection_before_the_next_operation() {
    for (hangs_up, outcome) in [(false, Outcome::TimedOut), (true, Outcome::Reset)] {
        for set_up in [0, 1] {
            let (seen, both) = broken_off(hangs_up, set_up);
            let again: &[_] = &[
                "/setup", "/one", "/clean", "/setup", "/one", "/two", "/clean",
            ];
            assert_eq!(seen, again, "{outcome:?}");
            let outcomes: Vec<_> = both.iter().map(|s| s.outcome).collect();
            assert_eq!(outcomes, [outcome as u8, Outcome::Ok as u8]);
            assert_eq!(both[1].bytes as usize, (3 - set_up as usize) * HELLO.len());
            assert!(both[1].sent <= both[1].first_byte && both[1].due <= both[1].sent);
            let took = both[1].done - both[1].sent;
            assert!(took < both[1].due - both[0].due, "{both:?}");
            assert!(
                both[1].done - both[1].due < SLOW_MS as i64 * 1_000_000,
                "{both:?}"
            );
        }
    }
}

/// Replies of one byte: `+` or `-`.
#[derive(Clone)]
struct Plain;

impl Wire for Plain {
    fn begin(&mut self, _exchange: &[u8]) {}

    fn feed(&mut self, piece: &[u8]) -> Step {
        let outcome = match piece[0] {
            b'+' => Outcome::Ok,
            _ => Outcome::EngineError,
        };
        Step::Whole {
            used: 1,
            reply: Reply {
                outcome,
                ..Reply::ok()
            },
        }
    }

    fn words(&self, _reply: &[u8]) -> String {
        "no such thing".into()
    }
}

#[test]
fn a_prelude_is_said_one_after_another_and_what_is_refused_in_it_fails_the_connection() {
    let each = vec![b"first".to_vec(), b"second".to_vec()];
    let mut wire = crate::wire::Prelude::new(Plain, each);
    for _ in 0..2 {
        let mut out = Vec::new();
        assert_eq!(wire.connected(&mut out), Greeting::More);
        assert_eq!(out, b"first");
        out.clear();
        assert_eq!(wire.greet(b"+", &mut out), Greeting::More);
        assert_eq!(out, b"second");
        out.clear();
        assert_eq!(wire.greet(b"+", &mut out), Greeting::Ready);
        assert!(out.is_empty());
    }
    let mut out = Vec::new();
    wire.connected(&mut out);
    wire.greet(b"+", &mut out);
    assert_eq!(
        wire.greet(b"-", &mut out),
        Greeting::Failed(Outcome::EngineError)
    );
    let said = wire.complaint().unwrap();
    assert!(
        said.contains("statement 2") && said.ends_with("no such thing"),
        "{said}"
    );
    wire.connected(&mut out);
    assert_eq!(wire.complaint(), None);
    // More than was asked for is no reply.
    assert_eq!(
        wire.greet(b"++", &mut out),
        Greeting::Failed(Outcome::Malformed)
    );
}

/// The exchanges of operations: of which sample, which, and whether they were sent and answered.
fn exchanges_of(
    failing: &'static str,
    slow: &'static [&'static str],
) -> (Trace, Vec<ExchangeTimes>) {
    let server = serve(move |_, socket, request| {
        let text = String::from_utf8_lossy(request);
        let path = text.split(' ').nth(1).unwrap_or_default();
        if slow.contains(&path) {
            sleep_ms(SLOW_MS);
        }
        say(socket, if path == failing { ERROR } else { HELLO })
    });
    let options = Options {
        exchange_times: true,
        ..options(server.address, 1, closed(1, 2))
    };
    let trace = drive_these(operation(), options);
    let steps = trace.exchanges().to_vec();
    (trace, steps)
}

#[test]
fn each_exchange_that_is_timed_has_its_own_instants() {
    let (trace, steps) = exchanges_of("", &["/setup", "/two", "/clean"]);
    let found: Vec<_> = steps.iter().map(|s| (s.sample, s.exchange)).collect();
    assert_eq!(found, [(0, 0), (0, 1), (1, 0), (1, 1)]);
    for (sample, of) in samples(&trace).iter().zip(steps.chunks(2)) {
        assert_eq!(of[0].sent, sample.sent);
        assert_eq!(of[0].first_byte, sample.first_byte);
        assert_eq!(of[1].done, sample.done);
        for step in of {
            assert!(step.sent <= step.first_byte && step.first_byte <= step.done);
        }
        assert!(of[0].done <= of[1].sent);
        // The slow one is the second.
        let [one, two] = [0, 1].map(|at| of[at].done - of[at].sent);
        assert!(two >= SLOW_MS as i64 * 1_000_000 && 2 * one < two, "{of:?}");
    }
}

#[test]
fn an_operation_that_fails_has_the_exchanges_up_to_its_failure() {
    let (trace, steps) = exchanges_of("/one", &[]);
    let found: Vec<_> = steps.iter().map(|s| (s.sample, s.exchange)).collect();
    assert_eq!(found, [(0, 0), (1, 0)]);
    assert_eq!(steps[0].done, samples(&trace)[0].done);

    let (_, steps) = exchanges_of("/setup", &[]);
    assert_eq!(steps, []);
}

#[test]
fn an_exchange_that_is_not_answered_in_time_has_no_end() {
    let server = serve(|_, socket, request| {
        let late = request.starts_with(b"GET /two ");
        if late {
            sleep_ms(4 * SLOW_MS);
        }
        say(socket, HELLO)
    });
    let options = Options {
        exchange_times: true,
        timeout_ns: SLOW_MS as i64 * 1_000_000,
        ..options(server.address, 1, closed(1, 1))
    };
    let trace = drive_these(operation(), options);
    assert_eq!(samples(&trace)[0].outcome, Outcome::TimedOut as u8);
    let ended: Vec<_> = trace.exchanges().iter().map(|s| s.done >= 0).collect();
    assert_eq!(ended, [true, false]);
}

#[test]
fn exchanges_that_nobody_asks_for_are_not_kept() {
    let (trace, _) = asked("", &[]);
    assert_eq!(trace.exchanges(), []);
}
