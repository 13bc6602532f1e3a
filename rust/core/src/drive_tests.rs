//! Drives against a real server on loopback: what goes well, and how loads are kept.

use super::*;
use crate::options::resolve;
use crate::sample::Outcome;
use crate::schedule::Load;
use crate::testing::*;

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
    let longest = samples(&trace)
        .into_iter()
        .enumerate()
        .max_by_key(|(_, s)| s.done - s.sent);
    let (position, stalled) = longest.unwrap();
    assert!(stalled.done - stalled.sent >= 200_000_000);
    assert!(position > 15, "others were answered meanwhile: {position}");
    assert_eq!(trace.len(), 30);
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
fn a_drive_can_be_stopped_at_once() {
    let server = serve(|_, _, _| Then::Stay);
    let mut drive =
        Drive::start(requests(&[GET]), options(server.address, 2, closed(2, 5))).unwrap();
    drive.wait(Duration::from_millis(50));
    let before = std::time::Instant::now();
    drive.stop();
    assert!(matches!(drive.finish(), Err(Error::Stopped)));
    assert!(before.elapsed() < Duration::from_secs(5));
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
    assert!(resolve("127.0.0.1", 80, false).is_ok());
    assert!(resolve("localhost", 80, false).is_ok());
    match resolve("192.0.2.1", 80, false) {
        Err(Error::Invalid(text)) => assert!(text.contains("loopback"), "{text}"),
        other => panic!("{other:?}"),
    }
}
