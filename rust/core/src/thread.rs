//! One thread's loop: read everything that is ready, then write, then wait.
//!
//! The loop itself is here; what it does in its turns is in begin.rs (sending), reply.rs
//! (reading), ending.rs (recording, and what comes after) and open.rs (connecting).
//!
//! Nothing is shared between threads but the stop flag, a count of finished samples that only this
//! thread writes and, where a drive stops after a number of requests, the count of those begun.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::clock::Clock;
use crate::conn::{Conn, Deadlines, Pending, Phase};
use crate::drive::Shared;
use crate::idle::{Expectation, Idle, wait_ns};
use crate::region::Region;
use crate::sample::{Outcome, SampleLog};
use crate::schedule::{ClientRun, Load, Slots};
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

/// Registered once a socket: bytes to read, and the other side's end of sending.
pub(crate) const READABLE: i32 = libc::EPOLLIN | libc::EPOLLRDHUP;

/// What a thread counts beside the samples.
#[derive(Clone, Copy, Default)]
pub struct Counters {
    pub connects: u64,
    pub reconnects: u64,
    pub refused_connects: u64,
    pub partial_sends: u64,
    pub unsolicited: u64,
    pub unsent: u64,
    pub pauses: u64,
    pub pause_ns: i64,
}

/// Whole replies by the status that their protocol gave them.
#[derive(Clone)]
pub struct Statuses(Box<[u64; 1000]>);

impl Default for Statuses {
    fn default() -> Statuses {
        Statuses(Box::new([0; 1000]))
    }
}

impl Statuses {
    /// Counts one reply; 0 is no status.
    #[inline]
    pub fn count(&mut self, status: u16) {
        if let Some(count) = self.0.get_mut(usize::from(status)) {
            *count += 1;
        }
    }

    /// Each status that was seen, ascending, with how often.
    pub fn seen(&self) -> impl Iterator<Item = (usize, u64)> {
        let counted = self.0.iter().copied().enumerate().skip(1);
        counted.filter(|&(_, count)| count > 0)
    }

    /// Adds what another thread counted.
    pub fn add(&mut self, other: &Statuses) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0.iter()) {
            *mine += theirs;
        }
    }
}

/// A kept reply: the sample it belongs to, and its place in the region of kept bytes.
pub(crate) struct Kept {
    pub sample: u64,
    pub start: usize,
    pub len: usize,
}

pub(crate) struct Worker<'a, W> {
    pub(crate) shared: &'a Shared,
    pub(crate) index: usize,
    pub(crate) clock: Clock,
    pub(crate) epoll: Epoll,
    pub(crate) conns: Vec<Conn<W>>,
    pub(crate) deadlines: Deadlines,
    /// Connections with something to be done for: written to after all reading.
    pub(crate) ready: Vec<u32>,
    /// Closed loop: clients that think or pause, by when they begin.
    pub(crate) timers: BinaryHeap<Reverse<(i64, u32)>>,
    /// Closed loop: clients that are not done.
    pub(crate) live_clients: usize,
    /// Open loop: the slots not yet taken, and connections (with their socket) that are free,
    /// the one freed last on top.
    pub(crate) slots: Slots,
    pub(crate) free: Vec<(u32, u32)>,
    /// Open loop: connections that could not be opened, when the next is tried, and why.
    pub(crate) down: Vec<u32>,
    pub(crate) retry_at: i64,
    pub(crate) pause_ns: i64,
    /// One connection was tried after a pause, and nothing has come of it yet.
    pub(crate) probed: bool,
    pub(crate) down_because: Outcome,
    /// Requests that were taken and are not recorded.
    pub(crate) active: usize,
    pub(crate) begun: u64,
    pub(crate) expectation: Expectation,
    pub(crate) log: SampleLog,
    pub(crate) kept: Region,
    pub(crate) replies: Vec<Kept>,
    pub(crate) counters: Counters,
    pub(crate) statuses: Statuses,
    /// Why the first greeting that failed did, where the wire has words for it.
    pub(crate) greeting_failed: Option<String>,
    pub(crate) buffer: Box<[u8]>,
    /// Why this thread cannot go on; an error of ours or of the machine, not of the target.
    pub(crate) fatal: Option<io::Error>,
}

impl<'a, W: Wire> Worker<'a, W> {
    pub(crate) fn new(shared: &'a Shared, index: usize, wire: W, clock: Clock) -> io::Result<Self> {
        let threads = shared.threads;
        let mine: Vec<usize> = (index..shared.connections).step_by(threads).collect();
        let run = |client: usize| match &shared.load {
            Load::Closed { starts, .. } => ClientRun::new(starts[client], starts[client + 1]),
            Load::Open { .. } => ClientRun::new(0, 0),
        };
        let conns: Vec<_> = mine
            .iter()
            .map(|&c| Conn::new(wire.clone(), run(c)))
            .collect();
        let (slots, expected_samples) = match &shared.load {
            Load::Open { due_ns, .. } => {
                let slots = Slots::new(due_ns, index, threads, shared.stop_ns);
                let count = slots.len();
                (slots, Some(count))
            }
            Load::Closed {
                starts,
                repeat,
                stop_after,
                ..
            } => {
                let once: usize = mine
                    .iter()
                    .map(|&c| (starts[c + 1] - starts[c]) as usize)
                    .sum();
                let bound = match (repeat, stop_after) {
                    (false, Some(stop)) => Some(once.min(*stop as usize)),
                    (false, None) => Some(once),
                    (true, Some(stop)) => Some(*stop as usize),
                    (true, None) => None,
                };
                (Slots::new(&[], 0, 1, None), bound)
            }
        };
        let epoll = Epoll::new()?;
        epoll.add(shared.stop.fd(), libc::EPOLLIN, STOP)?;
        let kept = Region::reserve(
            if shared.capture_every > 0 {
                32 << 30
            } else {
                0
            },
            4096,
        )?;
        let count = conns.len();
        let log = SampleLog::new(expected_samples)?;
        shared.recorded[index].place(log.region().mapping());
        Ok(Worker {
            index,
            clock,
            epoll,
            deadlines: Deadlines::default(),
            ready: Vec::with_capacity(count),
            timers: BinaryHeap::with_capacity(count),
            live_clients: 0,
            slots,
            free: Vec::with_capacity(count),
            down: Vec::with_capacity(count),
            retry_at: 0,
            pause_ns: 0,
            probed: false,
            down_because: Outcome::Refused,
            active: 0,
            begun: 0,
            expectation: Expectation::default(),
            log,
            kept,
            replies: Vec::new(),
            counters: Counters::default(),
            statuses: Statuses::default(),
            greeting_failed: None,
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
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
        let closed = self.is_closed();
        for index in 0..self.conns.len() as u32 {
            let conn = &mut self.conns[index as usize];
            // Those that are up were up before the clock had its zero.
            conn.free = 0;
            conn.connect = -1;
            match (closed, conn.phase) {
                (true, _) => {
                    self.live_clients += 1;
                    conn.pending = Pending::Begin;
                    self.ready.push(index);
                }
                (false, Phase::Idle) => self.free.push((index, conn.generation)),
                (false, _) => self.down.push(index),
            }
        }
        let hard_end = self.hard_end();
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        loop {
            self.write_ready();
            let now = if closed {
                self.begin_clients()
            } else {
                self.begin_slots()
            };
            if let Some(error) = self.fatal.take() {
                return Err(error);
            }
            self.shared.recorded[self.index].publish(self.log.len());
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

    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.shared.load, Load::Closed { .. })
    }

    fn is_finished(&self) -> bool {
        self.live_clients == 0 && self.active == 0 && self.slots.is_empty()
    }

    /// When whatever is left is recorded as unfinished.
    fn hard_end(&self) -> i64 {
        let last_begin = match &self.shared.load {
            Load::Closed { .. } => self.shared.stop_ns,
            Load::Open { due_ns, .. } => self.slots.last_due(due_ns),
        };
        last_begin.map_or(i64::MAX, |last| last.saturating_add(self.shared.timeout_ns))
    }

    fn wait_ns(&mut self, now: i64, hard_end: i64) -> Option<i64> {
        if !self.ready.is_empty() {
            return Some(0);
        }
        let mut act_at = self.timers.peek().map_or(i64::MAX, |Reverse((at, _))| *at);
        let mut give_up_at = hard_end;
        if let Load::Open { due_ns, .. } = &self.shared.load {
            // A slot is acted upon when it can be sent, or when nothing is left to wait for.
            if (!self.free.is_empty() || self.down.len() == self.conns.len())
                && let Some(due) = self.slots.head(due_ns)
            {
                act_at = act_at.min(due);
            }
            if !self.down.is_empty() {
                give_up_at = give_up_at.min(self.retry_at);
            }
        }
        if let Some(first) = self.deadlines.first() {
            give_up_at = give_up_at.min(self.conns[first as usize].deadline);
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
