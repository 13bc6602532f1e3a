//! The pace of a drive: everything that closed loops and open loops do differently is in here, and
//! nobody else asks which of the two it is.
//!
//! A `Load` is what the user asked for, `Terms` what else its threads have to know, a `Pace` what one
//! thread keeps while it drives. The loop asks its pace what is sent next, when to wake, what a
//! connection does after a request, and when all is over.
//!
//! A replay is an open loop whose due times were read from a log. Nothing else is different about
//! it, so there are two kinds of pace and not three.

mod closed;
mod lane;
mod open;
mod slots;
mod turn;

pub use closed::ClosedLoop;
pub use open::OpenLoop;
pub use turn::Terms;
pub(crate) use turn::{Due, Loss, Then, Turn};

use crate::account::Counters;
use crate::conn::Conn;
use crate::plan::{Deal, Planned, RequestTargets};
use closed::Clients;
use open::Pools;

/// A load: which requests, and what decides when each is due.
pub enum Load {
    /// Each client sends its next request after the reply to its last.
    Closed(ClosedLoop),
    /// Each slot is due at its own instant, whatever happened to those before it.
    Open(OpenLoop),
}

impl Load {
    /// The load that these columns describe: closed with `client_starts`, open with `due_ns`. Err
    /// says what does not fit.
    pub fn new(
        sequence: Vec<u32>,
        client_starts: Option<Vec<u32>>,
        due_ns: Option<Vec<i64>>,
        think_ns: i64,
        repeat: bool,
        stop_after: Option<u64>,
    ) -> Result<Load, String> {
        match (client_starts, due_ns) {
            (Some(starts), None) => Ok(Load::Closed(ClosedLoop {
                sequence,
                starts,
                think_ns,
                repeat,
                stop_after,
            })),
            (None, Some(_)) if think_ns != 0 || repeat || stop_after.is_some() => Err(
                "think_ns, repeat and stop_after belong to a closed loop, and due_ns makes an \
                 open one"
                    .into(),
            ),
            (None, Some(due_ns)) => Ok(Load::Open(OpenLoop { sequence, due_ns })),
            _ => Err(
                "give client_starts for a closed loop or due_ns for an open one, not both".into(),
            ),
        }
    }

    /// The requests, in the order in which they are to be sent.
    pub fn sequence(&self) -> &[u32] {
        match self {
            Load::Closed(load) => &load.sequence,
            Load::Open(load) => &load.sequence,
        }
    }

    /// Err says what does not fit together.
    pub fn check(&self, connections: usize, stop_ns: Option<i64>) -> Result<(), String> {
        match self {
            Load::Closed(load) => load.check(connections, stop_ns),
            Load::Open(load) => load.check(),
        }
    }

    /// For each thread the connections it opens, in the order in which it does: exactly those that
    /// something may be sent over.
    pub fn plan(
        &self,
        of: &RequestTargets,
        targets: usize,
        connections: usize,
        threads: usize,
    ) -> Result<Vec<Vec<Planned>>, String> {
        let mut deal = Deal::new(targets, threads);
        match self {
            Load::Closed(load) => load.plan(&mut deal, of, connections)?,
            Load::Open(load) => load.plan(&mut deal, of, connections)?,
        }
        Ok(deal.into_plan())
    }
}

/// One thread's part of the load, while it drives.
pub(crate) enum Pace<'a> {
    Closed(Clients<'a>),
    Open(Pools<'a>),
}

impl<'a> Pace<'a> {
    /// `planned`: the connections that this thread opens.
    pub fn new(
        load: &'a Load,
        terms: &'a Terms,
        thread: usize,
        planned: &'a [Planned],
    ) -> Pace<'a> {
        match load {
            Load::Closed(load) => Pace::Closed(Clients::new(load, terms, thread, planned)),
            Load::Open(load) => Pace::Open(Pools::new(load, terms, thread, planned)),
        }
    }

    /// The most requests that can be left to record; None where there is no bound.
    pub fn most_requests(&self) -> Option<usize> {
        match self {
            Pace::Closed(clients) => clients.most_requests(),
            Pace::Open(pools) => Some(pools.most_requests()),
        }
    }

    /// The clock has its zero: clients begin, and connections are free or down as they are now.
    /// What was noted while opening them is forgotten.
    pub fn start<W>(&mut self, conns: &mut [Conn<W>], ready: &mut Vec<u32>) {
        match self {
            Pace::Closed(clients) => clients.start(conns, ready),
            Pace::Open(pools) => pools.start(conns),
        }
    }

    /// What is to be done by `now`; None where nothing is.
    #[inline]
    pub fn next<W>(&mut self, now: i64, conns: &[Conn<W>]) -> Option<Turn> {
        match self {
            Pace::Closed(clients) => clients.next(now),
            Pace::Open(pools) => pools.next(now, conns),
        }
    }

    /// What this client begins with at `now`, and over which connection; None where it is done.
    #[inline]
    pub fn begin(&mut self, client: u32, now: i64) -> Option<(Due, u32)> {
        match self {
            Pace::Closed(clients) => clients.begin(client, now),
            Pace::Open(_) => None,
        }
    }

    /// A connection that is to be opened again before anything is sent over it. The next question
    /// comes after it was tried.
    #[inline]
    pub fn reopen(&mut self, now: i64) -> Option<u32> {
        match self {
            // A client opens its connections when it needs them.
            Pace::Closed(_) => None,
            Pace::Open(pools) => pools.reopen(now),
        }
    }

    /// A connection is up and carries nothing.
    pub fn is_up<W>(&mut self, index: u32, conn: &Conn<W>) {
        match self {
            Pace::Closed(_) => {}
            Pace::Open(pools) => pools.is_up(index, conn),
        }
    }

    /// A whole reply came, and the connection is idle, or was closed after it.
    #[inline]
    pub fn answered<W>(&mut self, index: u32, conn: &Conn<W>, now: i64) -> Then {
        match self {
            Pace::Closed(clients) => clients.answered(conn.client, now),
            Pace::Open(pools) => pools.answered(index, conn, now),
        }
    }

    /// A connection was lost, and with it the request that it carried, if any.
    pub fn lost<W>(
        &mut self,
        index: u32,
        conn: &mut Conn<W>,
        loss: Loss,
        counters: &mut Counters,
    ) -> Then {
        match self {
            Pace::Closed(clients) => clients.lost(conn, loss, counters),
            Pace::Open(pools) => pools.lost(index, conn.target, loss, counters),
        }
    }

    /// When what is timed of a request was due whose set-up is over now: a client of a closed loop
    /// asks once it is ready, and a slot keeps its time.
    #[inline]
    pub fn due_after_set_up(&self, due: i64, now: i64) -> i64 {
        match self {
            Pace::Closed(_) => now,
            Pace::Open(_) => due,
        }
    }

    /// When something is next to be sent, and when connections are next to be opened again;
    /// i64::MAX is never.
    #[inline]
    pub fn wakes_at(&self) -> (i64, i64) {
        match self {
            Pace::Closed(clients) => (clients.wakes_at(), i64::MAX),
            Pace::Open(pools) => pools.wakes_at(),
        }
    }

    /// After which instant nothing is begun; None where that is not known beforehand.
    pub fn last_begin(&self) -> Option<i64> {
        match self {
            Pace::Closed(clients) => clients.last_begin(),
            Pace::Open(pools) => pools.last_begin(),
        }
    }

    /// Nothing will be begun any more.
    #[inline]
    pub fn is_over(&self) -> bool {
        match self {
            Pace::Closed(clients) => clients.are_done(),
            Pace::Open(pools) => pools.are_empty(),
        }
    }

    /// As if the drive had been to stop at `now`: what is due later is left out.
    pub fn stop(&mut self, now: i64) {
        match self {
            Pace::Closed(_) => {}
            Pace::Open(pools) => pools.stop(now),
        }
    }

    /// At the end, one after another, what was due and was never sent, with the number of the
    /// connection that it is charged to. A closed loop leaves nothing: what no client began was
    /// never due.
    pub fn unsent(&mut self) -> Option<(Due, u16)> {
        match self {
            Pace::Closed(_) => None,
            Pace::Open(pools) => pools.unsent(),
        }
    }

    /// Clients that began a request.
    pub fn clients(&self) -> u64 {
        match self {
            Pace::Closed(clients) => clients.that_began(),
            Pace::Open(_) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_make_a_closed_loop_or_an_open_one_and_never_both() {
        let make = |starts: Option<Vec<u32>>, due: Option<Vec<i64>>, think_ns| {
            Load::new(vec![0], starts, due, think_ns, false, None)
        };
        assert!(matches!(
            make(Some(vec![0, 1]), None, 5),
            Ok(Load::Closed(_))
        ));
        assert!(matches!(make(None, Some(vec![0]), 0), Ok(Load::Open(_))));
        let refused = |made: Result<Load, String>| made.err().unwrap();
        assert!(refused(make(None, Some(vec![0]), 5)).contains("belong to a closed loop"));
        assert!(refused(make(None, None, 0)).contains("not both"));
        assert!(refused(make(Some(vec![0, 1]), Some(vec![0]), 0)).contains("not both"));
    }
}
