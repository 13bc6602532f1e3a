//! What each key of a store does, as scribed does it: the clock, buffers, servers, buckets, folders.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::buffer::Buffered;
use super::tests::{batch, file, names, purpose, store, text};
use super::{Purpose, Store, build};
use crate::batch::{Batch, Name};
use crate::conf::{Kind, read};
use crate::sys::Local;

const DAY: (i32, i32, i32) = (2026, 11, 22);
const NEXT: (i32, i32, i32) = (2026, 11, 23);

/// A line and what becomes of it at each of these times.
fn at(store: &mut dyn Store, day: (i32, i32, i32), hour: u32, minute: u32, message: &str) {
    Local::set(day, hour, minute);
    store.check(0.0);
    store.keep(&mut batch(&[message])).unwrap();
}

#[test]
fn daily_files_begin_at_the_hour_and_minute_that_are_given() {
    let place = tempfile::tempdir().unwrap();
    Local::set(DAY, 0, 30);
    let mut store = file(
        place.path(),
        "rotate_period=daily\nrotate_hour=1\nrotate_minute=15",
    );
    at(&mut *store, DAY, 0, 30, "a");
    // Of today already: the time comes, and nothing is due before tomorrow.
    at(&mut *store, DAY, 1, 15, "b");
    at(&mut *store, NEXT, 0, 59, "c");
    at(&mut *store, NEXT, 1, 14, "d");
    at(&mut *store, NEXT, 1, 15, "e");
    at(&mut *store, NEXT, 23, 59, "f");
    assert_eq!(text(place.path(), "web-2026-11-22_00000"), b"abcd");
    assert_eq!(text(place.path(), "web-2026-11-23_00000"), b"ef");
    assert_eq!(
        fs::read_link(place.path().join("web_current")).unwrap(),
        Path::new("web-2026-11-23_00000")
    );
    assert_eq!(names(place.path()).len(), 3);
}

#[test]
fn hourly_files_begin_at_the_minute_and_count_on_from_the_hour_of_the_start() {
    let place = tempfile::tempdir().unwrap();
    Local::set(DAY, 21, 50);
    let mut store = file(place.path(), "rotate_period=hourly\nrotate_minute=15");
    at(&mut *store, DAY, 21, 50, "a");
    at(&mut *store, DAY, 22, 14, "b");
    at(&mut *store, DAY, 22, 15, "c");
    at(&mut *store, DAY, 22, 59, "d");
    at(&mut *store, DAY, 23, 15, "e");
    at(&mut *store, NEXT, 0, 14, "f");
    // The day's first file by rotation is 0, whatever the hour: only a start takes the hour.
    at(&mut *store, NEXT, 3, 15, "g");
    for (name, expected) in [
        ("web-2026-11-22_00021", "ab"),
        ("web-2026-11-22_00022", "cd"),
        ("web-2026-11-22_00023", "ef"),
        ("web-2026-11-23_00000", "g"),
    ] {
        assert_eq!(text(place.path(), name), expected.as_bytes(), "{name}");
    }
}

#[test]
fn a_day_later_at_the_same_hour_is_another_hour() {
    let place = tempfile::tempdir().unwrap();
    Local::set(DAY, 21, 50);
    let mut store = file(place.path(), "rotate_period=hourly\nrotate_minute=15");
    at(&mut *store, DAY, 21, 50, "a");
    at(&mut *store, NEXT, 21, 50, "b");
    assert_eq!(text(place.path(), "web-2026-11-22_00021"), b"a");
    assert_eq!(text(place.path(), "web-2026-11-23_00000"), b"b");
}

#[test]
fn a_period_of_its_own_ends_a_file_and_the_date_stays_in_the_name() {
    let place = tempfile::tempdir().unwrap();
    Local::set(DAY, 12, 0);
    let mut store = file(place.path(), "rotate_period=1s");
    at(&mut *store, DAY, 12, 0, "a");
    let second = place.path().join("web-2026-11-22_00001");
    while !second.exists() {
        std::thread::sleep(Duration::from_millis(20));
        store.check(0.0);
    }
    store.keep(&mut batch(&["b"])).unwrap();
    assert_eq!(text(place.path(), "web-2026-11-22_00000"), b"a");
    assert_eq!(text(place.path(), "web-2026-11-22_00001"), b"b");
}

#[test]
fn buffered_files_are_those_of_no_hour() {
    let place = tempfile::tempdir().unwrap();
    Local::set(DAY, 12, 0);
    let mut store = buffered(
        place.path(),
        closed_port(),
        "",
        "rotate_period=hourly\nchunk_size=8",
    );
    store.keep(&mut batch(&["a"])).unwrap();
    assert_eq!(names(&place.path().join("spool")), ["web_00000"]);
}

#[test]
fn sub_directories_lie_below_the_category_of_a_copy() {
    let place = tempfile::tempdir().unwrap();
    let lines = format!(
        "<store>\ncategory=default\ntype=file\nfile_path={}\nsub_directory=in/side\n</store>",
        place.path().display()
    );
    let (settings, mistakes) = read(&lines);
    assert!(mistakes.is_empty(), "{mistakes:?}");
    let copied = Purpose {
        copied: true,
        ..purpose()
    };
    for purpose in [copied, purpose()] {
        let mut store = build(&settings.stores[0].store, &purpose);
        store.keep(&mut batch(&["x"])).unwrap();
    }
    assert_eq!(text(place.path(), "web/in/side/web_00000"), b"x");
    assert_eq!(text(place.path(), "in/side/web_00000"), b"x");
}

#[test]
fn the_name_of_the_host_replaces_a_sub_directory() {
    let place = tempfile::tempdir().unwrap();
    let lines = "use_hostname_sub_directory=yes\nsub_directory=other";
    file(place.path(), lines).keep(&mut batch(&["x"])).unwrap();
    assert_eq!(names(place.path()), [crate::sys::hostname()]);
}

#[test]
fn a_simple_thriftfile_has_no_lengths_and_no_chunks() {
    let place = tempfile::tempdir().unwrap();
    let lines = format!(
        "type=thriftfile\nfile_path={}\nuse_simple_file=1\nchunk_size=8",
        place.path().display()
    );
    for _ in 0..2 {
        let mut store = store(&lines);
        store
            .keep(&mut batch(&["one", "", "seven is longer"]))
            .unwrap();
        store.close();
    }
    // A start begins a new file, as with events.
    for name in ["web_00000", "web_00001"] {
        assert_eq!(text(place.path(), name), b"oneseven is longer", "{name}");
    }
}

#[test]
fn a_multifile_has_a_folder_for_each_category() {
    let name = |name: &str| -> Name { name.as_bytes().into() };
    let event = |message: &str| [&1_u32.to_ne_bytes(), message.as_bytes()].concat();
    for (kind, written) in [
        ("multifile", b"1\n3\n".to_vec()),
        ("thriftmultifile", [event("1"), event("3")].concat()),
    ] {
        let place = tempfile::tempdir().unwrap();
        let newlines = if kind == "multifile" {
            "add_newlines=1"
        } else {
            ""
        };
        let mut store = store(&format!(
            "type={kind}\nfile_path={}\nbase_filename=ignored\n{newlines}",
            place.path().display()
        ));
        let mut mixed = Batch::default();
        for (category, message) in [("a", "1"), ("b", "2"), ("a", "3")] {
            mixed.push(&name(category), message.as_bytes());
        }
        store.keep(&mut mixed).unwrap();
        store.close();
        assert_eq!(names(place.path()), ["a", "b"]);
        assert_eq!(text(place.path(), "a/a_00000"), written, "{kind}");
    }
}

#[test]
fn a_range_of_keys_is_cut_into_equal_buckets() {
    let place = tempfile::tempdir().unwrap();
    let mut store = store(&format!(
        "type=bucket\nnum_buckets=4\nbucket_type=key_range\nbucket_range=100\ndelimiter=124\n\
         bucket_subdir=b\n<bucket>\ntype=file\nfile_path={}\n</bucket>",
        place.path().display()
    ));
    let keys = ["0", "24", "25", "49", "50", "74", "75", "99", "100", "x"];
    let messages: Vec<_> = keys.iter().map(|key| format!("{key}|,")).collect();
    store.keep(&mut batch(&messages)).unwrap();
    store.keep(&mut batch(&["no key"])).unwrap();
    for (folder, expected) in [
        ("b000", "no key"),
        ("b001", "0|,24|,100|,x|,"),
        ("b002", "25|,49|,"),
        ("b003", "50|,74|,"),
        ("b004", "75|,99|,"),
    ] {
        let written = text(&place.path().join(folder), "web_00000");
        assert_eq!(written, expected.as_bytes(), "{folder}");
    }
}

/// A port at which nobody listens.
fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .unwrap()
        .port()
}

/// A Scribe server that answers OK to every `Log`, and counts them.
fn server(port: u16) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let at = listener.local_addr().unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, counted) = (stream.unwrap(), counted.clone());
            std::thread::spawn(move || {
                let mut length = [0; 4];
                while stream.read_exact(&mut length).is_ok() {
                    let mut frame = vec![0; u32::from_be_bytes(length) as usize];
                    stream.read_exact(&mut frame).unwrap();
                    counted.fetch_add(1, Ordering::Relaxed);
                    // The old head: name, kind, number; then field 0, a number: 0 is OK.
                    let head = b"\0\0\0\x14\0\0\0\x03Log\x02";
                    let answer = [&head[..], &frame[8..12], b"\x08\0\0\0\0\0\0\0"].concat();
                    stream.write_all(&answer).unwrap();
                }
            });
        }
    });
    (at, calls)
}

fn buffer_text(place: &Path, port: u16, keys: &str, secondary: &str) -> String {
    format!(
        "type=buffer\n{keys}\n<primary>\ntype=network\nremote_host=127.0.0.1\nremote_port={port}\n\
         </primary>\n<secondary>\ntype=file\nfile_path={}/spool\n{secondary}\n</secondary>",
        place.display()
    )
}

fn buffered(place: &Path, port: u16, keys: &str, secondary: &str) -> Box<dyn Store> {
    store(&buffer_text(place, port, keys, secondary))
}

/// As [`buffered`], with its insides and its purpose.
fn opened(place: &Path, port: u16, keys: &str) -> (Buffered, Purpose) {
    let text = buffer_text(place, port, keys, "");
    let (settings, mistakes) = read(&format!("<store>\ncategory=web\n{text}\n</store>"));
    assert!(mistakes.is_empty(), "{mistakes:?}");
    let Kind::Buffer(conf) = &settings.stores[0].store else {
        panic!()
    };
    let purpose = purpose();
    (Buffered::new(conf, &purpose), purpose)
}

fn sent(purpose: &Purpose) -> u64 {
    purpose.counts.sent.load(Ordering::Relaxed)
}

#[test]
fn adaptive_pauses_grow_at_each_failure_and_shrink_with_what_the_primary_takes() {
    let place = tempfile::tempdir().unwrap();
    let keys =
        "adaptive_backoff=yes\nmin_retry_interval=10\nmax_retry_interval=50\nmax_random_offset=0";
    let port = closed_port();
    let (mut store, purpose) = opened(place.path(), port, keys);
    let pauses: Vec<_> = (0..6).map(|_| store.pause().as_secs_f64()).collect();
    for (pause, expected) in pauses.iter().zip([14.14, 19.99, 28.27, 39.98, 50.0, 50.0]) {
        assert!((pause - expected).abs() < 0.01, "{pauses:?}");
    }
    // Each batch that is taken makes the next pause shorter, down to the least.
    server(port);
    for _ in 0..15 {
        store.keep(&mut batch(&["x"])).unwrap();
    }
    assert_eq!(sent(&purpose), 15);
    assert!((store.pause().as_secs_f64() - 20.0 * 1.414).abs() < 0.01);
    for _ in 0..30 {
        store.keep(&mut batch(&["x"])).unwrap();
    }
    assert!((store.pause().as_secs_f64() - 14.14).abs() < 0.01);
    let (mut random, _) = opened(place.path(), port, &keys.replace("offset=0", "offset=20"));
    let first = random.pause().as_secs_f64();
    assert!((14.14..=34.14).contains(&first), "{first}");
}

#[test]
fn a_pause_is_within_half_of_its_range_which_is_no_longer_than_itself() {
    let place = tempfile::tempdir().unwrap();
    for (keys, least, most) in [
        ("retry_interval=100\nretry_interval_range=20", 90.0, 110.0),
        // The default range, of 60 s, is longer than this.
        ("retry_interval=10", 5.0, 15.0),
        ("retry_interval=10\nretry_interval_range=0", 10.0, 10.0),
    ] {
        let (mut store, _) = opened(place.path(), 9, keys);
        let all: Vec<_> = (0..200).map(|_| store.pause().as_secs_f64()).collect();
        let within = |pause: &f64| (least..=most).contains(pause);
        assert!(all.iter().all(within), "{keys}: {all:?}");
        let apart = all.iter().fold(0.0, |a: f64, b| a.max(*b)) - least;
        assert!(apart >= (most - least) * 0.8, "{keys}: {apart}");
    }
}

#[test]
fn new_messages_wait_behind_buffered_ones_unless_flush_streaming_says_otherwise() {
    for (keys, expected) in [("", 0), ("flush_streaming=yes", 1)] {
        let place = tempfile::tempdir().unwrap();
        let port = closed_port();
        let (mut store, _) = opened(place.path(), port, keys);
        store.keep(&mut batch(&["old"])).unwrap();
        drop(store);
        server(port);
        let (mut store, purpose) = opened(place.path(), port, keys);
        store.keep(&mut batch(&["new"])).unwrap();
        assert_eq!(sent(&purpose), expected, "{keys}");
        // What waits is sent at the check, whichever it is.
        store.check(0.0);
        store.check(0.0);
        assert_eq!(sent(&purpose), 2, "{keys}");
        assert!(names(&place.path().join("spool")).is_empty());
    }
}

#[test]
fn nothing_is_replayed_while_the_queue_is_fuller_than_the_ratio() {
    for (keys, at_half, at_most) in [
        ("flush_streaming=yes\nbuffer_bypass_max_ratio=0.5", 0, 0),
        ("flush_streaming=yes", 1, 1),
        // Without flush_streaming the ratio says nothing.
        ("buffer_bypass_max_ratio=0.5", 1, 1),
    ] {
        let place = tempfile::tempdir().unwrap();
        let port = closed_port();
        let (mut store, _) = opened(place.path(), port, keys);
        store.keep(&mut batch(&["old"])).unwrap();
        drop(store);
        server(port);
        let (mut store, purpose) = opened(place.path(), port, keys);
        store.ready().unwrap();
        store.check(0.5);
        assert_eq!(sent(&purpose), at_half, "{keys}");
        store.check(0.8);
        assert_eq!(sent(&purpose), at_most, "{keys}");
        store.check(0.49);
        assert_eq!(sent(&purpose), 1, "{keys}");
    }
}

#[test]
fn without_replay_the_secondary_is_a_file_for_readers_and_stays() {
    let place = tempfile::tempdir().unwrap();
    let port = closed_port();
    let keys = "replay_buffer=no\nretry_interval=0\nretry_interval_range=0";
    let mut store = buffered(place.path(), port, keys, "add_newlines=1");
    store.keep(&mut batch(&["kept", "here"])).unwrap();
    server(port);
    store.check(0.0);
    store.keep(&mut batch(&["straight on"])).unwrap();
    store.check(0.0);
    store.close();
    let spool = place.path().join("spool");
    assert_eq!(text(&spool, "web_00000"), b"kept\nhere\n");
}

#[test]
fn the_servers_of_a_list_are_tried_in_random_order_until_one_takes_it() {
    let ((first, to_first), (second, to_second)) = (server(0), server(0));
    let dead = closed_port();
    for _ in 0..40 {
        // The one without a port of its own has that of the list.
        let mut store = store(&format!(
            "type=network\nservice_list=127.0.0.1 {first}, {second}\nlist_default_port={dead}"
        ));
        store.keep(&mut batch(&["x"])).unwrap();
    }
    let (first, second) = (
        to_first.load(Ordering::Relaxed),
        to_second.load(Ordering::Relaxed),
    );
    assert_eq!(first + second, 40);
    // Once in 10¹¹ runs all of them go to one.
    assert!(first > 0 && second > 0, "{first} and {second}");
    let mut none = store(&format!("type=network\nservice_list=127.0.0.1:{dead}"));
    none.keep(&mut batch(&["x"])).unwrap_err();
}
