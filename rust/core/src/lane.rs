//! What a thread keeps for each target: in an open loop the slots that are due there, the
//! connections that are free, and those that cannot be opened. So a target that is slow or gone
//! holds up nobody else's requests.

use crate::sample::Outcome;
use crate::schedule::Slots;

/// Connections opened to one target, by one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opened {
    pub connects: u64,
    pub reconnects: u64,
    pub refused_connects: u64,
}

impl Opened {
    pub fn add(&mut self, other: &Opened) {
        self.connects += other.connects;
        self.reconnects += other.reconnects;
        self.refused_connects += other.refused_connects;
    }
}

pub(crate) struct Lane {
    /// Open loop: the slots not yet taken, first in first out.
    pub slots: Slots,
    /// Connections (with their socket) that are free, the one freed last on top.
    pub free: Vec<(u32, u32)>,
    /// Open loop: connections that could not be opened, when the next is tried, and why.
    pub down: Vec<u32>,
    pub retry_at: i64,
    pub pause_ns: i64,
    /// One connection was tried after a pause, and nothing has come of it yet.
    pub probed: bool,
    pub down_because: Outcome,
    /// How many connections lead to this target, and the number of the first.
    pub conns: usize,
    pub first_id: u16,
    pub opened: Opened,
}

impl Lane {
    pub fn new(slots: Slots) -> Lane {
        Lane {
            slots,
            free: Vec::new(),
            down: Vec::new(),
            retry_at: 0,
            pause_ns: 0,
            probed: false,
            down_because: Outcome::Refused,
            conns: 0,
            first_id: 0,
            opened: Opened::default(),
        }
    }

    /// Something can be done about its next slot: it can be sent, or be recorded as one that
    /// nobody can take.
    #[inline]
    pub fn can_act(&self) -> bool {
        !self.free.is_empty() || self.all_down()
    }

    #[inline]
    pub fn all_down(&self) -> bool {
        self.down.len() == self.conns
    }

    /// Forgets what was noted while opening beforehand.
    pub fn opened(&mut self) {
        self.free.clear();
        self.down.clear();
        self.retry_at = 0;
        self.pause_ns = 0;
    }
}

/// The lane whose next slot was due first, of those that can act at `now`.
#[inline]
pub(crate) fn due_first(lanes: &[Lane], due_ns: &[i64], now: i64) -> Option<usize> {
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
