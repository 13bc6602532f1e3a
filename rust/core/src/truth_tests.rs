//! The instrument against a server that keeps its own times: what was recorded has to agree.
//!
//! Only the order of instants is asserted, which holds on however busy a machine; how close they
//! are is for the benchmark to print. The two sides read different clocks, so the order is asserted
//! to within what these went apart during the drive itself.

use std::sync::{Arc, Mutex};

use crate::clock::{Clock, unix_ns};
use crate::testing::*;
use crate::{Idle, Load, Options, Trace};

/// The shortest that the server takes for a request. Clocks that go apart by as much say nothing.
const WORK_MS: u64 = 2;
const STALL_MS: u64 = 150;

/// When each request was read and its reply about to be written, by the server's clock.
type Log = Arc<Mutex<Vec<(i64, i64)>>>;

/// A request, with the server's times on the drive's clock.
struct Seen {
    sample: crate::Sample,
    read: i64,
    replied: i64,
}

fn logging_server(stall_at: usize) -> (Server, Log) {
    let log = Log::default();
    let written = Arc::clone(&log);
    let server = serve(move |number, socket, _| {
        let read = unix_ns();
        sleep_ms(if number == stall_at {
            STALL_MS
        } else {
            WORK_MS
        });
        written.lock().unwrap().push((read, unix_ns()));
        say(socket, HELLO)
    });
    (server, log)
}

/// What the drive's clock and the server's went apart while `during` ran, twice over, for each of
/// two instants is off by that much. Every clock of this process has the drive's own rate, so the
/// zero of any, asked for again and again, shows it.
fn apart_ns<T>(during: impl FnOnce() -> T) -> (T, i64) {
    let clock = Clock::starting_in(0);
    let mut zeros = vec![clock.zero_unix_ns(), clock.zero_unix_ns()];
    let result = during();
    zeros.extend([clock.zero_unix_ns(), clock.zero_unix_ns()]);
    let spread = zeros.iter().max().unwrap() - zeros.iter().min().unwrap();
    // A reading itself takes some hundred nanoseconds at most.
    (result, 2 * spread + 1_000)
}

/// Drives over one connection, so that samples and the server's log are in the same order, and
/// asserts that no instant contradicts the server. Gives the slack with which that holds.
fn driven_truly(idle: Idle, load: Load, stall_at: usize) -> (Vec<Seen>, i64) {
    let (server, log) = logging_server(stall_at);
    let (trace, slack): (Trace, i64) = apart_ns(|| {
        drive(Options {
            idle,
            ..options(server.address, 1, load)
        })
    });
    assert!(
        slack < WORK_MS as i64 * 1_000_000,
        "the clocks of this machine went {slack} ns apart: nothing can be said"
    );
    let started = trace.accounting().started_unix_ns;
    let log = log.lock().unwrap();
    assert_eq!(trace.len(), log.len());
    let seen: Vec<Seen> = samples(&trace)
        .into_iter()
        .zip(log.iter())
        .map(|(sample, (read, replied))| Seen {
            sample,
            read: read - started,
            replied: replied - started,
        })
        .collect();
    for Seen {
        sample: s,
        read,
        replied,
    } in &seen
    {
        assert!(
            s.sent <= read + slack,
            "read before it was sent: {s:?} {read}"
        );
        assert!(
            s.first_byte + slack >= *replied,
            "seen before it was written: {s:?} {replied}"
        );
        assert!(s.done - s.sent + slack >= replied - read, "{s:?}");
        // What a request really waited for is known to the server: from when it was due until its
        // reply left. Nothing that was recorded may be shorter.
        assert!(s.done - s.due + slack >= replied - s.due, "{s:?}");
        assert!(s.due <= s.sent && s.free <= s.sent);
    }
    (seen, slack)
}

#[test]
fn a_closed_loop_agrees_with_the_servers_own_times() {
    for idle in [Idle::Block, Idle::Hybrid, Idle::Spin] {
        let (seen, slack) = driven_truly(idle, closed(1, 10), 3);
        let stalled = &seen[3];
        let stall = stalled.replied - stalled.read;
        // Its clock may be set right meanwhile, by 500 ppm at most.
        assert!(stall >= STALL_MS as i64 * 999_000, "{stall}");
        let service = stalled.sample.done - stalled.sample.sent;
        assert!(service + slack >= stall, "{:?}", stalled.sample);
    }
}

#[test]
fn an_open_loop_agrees_with_the_servers_own_times_and_with_arithmetic() {
    const EVERY_MS: i64 = 5;
    for idle in [Idle::Block, Idle::Hybrid, Idle::Spin] {
        let (seen, slack) = driven_truly(idle, open(40, EVERY_MS), 5);
        let stall = seen[5].replied - seen[5].read;
        assert!(stall >= STALL_MS as i64 * 999_000, "{stall}");
        let behind = &seen[6].sample;
        assert_eq!(behind.due - seen[5].sample.due, EVERY_MS * 1_000_000);
        // It was due while the stall went on, and waited for the rest of it.
        let least = stall - EVERY_MS * 1_000_000;
        assert!(behind.done - behind.due + slack >= least, "{behind:?}");
    }
}
