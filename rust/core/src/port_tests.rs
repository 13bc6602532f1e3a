//! Servers without keep-alive: a connection for each request, and local ports do not run out.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use crate::sample::Outcome;
use crate::testing::*;
use crate::{Idle, Options, Sample};

const LAST: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
const UNTIL_END: &[u8] = b"HTTP/1.0 200 OK\r\n\r\nhello";

/// One connection at a time, one request each; `end` is handed the socket after the reply. Cheaper
/// than the server of the other tests, which has a thread for each connection.
fn one_by_one(reply: &'static [u8], end: impl Fn(TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        for socket in listener.incoming() {
            let Ok(mut socket) = socket else { return };
            let mut got = 0;
            while !buffer[..got].ends_with(b"\r\n\r\n") {
                match socket.read(&mut buffer[got..]) {
                    Ok(0) | Err(_) => break,
                    Ok(count) => got += count,
                }
            }
            if got > 0 && socket.write_all(reply).is_ok() {
                end(socket);
            }
        }
    });
    address
}

/// Local addresses that wait out a connection to a port of this number that was ended from this
/// side.
fn waiting(address: SocketAddr) -> HashSet<String> {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let remote = format!(":{:04X}", address.port());
    let waits = |line: &&str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        fields.len() > 3 && fields[2].ends_with(&remote) && fields[3] == "06"
    };
    let local = |line: &str| line.split_ascii_whitespace().nth(1).map(String::from);
    table.lines().filter(waits).filter_map(local).collect()
}

fn one_each(address: SocketAddr, count: u32) -> Vec<Sample> {
    // Another server on this number, before, is not this one.
    let before = waiting(address);
    let trace = drive(Options {
        idle: Idle::Block,
        ..options(address, 1, closed(1, count))
    });
    let samples = samples(&trace);
    assert_eq!(samples.len(), count as usize);
    let bad = samples.iter().find(|s| s.outcome != Outcome::Ok as u8);
    assert_eq!(bad, None);
    assert_eq!(counted(&trace, "reconnects"), i64::from(count) - 1);
    let left = waiting(address);
    assert_eq!(left.difference(&before).count(), 0);
    samples
}

#[test]
fn more_requests_than_ports_go_to_a_server_that_waits_for_us_to_close() {
    let address = one_by_one(LAST, |mut socket| {
        // Ends by whatever way we end.
        let _ = socket.read(&mut [0; 64]);
    });
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
    let ends: Vec<u32> = range
        .split_whitespace()
        .map(|end| end.parse().unwrap())
        .collect();
    let ports = (ends[1] - ends[0] + 1).min(30_000);
    for s in &one_each(address, ports + 500)[1..] {
        assert!(
            s.due <= s.connect && s.connect < s.free && s.free <= s.sent,
            "{s:?}"
        );
        assert!(s.sent < s.first_byte, "{s:?}");
    }
}

#[test]
fn a_server_that_closes_after_each_reply_leaves_no_port_of_ours_waiting() {
    one_each(one_by_one(LAST, drop), 2_000);
    one_each(one_by_one(UNTIL_END, drop), 2_000);
}

#[test]
fn an_open_loop_opens_its_next_connection_before_it_is_due() {
    let address = one_by_one(LAST, drop);
    let trace = drive(options(address, 2, open(100, 2)));
    let samples = samples(&trace);
    let bad = samples.iter().find(|s| s.outcome != Outcome::Ok as u8);
    assert_eq!(bad, None);
    assert_eq!(counted(&trace, "connects"), 2);
}

#[test]
fn a_server_that_takes_one_connection_at_a_time_is_asked_over_the_one_it_took() {
    // It reads from the first that was opened; over another, a request would wait until something
    // falls due for that one.
    let address = one_by_one(LAST, drop);
    let trace = drive(Options {
        timeout_ns: 20_000_000_000,
        ..options(address, 3, open(3, 1_000))
    });
    for s in samples(&trace) {
        assert_eq!(s.outcome, Outcome::Ok as u8, "{s:?}");
        let late_ns = s.done - s.due;
        assert!(late_ns < 900_000_000, "{late_ns} ns: {s:?}");
    }
}

#[test]
fn a_long_request_is_sent_whole_at_once() {
    // Its last piece would wait for the acknowledgement of those before it.
    let mut long = b"GET /".to_vec();
    long.resize(200_000, b'x');
    long.extend_from_slice(b" HTTP/1.1\r\n\r\n");
    let server = serve(|_, socket, request| {
        assert!(request.len() > 200_000);
        say(socket, HELLO)
    });
    let trace = drive_these(
        requests(&[&long]),
        options(server.address, 1, closed(1, 20)),
    );
    assert!(
        samples(&trace)
            .iter()
            .all(|s| s.outcome == Outcome::Ok as u8)
    );
}
