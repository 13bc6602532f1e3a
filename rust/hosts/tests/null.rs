//! The null host against its own promises; bounds are wide, for a busy machine is late.

mod client;

use std::time::{Duration, Instant};

use client::*;
use serde_json::{Value, json};

fn start(options: &[&str]) -> (Directory, Running) {
    let directory = Directory::new();
    let host = Running::start("null", &directory.0, options);
    (directory, host)
}

#[test]
fn a_reply_is_held_for_its_delay_and_says_how_long() {
    let (_directory, host) = start(&["--delay_us", "2000", "--total", "77", "--bytes", "300"]);
    let mut client = host.client();
    let mut held = Vec::new();
    for _ in 0..100 {
        let start = Instant::now();
        let reply = client.ask(QUERY, b"{}");
        assert!(start.elapsed() >= Duration::from_micros(2000));
        assert_eq!(
            (reply.payload.len(), &reply.json()["total"]),
            (300, &json!(77))
        );
        assert!(reply.host_ns >= 2_000_000, "{}", reply.host_ns);
        held.push(reply.host_ns);
    }
    held.sort_unstable();
    assert!(held[50] < 3_000_000, "median {} ns", held[50]);
}

#[test]
fn replies_due_in_a_stall_leave_at_its_end() {
    let (_directory, host) = start(&[
        "--delay_us",
        "1000",
        "--stall_every_ms",
        "200",
        "--stall_ms",
        "100",
    ]);
    let mut client = host.client();
    let started = client.must(FACTS, &Value::Null)["extra"]["started_monotonic_ns"]
        .as_u64()
        .unwrap();
    let mut long_before_the_first = 0;
    let mut long = 0;
    loop {
        let reply = client.ask(QUERY, b"{}");
        let now = monotonic_ns() - started;
        // One request at a time: in each stall one is due, at its very beginning.
        if reply.host_ns > 80_000_000 {
            long += 1;
            long_before_the_first += u32::from(now < 200_000_000);
        }
        if now > 900_000_000 {
            break;
        }
    }
    assert_eq!((long_before_the_first, long), (0, 4));
}

#[test]
fn workers_serve_so_many_at_a_time_and_the_others_wait_in_line() {
    let (_directory, host) = start(&["--delay_us", "20000", "--workers", "2"]);
    let mut client = host.client();
    client.send(&frame(QUERY, b"{}").repeat(6));
    let held: Vec<u64> = (0..6)
        .map(|_| client.receive().unwrap().host_ns / 1_000_000)
        .collect();
    // Never early, but those that came in a later read waited that much less.
    for (n, ms) in held.iter().enumerate() {
        let rounds = n as u64 / 2 + 1;
        assert!(*ms + 10 >= rounds * 20, "{held:?}");
    }
}

#[test]
fn workers_answer_at_their_capacity_and_never_above_it() {
    let (_directory, host) = start(&["--delay_us", "2000", "--workers", "4"]);
    let mut clients: Vec<Client> = (0..8).map(|_| host.client()).collect();
    let start = Instant::now();
    for client in &mut clients {
        client.send(&frame(QUERY, b"{}").repeat(50));
    }
    for client in &mut clients {
        for _ in 0..50 {
            client.receive().unwrap();
        }
    }
    // 400 requests, 4 at a time, 2 ms each.
    assert!(start.elapsed() >= Duration::from_millis(200));
}

fn monotonic_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the structure is valid.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[test]
fn ingest_is_taken_and_counted_but_nothing_is_kept() {
    let (_directory, host) = start(&[]);
    let mut client = host.client();
    client.must(CREATE, &json!({"fields": []}));
    assert_eq!(
        client.batch(&[json!({"id": "1", "v": {}}), json!({"id": "2", "v": {}})])["accepted"],
        2
    );
    client.settle();
    assert_eq!(client.must(FACTS, &Value::Null)["documents"], 2);
    assert_eq!(
        client.must(ANALYSE, &json!({"text": "A b"})),
        json!({"terms": ["a", "b"]})
    );
}

#[test]
fn many_clients_that_send_ahead_and_leave_are_served_in_order() {
    let (_directory, host) = start(&["--delay_us", "300"]);
    let mut clients: Vec<Client> = (0..50).map(|_| host.client()).collect();
    for client in &mut clients {
        let mut bytes = frame(QUERY, b"{}");
        bytes.extend(frame(FACTS, b""));
        bytes.extend(frame(QUERY, b"{}"));
        client.send(&bytes);
    }
    for client in clients.iter_mut().step_by(2) {
        assert!(client.receive().unwrap().json()["total"] == 0);
        assert!(client.receive().unwrap().json()["engine"] == "null");
        assert!(client.receive().unwrap().json()["total"] == 0);
    }
    drop(clients);
    assert_eq!(host.client().ask(QUERY, b"{}").status, 0);
    let mut garbage = host.client();
    garbage.send(b"GET / HTTP/1.0\r\n\r\n");
    assert_eq!(garbage.receive().unwrap().status, 1);
}

#[test]
fn a_cold_host_is_slower_at_first() {
    let words = "--delay_us 4000 --cold_speed 0.2 --warmup_tau_s 0.1".split(' ');
    let (_directory, host) = start(&words.collect::<Vec<_>>());
    let mut client = host.client();
    let start = Instant::now();
    let mut held = Vec::new();
    while start.elapsed() < Duration::from_millis(900) {
        held.push(client.ask(QUERY, b"{}").host_ns);
    }
    let late = &mut held.clone()[held.len() - 20..];
    late.sort_unstable();
    assert!(held[0] > 2 * late[10], "{} and {}", held[0], late[10]);
    assert!(late.iter().all(|&ns| ns >= 4_000_000));
}

#[test]
fn a_client_that_sends_ahead_gets_its_replies_in_order_whatever_each_takes() {
    let (_directory, host) = start(&["--delay_us", "300", "--service_sd", "2"]);
    let mut quick = host.client();
    let mut client = host.client();
    let mut bytes = frame(QUERY, b"{}").repeat(30);
    bytes.extend(frame(FACTS, b""));
    bytes.extend(frame(QUERY, b"{}").repeat(30));
    client.send(&bytes);
    assert!(quick.must(FACTS, &Value::Null)["extra"]["speed"] == 1.0);
    for n in 0..61 {
        let facts = client.receive().unwrap().json()["engine"] == "null";
        assert_eq!(facts, n == 30, "{n}");
    }
}
