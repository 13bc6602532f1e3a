//! A bare server for benchmarks and for testing the instrument: its truth is known beforehand.
//!
//!     responder [--port P] [--bytes N] [--delay-us D] [--stall-every-ms A --stall-ms B]
//!               [--cpu C] [--frames] [--spin] [--keep-alive] [--close] [--arrivals FILE]
//!
//! Answers every request with the same reply of N bytes, D microseconds after it was read, over
//! HTTP/1.1 or, with `--frames`, over the framed protocol. With `--close` it says so in the reply
//! and closes the connection after it, as a server without keep-alive does. One thread, epoll; with
//! a delay it blocks until 60 us before the next reply is due and then spins, so that the delay is true to
//! about ten microseconds where it has a core to itself. With a stall, no reply leaves during
//! [k A, k A + B) milliseconds after the start, k = 1, 2, ..; those due then leave at its end.
//! With `--spin` it never sleeps, so that nothing waits for it to wake; with `--arrivals` it notes
//! when it read each request, and at its end writes these instants to FILE: CLOCK_MONOTONIC in
//! nanoseconds, u64, little-endian, in the order read. With `--keep-alive` each reply says so in a
//! header: a connection stays open anyway, but ab believes it of no server that does not say it.
//! Prints `listening on 127.0.0.1:P`, and ends with exit code 0 on SIGTERM.
//!
//! Longer than most files: an example is one file, and shares nothing with what it measures.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

static ENDED: AtomicBool = AtomicBool::new(false);

const LEAD_NS: i64 = 60_000;
const LISTENER: u64 = u64::MAX;

struct Asked {
    port: u16,
    bytes: usize,
    delay_ns: i64,
    stall_every_ns: i64,
    stall_ns: i64,
    cpu: Option<usize>,
    frames: bool,
    spin: bool,
    keep_alive: bool,
    arrivals: Option<PathBuf>,
    close: bool,
}

fn asked() -> Result<Asked, String> {
    let mut asked = Asked {
        port: 0,
        bytes: 100,
        delay_ns: 0,
        stall_every_ns: 0,
        stall_ns: 0,
        cpu: None,
        frames: false,
        spin: false,
        keep_alive: false,
        arrivals: None,
        close: false,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--frames" => {
                asked.frames = true;
                continue;
            }
            "--spin" => {
                asked.spin = true;
                continue;
            }
            "--close" => {
                asked.close = true;
                continue;
            }
            "--keep-alive" => {
                asked.keep_alive = true;
                continue;
            }
            "--arrivals" => {
                let path = words.next().ok_or("--arrivals needs the name of a file")?;
                asked.arrivals = Some(path.into());
                continue;
            }
            _ => {}
        }
        let value: u32 = words
            .next()
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| format!("{word} needs a whole number"))?;
        match word.as_str() {
            "--port" => asked.port = value.try_into().map_err(|_| "--port is above 65535")?,
            "--bytes" => asked.bytes = value as usize,
            "--delay-us" => asked.delay_ns = i64::from(value) * 1_000,
            "--stall-every-ms" => asked.stall_every_ns = i64::from(value) * 1_000_000,
            "--stall-ms" => asked.stall_ns = i64::from(value) * 1_000_000,
            "--cpu" => asked.cpu = Some(value as usize),
            _ => return Err(format!("{word} is not an option of the responder")),
        }
    }
    if asked.stall_ns > 0 && asked.stall_every_ns <= asked.stall_ns {
        return Err("--stall-every-ms must be above --stall-ms".into());
    }
    Ok(asked)
}

impl Asked {
    fn reply(&self) -> Vec<u8> {
        let mut reply = if self.frames {
            let mut header = (self.bytes as u32).to_le_bytes().to_vec();
            header.extend([0; 4]);
            header.extend((self.delay_ns as u64).to_le_bytes());
            header
        } else {
            let stays = if self.keep_alive {
                "Connection: keep-alive\r\n"
            } else if self.close {
                "Connection: close\r\n"
            } else {
                ""
            };
            format!(
                "HTTP/1.1 200 OK\r\n{stays}Content-Length: {}\r\n\r\n",
                self.bytes
            )
            .into_bytes()
        };
        reply.resize(reply.len() + self.bytes, b'x');
        reply
    }

    /// When a reply to a request read at `now` leaves.
    fn due(&self, now: i64) -> i64 {
        let due = now + self.delay_ns;
        if self.stall_ns == 0 || due < self.stall_every_ns {
            return due;
        }
        let into = due % self.stall_every_ns;
        if into < self.stall_ns {
            due - into + self.stall_ns
        } else {
            due
        }
    }

    /// The length of the first request in `bytes`, once it is whole.
    fn request_length(&self, bytes: &[u8]) -> Option<usize> {
        let whole = if self.frames {
            8 + u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?) as usize
        } else {
            let head = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
            let text = std::str::from_utf8(&bytes[..head]).unwrap_or_default();
            let length = text.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length")
                    .then(|| value.trim().parse().ok())?
            });
            head + length.unwrap_or(0)
        };
        (bytes.len() >= whole).then_some(whole)
    }
}

struct Client {
    socket: TcpStream,
    got: Vec<u8>,
    /// Bytes of replies that the kernel has not taken.
    unsent: Vec<u8>,
}

struct Server {
    asked: Asked,
    reply: Vec<u8>,
    epoll: i32,
    listener: TcpListener,
    clients: Vec<Option<Client>>,
    generations: Vec<u32>,
    due: BinaryHeap<Reverse<(i64, u64, u32, u32)>>,
    order: u64,
    start: Instant,
    buffer: Vec<u8>,
    /// When each request was read, where that is asked for.
    arrivals: Vec<u64>,
}

fn control(epoll: i32, what: i32, fd: i32, events: i32, token: u64) -> io::Result<()> {
    let mut event = libc::epoll_event {
        events: events as u32,
        u64: token,
    };
    // SAFETY: the event lives through the call.
    match unsafe { libc::epoll_ctl(epoll, what, fd, &mut event) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The clock that other processes of this machine read too.
fn monotonic_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes the timespec, which lives through the call.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

impl Server {
    fn now(&self) -> i64 {
        self.start.elapsed().as_nanos() as i64
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            let socket = match self.listener.accept() {
                Ok((socket, _)) => socket,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            socket.set_nonblocking(true)?;
            socket.set_nodelay(true)?;
            let slot = self
                .clients
                .iter()
                .position(Option::is_none)
                .unwrap_or_else(|| {
                    self.clients.push(None);
                    self.generations.push(0);
                    self.clients.len() - 1
                });
            self.generations[slot] += 1;
            control(
                self.epoll,
                libc::EPOLL_CTL_ADD,
                socket.as_raw_fd(),
                libc::EPOLLIN,
                slot as u64,
            )?;
            self.clients[slot] = Some(Client {
                socket,
                got: Vec::new(),
                unsent: Vec::new(),
            });
        }
    }

    fn read(&mut self, slot: usize) {
        let Some(client) = &mut self.clients[slot] else {
            return;
        };
        let count = match client.socket.read(&mut self.buffer) {
            Ok(0) => {
                self.clients[slot] = None;
                return;
            }
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(_) => {
                self.clients[slot] = None;
                return;
            }
        };
        // A request in one piece, as nearly all are, is not copied.
        let piece = &self.buffer[..count];
        let mut asked = 0;
        if client.got.is_empty() {
            let mut at = 0;
            while let Some(length) = self.asked.request_length(&piece[at..]) {
                asked += 1;
                at += length;
                if at == count {
                    break;
                }
            }
            client.got.extend_from_slice(&piece[at..]);
        } else {
            client.got.extend_from_slice(piece);
            while let Some(length) = self.asked.request_length(&client.got) {
                client.got.drain(..length);
                asked += 1;
            }
        }
        if asked > 0 && self.asked.arrivals.is_some() {
            let read = monotonic_ns();
            self.arrivals.extend((0..asked).map(|_| read));
        }
        for _ in 0..asked {
            let now = self.now();
            let due = self.asked.due(now);
            if due <= now {
                self.answer(slot);
            } else {
                self.order += 1;
                let generation = self.generations[slot];
                self.due
                    .push(Reverse((due, self.order, slot as u32, generation)));
            }
        }
    }

    fn answer(&mut self, slot: usize) {
        let Some(client) = &mut self.clients[slot] else {
            return;
        };
        let sent = if client.unsent.is_empty() {
            match client.socket.write(&self.reply) {
                Ok(sent) => sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                Err(_) => {
                    self.clients[slot] = None;
                    return;
                }
            }
        } else {
            0
        };
        if sent < self.reply.len() {
            client.unsent.extend_from_slice(&self.reply[sent..]);
            self.watch_writing(slot, true);
        } else if self.asked.close {
            self.clients[slot] = None;
        }
    }

    fn write_rest(&mut self, slot: usize) {
        let Some(client) = &mut self.clients[slot] else {
            return;
        };
        match client.socket.write(&client.unsent) {
            Ok(sent) => {
                client.unsent.drain(..sent);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => {
                self.clients[slot] = None;
                return;
            }
        }
        if client.unsent.is_empty() {
            if self.asked.close {
                self.clients[slot] = None;
            } else {
                self.watch_writing(slot, false);
            }
        }
    }

    fn watch_writing(&mut self, slot: usize, writing: bool) {
        let Some(client) = &self.clients[slot] else {
            return;
        };
        let events = libc::EPOLLIN | if writing { libc::EPOLLOUT } else { 0 };
        let fd = client.socket.as_raw_fd();
        if control(self.epoll, libc::EPOLL_CTL_MOD, fd, events, slot as u64).is_err() {
            self.clients[slot] = None;
        }
    }

    fn answer_due(&mut self) {
        while let Some(&Reverse((due, _, slot, generation))) = self.due.peek() {
            if due > self.now() {
                return;
            }
            self.due.pop();
            if self.generations[slot as usize] == generation {
                self.answer(slot as usize);
            }
        }
    }

    fn serve(&mut self) -> io::Result<()> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 256];
        while !ENDED.load(Ordering::Relaxed) {
            let timeout_ns = match self.due.peek() {
                _ if self.asked.spin => 0,
                // SIGTERM interrupts the wait; the second covers one that came just before it.
                None => 1_000_000_000,
                Some(Reverse((due, ..))) => (due - self.now() - LEAD_NS).max(0),
            };
            let timeout = libc::timespec {
                tv_sec: timeout_ns / 1_000_000_000,
                tv_nsec: timeout_ns % 1_000_000_000,
            };
            // SAFETY: at most as many events are written as there is room for.
            let count = unsafe {
                libc::syscall(
                    libc::SYS_epoll_pwait2,
                    self.epoll,
                    events.as_mut_ptr(),
                    events.len(),
                    &raw const timeout,
                    std::ptr::null::<libc::sigset_t>(),
                    0usize,
                )
            };
            for event in &events[..count.max(0) as usize] {
                let (flags, token) = (event.events, event.u64);
                if token == LISTENER {
                    self.accept()?;
                    continue;
                }
                if flags & libc::EPOLLOUT as u32 != 0 {
                    self.write_rest(token as usize);
                }
                if flags & !(libc::EPOLLOUT as u32) != 0 {
                    self.read(token as usize);
                }
            }
            self.answer_due();
        }
        if let Some(path) = &self.asked.arrivals {
            let bytes: Vec<u8> = self
                .arrivals
                .iter()
                .flat_map(|at| at.to_le_bytes())
                .collect();
            std::fs::write(path, bytes)?;
        }
        Ok(())
    }
}

extern "C" fn ended(_signal: libc::c_int) {
    ENDED.store(true, Ordering::Relaxed);
}

fn run(asked: Asked) -> io::Result<()> {
    let handler = ended as extern "C" fn(libc::c_int);
    // SAFETY: the handler only stores to an atomic; no SA_RESTART, so that it ends the wait.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as libc::sighandler_t;
        libc::sigaction(libc::SIGTERM, &action, std::ptr::null_mut());
        libc::sigaction(libc::SIGINT, &action, std::ptr::null_mut());
        libc::prctl(libc::PR_SET_TIMERSLACK, 1usize, 0, 0, 0);
    }
    if let Some(cpu) = asked.cpu {
        // SAFETY: an all-zero set is valid, and the number is checked against its size.
        let pinned = unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(cpu.min(8 * size_of::<libc::cpu_set_t>() - 1), &mut set);
            libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
        };
        if pinned != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    let listener = TcpListener::bind(("127.0.0.1", asked.port))?;
    // The standard library's queue of 128 is short for a thousand connections at once.
    // SAFETY: a plain call on an open socket.
    unsafe { libc::listen(listener.as_raw_fd(), 4096) };
    listener.set_nonblocking(true)?;
    // SAFETY: a plain call.
    let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    if epoll < 0 {
        return Err(io::Error::last_os_error());
    }
    control(
        epoll,
        libc::EPOLL_CTL_ADD,
        listener.as_raw_fd(),
        libc::EPOLLIN,
        LISTENER,
    )?;
    println!("listening on {}", listener.local_addr()?);
    io::stdout().flush()?;
    let notes = asked.arrivals.is_some();
    let mut server = Server {
        reply: asked.reply(),
        asked,
        epoll,
        listener,
        clients: Vec::new(),
        generations: Vec::new(),
        due: BinaryHeap::new(),
        order: 0,
        start: Instant::now(),
        buffer: vec![0; 256 << 10],
        // Room for a run of half an hour at 1,000/s: growing takes time from what is noted.
        arrivals: Vec::with_capacity(if notes { 2 << 20 } else { 0 }),
    };
    server.serve()
}

fn main() {
    let outcome = asked().map_err(|message| (2, message));
    let outcome = outcome.and_then(|asked| run(asked).map_err(|error| (1, error.to_string())));
    if let Err((code, message)) = outcome {
        eprintln!("responder: {message}");
        std::process::exit(code);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(frames: bool) -> Asked {
        Asked {
            port: 0,
            bytes: 3,
            delay_ns: 5,
            stall_every_ns: 2_000,
            stall_ns: 500,
            cpu: None,
            frames,
            spin: false,
            keep_alive: false,
            arrivals: None,
            close: false,
        }
    }

    #[test]
    fn a_reply_due_during_a_stall_leaves_at_its_end() {
        let asked = asked(false);
        assert_eq!(asked.due(100), 105, "there is no stall at the start");
        assert_eq!(asked.due(1_994), 1_999);
        assert_eq!(asked.due(1_995), 2_500);
        assert_eq!(asked.due(2_494), 2_500);
        assert_eq!(asked.due(2_495), 2_500);
        assert_eq!(asked.due(2_496), 2_501);
        assert_eq!(asked.due(4_100), 4_500);
    }

    #[test]
    fn requests_are_told_apart_however_they_are_joined() {
        let http = asked(false);
        let post = b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nokGET";
        assert_eq!(http.request_length(post), Some(post.len() - 3));
        assert_eq!(http.request_length(&post[..post.len() - 4]), None);
        assert_eq!(http.request_length(b"GET / HTTP/1.1\r\n\r\n"), Some(18));
        let frames = asked(true);
        assert_eq!(
            frames.request_length(&[2, 0, 0, 0, 5, 0, 0, 0, b'{', b'}', 1]),
            Some(10)
        );
        assert_eq!(frames.request_length(&[2, 0, 0, 0, 5, 0, 0, 0, b'{']), None);
        assert_eq!(frames.request_length(&[2, 0]), None);
    }

    #[test]
    fn the_reply_has_the_bytes_asked_for() {
        assert!(
            asked(false)
                .reply()
                .ends_with(b"Content-Length: 3\r\n\r\nxxx")
        );
        let stays = Asked {
            keep_alive: true,
            ..asked(false)
        };
        let head = String::from_utf8(stays.reply()).unwrap();
        assert!(head.contains("\r\nConnection: keep-alive\r\n"));
        let mut closing = asked(false);
        closing.close = true;
        assert!(
            closing
                .reply()
                .starts_with(b"HTTP/1.1 200 OK\r\nConnection: close\r\n")
        );
        let frame = asked(true).reply();
        assert_eq!((frame.len(), frame[0], frame[8]), (19, 3, 5));
    }
}
