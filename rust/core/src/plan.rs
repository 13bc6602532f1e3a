//! Which connections a drive opens, and which target each request asks.
//!
//! What is opened for a load the load says itself (`Load::plan`); here it is numbered, and dealt to
//! the threads in turn.

use std::collections::BTreeSet;

/// The most connections of a drive: their numbers have 16 bits in the samples.
const MOST: usize = 65_536;

/// A connection that is to be opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Planned {
    /// Unique over all threads.
    pub id: u16,
    /// Closed loop: whose it is, of the clients of its thread.
    pub client: u32,
    pub target: u16,
}

/// Which target each request asks: the first, where none is given.
pub struct RequestTargets(Option<Vec<u16>>);

impl RequestTargets {
    /// Err says what does not fit.
    pub fn new(
        of: Option<Vec<u16>>,
        requests: usize,
        targets: usize,
    ) -> Result<RequestTargets, String> {
        if let Some(of) = &of {
            if of.len() != requests {
                return Err(format!(
                    "request_targets has {} entries, and there are {requests} requests",
                    of.len()
                ));
            }
            if let Some(at) = of.iter().position(|&target| target as usize >= targets) {
                return Err(format!(
                    "request_targets[{at}] is {}, but there are only {targets} targets",
                    of[at]
                ));
            }
        }
        // Nothing needs to be looked up where there is one target.
        Ok(RequestTargets(of.filter(|_| targets > 1)))
    }

    #[inline]
    pub fn of(&self, request: u32) -> u16 {
        match &self.0 {
            None => 0,
            Some(of) => of[request as usize],
        }
    }

    #[inline]
    pub fn are_all_the_first(&self) -> bool {
        self.0.is_none()
    }

    /// The targets that these requests ask, in order.
    pub fn asked_by(&self, run: &[u32]) -> Vec<usize> {
        match &self.0 {
            None if run.is_empty() => vec![],
            None => vec![0],
            Some(of) => {
                let asked: BTreeSet<u16> =
                    run.iter().map(|&request| of[request as usize]).collect();
                asked.into_iter().map(usize::from).collect()
            }
        }
    }
}

/// Deals connections to threads in the order in which they are opened.
pub struct Deal {
    plan: Vec<Vec<Planned>>,
    targets: usize,
}

impl Deal {
    pub fn new(targets: usize, threads: usize) -> Deal {
        Deal {
            plan: vec![Vec::new(); threads],
            targets,
        }
    }

    /// Another connection. `place`: its client, or its place in the pool, which decides whose thread
    /// has it. Err where there is no such number.
    pub fn open(&mut self, number: usize, place: usize, target: usize) -> Result<(), String> {
        let id = u16::try_from(number).map_err(|_| {
            format!(
                "more than {MOST} connections to {} targets: use fewer clients",
                self.targets
            )
        })?;
        let threads = self.plan.len();
        self.plan[place % threads].push(Planned {
            id,
            client: (place / threads) as u32,
            target: target as u16,
        });
        Ok(())
    }

    /// For each thread its connections.
    pub fn into_plan(self) -> Vec<Vec<Planned>> {
        self.plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_said() {
        let refused = |of: Vec<u16>| RequestTargets::new(Some(of), 2, 2).err().unwrap();
        assert!(refused(vec![0]).contains("1 entries"));
        assert!(refused(vec![0, 2]).contains("request_targets[1] is 2"));
    }

    #[test]
    fn the_targets_of_a_run_are_each_named_once_and_in_order() {
        let of = RequestTargets::new(Some(vec![2, 0, 1]), 3, 3).unwrap();
        assert_eq!(of.asked_by(&[0, 1, 0]), [0, 2]);
        assert_eq!(of.asked_by(&[]), [0; 0]);
        let first = RequestTargets::new(None, 3, 3).unwrap();
        assert_eq!(
            (first.asked_by(&[1]), first.asked_by(&[])),
            (vec![0], vec![])
        );
    }

    #[test]
    fn connections_are_dealt_to_the_threads_in_turn() {
        let mut deal = Deal::new(1, 2);
        for place in 0..3 {
            deal.open(place, place, 0).unwrap();
        }
        let plan = deal.into_plan();
        let places = |thread: usize| -> Vec<(u16, u32)> {
            plan[thread].iter().map(|p| (p.id, p.client)).collect()
        };
        assert_eq!((places(0), places(1)), (vec![(0, 0), (2, 1)], vec![(1, 0)]));
    }
}
