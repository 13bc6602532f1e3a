//! Open loops: what a thread keeps for each target, which is the slots that are due there, the
//! connections that are free, and those that cannot be opened. So a target that is slow or gone
//! holds up nobody else's requests.

use std::collections::VecDeque;

use super::slots::Slots;
use super::turn::{Then, longer};
use crate::conn::{Conn, Phase};
use crate::sample::Outcome;

/// In place of the next attempt's time while one connection tries whether the target is back.
const TRYING: i64 = i64::MAX;

pub(super) struct Lane {
    /// The slots not yet taken, first in first out.
    pub slots: Slots,
    /// Connections (with their socket) that are free and have served, the one freed last on top.
    free: Vec<(u32, u32)>,
    /// Those that were only opened, in the order in which they were. A server that takes one
    /// connection at a time takes them in this order, and reads from the first until it asks.
    unused: VecDeque<(u32, u32)>,
    /// Connections that could not be opened, when the next is tried, and why.
    pub down: Vec<u32>,
    pub retry_at: i64,
    pub down_because: Outcome,
    /// The last pause before an attempt; 0 where the target serves. It is the lane's and not the
    /// connection's: a large pool must not knock a thousand times as often as a small one.
    pause_ns: i64,
    /// One connection was tried after a pause, and nothing has come of it yet.
    tried: bool,
    /// How many connections lead to this target, and the number of the first.
    pub conns: usize,
    pub first_id: u16,
}

impl Lane {
    pub fn new(slots: Slots) -> Lane {
        Lane {
            slots,
            free: Vec::new(),
            unused: VecDeque::new(),
            down: Vec::new(),
            retry_at: 0,
            down_because: Outcome::Refused,
            pause_ns: 0,
            tried: false,
            conns: 0,
            first_id: 0,
        }
    }

    /// Something can be done about its next slot: it can be sent, or be recorded as one that
    /// nobody can take.
    #[inline]
    pub fn can_act(&self) -> bool {
        !self.free.is_empty() || !self.unused.is_empty() || self.all_down()
    }

    #[inline]
    pub fn all_down(&self) -> bool {
        self.down.len() == self.conns
    }

    /// Forgets what was noted while opening beforehand.
    pub fn forget(&mut self) {
        self.free.clear();
        self.unused.clear();
        self.down.clear();
        self.retry_at = 0;
        self.pause_ns = 0;
    }

    /// A connection is up, and has carried nothing.
    pub fn opened<W>(&mut self, index: u32, conn: &Conn<W>) {
        self.unused.push_back((index, conn.generation));
    }

    /// A connection has carried a request and can carry the next.
    #[inline]
    pub fn freed<W>(&mut self, index: u32, conn: &Conn<W>) {
        self.free.push((index, conn.generation));
    }

    /// The free connection that was freed last, else the one that was opened first; stale entries
    /// are passed over.
    #[inline]
    pub fn take_free<W>(&mut self, conns: &[Conn<W>]) -> Option<u32> {
        while let Some((index, generation)) = self.free.pop().or_else(|| self.unused.pop_front()) {
            let conn = &conns[index as usize];
            if conn.phase == Phase::Idle && conn.generation == generation {
                return Some(index);
            }
        }
        None
    }

    /// The target answered: all that is down may be opened again.
    #[inline]
    pub fn serves(&mut self, now: i64) {
        self.pause_ns = 0;
        self.tried = false;
        self.retry_at = now;
    }

    /// The connection that was tried is up; whether the target serves is still to be seen.
    pub fn tried_well(&mut self, now: i64) {
        if self.retry_at == TRYING {
            self.retry_at = now + self.pause_ns;
        }
    }

    /// A connection that ended well is opened again where there is something left to send.
    pub fn open_again(&mut self, index: u32) -> Then {
        if self.slots.is_empty() {
            self.down.push(index);
            return Then::Wait;
        }
        Then::Connect
    }

    /// Notes a connection as down; how long the lane now pauses, where that is a new pause.
    pub fn set_down(&mut self, index: u32, now: i64) -> Option<i64> {
        self.down.push(index);
        if now < self.retry_at && !self.tried {
            return None;
        }
        self.tried = false;
        self.pause_ns = longer(self.pause_ns);
        self.retry_at = now + self.pause_ns;
        Some(self.pause_ns)
    }

    /// The connection that is tried next: one after each pause, all once the target serves.
    #[inline]
    pub fn reopen(&mut self, now: i64) -> Option<u32> {
        if self.down.is_empty() || now < self.retry_at || self.slots.is_empty() {
            return None;
        }
        if self.pause_ns > 0 {
            self.retry_at = TRYING;
            self.tried = true;
        }
        self.down.pop()
    }
}

/// The lane whose next slot was due first, of those that can act at `now`.
#[inline]
pub(super) fn due_first(lanes: &[Lane], due_ns: &[i64], now: i64) -> Option<usize> {
    let mut first: Option<(i64, usize, usize)> = None;
    for (target, lane) in lanes.iter().enumerate() {
        if !lane.can_act() {
            continue;
        }
        if let Some(slot) = lane.slots.head()
            && due_ns[slot] <= now
        {
            let entry = (due_ns[slot], slot, target);
            if first.is_none_or(|known| entry < known) {
                first = Some(entry);
            }
        }
    }
    first.map(|(_, _, target)| target)
}
