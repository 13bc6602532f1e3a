//! Opening connections: all of them before the clock starts, and again those that are lost.

use std::io;

use crate::conn::{Pending, Phase};
use crate::sample::Outcome;
use crate::sys;
use crate::thread::{WATCHED, Worker};
use crate::wire::{Greeting, Wire};

/// How long opening before the start may take for one connection; then the drive starts without
/// it, and its first request tries again and has the outcome.
const OPENING_NS: i64 = 3_000_000_000;

/// Errors of `connect` or `socket` that are the machine's, not the target's.
fn is_ours(error: &io::Error) -> Option<io::Error> {
    let remedy = match error.raw_os_error()? {
        libc::EADDRNOTAVAIL => {
            "no local port is left for another connection: widen net.ipv4.ip_local_port_range, or \
             let the server keep connections alive"
        }
        libc::EMFILE | libc::ENFILE => {
            "no file descriptor is left for another connection: raise `ulimit -n`"
        }
        libc::ENOBUFS | libc::ENOMEM => "the kernel has no memory left for another connection",
        _ => return None,
    };
    Some(io::Error::new(error.kind(), format!("{remedy} ({error})")))
}

impl<W: Wire> Worker<'_, W> {
    /// Opens all connections, one after another: a server's queue of connections it has not
    /// accepted is often short, and a connection dropped from it comes back only a second later.
    /// The first that cannot be opened ends the attempt at its target. False where it was stopped.
    pub(crate) fn open_all(&mut self) -> io::Result<bool> {
        let clock = self.clock;
        let mut missed = vec![false; self.shared.targets.len()];
        for index in 0..self.conns.len() as u32 {
            let missed = &mut missed[self.conns[index as usize].target as usize];
            if *missed {
                continue;
            }
            self.connect(index);
            let give_up_at = clock.now() + OPENING_NS.min(self.shared.timeouts.wait_ns(0));
            loop {
                if let Some(error) = self.fatal.take() {
                    return Err(error);
                }
                let conn = &self.conns[index as usize];
                let wanted = match conn.phase {
                    Phase::Idle => break,
                    Phase::Down | Phase::Busy => {
                        *missed = true;
                        break;
                    }
                    Phase::Connecting => libc::POLLOUT,
                    Phase::Greeting => libc::POLLIN,
                };
                let left_ms = (give_up_at - clock.now()) / 1_000_000;
                if left_ms <= 0 {
                    self.fail(index, Outcome::TimedOut);
                    *missed = true;
                    break;
                }
                let stop = self.shared.stop.fd();
                if sys::poll_either(conn.fd(), wanted, stop, left_ms as i32)? {
                    match conn.phase {
                        Phase::Connecting => self.on_connect(index),
                        _ => {
                            let mut buffer = std::mem::take(&mut self.buffer);
                            self.on_greeting(index, &mut buffer);
                            self.buffer = buffer;
                        }
                    }
                } else if self.shared.stop.is_raised() {
                    return Ok(false);
                }
            }
        }
        self.forget_opening();
        Ok(true)
    }

    /// Forgets what was noted while opening: the drive begins with a clean slate. The pace does the
    /// same when it starts.
    fn forget_opening(&mut self) {
        self.ready.clear();
        self.counters.pauses = 0;
        self.counters.pause_ns = 0;
        for conn in &mut self.conns {
            conn.pause_ns = 0;
        }
    }

    /// Begins to open the connection; its request, if any, is sent once it is up.
    pub(crate) fn connect(&mut self, index: u32) {
        let began = self.clock.now();
        let shared = self.shared;
        let target = &shared.targets[self.conns[index as usize].target as usize];
        let socket = match sys::socket(target, shared.at_once) {
            Ok(socket) => socket,
            Err(error) => {
                self.fatal = Some(is_ours(&error).unwrap_or(error));
                return;
            }
        };
        let conn = &mut self.conns[index as usize];
        conn.open(socket);
        conn.connect = began;
        let (fd, token) = (conn.fd(), conn.token(index));
        // On loopback the other side has answered when the first call returns, and a second costs
        // less than to be woken for it.
        let not_yet = |error: &io::Error| {
            let code = error.raw_os_error();
            code == Some(libc::EINPROGRESS) || code == Some(libc::EALREADY)
        };
        let mut error = sys::connect(fd, target);
        if error.as_ref().is_some_and(not_yet) {
            error = sys::connect(fd, target);
        }
        let pending = match error {
            None => false,
            Some(error) if not_yet(&error) => true,
            Some(error) => {
                if let Some(ours) = is_ours(&error) {
                    self.fatal = Some(ours);
                }
                return self.refused(index);
            }
        };
        if let Err(error) = self.epoll.add(fd, WATCHED, token) {
            self.fatal = Some(error);
            return;
        }
        let list = match &self.conns[index as usize].job {
            job if job.active => shared.timeouts.list(job.request),
            _ => 0,
        };
        let deadline = began.saturating_add(shared.timeouts.wait_ns(list));
        self.deadlines.put(&mut self.conns, index, list, deadline);
        if !pending {
            self.up(index);
            // Its request goes out now, and not after the next look at what has arrived.
            let conn = &mut self.conns[index as usize];
            if conn.pending == Pending::Send {
                conn.pending = Pending::Nothing;
                self.ready.pop();
                self.send_exchange(index, self.clock.now());
            }
        }
    }

    /// The kernel has news of a pending `connect`.
    pub(crate) fn on_connect(&mut self, index: u32) {
        match sys::connect_result(self.conns[index as usize].fd()) {
            None => self.up(index),
            Some(error) => {
                if let Some(ours) = is_ours(&error) {
                    self.fatal = Some(ours);
                }
                self.refused(index);
            }
        }
    }

    fn refused(&mut self, index: u32) {
        let target = self.conns[index as usize].target;
        self.opened[target as usize].refused_connects += 1;
        self.fail(index, Outcome::Refused);
    }

    /// The socket is connected: the wire has the first word.
    fn up(&mut self, index: u32) {
        let conn = &mut self.conns[index as usize];
        let opened = &mut self.opened[conn.target as usize];
        if conn.was_up {
            opened.reconnects += 1;
        } else {
            opened.connects += 1;
        }
        conn.was_up = true;
        conn.phase = Phase::Greeting;
        let mut out = std::mem::take(&mut conn.greeting);
        let said = match self.shared.tls {
            None => conn.wire.connected(&mut out),
            Some(_) => conn.wire.securing(&mut out),
        };
        self.greeted(index, said, out);
    }

    /// The handshake of TLS: what it has to say is sent; once it is over the wire has the word.
    fn shake(&mut self, index: u32) {
        let conn = &mut self.conns[index as usize];
        let fd = conn.fd();
        let Some(tls) = &mut conn.tls else { return };
        if !tls.say_all(fd) {
            return self.fail(index, Outcome::Reset);
        }
        if tls.is_open() {
            let opened = &mut self.opened[conn.target as usize];
            opened.handshakes += 1;
            opened.resumed += u64::from(tls.resumed());
            self.agreed = self.agreed.take().or_else(|| tls.agreed());
            let mut out = std::mem::take(&mut conn.greeting);
            let said = conn.wire.connected(&mut out);
            self.greeted(index, said, out);
        }
    }

    /// Why a connection ended, if TLS knows; else `outcome`, and `words` where there are any.
    pub(crate) fn torn(&mut self, index: u32, outcome: Outcome, words: Option<String>) {
        let known = self.conns[index as usize].tls.as_mut();
        let (outcome, words) = match known.and_then(|tls| tls.failure()) {
            Some((outcome, words)) => (outcome, Some(words)),
            None => (outcome, words),
        };
        self.greeting_failed = self.greeting_failed.take().or(words);
        self.fail(index, outcome);
    }

    /// Bytes, or the end, arrived during the greeting.
    pub(crate) fn on_greeting(&mut self, index: u32, buffer: &mut [u8]) {
        let conn = &mut self.conns[index as usize];
        let shaking = conn.is_shaking();
        match conn.receive(buffer, &mut self.sealed) {
            Ok((0, _)) => {
                let words = conn
                    .tls
                    .as_ref()
                    .filter(|_| shaking)
                    .map(|tls| tls.hung_up());
                self.torn(index, Outcome::Reset, words);
            }
            // Nobody asked anything yet.
            Ok(_) if shaking => self.fail(index, Outcome::Malformed),
            Ok((count, _)) => {
                let mut out = std::mem::take(&mut conn.greeting);
                let said = conn.wire.greet(&buffer[..count], &mut out);
                self.greeted(index, said, out);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if shaking {
                    self.shake(index);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => {
                let words = conn
                    .tls
                    .as_ref()
                    .filter(|_| shaking)
                    .map(|tls| tls.hung_up());
                self.torn(index, Outcome::Reset, words);
            }
        }
    }

    fn greeted(&mut self, index: u32, said: Greeting, mut out: Vec<u8>) {
        let conn = &mut self.conns[index as usize];
        if !out.is_empty() {
            // A greeting is a few hundred bytes on a socket that has carried nothing: the kernel
            // takes it whole, or the connection is no good.
            let fd = conn.fd();
            let whole = match &mut conn.tls {
                None => sys::send(fd, &out).is_ok_and(|sent| sent == out.len()),
                Some(tls) => tls.put(&out).is_some() && tls.say_all(fd),
            };
            out.clear();
            conn.greeting = out;
            if !whole {
                return self.fail(index, Outcome::Reset);
            }
        }
        match said {
            Greeting::More => {}
            Greeting::Secure => {
                let target = conn.target;
                match self.shared.tls.as_ref().map(|tls| tls.open(target)) {
                    Some(Ok(secure)) => {
                        conn.tls = Some(Box::new(secure));
                        self.shake(index);
                    }
                    failed => {
                        let words = failed.and_then(Result::err);
                        self.torn(index, Outcome::Refused, words);
                    }
                }
            }
            Greeting::Failed(outcome) => {
                if self.greeting_failed.is_none() {
                    self.greeting_failed = conn.wire.complaint().map(String::from);
                }
                self.fail(index, outcome);
            }
            Greeting::Ready => self.now_free(index),
        }
    }

    fn now_free(&mut self, index: u32) {
        self.deadlines.take(&mut self.conns, index);
        let conn = &mut self.conns[index as usize];
        conn.phase = Phase::Idle;
        conn.free = self.clock.now();
        if conn.job.active {
            conn.pending = Pending::Send;
            self.ready.push(index);
        } else {
            self.pace.is_up(index, conn);
        }
    }
}
