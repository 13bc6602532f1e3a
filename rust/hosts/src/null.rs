//! The null host: a known reply after a known delay, so that instruments can be held to a truth.
//!
//! One thread over epoll. A reply is due when its service is over, which `law.rs` says; one that is
//! due within a stall, [k·A, k·A + S) since the start for k ≥ 1, leaves at the end of the stall. With
//! `workers` so many requests are served at a time, the others in line, so that the capacity is
//! known, workers / service. The line is of virtual time, reckoned when a request is read: nothing
//! that the host does late moves the replies behind it.
//! A query with a term such as `takes5000us` takes that long in place of `delay_us`, so that classes
//! of queries have known times.
//! A service is waited for and burns nothing, so that two cores serve many clients with exact
//! truth. Waiting is hybrid: asleep until 60 µs before the next is due, then spinning, for a sleeper
//! wakes up late.
//!
//! Longer than most files, because the loop, its clients and its clock only mean something together.

mod kept;
mod law;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::engine::{BatchReply, Refused};
use crate::frame::{self, Buffer, Incoming};
use crate::options::{Kind, Options, Spec};
use crate::signal::Wake;
use kept::Kept;
use law::{Law, Line, Periodic, takes};

/// The parameters; ENGINES.md says what each means.
pub const OPTIONS: &[Spec] = &[
    Spec {
        name: "delay_us",
        kind: Kind::Int(0, 600_000_000),
        default: "0",
    },
    Spec {
        name: "bytes",
        kind: Kind::Int(0, 64 << 20),
        default: "0",
    },
    Spec {
        name: "stall_every_ms",
        kind: Kind::Int(0, 86_400_000),
        default: "0",
    },
    Spec {
        name: "stall_ms",
        kind: Kind::Int(0, 86_400_000),
        default: "0",
    },
    Spec {
        name: "total",
        kind: Kind::Int(0, i64::MAX),
        default: "0",
    },
    Spec {
        name: "workers",
        kind: Kind::Int(0, 65_536),
        default: "0",
    },
    Spec {
        name: "cold_speed",
        kind: Kind::Real(0.01, 1.0),
        default: "1",
    },
    Spec {
        name: "warmup_tau_s",
        kind: Kind::Real(0.0, 86_400.0),
        default: "0",
    },
    Spec {
        name: "drift_per_min",
        kind: Kind::Real(-0.9, 10.0),
        default: "0",
    },
    Spec {
        name: "slow_every_ms",
        kind: Kind::Int(0, 86_400_000),
        default: "0",
    },
    Spec {
        name: "slow_ms",
        kind: Kind::Int(0, 86_400_000),
        default: "0",
    },
    Spec {
        name: "slow_factor",
        kind: Kind::Real(0.01, 100.0),
        default: "1",
    },
    Spec {
        name: "service_sd",
        kind: Kind::Real(0.0, 3.0),
        default: "0",
    },
    Spec {
        name: "speed_sd",
        kind: Kind::Real(0.0, 1.0),
        default: "0",
    },
    Spec {
        name: "publish_ms",
        kind: Kind::Int(0, 86_400_000),
        default: "0",
    },
    Spec {
        name: "lose_every",
        kind: Kind::Int(0, 1_000_000),
        default: "0",
    },
    Spec {
        name: "swap_every",
        kind: Kind::Int(0, 1_000_000),
        default: "0",
    },
    Spec {
        name: "late_every",
        kind: Kind::Int(0, 1_000_000),
        default: "0",
    },
    Spec {
        name: "late_ms",
        kind: Kind::Int(0, 86_400_000),
        default: "0",
    },
    Spec {
        name: "seed",
        kind: Kind::Int(0, i64::MAX),
        default: "0",
    },
];

const SPIN: Duration = Duration::from_micros(60);
const LISTENER: u64 = u64::MAX;
const WAKE: u64 = u64::MAX - 1;
/// A client that does not read its replies is let go.
const MAX_UNSENT_BYTES: usize = 256 << 20;

/// The host.
pub struct Null {
    options: Options,
    stall: Periodic,
    law: Law,
    workers: usize,
    /// The reply to every query, header included, with no time in it yet.
    reply: Vec<u8>,
}

struct Client {
    stream: TcpStream,
    input: Buffer,
    output: Vec<u8>,
    sent: usize,
    /// Replies of this client that wait for their time, and when the last of them may leave.
    held: usize,
    last: Instant,
    /// Tells this client from another that had the same slot before.
    serial: u64,
    wants_write: bool,
}

struct Held {
    slot: usize,
    serial: u64,
    read: Instant,
    /// None: the reply to a query.
    other: Option<Vec<u8>>,
}

/// What one serving has in hand.
struct Server<'n> {
    null: &'n Null,
    line: Line,
    epoll: RawFd,
    start: Instant,
    clients: Vec<Option<Client>>,
    free: Vec<usize>,
    /// By when they leave, and in order of arrival.
    held: BTreeMap<(Instant, u64), Held>,
    arrivals: u64,
    serial: u64,
    kept: Kept,
    started_monotonic_ns: u64,
}

impl Null {
    /// From the options; the error is one sentence.
    pub fn new(options: &Options) -> Result<Null, String> {
        let total = options.int("total");
        let mut payload = format!(
            "{{\"total\":{total},\"hits\":[],\"facets\":{{}},\"groups\":[],\"warnings\":[]}}"
        )
        .into_bytes();
        // White space after a value is JSON still.
        payload.resize(payload.len().max(options.size("bytes")), b' ');
        let mut reply = Vec::new();
        let at = frame::begin(&mut reply);
        reply.extend(payload);
        frame::finish(&mut reply, at, frame::OK, 0);
        Ok(Null {
            options: options.clone(),
            stall: Periodic::new(options, "stall_every_ms", "stall_ms")?,
            law: Law::new(options)?,
            workers: options.size("workers"),
            reply,
        })
    }

    /// When a reply that is due at `due` may leave; both count from the start.
    pub fn leaves(&self, due: Duration) -> Duration {
        self.stall.end(due).unwrap_or(due)
    }

    /// Serves until `wake` is raised.
    pub fn serve(&self, listener: &TcpListener, wake: &Wake) {
        // SAFETY: no pointers are passed. The slack is what the kernel may be late on purpose.
        let epoll = unsafe {
            libc::prctl(libc::PR_SET_TIMERSLACK, 1);
            libc::epoll_create1(libc::EPOLL_CLOEXEC)
        };
        assert!(epoll >= 0, "epoll_create1: {}", io::Error::last_os_error());
        let mut server = Server {
            null: self,
            epoll,
            line: Line::new(self.workers, self.law.clone()),
            start: Instant::now(),
            clients: Vec::new(),
            free: Vec::new(),
            held: BTreeMap::new(),
            arrivals: 0,
            serial: 0,
            kept: Kept::new(&self.options),
            started_monotonic_ns: monotonic_ns(),
        };
        server.watch(
            listener.as_raw_fd(),
            LISTENER,
            libc::EPOLLIN,
            libc::EPOLL_CTL_ADD,
        );
        server.watch(wake.fd(), WAKE, libc::EPOLLIN, libc::EPOLL_CTL_ADD);
        server.run(listener);
        // SAFETY: ours, and not used afterwards.
        unsafe { libc::close(epoll) };
    }
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

impl Server<'_> {
    fn watch(&self, fd: RawFd, token: u64, events: libc::c_int, how: libc::c_int) {
        let mut event = libc::epoll_event {
            events: events as u32,
            u64: token,
        };
        // SAFETY: the structure is valid for the call.
        unsafe { libc::epoll_ctl(self.epoll, how, fd, &mut event) };
    }

    fn run(&mut self, listener: &TcpListener) {
        let mut events = vec![libc::epoll_event { events: 0, u64: 0 }; 256];
        loop {
            self.release();
            let count = self.wait(&mut events);
            for event in &events[..count] {
                let (token, bits) = (event.u64, event.events as libc::c_int);
                match token {
                    WAKE => return,
                    LISTENER => self.accept(listener),
                    slot => {
                        let slot = slot as usize;
                        let written = bits & libc::EPOLLOUT == 0 || self.send(slot).is_ok();
                        let read = bits & !libc::EPOLLOUT == 0 || self.receive(slot).is_ok();
                        if !(written && read) {
                            self.drop_client(slot);
                        }
                    }
                }
            }
        }
    }

    /// Waits for events, but not beyond what is due next.
    fn wait(&self, events: &mut [libc::epoll_event]) -> usize {
        let limit = self.held.first_key_value().map(|((due, _), _)| {
            let left = due
                .saturating_duration_since(Instant::now())
                .saturating_sub(SPIN);
            libc::timespec {
                tv_sec: left.as_secs() as i64,
                tv_nsec: i64::from(left.subsec_nanos()),
            }
        });
        let limit = limit
            .as_ref()
            .map_or(std::ptr::null(), |limit| limit as *const libc::timespec);
        // The system call itself, for glibc has had it only since 2.35.
        // SAFETY: array and time live through the call; no signal mask is given.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.epoll,
                events.as_mut_ptr(),
                events.len() as libc::c_int,
                limit,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        if count >= 0 {
            return count as usize;
        }
        let error = io::Error::last_os_error();
        assert!(
            error.kind() == io::ErrorKind::Interrupted,
            "the null host needs Linux 5.11: {error}"
        );
        0
    }

    /// Sends what is due.
    fn release(&mut self) {
        while let Some(first) = self.held.first_entry() {
            let now = Instant::now();
            if first.key().0 > now {
                return;
            }
            let held = first.remove();
            let Some(client) = self.clients[held.slot]
                .as_mut()
                .filter(|c| c.serial == held.serial)
            else {
                continue;
            };
            client.held -= 1;
            let reply = held.other.as_deref().unwrap_or(&self.null.reply);
            append(&mut client.output, reply, now - held.read);
            if self.send(held.slot).is_err() {
                self.drop_client(held.slot);
            }
        }
    }

    fn accept(&mut self, listener: &TcpListener) {
        while let Ok((stream, _)) = listener.accept() {
            if stream.set_nonblocking(true).is_err() || stream.set_nodelay(true).is_err() {
                continue;
            }
            let slot = self.free.pop().unwrap_or_else(|| {
                self.clients.push(None);
                self.clients.len() - 1
            });
            self.watch(
                stream.as_raw_fd(),
                slot as u64,
                libc::EPOLLIN,
                libc::EPOLL_CTL_ADD,
            );
            self.serial += 1;
            self.clients[slot] = Some(Client {
                stream,
                input: Buffer::default(),
                output: Vec::new(),
                sent: 0,
                held: 0,
                last: self.start,
                serial: self.serial,
                wants_write: false,
            });
        }
    }

    fn drop_client(&mut self, slot: usize) {
        if self.clients[slot].take().is_some() {
            self.free.push(slot);
        }
    }

    fn receive(&mut self, slot: usize) -> io::Result<()> {
        let Some(client) = self.clients[slot].as_mut() else {
            return Ok(());
        };
        let mut stream = &client.stream;
        match client.input.fill(&mut stream) {
            Ok(true) => {}
            Ok(false) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
        let read = Instant::now();
        let null = self.null;
        let mut closing = false;
        while let Some(incoming) = client.input.parse() {
            let (other, due) = match incoming {
                Incoming::Request {
                    verb: frame::QUERY,
                    payload,
                } => {
                    let asked = client.input.payload(payload);
                    let found = self.kept.find(asked, read);
                    let at = read - self.start;
                    let end = match takes(asked) {
                        Some(seconds) => self.line.ends_taking(at, seconds),
                        None => self.line.ends(at),
                    };
                    (
                        found.map(|said| whole(frame::OK, said.to_string().as_bytes())),
                        self.start + null.leaves(end),
                    )
                }
                Incoming::Request { verb, payload } => {
                    let payload = client.input.payload(payload);
                    let made = respond(
                        null,
                        verb,
                        payload,
                        &mut self.kept,
                        read,
                        self.started_monotonic_ns,
                    );
                    (Some(made), read)
                }
                Incoming::Garbage(sentence) => {
                    closing = true;
                    (
                        Some(whole(frame::ERROR, &frame::error_payload(&sentence))),
                        read,
                    )
                }
                Incoming::Closed => unreachable!("parse only says what is in the buffer"),
            };
            if due <= read && client.held == 0 {
                let reply = other.as_deref().unwrap_or(&null.reply);
                append(&mut client.output, reply, read.elapsed());
            } else {
                // Behind what the client waits for already, even if it could be said at once.
                client.last = client.last.max(due);
                client.held += 1;
                self.arrivals += 1;
                let held = Held {
                    slot,
                    serial: client.serial,
                    read,
                    other,
                };
                self.held.insert((client.last, self.arrivals), held);
            }
            if closing {
                break;
            }
        }
        self.send(slot)?;
        if closing {
            Err(io::ErrorKind::InvalidData.into())
        } else {
            Ok(())
        }
    }

    fn send(&mut self, slot: usize) -> io::Result<()> {
        let Some(client) = self.clients[slot].as_mut() else {
            return Ok(());
        };
        let mut stream = &client.stream;
        while client.sent < client.output.len() {
            match stream.write(&client.output[client.sent..]) {
                Ok(count) => client.sent += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        let left = client.output.len() - client.sent;
        if left == 0 {
            client.output.clear();
            client.sent = 0;
        } else if left > MAX_UNSENT_BYTES {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        if client.wants_write != (left > 0) {
            client.wants_write = left > 0;
            let events = if left > 0 {
                libc::EPOLLIN | libc::EPOLLOUT
            } else {
                libc::EPOLLIN
            };
            let fd = client.stream.as_raw_fd();
            self.watch(fd, slot as u64, events, libc::EPOLL_CTL_MOD);
        }
        Ok(())
    }
}

fn append(output: &mut Vec<u8>, reply: &[u8], held: Duration) {
    let at = output.len();
    output.extend_from_slice(reply);
    output[at + 8..at + 16].copy_from_slice(&(held.as_nanos() as u64).to_le_bytes());
}

fn whole(status: u8, payload: &[u8]) -> Vec<u8> {
    let mut reply = Vec::new();
    let at = frame::begin(&mut reply);
    reply.extend_from_slice(payload);
    frame::finish(&mut reply, at, status, 0);
    reply
}

/// Everything but queries: of documents their number is kept, and perhaps some words.
fn respond(
    host: &Null,
    verb: u8,
    payload: &[u8],
    kept: &mut Kept,
    now: Instant,
    started: u64,
) -> Vec<u8> {
    let said = match verb {
        frame::FACTS => json!({
            "engine": "null",
            "version": env!("CARGO_PKG_VERSION"),
            "documents": kept.documents,
            "index_bytes": 0,
            "parameters": host.options.values(OPTIONS),
            "extra": { "started_monotonic_ns": started, "speed": host.law.speed },
        }),
        frame::BATCH | frame::REPLACE | frame::DELETE => {
            let count = kept.write(verb, payload, now);
            json!(BatchReply {
                accepted: count,
                refused: Vec::<Refused>::new()
            })
        }
        frame::ANALYSE => {
            let text = serde_json::from_slice::<serde_json::Value>(payload).unwrap_or_default();
            json!({ "terms": crate::analysis::terms(text["text"].as_str().unwrap_or_default()) })
        }
        _ => json!({}),
    };
    whole(frame::OK, said.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn null(every: &str, stall: &str) -> Result<Null, String> {
        let words = ["--stall_every_ms", every, "--stall_ms", stall].map(String::from);
        Null::new(&Options::parse(&[OPTIONS], &words).unwrap())
    }

    #[test]
    fn what_is_due_in_a_stall_leaves_at_its_end() {
        let null = null("2000", "500").unwrap();
        for (due, leaves) in [
            (0, 0),
            (499, 499),
            (1999, 1999),
            (2000, 2500),
            (2499, 2500),
            (2500, 2500),
            (4001, 4500),
        ] {
            assert_eq!(
                null.leaves(Duration::from_millis(due)),
                Duration::from_millis(leaves),
                "{due}"
            );
        }
    }

    #[test]
    fn a_stall_without_end_is_refused() {
        assert!(
            null("100", "100")
                .err()
                .unwrap()
                .contains("must be shorter")
        );
    }
}
