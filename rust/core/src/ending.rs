//! How requests end: recorded, whatever became of them; and what their connection does next.

use std::cmp::Reverse;
use std::io;
use std::sync::atomic::Ordering::Relaxed;

use crate::conn::{Job, Pending, Phase};
use crate::sample::Outcome;
use crate::schedule::Load;
use crate::thread::{Kept, Worker};
use crate::wire::Wire;

impl<W: Wire> Worker<'_, W> {
    /// The connection is given up, and with it the request it carries, if any.
    pub(crate) fn fail(&mut self, index: u32, outcome: Outcome) {
        let now = self.clock.now();
        self.deadlines.take(&mut self.conns, index);
        let conn = &mut self.conns[index as usize];
        let job = conn.given_up();
        // A connection that nothing came of is not opened again at once.
        let fruitless = match conn.phase {
            Phase::Connecting | Phase::Greeting => true,
            _ if conn.served => false,
            _ => !job.active || matches!(outcome, Outcome::Refused | Outcome::Reset),
        };
        conn.close();
        let (id, target) = (conn.id, conn.target);
        if job.active {
            conn.job.active = false;
            let outcome = job.outcome.worse(outcome);
            self.active -= 1;
            if self.record(&job, id, outcome, -1) && job.keep {
                self.keep(index, &[]);
            }
        } else if self.is_closed() {
            // Nobody waited for it: its client connects again when it next begins.
            return;
        }
        self.lanes[target as usize].down_because = outcome;
        self.next(index, now, fruitless);
    }

    /// What the connection does after a request, or after it was lost.
    pub(crate) fn next(&mut self, index: u32, now: i64, fruitless: bool) {
        let shared = self.shared;
        let conn = &mut self.conns[index as usize];
        match &shared.load {
            Load::Closed {
                think_ns,
                stop_after,
                ..
            } => {
                let due = now.saturating_add(*think_ns);
                let mut begin_at = due;
                if fruitless {
                    conn.pause_ns = longer(conn.pause_ns);
                    self.counters.pauses += 1;
                    self.counters.pause_ns += conn.pause_ns;
                    begin_at = due.max(now + conn.pause_ns);
                }
                let client = conn.client;
                self.clients[client as usize].next_due = due;
                let stopped = shared.stop_ns.is_some_and(|stop| begin_at >= stop)
                    || stop_after.is_some_and(|stop| shared.begun.load(Relaxed) >= stop);
                if stopped {
                    self.live_clients -= 1;
                } else if begin_at > now {
                    self.timers.push(Reverse((begin_at, client)));
                } else {
                    conn.pending = Pending::Begin;
                    self.ready.push(index);
                }
            }
            Load::Open { .. } => {
                let lane = &mut self.lanes[conn.target as usize];
                if conn.phase == Phase::Idle {
                    lane.free.push((index, conn.generation));
                } else if fruitless {
                    self.set_down(index, now);
                } else if !lane.slots.is_empty() {
                    self.connect(index);
                } else {
                    lane.down.push(index);
                }
            }
        }
    }

    /// Writes the sample, for the connection of this number; a slot that nobody could take is
    /// charged to the first of its thread and target. False where there is no room, which ends
    /// the drive.
    pub(crate) fn record(
        &mut self,
        job: &Job,
        connection: u16,
        outcome: Outcome,
        done: i64,
    ) -> bool {
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
    pub(crate) fn keep(&mut self, index: u32, last: &[u8]) {
        let conn = &mut self.conns[index as usize];
        let start = self.kept.as_slice().len();
        let room = self.kept.append(&conn.kept) && self.kept.append(last);
        conn.kept.clear();
        let len = self.kept.as_slice().len() - start;
        let sample = self.log.len() as u64 - 1;
        if len > 0 {
            self.replies.push(Kept { sample, start, len });
        }
        if !room {
            self.fatal = Some(io::Error::other(
                "no room is left for kept replies: keep fewer (capture_every)",
            ));
        }
    }

    /// The end, now: as if `stop_ns` were now, and nothing were waited for.
    pub(crate) fn cut_short(&mut self) {
        if let Load::Open { due_ns, .. } = &self.shared.load {
            let now = self.clock.now();
            for lane in &mut self.lanes {
                lane.slots.end_before(due_ns, now);
            }
        }
        self.abandon();
    }

    /// The end of waiting: whatever is in flight or was never sent is recorded as unfinished.
    pub(crate) fn abandon(&mut self) {
        for index in 0..self.conns.len() as u32 {
            let job = self.conns[index as usize].given_up();
            if job.active {
                let conn = &mut self.conns[index as usize];
                conn.job.active = false;
                let id = conn.id;
                self.active -= 1;
                if self.record(&job, id, Outcome::Unfinished, -1) && job.keep {
                    self.keep(index, &[]);
                }
            }
        }
        let shared = self.shared;
        if let Load::Open { sequence, due_ns } = &shared.load {
            for target in 0..self.lanes.len() {
                while self.lanes[target].slots.head().is_some() {
                    let lane = &mut self.lanes[target];
                    let (slot, id) = (lane.slots.take(), lane.first_id);
                    let job = self.new_job(sequence[slot], due_ns[slot], slot as u64);
                    self.record(&job, id, Outcome::Unfinished, -1);
                    self.counters.unsent += 1;
                }
            }
        }
        self.shared.recorded[self.index].publish(self.log.len());
    }
}

/// The next pause after one of `pause_ns`: 1 ms, doubling to 100 ms.
pub(crate) fn longer(pause_ns: i64) -> i64 {
    (pause_ns * 2).clamp(1_000_000, 100_000_000)
}
