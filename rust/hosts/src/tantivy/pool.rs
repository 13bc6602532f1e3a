//! A pool of threads over which the parts of one query are spread; all connections share it.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// Something of which several threads can do a share.
pub trait Task: Send + Sync {
    /// Claims shares of the work and does them until none is left to claim.
    fn work(&self);
}

#[derive(Default)]
struct Queue {
    tasks: Mutex<VecDeque<Arc<dyn Task>>>,
    ready: Condvar,
}

/// The threads live as long as the process.
pub struct Pool {
    queue: Arc<Queue>,
    threads: usize,
}

impl Pool {
    /// Starts `threads` threads.
    pub fn new(threads: usize) -> std::io::Result<Pool> {
        let queue = Arc::new(Queue::default());
        for number in 0..threads {
            let queue = Arc::clone(&queue);
            thread::Builder::new()
                .name(format!("search-{number}"))
                .spawn(move || {
                    loop {
                        let mut tasks = queue.tasks.lock().expect("no panic while held");
                        let task = loop {
                            match tasks.pop_front() {
                                Some(task) => break task,
                                None => {
                                    tasks = queue.ready.wait(tasks).expect("no panic while held")
                                }
                            }
                        };
                        drop(tasks);
                        task.work();
                    }
                })?;
        }
        Ok(Pool { queue, threads })
    }

    /// Lets up to `shares` threads work on `task`; returns at once.
    pub fn submit(&self, task: &Arc<impl Task + 'static>, shares: usize) {
        let shares = shares.min(self.threads);
        let mut tasks = self.queue.tasks.lock().expect("no panic while held");
        for _ in 0..shares {
            tasks.push_back(Arc::clone(task) as Arc<dyn Task>);
        }
        drop(tasks);
        for _ in 0..shares {
            self.queue.ready.notify_one();
        }
    }
}
