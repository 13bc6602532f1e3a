//! When a request is given up: how long each may take, and who is next.
//!
//! Waits of one length end in the order in which they began, so a list for each length is ordered
//! by appending to it; there are few lengths, and with one nothing is looked for.

use crate::conn::{Conn, NONE, Phase};

/// Distinct waits that a drive may have: the ends of the lists are compared at every turn.
const MOST: usize = 64;

/// How long each request may take.
pub struct Timeouts {
    /// The distinct waits; the first is the one of connections that nothing is sent over yet.
    waits: Vec<i64>,
    /// By request, an index into the waits; empty where all have the first.
    of: Vec<u8>,
}

impl Timeouts {
    /// `each`: for each request its own. Err says what does not fit.
    pub fn new(timeout_ns: i64, each: Option<&[i64]>) -> Result<Timeouts, String> {
        if timeout_ns <= 0 {
            return Err(format!("timeout_ns is {timeout_ns}, not above 0"));
        }
        let mut waits = vec![timeout_ns];
        let mut of = Vec::with_capacity(each.map_or(0, <[i64]>::len));
        for (request, &wait) in each.unwrap_or_default().iter().enumerate() {
            if wait <= 0 {
                return Err(format!(
                    "request_timeouts_ns[{request}] is {wait}, not above 0"
                ));
            }
            let list = match waits.iter().position(|&known| known == wait) {
                Some(list) => list,
                None if waits.len() == MOST => {
                    return Err(format!(
                        "request_timeouts_ns has more than {} values besides timeout_ns: round \
                         them to fewer",
                        MOST - 1
                    ));
                }
                None => {
                    waits.push(wait);
                    waits.len() - 1
                }
            };
            of.push(list as u8);
        }
        Ok(Timeouts { waits, of })
    }

    /// The list of a request.
    #[inline]
    pub fn list(&self, request: u32) -> u8 {
        if self.of.is_empty() {
            0
        } else {
            self.of[request as usize]
        }
    }

    /// How long those on a list wait.
    #[inline]
    pub fn wait_ns(&self, list: u8) -> i64 {
        self.waits[list as usize]
    }

    pub fn longest_ns(&self) -> i64 {
        self.waits.iter().copied().max().unwrap_or(0)
    }

    pub fn lists(&self) -> usize {
        self.waits.len()
    }
}

#[derive(Clone)]
struct List {
    head: u32,
    tail: u32,
    /// The first connection whose reply is still expected; those before it are overdue.
    expected: u32,
}

/// Connections in the order in which they will be given up: a list for each wait. All waits of a
/// list are equally long, so a connection is always put at the end.
pub struct Deadlines(Vec<List>);

impl Deadlines {
    pub fn new(lists: usize) -> Deadlines {
        let empty = List {
            head: NONE,
            tail: NONE,
            expected: NONE,
        };
        Deadlines(vec![empty; lists])
    }

    pub fn put<W>(&mut self, conns: &mut [Conn<W>], index: u32, list: u8, deadline: i64) {
        self.take(conns, index);
        let ends = &mut self.0[list as usize];
        let conn = &mut conns[index as usize];
        conn.deadline = deadline;
        conn.list = list;
        conn.linked = true;
        conn.previous = ends.tail;
        conn.next = NONE;
        match ends.tail {
            NONE => ends.head = index,
            tail => conns[tail as usize].next = index,
        }
        ends.tail = index;
        if ends.expected == NONE {
            ends.expected = index;
        }
    }

    pub fn take<W>(&mut self, conns: &mut [Conn<W>], index: u32) {
        let conn = &mut conns[index as usize];
        if !conn.linked {
            return;
        }
        conn.linked = false;
        let ends = &mut self.0[conn.list as usize];
        let (previous, next) = (conn.previous, conn.next);
        match previous {
            NONE => ends.head = next,
            previous => conns[previous as usize].next = next,
        }
        match next {
            NONE => ends.tail = previous,
            next => conns[next as usize].previous = previous,
        }
        if ends.expected == index {
            ends.expected = next;
        }
    }

    /// The connection that is given up first, and when.
    #[inline]
    pub fn first<W>(&self, conns: &[Conn<W>]) -> Option<(i64, u32)> {
        let mut first = None;
        for list in &self.0 {
            if list.head != NONE {
                let entry = (conns[list.head as usize].deadline, list.head);
                if first.is_none_or(|known| entry < known) {
                    first = Some(entry);
                }
            }
        }
        first
    }

    /// When the next expected reply is to be spun for, passing over those that are overdue.
    pub fn window<W>(
        &mut self,
        conns: &[Conn<W>],
        now: i64,
        window: impl Fn(i64) -> (i64, i64),
    ) -> Option<(i64, i64)> {
        let mut first: Option<(i64, i64)> = None;
        for list in &mut self.0 {
            while list.expected != NONE {
                let conn = &conns[list.expected as usize];
                if conn.phase == Phase::Busy {
                    let (from, to) = window(conn.job.sent);
                    if now < to {
                        if first.is_none_or(|known| from < known.0) {
                            first = Some((from, to));
                        }
                        break;
                    }
                }
                list.expected = conn.next;
            }
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Planned;

    fn conns(count: usize) -> Vec<Conn<()>> {
        (0..count)
            .map(|_| Conn::new((), &Planned::default()))
            .collect()
    }

    fn order(ends: &List, conns: &[Conn<()>]) -> Vec<u32> {
        let mut at = ends.head;
        let mut order = Vec::new();
        while at != NONE {
            order.push(at);
            at = conns[at as usize].next;
        }
        order
    }

    #[test]
    fn the_list_of_deadlines_keeps_the_order_whatever_is_taken_out() {
        let mut conns = conns(4);
        let mut list = Deadlines::new(1);
        for index in 0..4 {
            list.put(&mut conns, index, 0, 10 + i64::from(index));
        }
        list.take(&mut conns, 1);
        list.take(&mut conns, 3);
        assert_eq!(order(&list.0[0], &conns), [0, 2]);
        list.take(&mut conns, 0);
        list.put(&mut conns, 1, 0, 20);
        list.put(&mut conns, 2, 0, 21);
        assert_eq!(order(&list.0[0], &conns), [1, 2]);
        list.take(&mut conns, 2);
        list.take(&mut conns, 1);
        list.take(&mut conns, 1);
        assert_eq!(list.first(&conns), None);
    }

    #[test]
    fn of_several_lists_the_earliest_end_is_first_and_moving_between_them_leaves_no_trace() {
        let mut conns = conns(3);
        let mut lists = Deadlines::new(2);
        lists.put(&mut conns, 0, 0, 100);
        lists.put(&mut conns, 1, 1, 50);
        lists.put(&mut conns, 2, 0, 101);
        assert_eq!(lists.first(&conns), Some((50, 1)));
        lists.put(&mut conns, 1, 0, 102);
        assert_eq!(lists.first(&conns), Some((100, 0)));
        assert_eq!(order(&lists.0[0], &conns), [0, 2, 1]);
        assert_eq!(order(&lists.0[1], &conns), [0; 0]);
    }

    #[test]
    fn overdue_replies_are_passed_over_and_later_ones_still_expected() {
        let mut conns = conns(2);
        let mut list = Deadlines::new(2);
        for (index, sent) in [(0, 0), (1, 500)] {
            conns[index as usize].phase = Phase::Busy;
            conns[index as usize].job.sent = sent;
            list.put(&mut conns, index, index as u8, 10_000);
        }
        let window = |sent| (sent + 100, sent + 200);
        assert_eq!(list.window(&conns, 50, window), Some((100, 200)));
        assert_eq!(list.window(&conns, 300, window), Some((600, 700)));
        assert_eq!(list.window(&conns, 900, window), None);
    }

    #[test]
    fn equal_timeouts_share_a_list_and_there_are_few() {
        let timeouts = Timeouts::new(5, Some(&[7, 5, 9, 7])).unwrap();
        let waits: Vec<i64> = (0..4)
            .map(|request| timeouts.wait_ns(timeouts.list(request)))
            .collect();
        assert_eq!(waits, [7, 5, 9, 7]);
        assert_eq!((timeouts.lists(), timeouts.longest_ns()), (3, 9));
        let same = Timeouts::new(5, None).unwrap();
        assert_eq!((same.list(3), same.wait_ns(0)), (0, 5));
        let refused = |each: &[i64]| Timeouts::new(5, Some(each)).err().unwrap();
        assert!(refused(&[1, 0]).contains("request_timeouts_ns[1] is 0"));
        let many: Vec<i64> = (1..=65).collect();
        assert!(refused(&many).contains("more than 63"));
    }
}
