//! A client for the bench: connections that send one batch after another, and count what was
//! acknowledged.
//!
//!     load PORT CONNECTIONS BATCH BYTES SECONDS [CALLS]
//!
//! CALLS is how many calls of a connection are on their way at one time. Prints the messages that
//! were answered with OK, those answered with TRY_LATER, and the seconds that it took.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use searchbench_collect::scribe::{Answer, put_log, read_log_answer};

static OK: AtomicU64 = AtomicU64::new(0);
static LATER: AtomicU64 = AtomicU64::new(0);

fn main() {
    raise_descriptor_limit();
    let given: Vec<u64> = std::env::args()
        .skip(1)
        .map(|text| text.parse().expect("a number"))
        .collect();
    let [port, connections, batch, bytes, seconds, ..] = given[..] else {
        panic!("load PORT CONNECTIONS BATCH BYTES SECONDS [CALLS]");
    };
    let calls = given.get(5).copied().unwrap_or(1);
    let message = vec![b'x'; bytes as usize];
    let mut frame = Vec::new();
    put_log(
        &mut frame,
        1,
        (0..batch as usize).map(|_| (&b"load"[..], message.as_slice())),
    );

    // One thread has many connections, so that ten thousand need no ten thousand threads.
    let threads = connections.min(8);
    let all_connected = Barrier::new(threads as usize);
    let slowest = thread::scope(|scope| {
        let start = |number: u64| {
            let mine = connections / threads + u64::from(number < connections % threads);
            let (frame, all_connected) = (&frame, &all_connected);
            scope.spawn(move || {
                let mut all: Vec<_> = (0..mine).map(|_| connect(port as u16)).collect();
                all_connected.wait();
                let began = Instant::now();
                while began.elapsed() < Duration::from_secs(seconds) {
                    turn(&mut all, frame, calls, batch);
                }
                began.elapsed()
            })
        };
        let running: Vec<_> = (0..threads).map(start).collect();
        let each = running
            .into_iter()
            .map(|thread| thread.join().expect("a thread that ends"));
        each.max().expect("at least one thread")
    });
    let (ok, later) = (OK.load(Ordering::Relaxed), LATER.load(Ordering::Relaxed));
    println!("{ok} {later} {}", slowest.as_secs_f64());
}

fn connect(port: u16) -> BufReader<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("a server");
    stream.set_nodelay(true).expect("a socket");
    // An answer has 26 bytes: ten thousand connections need no more.
    BufReader::with_capacity(256, stream)
}

/// Some calls over each connection, and their answers.
fn turn(all: &mut [BufReader<TcpStream>], frame: &[u8], calls: u64, batch: u64) {
    for stream in &mut *all {
        for _ in 0..calls {
            stream
                .get_mut()
                .write_all(frame)
                .expect("a server that reads");
        }
    }
    for stream in all {
        for _ in 0..calls {
            count(stream, batch);
        }
    }
}

fn count(stream: &mut BufReader<TcpStream>, batch: u64) {
    let mut length = [0; 4];
    stream.read_exact(&mut length).expect("an answer");
    let mut answer = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut answer).expect("an answer");
    let counter = match read_log_answer(&answer).expect("an answer to Log") {
        Answer::Ok => &OK,
        Answer::TryLater => &LATER,
    };
    counter.fetch_add(batch, Ordering::Relaxed);
}

fn raise_descriptor_limit() {
    // SAFETY: the structure is valid and only ours.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        limit.rlim_cur = limit.rlim_max;
        libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
    }
}
