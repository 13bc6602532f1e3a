//! A small real server on loopback, for tests: one thread a connection, misbehaving on demand.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::{
    ClosedLoop, Drive, Idle, Load, Marks, OpenLoop, Options, Requests, Sample, Trace, WireKind,
};

/// What the server does with the connection after a request.
pub enum Then {
    Stay,
    Close,
    /// Closes so that the client sees ECONNRESET.
    Abort,
}

pub struct Server {
    pub address: SocketAddr,
    pub accepted: Arc<AtomicUsize>,
}

/// Reads HTTP requests; hands each, with its number over all connections, to `answer`. The
/// threads end with the test process.
pub fn serve(
    answer: impl Fn(usize, &mut TcpStream, &[u8]) -> Then + Send + Sync + 'static,
) -> Server {
    serve_on(TcpListener::bind("127.0.0.1:0").unwrap(), answer)
}

pub fn serve_on(
    listener: TcpListener,
    answer: impl Fn(usize, &mut TcpStream, &[u8]) -> Then + Send + Sync + 'static,
) -> Server {
    let address = listener.local_addr().unwrap();
    let accepted = Arc::new(AtomicUsize::new(0));
    let (answer, number, count) = (
        Arc::new(answer),
        Arc::new(AtomicUsize::new(0)),
        accepted.clone(),
    );
    thread::spawn(move || {
        for socket in listener.incoming() {
            let Ok(socket) = socket else { return };
            socket.set_nodelay(true).unwrap();
            count.fetch_add(1, Ordering::SeqCst);
            let (answer, number) = (answer.clone(), number.clone());
            thread::spawn(move || converse(socket, &*answer, &number));
        }
    });
    Server { address, accepted }
}

fn converse(
    mut socket: TcpStream,
    answer: &dyn Fn(usize, &mut TcpStream, &[u8]) -> Then,
    number: &AtomicUsize,
) {
    let mut got: Vec<u8> = Vec::new();
    let mut searched = 0;
    let mut buffer = [0; 64 << 10];
    loop {
        let mut rest = got[searched..].windows(4);
        let end = rest.position(|four| four == b"\r\n\r\n");
        if let Some(end) = end {
            let request: Vec<u8> = got.drain(..searched + end + 4).collect();
            searched = 0;
            match answer(number.fetch_add(1, Ordering::SeqCst), &mut socket, &request) {
                Then::Stay => continue,
                Then::Close => return,
                Then::Abort => return abort(&socket),
            }
        }
        searched = got.len().saturating_sub(3);
        match socket.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(count) => got.extend_from_slice(&buffer[..count]),
        }
    }
}

fn abort(socket: &TcpStream) {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    // SAFETY: the option lives through the call and its size is given.
    unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            size_of::<libc::linger>() as libc::socklen_t,
        );
    }
}

pub const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
pub const GET: &[u8] = b"GET / HTTP/1.1\r\n\r\n";

pub fn say(socket: &mut TcpStream, bytes: &[u8]) -> Then {
    match socket.write_all(bytes) {
        Ok(()) => Then::Stay,
        Err(_) => Then::Close,
    }
}

/// A port that nobody listens on.
pub fn dead() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
}

/// Requests of one exchange each.
pub fn requests(each: &[&[u8]]) -> Arc<Requests> {
    let mut ends = Vec::new();
    let mut arena = Vec::new();
    for bytes in each {
        arena.extend_from_slice(bytes);
        ends.push(arena.len() as u64);
    }
    let request_ends = (1..=each.len() as u32).collect();
    Arc::new(Requests::new(arena, ends, request_ends).unwrap())
}

/// Clients that send request 0, `each` times, one after another without thinking.
pub fn closed(clients: usize, each: u32) -> Load {
    Load::Closed(ClosedLoop {
        sequence: vec![0; clients * each as usize],
        starts: (0..=clients as u32).map(|client| client * each).collect(),
        think_ns: 0,
        repeat: false,
        stop_after: None,
    })
}

/// Request 0, `count` times, `every_ms` apart.
pub fn open(count: usize, every_ms: i64) -> Load {
    Load::Open(OpenLoop {
        sequence: vec![0; count],
        due_ns: (0..count as i64)
            .map(|slot| slot * every_ms * 1_000_000)
            .collect(),
    })
}

pub fn options(target: SocketAddr, connections: usize, load: Load) -> Options {
    Options {
        targets: vec![target],
        request_targets: None,
        wire: WireKind::Http(Marks::default()),
        prelude: Vec::new(),
        tls: None,
        load,
        connections,
        stop_ns: None,
        timeout_ns: 5_000_000_000,
        request_timeouts_ns: None,
        capture_every: 0,
        exchange_times: false,
        cpus: Vec::new(),
        idle: Idle::Hybrid,
        realtime: false,
        start_unix_ns: None,
        spill: None,
        spill_after_bytes: 0,
    }
}

pub fn drive(options: Options) -> Trace {
    drive_these(requests(&[GET]), options)
}

pub fn drive_these(requests: Arc<Requests>, options: Options) -> Trace {
    Drive::start(requests, options).unwrap().finish().unwrap()
}

pub fn samples(trace: &Trace) -> Vec<Sample> {
    (0..trace.len()).map(|index| trace.sample(index)).collect()
}

/// A whole number in the accounting.
pub fn counted(trace: &Trace, name: &str) -> i64 {
    let account = serde_json::to_value(trace.accounting()).unwrap();
    account[name].as_i64().expect("it is counted")
}

pub fn sleep_ms(ms: u64) {
    thread::sleep(Duration::from_millis(ms));
}
