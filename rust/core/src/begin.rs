//! Beginning requests and sending their bytes: what the loop does after all reading.

use std::cmp::Reverse;
use std::io;
use std::sync::atomic::Ordering::Relaxed;

use crate::conn::{Job, Pending, Phase};
use crate::lane::due_first;
use crate::schedule::Load;
use crate::sys;
use crate::thread::{WATCHED, Worker};
use crate::wire::Wire;

/// Sends in a row before replies are looked at again.
const SENDS: usize = 64;

impl<W: Wire> Worker<'_, W> {
    /// Sends for every connection that became able to while reading.
    pub(crate) fn write_ready(&mut self) {
        let mut at = 0;
        while at < self.ready.len() {
            let index = self.ready[at];
            at += 1;
            let conn = &mut self.conns[index as usize];
            match std::mem::replace(&mut conn.pending, Pending::Nothing) {
                Pending::Nothing => {}
                Pending::Send => self.send_exchange(index, self.clock.now()),
                Pending::Begin => {
                    let client = conn.client;
                    self.begin_client(client);
                }
            }
        }
        self.ready.clear();
    }

    /// Closed loop: begins for the clients whose thinking is over.
    pub(crate) fn begin_clients(&mut self) -> i64 {
        let mut now = self.clock.now();
        for _ in 0..SENDS {
            match self.timers.peek() {
                Some(&Reverse((at, client))) if at <= now => {
                    self.timers.pop();
                    self.begin_client(client);
                    now = self.clock.now();
                }
                _ => break,
            }
        }
        now
    }

    fn begin_client(&mut self, client: u32) {
        let shared = self.shared;
        let Load::Closed {
            sequence,
            repeat,
            stop_after,
            ..
        } = &shared.load
        else {
            return;
        };
        let now = self.clock.now();
        let which = &mut self.clients[client as usize];
        let stopped = shared.stop_ns.is_some_and(|stop| now >= stop);
        let next = if stopped {
            None
        } else {
            which.run.next(*repeat)
        };
        let next = next.filter(|_| match stop_after {
            Some(stop) => shared.begun.fetch_add(1, Relaxed) < *stop,
            None => true,
        });
        let Some(position) = next else {
            self.live_clients -= 1;
            return;
        };
        which.began = true;
        let (due, first) = (which.next_due, which.first);
        let request = sequence[position as usize];
        let index = self.towards(first, shared.request_targets.of(request));
        let job = self.new_job(request, due, self.begun);
        self.begin(index, job, now);
    }

    /// The connection of a client that leads to `target`; its connections begin with `first` and
    /// are in the order of their targets.
    #[inline]
    fn towards(&self, first: u32, target: u16) -> u32 {
        let mut index = first;
        while self.conns[index as usize].target != target {
            index += 1;
        }
        index
    }

    /// Open loop: sends what is due over what is free; records what can be sent by nobody.
    pub(crate) fn begin_slots(&mut self) -> i64 {
        let shared = self.shared;
        let Load::Open { sequence, due_ns } = &shared.load else {
            return self.clock.now();
        };
        let mut now = self.clock.now();
        self.retry_down(now);
        for _ in 0..SENDS {
            let Some(target) = due_first(&self.lanes, due_ns, now) else {
                break;
            };
            match self.take_free(target) {
                Some(index) => {
                    let slot = self.lanes[target].slots.take();
                    let job = self.new_job(sequence[slot], due_ns[slot], slot as u64);
                    self.begin(index, job, now);
                    now = self.clock.now();
                }
                None if self.lanes[target].all_down() => {
                    let lane = &mut self.lanes[target];
                    let (slot, because, id) = (lane.slots.take(), lane.down_because, lane.first_id);
                    let job = self.new_job(sequence[slot], due_ns[slot], slot as u64);
                    self.record(&job, id, because, -1);
                }
                // What seemed free was not: the lane cannot act any more.
                None => {}
            }
        }
        now
    }

    /// The free connection that was freed last; stale entries are passed over.
    fn take_free(&mut self, target: usize) -> Option<u32> {
        while let Some((index, generation)) = self.lanes[target].free.pop() {
            let conn = &self.conns[index as usize];
            if conn.phase == Phase::Idle && conn.generation == generation {
                return Some(index);
            }
        }
        None
    }

    pub(crate) fn new_job(&mut self, request: u32, due: i64, nth: u64) -> Job {
        let every = self.shared.capture_every;
        self.begun += 1;
        let keep = every > 0 && nth.is_multiple_of(every);
        Job::new(request, due, self.shared.requests.exchanges(request), keep)
    }

    /// `now`: read for this request alone, just before.
    fn begin(&mut self, index: u32, job: Job, now: i64) {
        self.active += 1;
        let conn = &mut self.conns[index as usize];
        conn.job = job;
        match conn.phase {
            Phase::Idle => self.send_exchange(index, now),
            Phase::Down => self.connect(index),
            // On its way; sent once it is up.
            Phase::Connecting | Phase::Greeting | Phase::Busy => {}
        }
    }

    pub(crate) fn send_exchange(&mut self, index: u32, now: i64) {
        let conn = &mut self.conns[index as usize];
        let place = self.shared.requests.place(conn.job.exchange);
        conn.wire
            .begin(&self.shared.requests.arena()[place.clone()]);
        conn.job.at = place.start;
        conn.job.end = place.end;
        conn.job.reply_bytes = 0;
        conn.phase = Phase::Busy;
        if conn.job.sent < 0 {
            conn.job.free = conn.free;
            conn.job.connect = std::mem::replace(&mut conn.connect, -1);
            conn.job.sent = now;
            let timeouts = &self.shared.timeouts;
            let list = timeouts.list(conn.job.request);
            let deadline = now.saturating_add(timeouts.wait_ns(list));
            self.deadlines.put(&mut self.conns, index, list, deadline);
        }
        self.flush(index);
    }

    /// Hands the kernel what it takes of the exchange.
    pub(crate) fn flush(&mut self, index: u32) {
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
                // The kernel reports when there is room.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    // The other side is gone, but it may have answered before it went.
                    conn.broken = true;
                    conn.job.at = conn.job.end;
                }
            }
        }
    }

    /// Asks the kernel to look at a socket again that may not have been read to its end.
    pub(crate) fn again(&mut self, index: u32) {
        let conn = &self.conns[index as usize];
        let (fd, token) = (conn.fd(), conn.token(index));
        if conn.phase != Phase::Down
            && let Err(error) = self.epoll.change(fd, WATCHED, token)
        {
            self.fatal = Some(error);
        }
    }
}
