//! Jobs between who feeds blocks and the threads that read them.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::damage::Damage;
use crate::format::{Before, Format};
use crate::source::{Block, Span};

pub enum Work {
    /// A block of a file, not read yet; how many blocks come before the first of its span; and what
    /// stands before it.
    Far(Arc<File>, Span, u64, u64, Before),
    Near(Block),
    /// Whole sources, whose lines must come in order.
    Whole(Vec<Link>),
}

/// A source that is read after those before it.
pub struct Link {
    pub source: usize,
    pub stream: Box<dyn Read + Send>,
    pub damage: Damage,
    /// Bytes of the stream that were read before.
    pub skip: u64,
}

pub struct Job {
    pub source: usize,
    pub format: Format,
    /// The instant of the last stamp before it, where that matters.
    pub at_s: Option<i64>,
    pub work: Work,
}

/// Jobs that wait for a thread; never many, for some of them hold their bytes.
#[derive(Default)]
pub struct Queue {
    jobs: Mutex<(VecDeque<Job>, bool)>,
    changed: Condvar,
}

impl Queue {
    /// Puts a job behind the others; false where `go_on` says to stop.
    pub fn put(&self, job: Job, most: usize, go_on: &mut dyn FnMut() -> bool) -> bool {
        let mut held = self.jobs.lock().unwrap();
        while held.0.len() >= most {
            let waited = self.changed.wait_timeout(held, TICK).unwrap();
            held = waited.0;
            if waited.1.timed_out() && !go_on() {
                return false;
            }
        }
        held.0.push_back(job);
        self.changed.notify_all();
        true
    }

    pub fn take(&self) -> Option<Job> {
        let mut held = self.jobs.lock().unwrap();
        loop {
            if let Some(job) = held.0.pop_front() {
                self.changed.notify_all();
                return Some(job);
            }
            if held.1 {
                return None;
            }
            held = self.changed.wait(held).unwrap();
        }
    }

    pub fn close(&self) {
        self.jobs.lock().unwrap().1 = true;
        self.changed.notify_all();
    }
}

const TICK: Duration = Duration::from_millis(100);
