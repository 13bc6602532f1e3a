//! Open loops, and replays: each request is due at its own instant and goes over any connection to
//! its target that is free.

use super::lane::{Lane, due_first};
use super::slots::Slots;
use super::turn::{Due, Loss, Terms, Then, Turn};
use crate::account::Counters;
use crate::conn::{Conn, Phase};
use crate::plan::{Deal, Planned, RequestTargets};

/// Each slot is due at its own instant, whatever happened to those before it.
pub struct OpenLoop {
    pub sequence: Vec<u32>,
    /// As long as the sequence; never decreases.
    pub due_ns: Vec<i64>,
}

impl OpenLoop {
    pub(super) fn check(&self) -> Result<(), String> {
        let due_ns = &self.due_ns;
        if due_ns.len() != self.sequence.len() {
            return Err(format!(
                "due_ns has {} entries and sequence {}",
                due_ns.len(),
                self.sequence.len()
            ));
        }
        if due_ns.first().is_some_and(|&first| first < 0) {
            return Err("due_ns begins below 0".into());
        }
        match due_ns.windows(2).position(|pair| pair[0] > pair[1]) {
            Some(at) => Err(format!("due_ns decreases after entry {at}")),
            None => Ok(()),
        }
    }

    /// Each target that is asked at all has a pool of its own.
    pub(super) fn plan(
        &self,
        deal: &mut Deal,
        of: &RequestTargets,
        connections: usize,
    ) -> Result<(), String> {
        let asked = of.asked_by(&self.sequence);
        for connection in 0..connections {
            for &target in &asked {
                deal.open(target * connections + connection, connection, target)?;
            }
        }
        Ok(())
    }

    fn due(&self, slot: usize) -> Due {
        Due {
            request: self.sequence[slot],
            due_ns: self.due_ns[slot],
            nth: slot as u64,
        }
    }
}

/// One thread's slots and connections, target by target.
pub(crate) struct Pools<'a> {
    load: &'a OpenLoop,
    lanes: Vec<Lane>,
    /// The first lane that may have slots left, at the end.
    left: usize,
}

impl<'a> Pools<'a> {
    pub fn new(
        load: &'a OpenLoop,
        terms: &'a Terms,
        thread: usize,
        planned: &'a [Planned],
    ) -> Pools<'a> {
        let slots = Slots::new(&load.due_ns, thread, terms.threads, terms.stop_ns);
        let by_target = by_target(slots, terms, &load.sequence);
        let mut lanes: Vec<Lane> = by_target.into_iter().map(Lane::new).collect();
        for planned in planned.iter().rev() {
            let lane = &mut lanes[planned.target as usize];
            lane.conns += 1;
            lane.first_id = planned.id;
        }
        Pools {
            load,
            lanes,
            left: 0,
        }
    }

    pub fn most_requests(&self) -> usize {
        self.lanes.iter().map(|lane| lane.slots.len()).sum()
    }

    #[inline]
    pub fn are_empty(&self) -> bool {
        self.lanes.iter().all(|lane| lane.slots.is_empty())
    }

    pub fn start<W>(&mut self, conns: &[Conn<W>]) {
        for lane in &mut self.lanes {
            lane.forget();
        }
        for (index, conn) in conns.iter().enumerate() {
            let lane = &mut self.lanes[conn.target as usize];
            match conn.phase {
                Phase::Idle => lane.opened(index as u32, conn),
                _ => lane.down.push(index as u32),
            }
        }
    }

    /// Sends what is due over what is free; says what can be sent by nobody.
    #[inline]
    pub fn next<W>(&mut self, now: i64, conns: &[Conn<W>]) -> Option<Turn> {
        let target = due_first(&self.lanes, &self.load.due_ns, now)?;
        let lane = &mut self.lanes[target];
        Some(match lane.take_free(conns) {
            Some(index) => Turn::Send(self.load.due(lane.slots.take()), index),
            None if lane.all_down() => {
                let due = self.load.due(lane.slots.take());
                Turn::Lost(due, lane.down_because, lane.first_id)
            }
            // What seemed free was not: the lane cannot act any more.
            None => Turn::Passed,
        })
    }

    /// Of each target one connection after each pause, all once it serves.
    #[inline]
    pub fn reopen(&mut self, now: i64) -> Option<u32> {
        self.lanes.iter_mut().find_map(|lane| lane.reopen(now))
    }

    pub fn is_up<W>(&mut self, index: u32, conn: &Conn<W>) {
        let lane = &mut self.lanes[conn.target as usize];
        lane.opened(index, conn);
        lane.tried_well(conn.free);
    }

    #[inline]
    pub fn answered<W>(&mut self, index: u32, conn: &Conn<W>, now: i64) -> Then {
        let lane = &mut self.lanes[conn.target as usize];
        lane.serves(now);
        if conn.phase == Phase::Idle {
            lane.freed(index, conn);
            Then::Wait
        } else {
            lane.open_again(index)
        }
    }

    pub fn lost(&mut self, index: u32, target: u16, loss: Loss, counters: &mut Counters) -> Then {
        let lane = &mut self.lanes[target as usize];
        lane.down_because = loss.outcome;
        if !loss.fruitless {
            return lane.open_again(index);
        }
        if let Some(pause_ns) = lane.set_down(index, loss.now) {
            counters.paused(pause_ns);
        }
        Then::Wait
    }

    #[inline]
    pub fn wakes_at(&self) -> (i64, i64) {
        let (mut send_at, mut reopen_at) = (i64::MAX, i64::MAX);
        for lane in &self.lanes {
            // A slot is acted upon when it can be sent, or when nothing is left to wait for.
            if lane.can_act()
                && let Some(slot) = lane.slots.head()
            {
                send_at = send_at.min(self.load.due_ns[slot]);
            }
            if !lane.down.is_empty() && !lane.slots.is_empty() {
                reopen_at = reopen_at.min(lane.retry_at);
            }
        }
        (send_at, reopen_at)
    }

    pub fn last_begin(&self) -> Option<i64> {
        let lanes = self.lanes.iter();
        lanes
            .filter_map(|lane| lane.slots.last_due(&self.load.due_ns))
            .max()
    }

    pub fn stop(&mut self, now: i64) {
        for lane in &mut self.lanes {
            lane.slots.end_before(&self.load.due_ns, now);
        }
    }

    pub fn unsent(&mut self) -> Option<(Due, u16)> {
        while let Some(lane) = self.lanes.get_mut(self.left) {
            if lane.slots.head().is_some() {
                return Some((self.load.due(lane.slots.take()), lane.first_id));
            }
            self.left += 1;
        }
        None
    }
}

/// A thread's slots, target by target.
fn by_target(slots: Slots, terms: &Terms, sequence: &[u32]) -> Vec<Slots> {
    let of = &terms.request_targets;
    if of.are_all_the_first() {
        let others = (1..terms.targets).map(|_| Slots::none());
        return std::iter::once(slots).chain(others).collect();
    }
    let mut lists = vec![Vec::new(); terms.targets];
    for slot in slots.iter() {
        lists[of.of(sequence[slot]) as usize].push(slot as u32);
    }
    lists.into_iter().map(Slots::listed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pace::{Load, Pace};
    use crate::sample::Outcome;

    fn open(sequence: Vec<u32>, due_ns: Vec<i64>) -> Load {
        Load::Open(OpenLoop { sequence, due_ns })
    }

    #[test]
    fn each_target_that_is_asked_has_a_pool_of_its_own() {
        let of = RequestTargets::new(Some(vec![2, 0]), 2, 3).unwrap();
        let load = open(vec![0, 1], vec![0, 0]);
        let plan = load.plan(&of, 3, 3, 2).unwrap();
        let ids = |thread: usize| plan[thread].iter().map(|p| p.id).collect::<Vec<_>>();
        assert_eq!((ids(0), ids(1)), (vec![0, 6, 2, 8], vec![1, 7]));
        assert!(plan.iter().flatten().all(|p| p.target != 1));
    }

    #[test]
    fn more_connections_than_have_numbers_are_refused() {
        let of = RequestTargets::new(Some(vec![0, 1]), 2, 2).unwrap();
        let error = open(vec![0, 1], vec![0, 0]).plan(&of, 2, 40_000, 1);
        let error = error.err().unwrap();
        assert!(error.contains("65536 connections"), "{error}");
    }

    #[test]
    fn a_slot_waits_for_a_free_connection_and_is_lost_where_all_are_down() {
        let load = open(vec![0; 4], vec![10, 20, 30, 40]);
        let terms = Terms {
            request_targets: RequestTargets::new(None, 1, 1).unwrap(),
            targets: 1,
            connections: 1,
            threads: 1,
            stop_ns: None,
            begun: Default::default(),
        };
        let plan = load.plan(&terms.request_targets, 1, 1, 1);
        let plan = plan.unwrap().remove(0);
        let mut conns = vec![Conn::new((), &plan[0])];
        conns[0].phase = Phase::Idle;
        let mut pace = Pace::new(&load, &terms, 0, &plan);
        pace.start(&mut conns, &mut Vec::new());
        assert_eq!(
            (pace.most_requests(), pace.last_begin()),
            (Some(4), Some(40))
        );
        let due = |due_ns: i64, nth| Due {
            request: 0,
            due_ns,
            nth,
        };
        assert_eq!(pace.wakes_at(), (10, i64::MAX));
        assert_eq!(pace.next(9, &conns), None);
        assert_eq!(pace.next(10, &conns), Some(Turn::Send(due(10, 0), 0)));
        conns[0].phase = Phase::Busy;
        assert_eq!(pace.next(25, &conns), None, "nothing is free");
        assert_eq!(pace.wakes_at(), (i64::MAX, i64::MAX));

        conns[0].phase = Phase::Down;
        let mut counters = Counters::default();
        let loss = Loss {
            now: 26,
            outcome: Outcome::Refused,
            carried: true,
            fruitless: true,
        };
        assert_eq!(pace.lost(0, &mut conns[0], loss, &mut counters), Then::Wait);
        assert_eq!(counters.pauses, 1);
        let lost = Turn::Lost(due(20, 1), Outcome::Refused, 0);
        assert_eq!(pace.next(27, &conns), Some(lost));
        assert_eq!(pace.wakes_at(), (30, 1_000_026));
        assert_eq!(pace.reopen(1_000_025), None);
        assert_eq!(pace.reopen(1_000_026), Some(0));

        // It is up again, and serves.
        conns[0].phase = Phase::Idle;
        pace.is_up(0, &conns[0]);
        let late = pace.next(1_000_100, &conns);
        assert_eq!(late, Some(Turn::Send(due(30, 2), 0)));
        assert_eq!(pace.answered(0, &conns[0], 1_000_200), Then::Wait);

        pace.stop(41);
        assert!(!pace.is_over());
        assert_eq!(pace.unsent(), Some((due(40, 3), 0)));
        assert_eq!(pace.unsent(), None);
        assert!(pace.is_over());
    }

    #[test]
    fn what_is_due_after_a_stop_is_left_out() {
        let load = open(vec![0; 4], vec![10, 20, 30, 40]);
        let terms = Terms {
            request_targets: RequestTargets::new(None, 1, 1).unwrap(),
            targets: 1,
            connections: 1,
            threads: 2,
            stop_ns: None,
            begun: Default::default(),
        };
        let mut pace = Pace::new(&load, &terms, 1, &[]);
        assert_eq!(pace.most_requests(), Some(2));
        pace.stop(40);
        let unsent = pace.unsent().map(|(due, _)| due.due_ns);
        assert_eq!((unsent, pace.unsent()), (Some(20), None));
    }
}
