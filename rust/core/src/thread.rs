//! One thread's loop: read everything that is ready, then write, then wait.
//!
//! Longer than most files because the states of a connection are one machine, and a reader has
//! to see all of it: opening (open.rs) and reading and sending (here) share its fields.
//!
//! Nothing is shared between threads but the stop flag, a counter of completions that only this
//! thread writes and, where a drive stops after a number of requests, the count of those begun.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::clock::Clock;
use crate::conn::{Conn, Deadlines, Job, NONE, Pending, Phase};
use crate::drive::Shared;
use crate::idle::{Expectation, Idle, wait_ns};
use crate::sample::{Outcome, Region, SampleLog};
use crate::schedule::{ClientRun, Load, Slots};
use crate::sys::{self, Epoll};
use crate::wire::{Step, Wire};

/// Events taken from the kernel at once. More would delay the sends that fall due meanwhile.
const EVENTS: usize = 64;
/// Sends in a row before replies are looked at again.
const SENDS: usize = 64;
/// What one read takes at most; larger than loopback's receive buffers usually fill.
const READ_BYTES: usize = 256 << 10;
/// Reads of one connection in a row before the others have their turn.
const READS: usize = 16;
/// The token of the stop flag.
const STOP: u64 = u64::MAX;

/// Registered once a socket: bytes to read, and the other side's end of sending.
pub(crate) const READABLE: i32 = libc::EPOLLIN | libc::EPOLLRDHUP;
const GONE: u32 = (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32;

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

/// A kept reply: the sample it belongs to, and its place in the region of kept bytes.
pub(crate) struct Kept {
    pub sample: u64,
    pub start: usize,
    pub len: usize,
}

pub(crate) struct Worker<W> {
    pub(crate) shared: Arc<Shared>,
    pub(crate) index: usize,
    pub(crate) clock: Clock,
    pub(crate) epoll: Epoll,
    pub(crate) conns: Vec<Conn<W>>,
    pub(crate) deadlines: Deadlines,
    /// Connections with something to be done for: written to after all reading.
    pub(crate) ready: Vec<u32>,
    /// Closed loop: clients that think or pause, by when they begin.
    timers: BinaryHeap<Reverse<(i64, u32)>>,
    /// Closed loop: clients that are not done.
    live_clients: usize,
    /// Open loop: the slots not yet taken, and connections (with their socket) that are free,
    /// the one freed last on top.
    pub(crate) slots: Slots,
    pub(crate) free: Vec<(u32, u32)>,
    /// Open loop: connections that could not be opened, when the next is tried, and why.
    pub(crate) down: Vec<u32>,
    pub(crate) retry_at: i64,
    pub(crate) pause_ns: i64,
    pub(crate) down_because: Outcome,
    /// Requests that were taken and are not recorded.
    active: usize,
    begun: u64,
    expectation: Expectation,
    pub(crate) log: SampleLog,
    pub(crate) kept: Region,
    pub(crate) replies: Vec<Kept>,
    pub(crate) counters: Counters,
    buffer: Box<[u8]>,
    /// Why this thread cannot go on; an error of ours or of the machine, not of the target.
    pub(crate) fatal: Option<io::Error>,
}

impl<W: Wire> Worker<W> {
    pub(crate) fn new(
        shared: Arc<Shared>,
        index: usize,
        wire: W,
        clock: Clock,
    ) -> io::Result<Self> {
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
            down_because: Outcome::Refused,
            active: 0,
            begun: 0,
            expectation: Expectation::default(),
            log: SampleLog::new(expected_samples)?,
            kept,
            replies: Vec::new(),
            counters: Counters::default(),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            fatal: None,
            conns,
            shared,
        })
    }

    /// Drives until everything was answered or given up. False where it was stopped.
    pub(crate) fn run(&mut self, clock: Clock) -> io::Result<bool> {
        self.clock = clock;
        while clock.now() < 0 {
            std::hint::spin_loop();
        }
        let closed = self.is_closed();
        for index in 0..self.conns.len() as u32 {
            let conn = &mut self.conns[index as usize];
            // Those that are up were up before the clock had its zero.
            conn.free = 0;
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
            self.shared.completed[self.index]
                .0
                .store(self.log.len() as u64, Relaxed);
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
                    return Ok(false);
                }
                self.on_event(token as u32, (token >> 32) as u32, flags);
            }
            self.expire();
        }
    }

    fn is_closed(&self) -> bool {
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

    // ---- beginning requests

    /// Sends for every connection that became able to while reading.
    fn write_ready(&mut self) {
        let mut at = 0;
        while at < self.ready.len() {
            let index = self.ready[at];
            at += 1;
            let conn = &mut self.conns[index as usize];
            match std::mem::replace(&mut conn.pending, Pending::Nothing) {
                Pending::Nothing => {}
                Pending::Send => self.send_exchange(index),
                Pending::Begin => self.begin_client(index),
            }
        }
        self.ready.clear();
    }

    /// Closed loop: begins for the clients whose thinking is over.
    fn begin_clients(&mut self) -> i64 {
        let mut now = self.clock.now();
        for _ in 0..SENDS {
            match self.timers.peek() {
                Some(&Reverse((at, index))) if at <= now => {
                    self.timers.pop();
                    self.begin_client(index);
                    now = self.clock.now();
                }
                _ => break,
            }
        }
        now
    }

    fn begin_client(&mut self, index: u32) {
        let shared = Arc::clone(&self.shared);
        let Load::Closed {
            sequence,
            repeat,
            stop_after,
            ..
        } = &shared.load
        else {
            return;
        };
        let conn = &mut self.conns[index as usize];
        let stopped = shared.stop_ns.is_some_and(|stop| self.clock.now() >= stop);
        let next = if stopped {
            None
        } else {
            conn.run.next(*repeat)
        };
        let next = next.filter(|_| match stop_after {
            Some(stop) => shared.begun.fetch_add(1, Relaxed) < *stop,
            None => true,
        });
        let Some(position) = next else {
            self.live_clients -= 1;
            return;
        };
        let due = conn.next_due;
        let job = self.new_job(sequence[position as usize], due, self.begun);
        self.begin(index, job);
    }

    /// Open loop: sends what is due over what is free; records what can be sent by nobody.
    fn begin_slots(&mut self) -> i64 {
        let shared = Arc::clone(&self.shared);
        let Load::Open { sequence, due_ns } = &shared.load else {
            return self.clock.now();
        };
        let mut now = self.clock.now();
        self.retry_down(now);
        for _ in 0..SENDS {
            match self.slots.head(due_ns) {
                Some(due) if due <= now => {
                    let Some(index) = self.take_free() else {
                        if self.down.len() < self.conns.len() {
                            break;
                        }
                        let slot = self.slots.take();
                        let job = self.new_job(sequence[slot], due, slot as u64);
                        self.record(&job, NONE, self.down_because, -1);
                        continue;
                    };
                    let slot = self.slots.take();
                    let job = self.new_job(sequence[slot], due, slot as u64);
                    self.begin(index, job);
                    now = self.clock.now();
                }
                _ => break,
            }
        }
        now
    }

    /// The free connection that was freed last; stale entries are passed over.
    fn take_free(&mut self) -> Option<u32> {
        while let Some((index, generation)) = self.free.pop() {
            let conn = &self.conns[index as usize];
            if conn.phase == Phase::Idle && conn.generation == generation {
                return Some(index);
            }
        }
        None
    }

    fn new_job(&mut self, request: u32, due: i64, nth: u64) -> Job {
        let every = self.shared.capture_every;
        self.begun += 1;
        let keep = every > 0 && nth.is_multiple_of(every);
        Job::new(request, due, self.shared.requests.exchanges(request), keep)
    }

    fn begin(&mut self, index: u32, job: Job) {
        self.active += 1;
        let conn = &mut self.conns[index as usize];
        conn.job = job;
        match conn.phase {
            Phase::Idle => self.send_exchange(index),
            Phase::Down => self.connect(index),
            // On its way; sent once it is up.
            Phase::Connecting | Phase::Greeting | Phase::Busy => {}
        }
    }

    // ---- sending

    fn send_exchange(&mut self, index: u32) {
        let conn = &mut self.conns[index as usize];
        let place = self.shared.requests.place(conn.job.exchange);
        conn.wire
            .begin(&self.shared.requests.arena()[place.clone()]);
        conn.job.at = place.start;
        conn.job.end = place.end;
        conn.job.reply_bytes = 0;
        conn.phase = Phase::Busy;
        if conn.job.sent < 0 {
            let now = self.clock.now();
            conn.job.free = conn.free;
            conn.job.sent = now;
            self.deadlines
                .put(&mut self.conns, index, now + self.shared.timeout_ns);
        }
        self.flush(index);
    }

    /// Hands the kernel what it takes of the exchange.
    fn flush(&mut self, index: u32) {
        let conn = &mut self.conns[index as usize];
        while conn.job.at < conn.job.end {
            let rest = &self.shared.requests.arena()[conn.job.at..conn.job.end];
            match sys::send(conn.fd(), rest) {
                Ok(sent) => {
                    conn.job.at += sent;
                    if sent < rest.len() {
                        self.counters.partial_sends += 1;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !conn.wants_out {
                        conn.wants_out = true;
                        let (fd, token) = (conn.fd(), conn.token(index));
                        self.watch(fd, READABLE | libc::EPOLLOUT, token);
                    }
                    return;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    // The other side is gone, but it may have answered before it went.
                    conn.broken = true;
                    conn.job.at = conn.job.end;
                }
            }
        }
        if conn.wants_out {
            conn.wants_out = false;
            let (fd, token) = (conn.fd(), conn.token(index));
            self.watch(fd, READABLE, token);
        }
    }

    pub(crate) fn watch(&mut self, fd: i32, events: i32, token: u64) {
        if let Err(error) = self.epoll.change(fd, events, token) {
            self.fatal = Some(error);
        }
    }

    // ---- events

    fn on_event(&mut self, index: u32, generation: u32, flags: u32) {
        let conn = &self.conns[index as usize];
        if conn.generation != generation {
            return;
        }
        match conn.phase {
            Phase::Down => {}
            Phase::Connecting => self.on_connect(index),
            Phase::Greeting => {
                let mut buffer = std::mem::take(&mut self.buffer);
                self.on_greeting(index, &mut buffer);
                self.buffer = buffer;
            }
            Phase::Idle => self.on_unasked(index),
            Phase::Busy if conn.pending == Pending::Send => self.on_unasked(index),
            Phase::Busy => {
                if flags & libc::EPOLLOUT as u32 != 0 {
                    self.flush(index);
                }
                if flags & (libc::EPOLLIN as u32 | GONE) != 0 {
                    let mut buffer = std::mem::take(&mut self.buffer);
                    self.read(index, flags & GONE != 0, &mut buffer);
                    self.buffer = buffer;
                }
            }
        }
    }

    /// A connection that nothing was asked on has something: its end, or bytes that are no reply.
    fn on_unasked(&mut self, index: u32) {
        let mut piece = [0; 512];
        let conn = &self.conns[index as usize];
        let outcome = match sys::receive(conn.fd(), &mut piece) {
            Ok(0) => Outcome::Reset,
            Ok(_) => {
                self.counters.unsolicited += 1;
                Outcome::Malformed
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return,
            Err(_) => Outcome::Reset,
        };
        self.fail(index, outcome);
    }

    /// Reads until the reply is whole or nothing more is there.
    fn read(&mut self, index: u32, gone: bool, buffer: &mut [u8]) {
        for _ in 0..READS {
            let conn = &mut self.conns[index as usize];
            let got = sys::receive(conn.fd(), buffer);
            let now = self.clock.now();
            match got {
                Ok(0) => return self.ended(index, now),
                Ok(count) => {
                    let piece = &buffer[..count];
                    if conn.job.first_byte < 0 {
                        conn.job.first_byte = now;
                    }
                    match conn.wire.feed(piece) {
                        Step::More => {
                            conn.job.bytes += count as u64;
                            conn.job.reply_bytes += count as u64;
                            if conn.job.keep {
                                conn.kept.extend_from_slice(piece);
                            }
                            if count < buffer.len() && !gone {
                                return;
                            }
                        }
                        Step::Whole { used, reply } => {
                            let close = reply.close || gone || conn.broken || used < count;
                            // Bytes beyond the reply answer nothing that was asked.
                            let outcome = if used < count {
                                Outcome::Malformed
                            } else {
                                reply.outcome
                            };
                            conn.job.bytes += used as u64;
                            conn.job.add_host_ns(reply.host_ns);
                            conn.job.outcome = conn.job.outcome.worse(outcome);
                            return self.replied(index, now, &piece[..used], close);
                        }
                        Step::Malformed => {
                            conn.job.bytes += count as u64;
                            if conn.job.keep {
                                conn.kept.extend_from_slice(piece);
                            }
                            return self.fail(index, Outcome::Malformed);
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return self.cut_off(index),
            }
        }
    }

    /// The reply to one exchange is whole; `last` is its last piece.
    fn replied(&mut self, index: u32, now: i64, last: &[u8], close: bool) {
        let conn = &mut self.conns[index as usize];
        conn.served = true;
        conn.pause_ns = 0;
        let unsent = conn.job.at < conn.job.end;
        conn.job.exchange += 1;
        if conn.job.exchange < conn.job.exchange_end && conn.job.outcome != Outcome::Malformed {
            if conn.job.keep {
                conn.kept.extend_from_slice(last);
                conn.kept_ends.push(conn.kept.len());
            }
            if close || unsent {
                // The rest belongs on this connection, which is gone.
                return self.fail(index, Outcome::Reset);
            }
            conn.job.reply_bytes = 0;
            conn.pending = Pending::Send;
            self.ready.push(index);
            return;
        }
        let job = conn.job;
        self.deadlines.take(&mut self.conns, index);
        if self.record(&job, index, job.outcome, now) && job.keep {
            self.keep(index, last);
        }
        if self.shared.idle == Idle::Hybrid {
            self.expectation.note(now - job.sent);
        }
        self.pause_ns = 0;
        self.retry_at = now;
        let conn = &mut self.conns[index as usize];
        conn.job.active = false;
        conn.free = now;
        if close || unsent {
            conn.close();
        } else {
            conn.phase = Phase::Idle;
        }
        self.next(index, now, false);
    }

    /// The other side ended the connection while a reply was awaited.
    fn ended(&mut self, index: u32, now: i64) {
        let conn = &mut self.conns[index as usize];
        match conn.wire.ended() {
            Some(reply) if conn.job.reply_bytes > 0 => {
                conn.job.outcome = conn.job.outcome.worse(reply.outcome);
                conn.job.add_host_ns(reply.host_ns);
                self.replied(index, now, &[], true);
            }
            _ => self.cut_off(index),
        }
    }

    fn cut_off(&mut self, index: u32) {
        let any = self.conns[index as usize].job.reply_bytes > 0;
        self.fail(
            index,
            if any {
                Outcome::Truncated
            } else {
                Outcome::Reset
            },
        );
    }

    /// Gives up what waited longest, where its time is over.
    fn expire(&mut self) {
        if self.deadlines.first().is_none() {
            return;
        }
        let now = self.clock.now();
        while let Some(index) = self.deadlines.first() {
            if self.conns[index as usize].deadline > now {
                return;
            }
            self.fail(index, Outcome::TimedOut);
        }
    }

    // ---- endings

    /// The connection is given up, and with it the request it carries, if any.
    pub(crate) fn fail(&mut self, index: u32, outcome: Outcome) {
        let now = self.clock.now();
        self.deadlines.take(&mut self.conns, index);
        let conn = &mut self.conns[index as usize];
        let job = conn.job;
        // A connection that nothing came of is not opened again at once.
        let fruitless = match conn.phase {
            Phase::Connecting | Phase::Greeting => true,
            _ if conn.served => false,
            _ => !job.active || matches!(outcome, Outcome::Refused | Outcome::Reset),
        };
        conn.close();
        if job.active {
            conn.job.active = false;
            let outcome = job.outcome.worse(outcome);
            if self.record(&job, index, outcome, -1) && job.keep {
                self.keep(index, &[]);
            }
        } else if self.is_closed() {
            // Nobody waited for it: its client connects again when it next begins.
            return;
        }
        self.down_because = outcome;
        self.next(index, now, fruitless);
    }

    /// What the connection does after a request, or after it was lost.
    fn next(&mut self, index: u32, now: i64, fruitless: bool) {
        let shared = Arc::clone(&self.shared);
        let conn = &mut self.conns[index as usize];
        match &shared.load {
            Load::Closed {
                think_ns,
                stop_after,
                ..
            } => {
                let due = now + think_ns;
                let mut begin_at = due;
                if fruitless {
                    conn.pause_ns = longer(conn.pause_ns);
                    self.counters.pauses += 1;
                    self.counters.pause_ns += conn.pause_ns;
                    begin_at = due.max(now + conn.pause_ns);
                }
                conn.next_due = due;
                let stopped = shared.stop_ns.is_some_and(|stop| begin_at >= stop)
                    || stop_after.is_some_and(|stop| shared.begun.load(Relaxed) >= stop);
                if stopped {
                    self.live_clients -= 1;
                } else if begin_at > now {
                    self.timers.push(Reverse((begin_at, index)));
                } else {
                    conn.pending = Pending::Begin;
                    self.ready.push(index);
                }
            }
            Load::Open { .. } => {
                if conn.phase == Phase::Idle {
                    self.free.push((index, conn.generation));
                } else if fruitless {
                    self.set_down(index, now);
                } else if !self.slots.is_empty() {
                    self.connect(index);
                } else {
                    self.down.push(index);
                }
            }
        }
    }

    /// Writes the sample. False where there is no room, which ends the drive.
    fn record(&mut self, job: &Job, index: u32, outcome: Outcome, done: i64) -> bool {
        if index != NONE {
            self.active -= 1;
        }
        // A slot that nobody could take is charged to the first connection of its thread.
        let local = if index == NONE { 0 } else { index as usize };
        let connection = (local * self.shared.threads + self.index) as u16;
        let room = self.log.push(job.sample(connection, outcome, done));
        if !room {
            self.fatal = Some(io::Error::other(format!(
                "the trace is full after {} requests: drive for a shorter time",
                self.log.len()
            )));
        }
        room
    }

    /// Keeps the reply of the sample just written: what was gathered, and `last`.
    fn keep(&mut self, index: u32, last: &[u8]) {
        let conn = &mut self.conns[index as usize];
        let sample = self.log.len() as u64 - 1;
        let mut at = 0;
        let mut full = false;
        conn.kept_ends.push(conn.kept.len());
        let final_piece = conn.kept_ends.len() - 1;
        for (piece, &end) in conn.kept_ends.iter().enumerate() {
            let start = self.kept.as_slice().len();
            full |= !self.kept.append(&conn.kept[at..end]);
            if piece == final_piece {
                full |= !self.kept.append(last);
            }
            let len = self.kept.as_slice().len() - start;
            if len > 0 {
                self.replies.push(Kept { sample, start, len });
            }
            at = end;
        }
        conn.kept.clear();
        conn.kept_ends.clear();
        if full {
            self.fatal = Some(io::Error::other(
                "no room is left for kept replies: keep fewer (capture_every)",
            ));
        }
    }

    /// The end of waiting: whatever is in flight or was never sent is recorded as unfinished.
    fn abandon(&mut self) {
        for index in 0..self.conns.len() as u32 {
            let job = self.conns[index as usize].job;
            if job.active {
                self.conns[index as usize].job.active = false;
                if self.record(&job, index, Outcome::Unfinished, -1) && job.keep {
                    self.keep(index, &[]);
                }
            }
        }
        let shared = Arc::clone(&self.shared);
        if let Load::Open { sequence, due_ns } = &shared.load {
            while let Some(due) = self.slots.head(due_ns) {
                let slot = self.slots.take();
                let job = self.new_job(sequence[slot], due, slot as u64);
                self.record(&job, NONE, Outcome::Unfinished, -1);
                self.counters.unsent += 1;
            }
        }
        self.shared.completed[self.index]
            .0
            .store(self.log.len() as u64, Relaxed);
    }
}

/// The next pause after one of `pause_ns`: 1 ms, doubling to 100 ms.
pub(crate) fn longer(pause_ns: i64) -> i64 {
    (pause_ns * 2).clamp(1_000_000, 100_000_000)
}
