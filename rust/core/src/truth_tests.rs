//! The instrument against a server that keeps its own times: what was recorded has to agree.
//!
//! Only the order of instants is asserted, which holds on however busy a machine; how close they
//! are is for the benchmark to print.

use std::sync::{Arc, Mutex};

use crate::clock::unix_ns;
use crate::testing::*;
use crate::{Idle, Options, Trace};

/// The server reads another clock: both follow CLOCK_MONOTONIC to far less than this.
const BETWEEN_CLOCKS_NS: i64 = 50_000;

/// When each request was read and its reply about to be written, by the server's clock.
type Log = Arc<Mutex<Vec<(i64, i64)>>>;

fn logging_server(stall_at: usize) -> (Server, Log) {
    let log = Log::default();
    let written = Arc::clone(&log);
    let server = serve(move |number, socket, _| {
        let read = unix_ns();
        sleep_ms(if number == stall_at { 150 } else { 2 });
        written.lock().unwrap().push((read, unix_ns()));
        say(socket, HELLO)
    });
    (server, log)
}

/// One connection, so that samples and the server's log are in the same order.
fn assert_true(trace: &Trace, log: &Log) {
    let started = counted(trace, "started_unix_ns");
    let log = log.lock().unwrap();
    assert_eq!(trace.len(), log.len());
    for (s, (read, replied)) in samples(trace).iter().zip(log.iter()) {
        let (read, replied) = (read - started, replied - started);
        assert!(
            s.sent <= read + BETWEEN_CLOCKS_NS,
            "sent after it was read: {s:?} {read}"
        );
        assert!(
            s.first_byte + BETWEEN_CLOCKS_NS >= replied,
            "read too early: {s:?} {replied}"
        );
        assert!(
            s.done - s.sent + BETWEEN_CLOCKS_NS >= replied - read,
            "{s:?}"
        );
        assert!(s.due <= s.sent && s.free <= s.sent);
    }
}

#[test]
fn a_closed_loop_agrees_with_the_servers_own_times() {
    for idle in [Idle::Block, Idle::Hybrid, Idle::Spin] {
        let (server, log) = logging_server(3);
        let trace = drive(Options {
            idle,
            ..options(server.address, 1, closed(1, 10))
        });
        assert_true(&trace, &log);
        assert!(trace.sample(3).done - trace.sample(3).sent >= 150_000_000);
    }
}

#[test]
fn an_open_loop_agrees_with_the_servers_own_times_and_with_arithmetic() {
    for idle in [Idle::Block, Idle::Hybrid, Idle::Spin] {
        let (server, log) = logging_server(5);
        let trace = drive(Options {
            idle,
            ..options(server.address, 1, open(40, 5))
        });
        assert_true(&trace, &log);
        let started = counted(&trace, "started_unix_ns");
        // What a request really waited for is known to the server: from when it was due until
        // its reply left. Nothing that was recorded may be shorter.
        for (s, (_, replied)) in samples(&trace).iter().zip(log.lock().unwrap().iter()) {
            assert!(s.done - s.due + BETWEEN_CLOCKS_NS >= replied - started - s.due);
        }
        let stalled = trace.sample(6);
        assert!(stalled.done - stalled.due >= 145_000_000, "{stalled:?}");
    }
}
