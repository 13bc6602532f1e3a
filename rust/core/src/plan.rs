//! Which connections a drive opens: exactly those that something may be sent over.
//!
//! Closed loop: a client has a connection to each target that its own run asks. Open loop: each
//! target that is asked at all has a pool of its own. Clients, and the connections of each pool,
//! are dealt to the threads in turn.

use crate::schedule::Load;

/// The most connections of a drive: their numbers have 16 bits in the samples.
const MOST: usize = 65_536;

/// A connection that is to be opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Planned {
    /// Unique over all threads. With one target that of its client or place in the pool; with
    /// several, counted client by client, or target by target.
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

    pub fn are_all_the_first(&self) -> bool {
        self.0.is_none()
    }
}

/// For each thread the connections it opens, in the order in which it does.
pub fn plan(
    load: &Load,
    of: &RequestTargets,
    targets: usize,
    connections: usize,
    threads: usize,
) -> Result<Vec<Vec<Planned>>, String> {
    let mut plan = vec![Vec::new(); threads];
    let mut open = |number: usize, client: usize, target: usize| {
        let id = u16::try_from(number).map_err(|_| {
            format!("more than {MOST} connections to {targets} targets: use fewer clients")
        })?;
        plan[client % threads].push(Planned {
            id,
            client: (client / threads) as u32,
            target: target as u16,
        });
        Ok::<(), String>(())
    };
    match load {
        Load::Closed {
            sequence, starts, ..
        } => {
            let mut count = 0;
            for client in 0..connections {
                let run = &sequence[starts[client] as usize..starts[client + 1] as usize];
                if of.are_all_the_first() {
                    if !run.is_empty() {
                        open(client, client, 0)?;
                    }
                    continue;
                }
                for target in targets_of(run, of, targets) {
                    open(count, client, target)?;
                    count += 1;
                }
            }
        }
        Load::Open { sequence, .. } => {
            let asked = targets_of(sequence, of, targets);
            for connection in 0..connections {
                for &target in &asked {
                    open(target * connections + connection, connection, target)?;
                }
            }
        }
    }
    Ok(plan)
}

/// The targets that these requests ask, in order.
fn targets_of(run: &[u32], of: &RequestTargets, targets: usize) -> Vec<usize> {
    if of.are_all_the_first() {
        return if run.is_empty() { vec![] } else { vec![0] };
    }
    let mut asked = vec![false; targets];
    for &request in run {
        asked[of.of(request) as usize] = true;
    }
    (0..targets).filter(|&target| asked[target]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(sequence: Vec<u32>, starts: Vec<u32>) -> Load {
        Load::Closed {
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
    fn a_client_has_a_connection_to_each_target_of_its_run_and_no_other() {
        let of = RequestTargets::new(Some(vec![2, 0, 1]), 3, 3).unwrap();
        let load = closed(vec![0, 1, 0, 0, 2], vec![0, 3, 3, 4, 5]);
        let plan = plan(&load, &of, 3, 4, 2).unwrap();
        assert_eq!(
            plan[0],
            [planned(0, 0, 0), planned(1, 0, 2), planned(2, 1, 2)]
        );
        assert_eq!(plan[1], [planned(3, 1, 1)], "client 1 asks nothing");
    }

    #[test]
    fn with_one_target_a_connection_has_the_number_of_its_client() {
        let of = RequestTargets::new(Some(vec![0]), 1, 1).unwrap();
        let load = closed(vec![0; 3], vec![0, 1, 1, 2, 3]);
        let plan = plan(&load, &of, 1, 4, 2).unwrap();
        assert_eq!(plan[0], [planned(0, 0, 0), planned(2, 1, 0)]);
        assert_eq!(plan[1], [planned(3, 1, 0)]);
    }

    #[test]
    fn each_target_that_is_asked_has_a_pool_of_its_own() {
        let of = RequestTargets::new(Some(vec![2, 0]), 2, 3).unwrap();
        let load = Load::Open {
            sequence: vec![0, 1],
            due_ns: vec![0, 0],
        };
        let plan = plan(&load, &of, 3, 3, 2).unwrap();
        let ids = |thread: usize| plan[thread].iter().map(|p| p.id).collect::<Vec<_>>();
        assert_eq!((ids(0), ids(1)), (vec![0, 6, 2, 8], vec![1, 7]));
        assert!(plan.iter().flatten().all(|p| p.target != 1));
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let refused = |of: Vec<u16>| RequestTargets::new(Some(of), 2, 2).err().unwrap();
        assert!(refused(vec![0]).contains("1 entries"));
        assert!(refused(vec![0, 2]).contains("request_targets[1] is 2"));
        let of = RequestTargets::new(Some(vec![0, 1]), 2, 2).unwrap();
        let load = Load::Open {
            sequence: vec![0, 1],
            due_ns: vec![0, 0],
        };
        let error = plan(&load, &of, 2, 40_000, 1).err().unwrap();
        assert!(error.contains("65536 connections"), "{error}");
    }
}
