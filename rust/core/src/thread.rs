//! One thread's loop: read everything that is ready, then write, then wait.
//!
//! The loop itself is here; what it does in its turns is in begin.rs (sending), reply.rs
//! (reading), ending.rs (recording, and what comes after) and connect.rs (connecting). What is sent
//! next, and when, its pace knows.
//!
//! Nothing is shared between threads but the stop flag, a count of finished samples that only this
//! thread writes and, where a drive stops after a number of requests, the count of those begun.

use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::account::{Counters, Opened, Statuses};
use crate::clock::Clock;
use crate::conn::{Conn, Pending};
use crate::deadlines::Deadlines;
use crate::exchanges::ExchangeLog;
use crate::idle::{Expectation, Idle, wait_ns};
use crate::kept::Kept;
use crate::pace::{Pace, Then};
use crate::sample::SampleLog;
use crate::shared::Shared;
use crate::sys::Epoll;
use crate::wire::Wire;

/// Events taken from the kernel at once. More would delay the sends that fall due meanwhile.
const EVENTS: usize = 64;
/// What one read takes at most; larger than loopback's receive buffers usually fill.
const READ_BYTES: usize = 256 << 10;
/// Before the zero of the clock a thread is awake for this long.
const AWAKE_NS: i64 = 1_000_000;
/// The token of the stop flag.
const STOP: u64 = u64::MAX;

/// Registered once a socket: bytes to read, room to write, and the other side's end of sending.
/// Edge-triggered: the kernel need not look again at a socket that it has reported, nor be told when
/// there is something to write. So whatever is reported has to be read to its end, or asked for
/// again (`Worker::again`).
pub(crate) const WATCHED: i32 = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET;

pub(crate) struct Worker<'a, W> {
    pub(crate) shared: &'a Shared,
    pub(crate) index: usize,
    pub(crate) clock: Clock,
    pub(crate) epoll: Epoll,
    pub(crate) conns: Vec<Conn<W>>,
    pub(crate) deadlines: Deadlines,
    /// Connections with something to be done for: written to after all reading.
    pub(crate) ready: Vec<u32>,
    /// What is sent next, and when.
    pub(crate) pace: Pace<'a>,
    /// By target.
    pub(crate) opened: Vec<Opened>,
    /// Requests that were taken and are not recorded.
    pub(crate) active: usize,
    pub(crate) expectation: Expectation,
    pub(crate) log: SampleLog,
    pub(crate) kept: Kept,
    pub(crate) exchanges: ExchangeLog,
    pub(crate) counters: Counters,
    pub(crate) statuses: Statuses,
    /// Why the first greeting that failed did, where the wire has words for it.
    pub(crate) greeting_failed: Option<String>,
    /// What the first handshake of TLS came to.
    pub(crate) agreed: Option<String>,
    pub(crate) buffer: Box<[u8]>,
    /// Room for what is decrypted into `buffer`; empty where nothing is.
    pub(crate) sealed: Box<[u8]>,
    /// Why this thread cannot go on; an error of ours or of the machine, not of the target.
    pub(crate) fatal: Option<io::Error>,
}

impl<'a, W: Wire> Worker<'a, W> {
    pub(crate) fn new(shared: &'a Shared, index: usize, wire: W, clock: Clock) -> io::Result<Self> {
        let conns: Vec<_> = shared.plan[index]
            .iter()
            .map(|planned| Conn::new(wire.clone(), planned))
            .collect();
        let pace = Pace::new(&shared.load, &shared.terms, index, &shared.plan[index]);
        let epoll = Epoll::new()?;
        epoll.add(shared.stop.fd(), libc::EPOLLIN, STOP)?;
        let kept = Kept::reserve(shared.capture_every > 0)?;
        let count = conns.len();
        let log = SampleLog::new(pace.most_requests())?;
        shared.recorded[index].place(log.region().mapping());
        shared.laid[index].place(kept.region().mapping());
        Ok(Worker {
            index,
            clock,
            epoll,
            deadlines: Deadlines::new(shared.timeouts.lists()),
            ready: Vec::with_capacity(count),
            pace,
            opened: vec![Opened::default(); shared.targets.len()],
            active: 0,
            expectation: Expectation::default(),
            log,
            kept,
            exchanges: ExchangeLog::default(),
            counters: Counters::default(),
            statuses: Statuses::default(),
            greeting_failed: None,
            agreed: None,
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            sealed: vec![0; if shared.tls.is_some() { READ_BYTES } else { 0 }].into_boxed_slice(),
            fatal: None,
            conns,
            shared,
        })
    }

    /// Drives until everything was answered or given up. False where it was stopped.
    pub(crate) fn run(&mut self, clock: Clock) -> io::Result<bool> {
        self.clock = clock;
        // A start at an absolute time may be a while off.
        while clock.now() < -2 * AWAKE_NS {
            std::thread::sleep(Duration::from_nanos((-clock.now() - AWAKE_NS).max(1) as u64));
        }
        while clock.now() < 0 {
            std::hint::spin_loop();
        }
        for conn in &mut self.conns {
            // Those that are up were up before the clock had its zero.
            conn.free = 0;
            conn.connect = -1;
        }
        self.pace.start(&mut self.conns, &mut self.ready);
        let hard_end = self.hard_end();
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        loop {
            self.write_ready();
            let now = self.begin_due();
            if let Some(error) = self.fatal.take() {
                return Err(error);
            }
            self.publish();
            if self.is_finished() {
                return Ok(true);
            }
            if now >= hard_end {
                self.abandon();
                return Ok(true);
            }
            let wait = self.wait_ns(now, hard_end);
            let count = self.epoll.wait(&mut events, wait)?;
            for event in &events[..count] {
                let (flags, token) = (event.events, event.u64);
                if token == STOP {
                    let kept = self.shared.cut_short.load(Relaxed);
                    if kept {
                        self.cut_short();
                    }
                    return Ok(kept);
                }
                self.on_event(token as u32, (token >> 32) as u32, flags);
            }
            self.expire();
        }
    }

    /// Says how far this thread has come.
    pub(crate) fn publish(&self) {
        self.shared.recorded[self.index].publish(self.log.len());
        self.shared.laid[self.index].publish_bytes(self.kept.region().len());
    }

    /// What a connection does now, as its pace has it.
    pub(crate) fn then(&mut self, index: u32, then: Then) {
        match then {
            Then::Wait => {}
            Then::Begin => {
                self.conns[index as usize].pending = Pending::Begin;
                self.ready.push(index);
            }
            Then::Connect => self.connect(index),
        }
    }

    fn is_finished(&self) -> bool {
        self.active == 0 && self.pace.is_over()
    }

    /// When whatever is left is recorded as unfinished.
    fn hard_end(&self) -> i64 {
        let longest_ns = self.shared.timeouts.longest_ns();
        let last_begin = self.pace.last_begin();
        last_begin.map_or(i64::MAX, |last| last.saturating_add(longest_ns))
    }

    fn wait_ns(&mut self, now: i64, hard_end: i64) -> Option<i64> {
        if !self.ready.is_empty() {
            return Some(0);
        }
        let (act_at, reopen_at) = self.pace.wakes_at();
        let mut give_up_at = hard_end.min(reopen_at);
        if let Some((deadline, _)) = self.deadlines.first(&self.conns) {
            give_up_at = give_up_at.min(deadline);
        }
        let idle = self.shared.idle;
        let window = match idle {
            Idle::Hybrid => {
                let expectation = &self.expectation;
                self.deadlines
                    .window(&self.conns, now, |sent| expectation.window(sent))
            }
            _ => None,
        };
        wait_ns(idle, now, act_at, give_up_at, window)
    }
}
