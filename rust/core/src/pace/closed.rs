//! Closed loops: clients that wait for a reply, think, and ask again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::Ordering::Relaxed;

use super::turn::{Due, Loss, Terms, Then, Turn, longer};
use crate::account::Counters;
use crate::conn::{Conn, NONE, Pending};
use crate::plan::{Deal, Planned, RequestTargets};

/// Each client sends its next request `think_ns` after the reply to its last.
pub struct ClosedLoop {
    pub sequence: Vec<u32>,
    /// Client c has `sequence[starts[c]..starts[c + 1]]`.
    pub starts: Vec<u32>,
    pub think_ns: i64,
    /// At the end of its run a client begins again.
    pub repeat: bool,
    /// Nothing is begun after that many requests were, by all clients together.
    pub stop_after: Option<u64>,
}

impl ClosedLoop {
    pub(super) fn check(&self, clients: usize, stop_ns: Option<i64>) -> Result<(), String> {
        let starts = &self.starts;
        if starts.len() != clients + 1 {
            return Err(format!(
                "client_starts has {} entries, and {clients} connections need {}",
                starts.len(),
                clients + 1
            ));
        }
        let rises = starts.windows(2).all(|pair| pair[0] <= pair[1]);
        if !rises || starts[clients] as usize > self.sequence.len() {
            return Err("client_starts must not decrease, nor go beyond the sequence".into());
        }
        if self.think_ns < 0 {
            return Err(format!("think_ns is {}, below 0", self.think_ns));
        }
        if self.repeat && self.stop_after.is_none() && stop_ns.is_none() {
            return Err("repeat never ends without stop_ns or stop_after".into());
        }
        Ok(())
    }

    /// A client has a connection to each target that its own run asks.
    pub(super) fn plan(
        &self,
        deal: &mut Deal,
        of: &RequestTargets,
        clients: usize,
    ) -> Result<(), String> {
        let mut count = 0;
        for client in 0..clients {
            let run = self.starts[client] as usize..self.starts[client + 1] as usize;
            for target in of.asked_by(&self.sequence[run]) {
                let number = if of.are_all_the_first() {
                    client
                } else {
                    count
                };
                deal.open(number, client, target)?;
                count += 1;
            }
        }
        Ok(())
    }
}

/// A client's place in its run.
#[derive(Clone, Debug)]
struct Run {
    start: u32,
    end: u32,
    at: u32,
}

impl Run {
    fn new(start: u32, end: u32) -> Run {
        Run {
            start,
            end,
            at: start,
        }
    }

    /// How many requests it has once through.
    fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// The next index into the sequence; None once the run is over.
    #[inline]
    fn next(&mut self, repeat: bool) -> Option<u32> {
        if self.at == self.end {
            if !repeat || self.start == self.end {
                return None;
            }
            self.at = self.start;
        }
        self.at += 1;
        Some(self.at - 1)
    }
}

struct Client {
    run: Run,
    next_due: i64,
    /// It began at least one request.
    began: bool,
    /// The first of its connections, which are in the order of their targets; NONE where it has
    /// none.
    first: u32,
}

/// One thread's clients.
pub(crate) struct Clients<'a> {
    load: &'a ClosedLoop,
    terms: &'a Terms,
    /// The thread's connections, a client's next to each other.
    planned: &'a [Planned],
    clients: Vec<Client>,
    /// Those that think or pause, by when they begin.
    timers: BinaryHeap<Reverse<(i64, u32)>>,
    /// How many are not done.
    live: usize,
    begun: u64,
}

impl<'a> Clients<'a> {
    pub fn new(
        load: &'a ClosedLoop,
        terms: &'a Terms,
        thread: usize,
        planned: &'a [Planned],
    ) -> Clients<'a> {
        let mut clients: Vec<Client> = (thread..terms.connections)
            .step_by(terms.threads)
            .map(|c| Client {
                run: Run::new(load.starts[c], load.starts[c + 1]),
                next_due: 0,
                began: false,
                first: NONE,
            })
            .collect();
        for (at, planned) in planned.iter().enumerate().rev() {
            clients[planned.client as usize].first = at as u32;
        }
        Clients {
            load,
            terms,
            planned,
            timers: BinaryHeap::with_capacity(clients.len()),
            clients,
            live: 0,
            begun: 0,
        }
    }

    pub fn most_requests(&self) -> Option<usize> {
        let once = self.clients.iter().map(|client| client.run.len()).sum();
        match (self.load.repeat, self.load.stop_after) {
            (false, Some(stop)) => Some(stop.min(once as u64) as usize),
            (false, None) => Some(once),
            (true, stop) => stop.map(|stop| stop as usize),
        }
    }

    /// Every client that has anything to ask begins.
    pub fn start<W>(&mut self, conns: &mut [Conn<W>], ready: &mut Vec<u32>) {
        for first in self.clients.iter().map(|client| client.first) {
            if first != NONE {
                self.live += 1;
                conns[first as usize].pending = Pending::Begin;
                ready.push(first);
            }
        }
    }

    #[inline]
    pub fn next(&mut self, now: i64) -> Option<Turn> {
        match self.timers.peek() {
            Some(&Reverse((at, client))) if at <= now => {
                self.timers.pop();
                let begun = self.begin(client, now);
                Some(begun.map_or(Turn::Passed, |(due, over)| Turn::Send(due, over)))
            }
            _ => None,
        }
    }

    #[inline]
    pub fn begin(&mut self, client: u32, now: i64) -> Option<(Due, u32)> {
        let which = &mut self.clients[client as usize];
        let stopped = self.terms.stop_ns.is_some_and(|stop| now >= stop);
        let next = if stopped {
            None
        } else {
            which.run.next(self.load.repeat)
        };
        let next = next.filter(|_| match self.load.stop_after {
            Some(stop) => self.terms.begun.fetch_add(1, Relaxed) < stop,
            None => true,
        });
        let Some(position) = next else {
            self.live -= 1;
            return None;
        };
        which.began = true;
        let (due_ns, first) = (which.next_due, which.first);
        let request = self.load.sequence[position as usize];
        let nth = self.begun;
        self.begun += 1;
        let due = Due {
            request,
            due_ns,
            nth,
        };
        Some((due, self.towards(first, request)))
    }

    /// The connection of a client that leads where this request goes.
    #[inline]
    fn towards(&self, first: u32, request: u32) -> u32 {
        let of = &self.terms.request_targets;
        if of.are_all_the_first() {
            return first;
        }
        let target = of.of(request);
        let mut index = first;
        while self.planned[index as usize].target != target {
            index += 1;
        }
        index
    }

    #[inline]
    pub fn answered(&mut self, client: u32, now: i64) -> Then {
        let due = now.saturating_add(self.load.think_ns);
        self.think(client, now, due, due)
    }

    pub fn lost<W>(&mut self, conn: &mut Conn<W>, loss: Loss, counters: &mut Counters) -> Then {
        if !loss.carried {
            // Nobody waited for it: its client connects again when it next begins.
            return Then::Wait;
        }
        let due = loss.now.saturating_add(self.load.think_ns);
        let mut begin_at = due;
        if loss.fruitless {
            conn.pause_ns = longer(conn.pause_ns);
            counters.paused(conn.pause_ns);
            begin_at = due.max(loss.now + conn.pause_ns);
        }
        self.think(conn.client, loss.now, due, begin_at)
    }

    /// The client's next request is due then, and begun perhaps later.
    #[inline]
    fn think(&mut self, client: u32, now: i64, due: i64, begin_at: i64) -> Then {
        self.clients[client as usize].next_due = due;
        let stop_ns = self.terms.stop_ns;
        let stop_after = self.load.stop_after;
        let stopped = stop_ns.is_some_and(|stop| begin_at >= stop)
            || stop_after.is_some_and(|stop| self.terms.begun.load(Relaxed) >= stop);
        if stopped {
            self.live -= 1;
            Then::Wait
        } else if begin_at > now {
            self.timers.push(Reverse((begin_at, client)));
            Then::Wait
        } else {
            Then::Begin
        }
    }

    #[inline]
    pub fn wakes_at(&self) -> i64 {
        self.timers.peek().map_or(i64::MAX, |Reverse((at, _))| *at)
    }

    pub fn last_begin(&self) -> Option<i64> {
        self.terms.stop_ns
    }

    #[inline]
    pub fn are_done(&self) -> bool {
        self.live == 0
    }

    pub fn that_began(&self) -> u64 {
        self.clients.iter().filter(|client| client.began).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::{Load, Pace};
    use crate::sample::Outcome;

    fn closed(sequence: Vec<u32>, starts: Vec<u32>) -> ClosedLoop {
        ClosedLoop {
            sequence,
            starts,
            think_ns: 0,
            repeat: false,
            stop_after: None,
        }
    }

    fn planned(id: u16, client: u32, target: u16) -> Planned {
        Planned { id, client, target }
    }

    #[test]
    fn a_client_walks_its_run_once() {
        let mut run = Run::new(3, 5);
        assert_eq!(
            [run.next(false), run.next(false), run.next(false)],
            [Some(3), Some(4), None]
        );
    }

    #[test]
    fn a_repeating_client_begins_again_and_an_empty_run_never_begins() {
        let mut run = Run::new(3, 5);
        let walked: Vec<_> = (0..5).map(|_| run.next(true)).collect();
        assert_eq!(walked, [3, 4, 3, 4, 3].map(Some));
        assert_eq!(Run::new(2, 2).next(true), None);
    }

    #[test]
    fn a_client_has_a_connection_to_each_target_of_its_run_and_no_other() {
        let of = RequestTargets::new(Some(vec![2, 0, 1]), 3, 3).unwrap();
        let load = Load::Closed(closed(vec![0, 1, 0, 0, 2], vec![0, 3, 3, 4, 5]));
        let plan = load.plan(&of, 3, 4, 2).unwrap();
        assert_eq!(
            plan[0],
            [planned(0, 0, 0), planned(1, 0, 2), planned(2, 1, 2)]
        );
        assert_eq!(plan[1], [planned(3, 1, 1)], "client 1 asks nothing");
    }

    #[test]
    fn with_one_target_a_connection_has_the_number_of_its_client() {
        let of = RequestTargets::new(Some(vec![0]), 1, 1).unwrap();
        let load = Load::Closed(closed(vec![0; 3], vec![0, 1, 1, 2, 3]));
        let plan = load.plan(&of, 1, 4, 2).unwrap();
        assert_eq!(plan[0], [planned(0, 0, 0), planned(2, 1, 0)]);
        assert_eq!(plan[1], [planned(3, 1, 0)]);
    }

    #[test]
    fn a_client_thinks_after_a_reply_and_pauses_after_a_fruitless_connection() {
        let load = Load::Closed(ClosedLoop {
            think_ns: 500,
            ..closed(vec![0, 0, 0, 0], vec![0, 4])
        });
        let terms = Terms {
            request_targets: RequestTargets::new(None, 1, 1).unwrap(),
            targets: 1,
            connections: 1,
            threads: 1,
            stop_ns: Some(10_000_000),
            begun: Default::default(),
        };
        let plan = [planned(0, 0, 0)];
        let mut conns = vec![Conn::new((), &plan[0])];
        let mut pace = Pace::new(&load, &terms, 0, &plan);
        assert_eq!(
            (pace.most_requests(), pace.last_begin()),
            (Some(4), Some(10_000_000))
        );
        let mut ready = Vec::new();
        pace.start(&mut conns, &mut ready);
        assert_eq!((ready, conns[0].pending), (vec![0], Pending::Begin));
        assert_eq!(pace.begin(0, 7).map(|(due, _)| due.due_ns), Some(0));

        assert_eq!(pace.answered(0, &conns[0], 1_000), Then::Wait);
        assert_eq!(pace.wakes_at(), (1_500, i64::MAX));
        assert_eq!(pace.next(1_499, &conns), None);
        let due = |due_ns, nth| Due {
            request: 0,
            due_ns,
            nth,
        };
        assert_eq!(pace.next(1_600, &conns), Some(Turn::Send(due(1_500, 1), 0)));

        let mut counters = Counters::default();
        let loss = Loss {
            now: 2_000,
            outcome: Outcome::Refused,
            carried: true,
            fruitless: true,
        };
        assert_eq!(pace.lost(0, &mut conns[0], loss, &mut counters), Then::Wait);
        assert_eq!((counters.pauses, counters.pause_ns), (1, 1_000_000));
        assert_eq!(pace.wakes_at().0, 1_002_000);
        let late = pace.next(1_002_000, &conns);
        assert_eq!(late, Some(Turn::Send(due(2_500, 2), 0)));

        // The next would begin after the stop.
        assert_eq!(pace.answered(0, &conns[0], 9_999_600), Then::Wait);
        assert!(pace.is_over() && pace.unsent().is_none());
        assert_eq!(pace.clients(), 1);
    }
}
