//! Beginning requests and sending their bytes: what the loop does after all reading.

use std::io;

use crate::conn::{Job, Pending, Phase};
use crate::pace::{Due, Turn};
use crate::sample::Outcome;
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
                    let (client, now) = (conn.client, self.clock.now());
                    if let Some((due, over)) = self.pace.begin(client, now) {
                        self.begin(over, due, now);
                    }
                }
            }
        }
        self.ready.clear();
    }

    /// Begins what is due, and opens connections for what comes next. Gives the present.
    pub(crate) fn begin_due(&mut self) -> i64 {
        let mut now = self.clock.now();
        while let Some(index) = self.pace.reopen(now) {
            self.connect(index);
        }
        for _ in 0..SENDS {
            match self.pace.next(now, &self.conns) {
                None => break,
                Some(Turn::Send(due, over)) => {
                    self.begin(over, due, now);
                    now = self.clock.now();
                }
                Some(Turn::Lost(due, because, connection)) => {
                    let job = self.new_job(&due);
                    self.record(&job, connection, because, -1);
                }
                Some(Turn::Passed) => {}
            }
        }
        now
    }

    pub(crate) fn new_job(&self, due: &Due) -> Job {
        let every = self.shared.capture_every;
        let keep = every > 0 && due.nth.is_multiple_of(every);
        let exchanges = self.shared.requests.exchanges(due.request);
        let timed = self.shared.requests.timed(due.request);
        Job::new(due.request, due.due_ns, exchanges, keep).into_operation(timed)
    }

    /// `now`: read for this request alone, just before.
    #[inline]
    fn begin(&mut self, index: u32, due: Due, now: i64) {
        self.active += 1;
        let job = self.new_job(&due);
        let conn = &mut self.conns[index as usize];
        conn.job = job;
        conn.exchanges.clear();
        match conn.phase {
            Phase::Idle => self.send_exchange(index, now),
            Phase::Down => self.connect(index),
            // On its way; sent once it is up.
            Phase::Connecting | Phase::Greeting | Phase::Busy => {}
        }
    }

    pub(crate) fn send_exchange(&mut self, index: u32, now: i64) {
        let conn = &mut self.conns[index as usize];
        let owes = !conn.owed.is_empty();
        let number = if owes {
            conn.owed.start
        } else {
            conn.job.exchange
        };
        let mut place = self.shared.requests.place(number);
        let exchange = &self.shared.requests.arena()[place.clone()];
        conn.wire.begin(exchange);
        conn.adapted.clear();
        let adapted = conn.wire.adapt(exchange, &mut conn.adapted);
        let said = if adapted { &conn.adapted } else { exchange };
        if let Some(tls) = &mut conn.tls {
            match tls.put(said) {
                Some(sealed) => place = sealed,
                None => return self.fail(index, Outcome::Reset),
            }
        } else if adapted {
            place = 0..said.len();
        }
        conn.job.at = place.start;
        conn.job.end = place.end;
        conn.job.reply_bytes = 0;
        conn.phase = Phase::Busy;
        if conn.job.sent < 0 {
            if !owes {
                conn.job.free = conn.free;
                conn.job.connect = std::mem::replace(&mut conn.connect, -1);
                conn.job.sent = now;
            }
            let timeouts = &self.shared.timeouts;
            let list = timeouts.list(conn.job.request);
            let deadline = now.saturating_add(timeouts.wait_ns(list));
            self.deadlines.put(&mut self.conns, index, list, deadline);
        } else if conn.job.is_set_up() {
            conn.job.sent = now;
        }
        if self.shared.exchange_times && !owes {
            let conn = &mut self.conns[index as usize];
            if conn.job.is_timed() {
                conn.exchanges.push(conn.job.sent_now(now));
            }
        }
        self.flush(index);
    }

    /// Hands the kernel what it takes of the exchange.
    pub(crate) fn flush(&mut self, index: u32) {
        let conn = &mut self.conns[index as usize];
        while conn.job.at < conn.job.end {
            let bytes = match &conn.tls {
                None if conn.adapted.is_empty() => self.shared.requests.arena(),
                None => &conn.adapted,
                Some(tls) => tls.sealed(),
            };
            let rest = &bytes[conn.job.at..conn.job.end];
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
