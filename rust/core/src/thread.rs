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
use crate::conn::{Conn, NONE, Pending, Phase};
use crate::deadlines::Deadlines;
use crate::drive::Shared;
use crate::idle::{Expectation, Idle, wait_ns};
use crate::lane::Lane;
use crate::region::Region;
use crate::sample::SampleLog;
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

/// Registered once a socket: bytes to read, room to write, and the other side's end of sending.
/// Edge-triggered: the kernel need not look again at a socket that it has reported, nor be told when
/// there is something to write. So whatever is reported has to be read to its end, or asked for
/// again (`Worker::again`).
pub(crate) const WATCHED: i32 = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET;

/// What a thread counts beside the samples.
#[derive(Clone, Copy, Default)]
pub struct Counters {
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

/// Closed loop: one client.
pub(crate) struct Client {
    pub run: ClientRun,
    pub next_due: i64,
    /// It began at least one request.
    pub began: bool,
    /// The first of its connections, which are in the order of their targets; NONE where it has
    /// none.
    pub first: u32,
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
    /// Closed loop: the clients, and those that think or pause by when they begin.
    pub(crate) clients: Vec<Client>,
    pub(crate) timers: BinaryHeap<Reverse<(i64, u32)>>,
    /// Closed loop: clients that are not done.
    pub(crate) live_clients: usize,
    /// For each target what is due and what is free.
    pub(crate) lanes: Vec<Lane>,
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
        let conns: Vec<_> = shared.plan[index]
            .iter()
            .map(|planned| Conn::new(wire.clone(), planned))
            .collect();
        let mut clients = Vec::new();
        let (slots, expected_samples) = match &shared.load {
            Load::Open { due_ns, sequence } => {
                let slots = Slots::new(due_ns, index, shared.threads, shared.stop_ns);
                let count = slots.len();
                (by_target(shared, slots, sequence), Some(count))
            }
            Load::Closed {
                starts,
                repeat,
                stop_after,
                ..
            } => {
                clients.extend(
                    (index..shared.connections)
                        .step_by(shared.threads)
                        .map(|c| Client {
                            run: ClientRun::new(starts[c], starts[c + 1]),
                            next_due: 0,
                            began: false,
                            first: NONE,
                        }),
                );
                let once = clients.iter().map(|client| client.run.len()).sum::<usize>();
                let bound = match (repeat, stop_after) {
                    (false, Some(stop)) => Some(once.min(*stop as usize)),
                    (false, None) => Some(once),
                    (true, Some(stop)) => Some(*stop as usize),
                    (true, None) => None,
                };
                let none = shared.targets.iter().map(|_| Slots::none()).collect();
                (none, bound)
            }
        };
        let mut lanes: Vec<Lane> = slots.into_iter().map(Lane::new).collect();
        for (at, conn) in conns.iter().enumerate().rev() {
            if let Some(client) = clients.get_mut(conn.client as usize) {
                client.first = at as u32;
            }
            let lane = &mut lanes[conn.target as usize];
            lane.conns += 1;
            lane.first_id = conn.id;
        }
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
            deadlines: Deadlines::new(shared.timeouts.lists()),
            ready: Vec::with_capacity(count),
            timers: BinaryHeap::with_capacity(clients.len()),
            clients,
            live_clients: 0,
            lanes,
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
            let lane = &mut self.lanes[conn.target as usize];
            match (closed, conn.phase) {
                (true, _) if self.clients[conn.client as usize].first == index => {
                    self.live_clients += 1;
                    conn.pending = Pending::Begin;
                    self.ready.push(index);
                }
                (true, _) => {}
                (false, Phase::Idle) => lane.free.push((index, conn.generation)),
                (false, _) => lane.down.push(index),
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
        self.live_clients == 0
            && self.active == 0
            && self.lanes.iter().all(|lane| lane.slots.is_empty())
    }

    /// When whatever is left is recorded as unfinished.
    fn hard_end(&self) -> i64 {
        let last_begin = match &self.shared.load {
            Load::Closed { .. } => self.shared.stop_ns,
            Load::Open { due_ns, .. } => {
                let lanes = self.lanes.iter();
                lanes.filter_map(|lane| lane.slots.last_due(due_ns)).max()
            }
        };
        let longest_ns = self.shared.timeouts.longest_ns();
        last_begin.map_or(i64::MAX, |last| last.saturating_add(longest_ns))
    }

    fn wait_ns(&mut self, now: i64, hard_end: i64) -> Option<i64> {
        if !self.ready.is_empty() {
            return Some(0);
        }
        let mut act_at = self.timers.peek().map_or(i64::MAX, |Reverse((at, _))| *at);
        let mut give_up_at = hard_end;
        if let Load::Open { due_ns, .. } = &self.shared.load {
            for lane in &self.lanes {
                // A slot is acted upon when it can be sent, or when nothing is left to wait for.
                if lane.can_act()
                    && let Some(slot) = lane.slots.head()
                {
                    act_at = act_at.min(due_ns[slot]);
                }
                if !lane.down.is_empty() && !lane.slots.is_empty() {
                    give_up_at = give_up_at.min(lane.retry_at);
                }
            }
        }
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

/// A thread's slots, target by target.
fn by_target(shared: &Shared, slots: Slots, sequence: &[u32]) -> Vec<Slots> {
    if shared.request_targets.are_all_the_first() {
        let others = shared.targets.iter().skip(1).map(|_| Slots::none());
        return std::iter::once(slots).chain(others).collect();
    }
    let mut lists = vec![Vec::new(); shared.targets.len()];
    for slot in slots.iter() {
        lists[shared.request_targets.of(sequence[slot]) as usize].push(slot as u32);
    }
    lists.into_iter().map(Slots::listed).collect()
}
