//! How requests end: recorded, whatever became of them; and what their connection does next.

use std::io;

use crate::conn::{Job, Phase};
use crate::pace::Loss;
use crate::sample::Outcome;
use crate::thread::Worker;
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
        let id = conn.id;
        let mut outcome = outcome;
        if job.active {
            conn.job.active = false;
            if conn.owed.is_empty() {
                conn.owed = job.unclean();
            }
            outcome = job.outcome.worse(outcome);
            self.active -= 1;
            if self.record(&job, id, outcome, -1) {
                self.keep_exchanges(index);
                if job.keep {
                    self.keep(index, &[]);
                }
            }
        }
        let loss = Loss {
            now,
            outcome,
            carried: job.active,
            fruitless,
        };
        let conn = &mut self.conns[index as usize];
        let then = self.pace.lost(index, conn, loss, &mut self.counters);
        self.then(index, then);
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
        let sample = self.log.len() as u64 - 1;
        let room = self.kept.push(sample, &mut conn.kept, last);
        if !room {
            self.fatal = Some(io::Error::other(
                "no room is left for kept replies: keep fewer (capture_every)",
            ));
        }
    }

    /// Keeps the exchanges of the sample just written, if there are any.
    pub(crate) fn keep_exchanges(&mut self, index: u32) {
        let sample = self.log.len() as u64 - 1;
        let of = &mut self.conns[index as usize].exchanges;
        if !of.is_empty() && !self.exchanges.take(sample, of) {
            self.fatal = Some(io::Error::other(
                "no room is left for the times of single statements: drive for a shorter time",
            ));
        }
    }

    /// The end, now: as if `stop_ns` were now, and nothing were waited for.
    pub(crate) fn cut_short(&mut self) {
        self.pace.stop(self.clock.now());
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
                if self.record(&job, id, Outcome::Unfinished, -1) {
                    self.keep_exchanges(index);
                    if job.keep {
                        self.keep(index, &[]);
                    }
                }
            }
        }
        while let Some((due, connection)) = self.pace.unsent() {
            let job = self.new_job(&due);
            self.record(&job, connection, Outcome::Unfinished, -1);
            self.counters.unsent += 1;
        }
        self.publish();
    }
}
