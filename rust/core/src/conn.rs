//! The state of one connection, and of the request it carries.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use crate::exchanges::ExchangeTimes;
use crate::kept::Coming;
use crate::plan::Planned;
use crate::sample::{NO_HOST_NS, Outcome, Sample};
use crate::sys;
use crate::tls::Secure;

/// No connection, in the links between connections.
pub const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No socket.
    Down,
    /// `connect` is under way.
    Connecting,
    /// The wire is greeting.
    Greeting,
    /// Can carry an exchange.
    Idle,
    /// An exchange was begun; its reply is awaited.
    Busy,
}

/// What the connection is on the list of things to do for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pending {
    Nothing,
    /// Its client begins its next request.
    Begin,
    /// The next exchange of its request is sent.
    Send,
}

/// The request that a connection carries.
#[derive(Clone)]
pub struct Job {
    pub active: bool,
    pub due: i64,
    pub free: i64,
    pub connect: i64,
    pub sent: i64,
    pub first_byte: i64,
    pub request: u32,
    /// The exchange under way, and the end of the request's exchanges.
    pub exchange: u32,
    pub exchange_end: u32,
    /// Of an operation: where what is timed begins and ends, else all of it.
    pub timed: std::ops::Range<u32>,
    /// It is an operation: it stops at its first failure and goes on with its clean-up.
    pub operation: bool,
    /// When what is timed ended; -1 before that.
    pub done: i64,
    /// Bytes of the arena, or of what TLS made of them, that are still to be handed to the kernel.
    pub at: usize,
    pub end: usize,
    pub bytes: u64,
    /// Bytes of the reply to the exchange under way.
    pub reply_bytes: u64,
    pub host_ns: u64,
    pub outcome: Outcome,
    pub keep: bool,
}

impl Job {
    pub fn none() -> Job {
        Job {
            active: false,
            ..Job::new(0, 0, 0..0, false)
        }
    }

    pub fn new(request: u32, due: i64, exchanges: std::ops::Range<u32>, keep: bool) -> Job {
        Job {
            active: true,
            due,
            free: -1,
            connect: -1,
            sent: -1,
            first_byte: -1,
            request,
            exchange: exchanges.start,
            exchange_end: exchanges.end,
            timed: exchanges,
            operation: false,
            done: -1,
            at: 0,
            end: 0,
            bytes: 0,
            reply_bytes: 0,
            host_ns: NO_HOST_NS,
            outcome: Outcome::Ok,
            keep,
        }
    }

    /// The same request as an operation, where it is one.
    pub fn into_operation(self, timed: Option<std::ops::Range<u32>>) -> Job {
        match timed {
            None => self,
            Some(timed) => Job {
                timed,
                operation: true,
                ..self
            },
        }
    }

    /// Its replies are kept, and the one under way is not of its clean-up.
    pub fn keeps(&self) -> bool {
        self.keep && self.done < 0
    }

    /// The next exchange, once the reply to one is whole: after a failure, the clean-up.
    pub fn goes_on(&mut self, now: i64) {
        self.exchange += 1;
        if self.operation && self.failed() && self.done < 0 {
            self.exchange = self.timed.end;
        }
        if self.exchange >= self.timed.end && self.done < 0 {
            self.done = now;
        }
    }

    /// Its clean-up that is left to be sent, where it began; nothing of other requests.
    pub fn unclean(&self) -> std::ops::Range<u32> {
        if !self.operation || self.sent < 0 {
            return 0..0;
        }
        self.exchange.max(self.timed.end)..self.exchange_end
    }

    /// A part of it was not answered well.
    pub fn failed(&self) -> bool {
        !matches!(self.outcome, Outcome::Ok | Outcome::Partial)
    }

    /// The set-up is over and what is timed begins next.
    pub fn is_set_up(&self) -> bool {
        self.operation && self.exchange == self.timed.start
    }

    /// The exchange under way is one of those that are timed.
    pub fn is_timed(&self) -> bool {
        self.done < 0 && self.timed.contains(&self.exchange)
    }

    /// The exchange under way, which is sent now.
    pub fn sent_now(&self, now: i64) -> ExchangeTimes {
        ExchangeTimes {
            sent: now,
            first_byte: -1,
            done: -1,
            sample: 0,
            exchange: self.exchange - self.timed.start,
        }
    }

    /// So many bytes came of what is timed.
    pub fn got(&mut self, count: usize) {
        if self.done < 0 {
            self.bytes += count as u64;
        }
    }

    /// Nothing was received yet of what is timed. `due`: when that was due.
    pub fn begins(&mut self, due: i64, now: i64) {
        self.due = due;
        self.free = now;
        self.first_byte = -1;
        self.bytes = 0;
        self.host_ns = NO_HOST_NS;
    }

    /// Adds what the engine reported for one exchange; stays below "none" whatever the sum.
    pub fn add_host_ns(&mut self, host_ns: u64) {
        if host_ns == NO_HOST_NS {
            return;
        }
        let sum = if self.host_ns == NO_HOST_NS {
            host_ns
        } else {
            self.host_ns + host_ns
        };
        self.host_ns = sum.min(NO_HOST_NS - 1);
    }

    pub fn sample(&self, connection: u16, outcome: Outcome, done: i64) -> Sample {
        Sample {
            due: self.due,
            free: self.free,
            connect: self.connect,
            sent: self.sent,
            first_byte: self.first_byte,
            done,
            request: self.request,
            bytes: self.bytes.min(u64::from(u32::MAX)) as u32,
            host_low: self.host_ns as u32,
            connection,
            outcome: outcome as u8,
            host_high: (self.host_ns >> 32) as u8,
        }
    }
}

/// One connection, over all the sockets it has in its life.
pub struct Conn<W> {
    socket: Option<OwnedFd>,
    /// TLS, from the moment when it begins on this socket.
    pub tls: Option<Box<Secure>>,
    /// Counts sockets, so that an event of an earlier one is recognised.
    pub generation: u32,
    pub phase: Phase,
    pub pending: Pending,
    pub wire: W,
    pub job: Job,
    /// Clean-up of an operation before, which was never sent: what broke off took its connection
    /// with it. It is sent before anything else is; nobody waits for what it comes to.
    pub owed: std::ops::Range<u32>,
    /// Since when it could carry a request.
    pub free: i64,
    /// When opening it began, until its first request has that; -1 where that was no part of
    /// the drive.
    pub connect: i64,
    /// A whole reply came over this socket.
    pub served: bool,
    /// It was connected before, so the next time is a reconnect.
    pub was_up: bool,
    /// Sending failed: what arrives is still read, then the socket is given up.
    pub broken: bool,
    /// Bytes of a greeting still to be sent.
    pub greeting: Vec<u8>,
    /// What is sent in place of the exchange under way; empty where that is sent as it is.
    pub adapted: Vec<u8>,
    /// Reply bytes of the job that came before the last piece, where they are kept.
    pub kept: Coming,
    /// The job's exchanges so far, where they are asked for; the last is the one under way.
    pub exchanges: Vec<ExchangeTimes>,
    /// When the job (or the connect) is given up, and on which list that is; links of the list.
    pub deadline: i64,
    pub list: u8,
    pub linked: bool,
    pub previous: u32,
    pub next: u32,
    /// Closed loop: the last pause before it was opened again.
    pub pause_ns: i64,
    /// Its number in the samples.
    pub id: u16,
    /// Where it leads, as an index into the targets.
    pub target: u16,
    /// Closed loop: whose it is, of the clients of its thread.
    pub client: u32,
}

impl<W> Conn<W> {
    pub fn new(wire: W, planned: &Planned) -> Conn<W> {
        Conn {
            socket: None,
            tls: None,
            generation: 0,
            phase: Phase::Down,
            pending: Pending::Nothing,
            wire,
            job: Job::none(),
            owed: 0..0,
            free: -1,
            connect: -1,
            served: false,
            was_up: false,
            broken: false,
            greeting: Vec::new(),
            adapted: Vec::new(),
            kept: Coming::default(),
            exchanges: Vec::new(),
            deadline: 0,
            list: 0,
            linked: false,
            previous: NONE,
            next: NONE,
            pause_ns: 0,
            id: planned.id,
            target: planned.target,
            client: planned.client,
        }
    }

    pub fn fd(&self) -> RawFd {
        self.socket.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// What the kernel hands back with each event: which socket of which connection.
    pub fn token(&self, index: u32) -> u64 {
        u64::from(self.generation) << 32 | u64::from(index)
    }

    pub fn open(&mut self, socket: OwnedFd) {
        self.socket = Some(socket);
        self.generation = self.generation.wrapping_add(1);
        self.phase = Phase::Connecting;
        self.served = false;
        self.broken = false;
        self.greeting.clear();
    }

    /// Takes what has arrived, decrypted where it is secured: how many bytes, 0 at the end, and
    /// whether nothing more was there. `sealed`: room for what is to be decrypted.
    #[inline]
    pub fn receive(&mut self, plain: &mut [u8], sealed: &mut [u8]) -> io::Result<(usize, bool)> {
        let fd = self.fd();
        match &mut self.tls {
            None => sys::receive(fd, plain).map(|count| (count, count < plain.len())),
            Some(tls) => tls.receive(fd, plain, sealed),
        }
    }

    /// The exchange under way that has no answer yet, where exchanges are asked for.
    #[inline]
    pub fn under_way(&mut self) -> Option<&mut ExchangeTimes> {
        let last = self.exchanges.last_mut()?;
        (last.first_byte < 0).then_some(last)
    }

    /// The handshake of TLS is under way.
    pub fn is_shaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| !tls.is_open())
    }

    /// The request it carries, which gets no reply. Where it waited for a connection that did not
    /// open in time, it has when opening that began.
    pub fn given_up(&self) -> Job {
        let mut job = self.job.clone();
        if job.sent < 0 {
            job.connect = self.connect;
        }
        job
    }

    pub fn close(&mut self) {
        self.socket = None;
        self.tls = None;
        self.phase = Phase::Down;
        // Whatever was to be sent over it is not sent over the next.
        self.pending = Pending::Nothing;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reported_processing_times_add_up_and_never_read_as_none() {
        let mut job = Job::new(0, 0, 0..1, false);
        job.add_host_ns(NO_HOST_NS);
        assert_eq!(job.host_ns, NO_HOST_NS);
        job.add_host_ns(5);
        job.add_host_ns(6);
        assert_eq!(job.host_ns, 11);
        job.add_host_ns(NO_HOST_NS - 1);
        assert_eq!(job.host_ns, NO_HOST_NS - 1);
    }
}
