//! An answer that waits until stores have kept what it is about.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use mio::Waker;

use crate::counters::{Counts, add};

/// Whose answer it is: a connection of a reactor (which may have gone), and which of its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asker {
    pub connection: usize,
    pub generation: u64,
    pub call: u64,
}

/// Where stores leave what became of calls, for a reactor.
pub struct Mailbox {
    letters: Mutex<Vec<(Asker, bool)>>,
    waker: Waker,
}

impl Mailbox {
    pub fn new(waker: Waker) -> Mailbox {
        Mailbox {
            letters: Mutex::default(),
            waker,
        }
    }

    pub fn wake(&self) {
        let _ = self.waker.wake();
    }

    fn put(&self, asker: Asker, kept: bool) {
        let mut letters = self.letters.lock().unwrap_or_else(PoisonError::into_inner);
        letters.push((asker, kept));
        let first = letters.len() == 1;
        drop(letters);
        if first {
            self.wake();
        }
    }

    pub fn take(&self, into: &mut Vec<(Asker, bool)>) {
        let mut letters = self.letters.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut *letters, into);
    }
}

pub struct Ticket {
    asker: Asker,
    mailbox: Arc<Mailbox>,
    /// Queues that have not said yet.
    open: AtomicUsize,
    failed: AtomicBool,
    messages: Vec<(Arc<Counts>, usize)>,
}

impl Ticket {
    pub fn new(
        asker: Asker,
        mailbox: Arc<Mailbox>,
        queues: usize,
        messages: Vec<(Arc<Counts>, usize)>,
    ) -> Arc<Ticket> {
        let (open, failed) = (AtomicUsize::new(queues), AtomicBool::new(false));
        Arc::new(Ticket {
            asker,
            mailbox,
            open,
            failed,
            messages,
        })
    }

    /// One of the queues says whether it is kept.
    pub fn done(&self, kept: bool) {
        if !kept {
            self.failed.store(true, Ordering::Relaxed);
        }
        if self.open.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        let kept = !self.failed.load(Ordering::Relaxed);
        for (counts, count) in &self.messages {
            add(
                if kept {
                    &counts.received_good
                } else {
                    &counts.denied_failed
                },
                *count,
            );
        }
        self.mailbox.put(self.asker, kept);
    }
}
