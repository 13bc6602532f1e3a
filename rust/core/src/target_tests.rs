//! Drives at several targets, with timeouts of their own, and at addresses beyond 127.0.0.1.

use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::Ordering::SeqCst;

use crate::options::resolve;
use crate::sample::Outcome;
use crate::testing::*;
use crate::{ClosedLoop, Drive, Error, Load, OpenLoop, Options, Sample, Trace};

const OTHER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsomething";

fn of_request(trace: &Trace, request: u32) -> Vec<Sample> {
    let mut found = samples(trace);
    found.retain(|sample| sample.request == request);
    found
}

/// Closed loop: the run of each client.
fn runs(runs: &[&[u32]]) -> Load {
    let mut starts = vec![0];
    for run in runs {
        starts.push(starts.last().unwrap() + run.len() as u32);
    }
    Load::Closed(ClosedLoop {
        sequence: runs.concat(),
        starts,
        think_ns: 0,
        repeat: false,
        stop_after: None,
    })
}

fn to(targets: &[SocketAddr], of: &[u16], connections: usize, load: Load) -> Options {
    Options {
        targets: targets.to_vec(),
        request_targets: Some(of.to_vec()),
        ..options(targets[0], connections, load)
    }
}

/// Whole numbers in the accounting of each target.
fn counts_of_targets(trace: &Trace, name: &str) -> Vec<i64> {
    let account = serde_json::to_value(trace.accounting()).unwrap();
    let targets = account["targets"].as_array().unwrap();
    let counts = targets.iter().map(|target| target[name].as_i64().unwrap());
    counts.collect()
}

#[test]
fn each_request_of_a_client_goes_over_its_connection_to_the_target_of_that_request() {
    let a = serve(|_, socket, _| say(socket, HELLO));
    let b = serve(|_, socket, _| say(socket, OTHER));
    let c = serve(|_, socket, _| say(socket, HELLO));
    let targets = [a.address, b.address, c.address];
    // Client 0 goes to and fro, client 1 keeps to b, client 2 has nothing to do.
    let load = runs(&[&[0, 1, 1, 0, 1, 0], &[1, 1, 1], &[]]);
    let trace = drive_these(requests(&[GET, GET]), to(&targets, &[0, 1], 3, load));
    assert_eq!(trace.len(), 9);
    for s in samples(&trace) {
        assert_eq!(s.outcome, Outcome::Ok as u8);
        let bytes = if s.request == 0 { HELLO } else { OTHER };
        assert_eq!(s.bytes as usize, bytes.len(), "the reply of its own target");
    }
    let accepted = [&a, &b, &c].map(|server| server.accepted.load(SeqCst));
    assert_eq!(accepted, [1, 2, 0], "no connection that nothing asks for");
    let connections = |request| {
        let mut found: Vec<u16> = of_request(&trace, request)
            .iter()
            .map(|s| s.connection)
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    };
    assert_eq!((connections(0), connections(1)), (vec![0], vec![1, 2]));
    assert_eq!(counts_of_targets(&trace, "connects"), [1, 2, 0]);
    assert_eq!(counted(&trace, "connects"), 3);
    assert_eq!(counted(&trace, "clients"), 2);
    // A client does one thing at a time, wherever it does it.
    let mut mine: Vec<_> = samples(&trace)
        .into_iter()
        .filter(|s| s.connection < 2)
        .collect();
    mine.sort_by_key(|s| s.sent);
    let order: Vec<u32> = mine.iter().map(|s| s.request).collect();
    assert_eq!(order, [0, 1, 1, 0, 1, 0]);
    for pair in mine.windows(2) {
        assert_eq!(pair[1].due, pair[0].done);
    }
}

#[test]
fn a_target_that_is_gone_costs_its_own_requests_and_no_others() {
    let here = serve(|_, socket, _| say(socket, HELLO));
    let targets = [here.address, dead()];
    let load = runs(&[&[0, 1, 0, 1, 0], &[1, 0]]);
    let trace = drive_these(requests(&[GET, GET]), to(&targets, &[0, 1], 2, load));
    assert!(
        of_request(&trace, 0)
            .iter()
            .all(|s| s.outcome == Outcome::Ok as u8)
    );
    assert!(
        of_request(&trace, 0).iter().all(|s| s.connect == -1),
        "opened beforehand"
    );
    let refused = of_request(&trace, 1);
    assert!(refused.iter().all(|s| s.outcome == Outcome::Refused as u8));
    assert_eq!((refused.len(), trace.len()), (3, 7));
    // One attempt of each thread's opening beforehand fails too.
    assert_eq!(counts_of_targets(&trace, "connects"), [2, 0]);
    assert!(counts_of_targets(&trace, "refused_connects")[1] >= 3);
    assert_eq!(counts_of_targets(&trace, "refused_connects")[0], 0);
}

#[test]
fn in_an_open_loop_a_target_that_stalls_or_is_gone_holds_up_nobody_else() {
    let slow = serve(|number, socket, _| {
        if number == 2 {
            sleep_ms(300);
        }
        say(socket, OTHER)
    });
    let fast = serve(|_, socket, _| say(socket, HELLO));
    let targets = [slow.address, fast.address, dead()];
    // A request every 2 ms, to the three targets in turn, one connection each.
    let load = Load::Open(OpenLoop {
        sequence: (0..150).map(|slot| slot % 3).collect(),
        due_ns: (0..150).map(|slot| slot * 2_000_000).collect(),
    });
    let trace = drive_these(
        requests(&[GET, GET, GET]),
        to(&targets, &[0, 1, 2], 1, load),
    );
    assert_eq!(trace.len(), 150, "nothing is dropped");
    let (slowly, fastly, never) = (
        of_request(&trace, 0),
        of_request(&trace, 1),
        of_request(&trace, 2),
    );
    assert!(never.iter().all(|s| s.outcome == Outcome::Refused as u8));
    for (at, pair) in slowly.windows(2).enumerate() {
        assert!(
            pair[0].due < pair[1].due && pair[0].sent < pair[1].sent,
            "{at}: first in, first out"
        );
    }
    assert!(
        slowly[10].free - slowly[10].due > 150_000_000,
        "queued behind the stall"
    );
    let stall = slowly[2].sent..slowly[2].done;
    let meanwhile = fastly
        .iter()
        .filter(|s| stall.contains(&s.sent) && stall.contains(&s.done));
    assert!(meanwhile.count() >= 20, "others went on during it");
    assert!(
        fastly
            .iter()
            .all(|s| s.free <= s.due || s.connect >= 0 || s.free - s.due < 150_000_000)
    );
    assert_eq!(slow.accepted.load(SeqCst), 1);
    assert!(
        slowly.iter().chain(&fastly).all(|s| s.connect == -1),
        "opened beforehand"
    );
    let numbers = |found: &[Sample]| found.iter().all(|s| s.connection == found[0].connection);
    assert!(numbers(&slowly) && numbers(&fastly) && numbers(&never));
    assert_eq!(
        (
            slowly[0].connection,
            fastly[0].connection,
            never[0].connection
        ),
        (0, 1, 2)
    );
}

#[test]
fn slots_of_a_stalled_target_that_never_got_a_connection_are_unfinished() {
    let stuck = serve(|_, _, _| Then::Stay);
    let fine = serve(|_, socket, _| say(socket, HELLO));
    let load = Load::Open(OpenLoop {
        sequence: (0..20).map(|slot| slot % 2).collect(),
        due_ns: vec![0; 20],
    });
    let trace = drive_these(
        requests(&[GET, GET]),
        Options {
            timeout_ns: 200_000_000,
            ..to(&[stuck.address, fine.address], &[0, 1], 1, load)
        },
    );
    assert_eq!(trace.len(), 20);
    assert!(
        of_request(&trace, 1)
            .iter()
            .all(|s| s.outcome == Outcome::Ok as u8)
    );
    let waited = of_request(&trace, 0);
    assert!(waited.iter().all(|s| s.done == -1 && s.connection == 0));
    assert_eq!(
        counted(&trace, "unsent") as usize,
        waited.iter().filter(|s| s.sent < 0).count()
    );
}

#[test]
fn a_timeout_of_its_own_ends_a_request_earlier_or_later_than_the_others() {
    // The second request is answered only after a while; the third never.
    let server = serve(|_, socket, request| match request[5] {
        b's' => {
            sleep_ms(700);
            say(socket, HELLO)
        }
        b'n' => Then::Stay,
        _ => say(socket, HELLO),
    });
    let these = requests(&[
        GET,
        b"GET /slow HTTP/1.1\r\n\r\n",
        b"GET /never HTTP/1.1\r\n\r\n",
    ]);
    let trace = drive_these(
        these,
        Options {
            timeout_ns: 300_000_000,
            request_timeouts_ns: Some(vec![300_000_000, 20_000_000_000, 100_000_000]),
            ..options(server.address, 3, runs(&[&[0, 1, 0], &[2, 0], &[0, 2]]))
        },
    );
    assert!(
        of_request(&trace, 0)
            .iter()
            .all(|s| s.outcome == Outcome::Ok as u8)
    );
    let slow = of_request(&trace, 1)[0];
    assert_eq!(slow.outcome, Outcome::Ok as u8);
    assert!(slow.done - slow.sent >= 700_000_000);
    let never = of_request(&trace, 2);
    assert_eq!(never.len(), 2);
    assert!(never.iter().all(|s| s.outcome == Outcome::TimedOut as u8));
    assert_eq!(
        counted(&trace, "reconnects"),
        1,
        "one client went on after it"
    );
}

#[test]
fn the_end_waits_as_long_as_the_longest_timeout() {
    let server = serve(|_, socket, _| {
        sleep_ms(400);
        say(socket, HELLO)
    });
    let trace = drive(Options {
        timeout_ns: 50_000_000,
        request_timeouts_ns: Some(vec![10_000_000_000]),
        stop_ns: Some(10_000_000),
        ..options(server.address, 1, closed(1, 3))
    });
    assert_eq!((trace.len(), trace.sample(0).outcome), (1, 0));
}

#[test]
fn targets_and_timeouts_that_do_not_fit_are_refused() {
    let refused = |options: Options| match Drive::start(requests(&[GET, GET]), options) {
        Err(Error::Invalid(text)) => text,
        other => panic!("{:?}", other.map(|_| ())),
    };
    let with = |of: &[u16], each: Option<Vec<i64>>| Options {
        request_timeouts_ns: each,
        ..to(&[dead(), dead()], of, 1, closed(1, 1))
    };
    assert!(refused(with(&[0], None)).contains("request_targets has 1 entries"));
    assert!(refused(with(&[0, 2], None)).contains("only 2 targets"));
    assert!(refused(with(&[0, 1], Some(vec![1]))).contains("request_timeouts_ns has 1 entries"));
    assert!(refused(with(&[0, 1], Some(vec![1, -1]))).contains("request_timeouts_ns[1] is -1"));
    let none = Options {
        targets: vec![],
        ..with(&[0, 1], None)
    };
    assert!(refused(none).contains("no target"));
}

#[test]
fn a_name_without_an_address_is_one_sentence() {
    match resolve("no-such-host.invalid", 80, true) {
        Err(Error::Invalid(text)) => {
            assert!(text.contains("\"no-such-host.invalid\""), "{text}");
            assert!(text.contains("does not resolve"), "{text}");
            assert!(!text.contains('\n'), "{text}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn other_machines_are_driven_only_when_that_is_asked_for() {
    assert_eq!(
        resolve("192.0.2.1", 80, true).unwrap(),
        "192.0.2.1:80".parse().unwrap()
    );
    match resolve("192.0.2.1", 80, false) {
        Err(Error::Invalid(text)) => assert!(text.contains("remote"), "{text}"),
        other => panic!("{other:?}"),
    }
    for host in ["127.0.0.1", "127.0.0.9", "::1", "[::1]"] {
        assert!(resolve(host, 80, false).unwrap().ip().is_loopback());
    }
}

/// The address of this machine's way out, where it has one; nothing is sent.
fn own_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let own = socket.local_addr().ok()?.ip();
    (!own.is_loopback() && !own.is_unspecified()).then_some(own)
}

fn answers_at(listener: TcpListener) {
    let address = listener.local_addr().unwrap();
    let server = serve_on(listener, |_, socket, _| say(socket, HELLO));
    let trace = drive(options(address, 2, closed(2, 5)));
    assert!(
        samples(&trace)
            .iter()
            .all(|s| s.outcome == Outcome::Ok as u8)
    );
    assert_eq!(server.accepted.load(SeqCst), 2);
    let account = trace.accounting();
    let addresses: Vec<SocketAddr> = account.targets.iter().map(|to| to.address).collect();
    assert_eq!(addresses, [address]);
}

#[test]
fn an_address_of_this_machine_that_is_not_loopback_is_driven() {
    // Where the machine has no other address there is nothing to drive.
    if let Some(own) = own_address() {
        assert!(resolve(&own.to_string(), 80, false).is_err());
        assert_eq!(resolve(&own.to_string(), 80, true).unwrap().ip(), own);
        answers_at(TcpListener::bind((own, 0)).unwrap());
    }
}

#[test]
fn the_loopback_of_ipv6_is_driven() {
    // Where the kernel has no IPv6 there is nothing to drive.
    if let Ok(listener) = TcpListener::bind("[::1]:0") {
        answers_at(listener);
    }
}
