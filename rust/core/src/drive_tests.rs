//! Drives against a real server on loopback: what goes well, and how loads are kept.

use std::sync::atomic::Ordering::SeqCst;

use super::*;
use crate::options::resolve;
use crate::pace::{ClosedLoop, Load, OpenLoop};
use crate::sample::Outcome;
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
    let mut load = closed(2, 5);
    if let Load::Closed(load) = &mut load {
        load.think_ns = 3_000_000;
    }
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
    let load = Load::Closed(ClosedLoop {
        sequence: vec![0; 4],
        starts: vec![0, 1, 2, 3, 4],
        think_ns: 0,
        repeat: true,
        stop_after: Some(1_001),
    });
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
    let load = Load::Closed(ClosedLoop {
        sequence: vec![0],
        starts: vec![0, 1],
        think_ns: 0,
        repeat: true,
        stop_after: None,
    });
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

/// Waits until a drive has recorded `count` requests.
fn wait_for(drive: &mut Drive, count: u64) {
    while drive.completed() < count {
        assert!(!drive.wait(Duration::from_millis(1)), "it ended by itself");
    }
}

#[test]
fn a_drive_that_is_cut_short_keeps_its_trace_and_what_was_in_flight_is_unfinished() {
    let answered = AtomicU64::new(0);
    let server = serve(move |_, socket, _| match answered.fetch_add(1, SeqCst) {
        0..60 => say(socket, HELLO),
        _ => Then::Stay,
    });
    let load = closed(3, 100);
    let mut drive = Drive::start(requests(&[GET]), options(server.address, 3, load)).unwrap();
    wait_for(&mut drive, 60);
    drive.cut_short();
    let trace = drive.finish().unwrap();
    assert!(trace.accounting().cut_short);
    let samples = samples(&trace);
    let count = |outcome: Outcome| {
        samples
            .iter()
            .filter(|s| s.outcome == outcome as u8)
            .count()
    };
    assert_eq!(count(Outcome::Ok), 60);
    assert_eq!(count(Outcome::Unfinished), 3);
    assert_eq!(samples.len(), 63);
}

#[test]
fn an_open_loop_that_is_cut_short_leaves_out_what_was_not_due() {
    let server = serve(|_, socket, _| say(socket, HELLO));
    let ours = options(server.address, 2, open(100_000, 1));
    let mut drive = Drive::start(requests(&[GET]), ours).unwrap();
    wait_for(&mut drive, 50);
    drive.cut_short();
    let trace = drive.finish().unwrap();
    let samples = samples(&trace);
    assert!(
        samples.len() >= 50 && samples.len() < 100_000,
        "{}",
        samples.len()
    );
    let mut due: Vec<i64> = samples.iter().map(|s| s.due / 1_000_000).collect();
    due.sort_unstable();
    let all: Vec<i64> = (0..samples.len() as i64).collect();
    assert_eq!(due, all, "all that were due, and no other");
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
    let beyond = Load::Open(OpenLoop {
        sequence: vec![1],
        due_ns: vec![0],
    });
    assert!(refused(options(target, 1, beyond)).contains("only 1"));
    let back = Load::Open(OpenLoop {
        sequence: vec![0, 0],
        due_ns: vec![5, 4],
    });
    assert!(refused(options(target, 1, back)).contains("decreases"));
    let endless = Load::Closed(ClosedLoop {
        sequence: vec![0],
        starts: vec![0, 1],
        think_ns: 0,
        repeat: true,
        stop_after: None,
    });
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

#[test]
fn spilling_while_driving_changes_no_count_and_no_order() {
    let server = serve(|_, socket, _| say(socket, HELLO));
    let cpus = two_cpus();
    let threads = cpus.len().max(1);
    // Beyond the megabyte of each thread that stays in memory.
    let count = 25_000 * threads;
    let load = Load::Open(OpenLoop {
        sequence: (0..count).map(|slot| (slot % 3) as u32).collect(),
        due_ns: (0..count as i64).map(|slot| slot * 2_000).collect(),
    });
    let drive_options = Options {
        cpus,
        spill: Some(std::env::temp_dir()),
        timeout_ns: 60_000_000_000,
        ..options(server.address, 4 * threads, load)
    };
    let trace = drive_these(requests(&[GET, GET, GET]), drive_options);
    assert_eq!(trace.len(), count);
    assert!(all(&trace, Outcome::Ok), "{:?}", trace.accounting());
    assert!(counted(&trace, "spilled_bytes") > 0);
    let mut slots = samples(&trace);
    slots.sort_by_key(|s| s.due);
    for (slot, s) in slots.iter().enumerate() {
        assert_eq!(s.due, slot as i64 * 2_000);
        assert_eq!(s.request as usize, slot % 3);
        assert!(s.due <= s.sent && s.sent < s.done, "{s:?}");
    }
    // Slots of one thread are sent in their order: none was passed over while pages were moved.
    for thread in 0..threads {
        let own: Vec<i64> = slots
            .iter()
            .skip(thread)
            .step_by(threads)
            .map(|s| s.sent)
            .collect();
        assert!(own.windows(2).all(|pair| pair[0] <= pair[1]));
    }
}

#[test]
fn a_folder_that_cannot_be_spilled_to_is_named_before_anything_is_sent() {
    let server = serve(|_, socket, _| say(socket, HELLO));
    let options = Options {
        spill: Some("/nowhere/at/all".into()),
        ..options(server.address, 1, closed(1, 1))
    };
    match Drive::start(requests(&[GET]), options) {
        Err(Error::Machine(error)) => {
            assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
        }
        _ => panic!("it does not exist"),
    }
    assert_eq!(server.accepted.load(SeqCst), 0);
}

#[test]
fn the_clock_has_its_zero_at_the_absolute_time_that_was_asked_for() {
    let server = serve(|_, socket, _| say(socket, HELLO));
    for (ahead_ms, due_ms) in [(300, 0), (600, 3)] {
        let start = unix_ns() + ahead_ms * 1_000_000;
        let mut load = open(5, 1);
        if let Load::Open(load) = &mut load {
            load.due_ns
                .iter_mut()
                .for_each(|due| *due += due_ms * 1_000_000);
        }
        let trace = drive(Options {
            start_unix_ns: Some(start),
            ..options(server.address, 1, load)
        });
        let off = counted(&trace, "started_unix_ns") - start;
        assert!(off.abs() < 1_000_000, "{off}");
        assert!(unix_ns() >= start + due_ms * 1_000_000);
        assert!(samples(&trace).iter().all(|s| s.sent >= s.due));
    }
}

#[test]
fn an_absolute_start_has_to_lie_ahead_and_not_beyond_an_hour() {
    let server = serve(|_, socket, _| say(socket, HELLO));
    for ahead_s in [-1, 3_700] {
        let options = Options {
            start_unix_ns: Some(unix_ns() + ahead_s * 1_000_000_000),
            ..options(server.address, 1, closed(1, 1))
        };
        match Drive::start(requests(&[GET]), options) {
            Err(Error::Invalid(text)) => assert!(text.contains("start_unix_ns"), "{text}"),
            _ => panic!("{ahead_s} s ahead"),
        }
    }
}

#[test]
fn a_start_that_passes_while_connections_open_is_refused_and_nothing_is_sent() {
    // It accepts, and its queue of one is taken: the second connection is not answered.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let options = Options {
        wire: crate::WireKind::Mysql(crate::Login::default()),
        timeout_ns: 200_000_000,
        start_unix_ns: Some(unix_ns() + 100_000_000),
        ..options(silent.local_addr().unwrap(), 1, closed(1, 1))
    };
    let failed = Drive::start(requests(&[GET]), options).unwrap().finish();
    match failed {
        Err(Error::Invalid(text)) => assert!(text.contains("set it later"), "{text}"),
        _ => panic!("the greeting never came"),
    }
}
