//! The server of the framed protocol: a blocking thread a connection, over any `Engine`.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::engine::{Engine, Session};
use crate::failure::Failure;
use crate::frame::{self, Buffer, Incoming};
use crate::query::Query;
use crate::schema::Schema;
use crate::signal::Wake;

/// Replies are kept back while requests sent ahead are waiting, but never more than this.
const FLUSH_BYTES: usize = 256 << 10;

/// Connections and what they are doing.
struct Shared {
    engine: Arc<dyn Engine>,
    stopping: AtomicBool,
    /// Requests being handled now.
    busy: AtomicUsize,
    next: AtomicU64,
    open: Mutex<HashMap<u64, Arc<TcpStream>>>,
}

/// Serves until `wake` is raised, then lets requests in hand end for up to half a second.
pub fn serve(listener: &TcpListener, engine: Arc<dyn Engine>, wake: &Wake) {
    let shared = Arc::new(Shared {
        engine,
        stopping: AtomicBool::new(false),
        busy: AtomicUsize::new(0),
        next: AtomicU64::new(0),
        open: Mutex::default(),
    });
    while wake.wait_or_readable(listener.as_raw_fd()) {
        match listener.accept() {
            Ok((stream, _)) => accept(&shared, stream),
            // Out of descriptors, or the client has gone already: the others go on.
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
    }
    shared.stopping.store(true, Ordering::SeqCst);
    let until = Instant::now() + Duration::from_millis(500);
    while shared.busy.load(Ordering::SeqCst) > 0 && Instant::now() < until {
        thread::sleep(Duration::from_millis(1));
    }
    for stream in shared.open.lock().expect("no panic while held").values() {
        let _ = stream.shutdown(Shutdown::Both);
    }
}

fn accept(shared: &Arc<Shared>, stream: TcpStream) {
    // A small reply must leave at once, not when the peer has acknowledged the one before.
    let _ = stream.set_nodelay(true);
    let _ = stream.set_nonblocking(false);
    let stream = Arc::new(stream);
    let key = shared.next.fetch_add(1, Ordering::Relaxed);
    shared
        .open
        .lock()
        .expect("no panic while held")
        .insert(key, Arc::clone(&stream));
    let inside = Arc::clone(shared);
    let spawned = thread::Builder::new()
        .name("connection".into())
        .spawn(move || {
            // A client that goes away, even within a request, ends its own thread and nothing else.
            let _ = converse(&inside, &stream);
            inside
                .open
                .lock()
                .expect("no panic while held")
                .remove(&key);
        });
    if spawned.is_err() {
        shared
            .open
            .lock()
            .expect("no panic while held")
            .remove(&key);
    }
}

fn converse(shared: &Shared, mut stream: &TcpStream) -> io::Result<()> {
    let mut session = Arc::clone(&shared.engine).session();
    let mut buffer = Buffer::default();
    let mut out = Vec::with_capacity(FLUSH_BYTES / 4);
    loop {
        let incoming = match buffer.parse() {
            Some(incoming) => incoming,
            None => {
                if !out.is_empty() {
                    stream.write_all(&out)?;
                    out.clear();
                }
                buffer.next(&mut stream)?
            }
        };
        // For a request sent ahead this is when its turn has come.
        let start = Instant::now();
        let at = frame::begin(&mut out);
        match incoming {
            Incoming::Closed => return Ok(()),
            Incoming::Garbage(sentence) => {
                out.extend(frame::error_payload(&sentence));
                frame::finish(&mut out, at, frame::ERROR, elapsed_ns(start));
                stream.write_all(&out)?;
                return close_after_reply(stream);
            }
            Incoming::Request { verb, payload } => {
                shared.busy.fetch_add(1, Ordering::SeqCst);
                if shared.stopping.load(Ordering::SeqCst) {
                    shared.busy.fetch_sub(1, Ordering::SeqCst);
                    return Ok(());
                }
                let payload = buffer.payload(payload);
                let status = answer(&*shared.engine, &mut *session, verb, payload, &mut out, at);
                frame::finish(&mut out, at, status, elapsed_ns(start));
                shared.busy.fetch_sub(1, Ordering::SeqCst);
            }
        }
        if out.len() >= FLUSH_BYTES {
            stream.write_all(&out)?;
            out.clear();
            out.shrink_to(FLUSH_BYTES);
        }
    }
}

fn elapsed_ns(start: Instant) -> u64 {
    start.elapsed().as_nanos() as u64
}

/// Closing with unread bytes would reset the connection and take the reply with it, so what was
/// still under way is read and thrown away first, for a while.
fn close_after_reply(mut stream: &TcpStream) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    stream.set_read_timeout(Some(Duration::from_millis(200)))?;
    let until = Instant::now() + Duration::from_secs(1);
    let mut waste = [0; 16 << 10];
    while Instant::now() < until && stream.read(&mut waste)? > 0 {}
    Ok(())
}

/// Appends the payload of the reply after the header at `at`; the status.
fn answer(
    engine: &dyn Engine,
    session: &mut dyn Session,
    verb: u8,
    payload: &[u8],
    out: &mut Vec<u8>,
    at: usize,
) -> u8 {
    let done = catch_unwind(AssertUnwindSafe(|| {
        act(engine, session, verb, payload, out)
    }));
    let failure = match done {
        Ok(Ok(())) => return frame::OK,
        Ok(Err(failure)) => failure,
        Err(panic) => {
            let said = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied());
            Failure::Error(format!(
                "the host panicked: {}",
                said.unwrap_or("no reason given")
            ))
        }
    };
    out.truncate(at + frame::REPLY_HEADER_BYTES);
    let (status, sentence) = match failure {
        Failure::Error(sentence) => (frame::ERROR, sentence),
        Failure::Unsupported(sentence) => (frame::UNSUPPORTED, sentence),
    };
    out.extend(frame::error_payload(&sentence));
    status
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    text: String,
}

fn act(
    engine: &dyn Engine,
    session: &mut dyn Session,
    verb: u8,
    payload: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), Failure> {
    match verb {
        frame::QUERY => {
            let query: Query = json(payload, "query")?;
            return session.query(&query, out);
        }
        frame::BATCH | frame::REPLACE | frame::DELETE => {
            let reply = match verb {
                frame::BATCH => engine.batch(payload)?,
                frame::REPLACE => engine.replace(payload)?,
                _ => engine.delete(payload)?,
            };
            out.extend(serde_json::to_vec(&reply).expect("memory takes any JSON"));
            return Ok(());
        }
        frame::FACTS => out.extend(engine.facts()?.to_string().into_bytes()),
        frame::ANALYSE => {
            let Text { text } = json(payload, "analyse")?;
            let terms = engine.analyse(&text)?;
            out.extend(
                serde_json::json!({ "terms": terms })
                    .to_string()
                    .into_bytes(),
            );
        }
        frame::CREATE => {
            let schema: Schema = json(payload, "create")?;
            schema.check().map_err(Failure::Error)?;
            engine.create(schema)?;
            out.extend_from_slice(b"{}");
        }
        frame::SETTLE => {
            engine.settle()?;
            out.extend_from_slice(b"{}");
        }
        frame::COMMIT => {
            engine.commit()?;
            out.extend_from_slice(b"{}");
        }
        other => return Err(Failure::Error(format!("there is no verb {other}"))),
    }
    Ok(())
}

/// The JSON payload of a request.
pub fn json<'a, T: Deserialize<'a>>(payload: &'a [u8], verb: &str) -> Result<T, Failure> {
    serde_json::from_slice(payload).map_err(|error| {
        Failure::Error(format!(
            "the payload of {verb} is not as FORMATS.md says: {error}"
        ))
    })
}
