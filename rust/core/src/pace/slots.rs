//! Open loops: the queue of what is due. It is read from tables; nothing is computed while driving.

/// One thread's slots for one target, first in first out: every `stride`-th, or
/// those of a list. The queue of slots that are due and not yet sent is the stretch between `next`
/// and the present: it takes no memory and nothing can fall out of it.
#[derive(Clone, Debug)]
pub struct Slots {
    next: usize,
    stride: usize,
    end: usize,
    /// Where these are not every `stride`-th: which they are, and the rest counts into this.
    list: Option<Box<[u32]>>,
}

impl Slots {
    /// The slots of thread `thread` of `threads`, of those due before `stop_ns`.
    pub fn new(due_ns: &[i64], thread: usize, threads: usize, stop_ns: Option<i64>) -> Slots {
        let end = match stop_ns {
            Some(stop) => due_ns.partition_point(|&due| due < stop),
            None => due_ns.len(),
        };
        Slots {
            next: thread,
            stride: threads,
            end,
            list: None,
        }
    }

    /// Leaves out those due at or after `now`.
    pub fn end_before(&mut self, due_ns: &[i64], now: i64) {
        let end = match &self.list {
            None => due_ns.partition_point(|&due| due < now),
            Some(list) => list.partition_point(|&slot| due_ns[slot as usize] < now),
        };
        self.end = self.end.min(end);
    }

    /// No slots.
    pub fn none() -> Slots {
        Slots::new(&[], 0, 1, None)
    }

    /// These slots, whose numbers increase.
    pub fn listed(slots: Vec<u32>) -> Slots {
        Slots {
            next: 0,
            stride: 1,
            end: slots.len(),
            list: Some(slots.into_boxed_slice()),
        }
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        (self.next..self.end)
            .step_by(self.stride)
            .map(|at| self.slot(at))
    }

    #[inline]
    fn slot(&self, at: usize) -> usize {
        match &self.list {
            None => at,
            Some(list) => list[at] as usize,
        }
    }

    /// The slot at the head of the queue; None when all were taken.
    #[inline]
    pub fn head(&self) -> Option<usize> {
        (self.next < self.end).then(|| self.slot(self.next))
    }

    /// Takes the head of the queue; call only when `head` is Some.
    #[inline]
    pub fn take(&mut self) -> usize {
        let slot = self.slot(self.next);
        self.next += self.stride;
        slot
    }

    /// How many are left.
    pub fn len(&self) -> usize {
        self.end.saturating_sub(self.next).div_ceil(self.stride)
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.next >= self.end
    }

    /// When the last of these slots is due.
    pub fn last_due(&self, due_ns: &[i64]) -> Option<i64> {
        (!self.is_empty()).then(|| due_ns[self.slot(self.next + (self.len() - 1) * self.stride)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_dealt_to_threads_by_their_index() {
        let due = [0, 10, 20, 30, 40];
        let mut even = Slots::new(&due, 0, 2, None);
        let mut odd = Slots::new(&due, 1, 2, None);
        assert_eq!((even.len(), odd.len()), (3, 2));
        assert_eq!(
            (even.last_due(&due), odd.last_due(&due)),
            (Some(40), Some(30))
        );
        let walk = |slots: &mut Slots| {
            let mut taken = Vec::new();
            while let Some(slot) = slots.head() {
                taken.push((slots.take(), due[slot]));
            }
            taken
        };
        assert_eq!(walk(&mut even), [(0, 0), (2, 20), (4, 40)]);
        assert_eq!(walk(&mut odd), [(1, 10), (3, 30)]);
        assert!(even.is_empty() && odd.is_empty());
    }

    #[test]
    fn slots_of_a_list_are_taken_in_its_order() {
        let due = [0, 10, 20, 30, 40];
        let mut slots = Slots::listed(vec![1, 2, 4]);
        assert_eq!((slots.len(), slots.last_due(&due)), (3, Some(40)));
        assert_eq!(slots.iter().collect::<Vec<_>>(), [1, 2, 4]);
        assert_eq!((slots.take(), slots.take()), (1, 2));
        assert_eq!((slots.head(), slots.len()), (Some(4), 1));
        assert_eq!(slots.take(), 4);
        assert_eq!((slots.head(), slots.last_due(&due)), (None, None));
        assert_eq!(Slots::none().len(), 0);
    }

    #[test]
    fn slots_due_at_or_after_the_stop_are_left_out() {
        let due = [0, 10, 10, 20];
        assert_eq!(Slots::new(&due, 0, 1, Some(10)).len(), 1);
        assert_eq!(Slots::new(&due, 0, 1, Some(11)).len(), 3);
        assert_eq!(Slots::new(&due, 0, 1, Some(0)).len(), 0);
        assert_eq!(Slots::new(&due, 5, 7, None).len(), 0);
    }
}
