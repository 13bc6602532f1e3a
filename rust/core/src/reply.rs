//! What the kernel reports of a connection, and the bytes of replies.

use std::io;

use crate::conn::{Pending, Phase};
use crate::idle::Idle;
use crate::sample::Outcome;
use crate::sys;
use crate::thread::Worker;
use crate::wire::{Step, Wire};

/// Reads of one connection in a row before the others have their turn.
const READS: usize = 16;
/// The other side has ended its half, or the whole, of the connection.
const GONE: u32 = (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32;
/// There is something to read, if only the end.
const TO_READ: u32 = libc::EPOLLIN as u32 | GONE;

impl<W: Wire> Worker<'_, W> {
    pub(crate) fn on_event(&mut self, index: u32, generation: u32, flags: u32) {
        let conn = &self.conns[index as usize];
        if conn.generation != generation {
            return;
        }
        match conn.phase {
            Phase::Down => {}
            Phase::Connecting => {
                self.on_connect(index);
                let phase = self.conns[index as usize].phase;
                if flags & TO_READ != 0 && phase != Phase::Connecting {
                    // The other side spoke, or went, before this was seen to be connected.
                    self.on_event(index, generation, flags & TO_READ);
                }
            }
            _ if flags & TO_READ == 0 && conn.job.at == conn.job.end => {}
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
                if flags & TO_READ != 0 {
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
        let conn = &mut self.conns[index as usize];
        let mut plain = &mut piece[..];
        if conn.tls.is_some() {
            plain = &mut self.buffer;
        }
        let outcome = match conn.receive(plain, &mut self.sealed) {
            Ok((0, _)) => Outcome::Reset,
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

    /// Reads until the reply is whole or nothing more is there; a read that does not fill the buffer
    /// has taken all that was.
    fn read(&mut self, index: u32, gone: bool, buffer: &mut [u8]) {
        for _ in 0..READS {
            let conn = &mut self.conns[index as usize];
            let got = conn.receive(buffer, &mut self.sealed);
            let now = self.clock.now();
            match got {
                Ok((0, _)) => return self.ended(index, now),
                Ok((count, all)) => {
                    let piece = &buffer[..count];
                    if conn.job.first_byte < 0 {
                        conn.job.first_byte = now;
                    }
                    if let Some(under_way) = conn.under_way() {
                        under_way.first_byte = now;
                    }
                    match conn.wire.feed(piece) {
                        Step::More => {
                            conn.job.got(count);
                            conn.job.reply_bytes += count as u64;
                            if conn.job.keeps() {
                                self.kept.gather(&mut conn.kept, piece);
                            }
                            if all && !gone {
                                return;
                            }
                        }
                        Step::Whole { used, reply } => {
                            let close = reply.close
                                || gone
                                || conn.broken
                                || used < count
                                || conn.tls.as_ref().is_some_and(|tls| tls.is_closed());
                            // Bytes beyond the reply answer nothing that was asked.
                            let outcome = if used < count {
                                Outcome::Malformed
                            } else {
                                reply.outcome
                            };
                            conn.job.got(used);
                            conn.job.add_host_ns(reply.host_ns);
                            self.statuses.count(conn.wire.status());
                            conn.job.outcome = conn.job.outcome.worse(outcome);
                            self.replied(index, now, &piece[..used], close, gone);
                            if !all && !close {
                                self.again(index);
                            }
                            return;
                        }
                        Step::Malformed => {
                            conn.job.got(count);
                            if conn.job.keeps() {
                                self.kept.gather(&mut conn.kept, piece);
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
        self.again(index);
    }

    /// The reply to one exchange is whole; `last` is its last piece. `close`: the connection is not
    /// used again; `gone`: the other side has ended it.
    fn replied(&mut self, index: u32, now: i64, last: &[u8], close: bool, gone: bool) {
        let conn = &mut self.conns[index as usize];
        conn.served = true;
        conn.pause_ns = 0;
        let unsent = conn.job.at < conn.job.end;
        if !conn.owed.is_empty() {
            return self.repaid(index, now, close || unsent);
        }
        if let Some(last) = conn.exchanges.last_mut()
            && conn.job.is_timed()
        {
            last.done = now;
        }
        // The reply to a clean-up is not kept.
        let last = if conn.job.done < 0 { last } else { &[] };
        conn.job.goes_on(now);
        // Of an operation that failed with its connection the clean-up has to wait for the next one.
        let over = conn.job.outcome == Outcome::Malformed
            || (conn.job.operation && conn.job.failed() && (close || unsent));
        if conn.job.exchange < conn.job.exchange_end && !over {
            if conn.job.keep {
                self.kept.gather(&mut conn.kept, last);
            }
            if close || unsent {
                // The rest belongs on this connection, which is gone.
                return self.fail(index, Outcome::Reset);
            }
            conn.job.reply_bytes = 0;
            if conn.job.is_set_up() {
                conn.job
                    .begins(self.pace.due_after_set_up(conn.job.due, now), now);
                conn.kept.clear();
            }
            conn.pending = Pending::Send;
            self.ready.push(index);
            return;
        }
        let (job, id) = (conn.job.clone(), conn.id);
        self.deadlines.take(&mut self.conns, index);
        self.active -= 1;
        let done = if job.done < 0 { now } else { job.done };
        if self.record(&job, id, job.outcome, done) {
            self.keep_exchanges(index);
            if job.keep {
                self.keep(index, last);
            }
        }
        if self.shared.idle == Idle::Hybrid {
            self.expectation.note(now - job.sent);
        }
        let conn = &mut self.conns[index as usize];
        conn.job.active = false;
        conn.owed = job.unclean();
        conn.free = now;
        if close || unsent {
            // Where the other side has ended already, a plain close leaves nothing behind.
            if !gone && !unsent {
                let _ = sys::forget(conn.fd());
            }
            conn.close();
        } else {
            conn.phase = Phase::Idle;
        }
        let then = self.pace.answered(index, conn, now);
        self.then(index, then);
    }

    /// One exchange of what an earlier operation left to be cleaned up is over, whatever it came
    /// to. After the last its client is ready, and its own request begins.
    fn repaid(&mut self, index: u32, now: i64, lost: bool) {
        let conn = &mut self.conns[index as usize];
        conn.owed.start += 1;
        conn.kept.clear();
        conn.job.outcome = Outcome::Ok;
        conn.job.reply_bytes = 0;
        if lost {
            return self.fail(index, Outcome::Reset);
        }
        if conn.owed.is_empty() {
            let due = self.pace.due_after_set_up(conn.job.due, now);
            conn.job.begins(due, now);
            conn.free = now;
        }
        conn.pending = Pending::Send;
        self.ready.push(index);
    }

    /// The other side ended the connection while a reply was awaited.
    fn ended(&mut self, index: u32, now: i64) {
        let conn = &mut self.conns[index as usize];
        match conn.wire.ended() {
            Some(reply) if conn.job.reply_bytes > 0 => {
                conn.job.outcome = conn.job.outcome.worse(reply.outcome);
                conn.job.add_host_ns(reply.host_ns);
                self.statuses.count(conn.wire.status());
                self.replied(index, now, &[], true, true);
            }
            _ => self.cut_off(index),
        }
    }

    fn cut_off(&mut self, index: u32) {
        let any = self.conns[index as usize].job.reply_bytes > 0;
        let outcome = if any {
            Outcome::Truncated
        } else {
            Outcome::Reset
        };
        self.torn(index, outcome, None);
    }

    /// Gives up what waited longest, where its time is over.
    pub(crate) fn expire(&mut self) {
        if self.deadlines.first(&self.conns).is_none() {
            return;
        }
        let now = self.clock.now();
        while let Some((deadline, index)) = self.deadlines.first(&self.conns) {
            if deadline > now {
                return;
            }
            self.fail(index, Outcome::TimedOut);
        }
    }
}
