//! A queue in front of a store, and the thread that empties it.
//!
//! Without `fsync` a message is answered with OK once it is in a queue; one that the store does not
//! take waits at the head and is tried for ever (`must_succeed`). With `fsync` the answer waits for
//! the store: what that does not take is the client's still.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::batch::{Batch, Name};
use crate::counters::{Counts, add};
use crate::ledger::Row;
use crate::store::Store;
use crate::sys::EndsAll;
use crate::ticket::Ticket;

/// What a message needs in memory beside its bytes.
const EACH: usize = 16;

/// A thread of a store needs little, and there may be thousands.
const STACK_BYTES: usize = 512 << 10;

pub struct Limits {
    pub target_write_bytes: usize,
    pub max_write_interval: Duration,
    pub check_interval: Duration,
    pub max_queue_bytes: usize,
    pub must_succeed: bool,
    pub fsync: bool,
    /// Bytes of the largest message that its store can take.
    pub largest: usize,
}

#[derive(Default)]
struct Held {
    batch: Batch,
    tickets: Vec<Arc<Ticket>>,
    /// When the first of the batch came.
    since: Option<Instant>,
    /// Acknowledged by an earlier store, and given before all others.
    inherited: Batch,
    stop: bool,
}

pub struct Queue {
    pub category: String,
    pub limits: Limits,
    counts: Arc<Counts>,
    row: Row,
    held: Mutex<Held>,
    wake: Condvar,
    /// Of everything that is held, in the store's hands too.
    bytes: AtomicUsize,
    trouble: Mutex<Option<String>>,
    settled: AtomicBool,
}

fn weight(batch: &Batch) -> usize {
    batch.bytes().len() + batch.len() * EACH
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Queue {
    pub fn new(category: String, limits: Limits, counts: Arc<Counts>, row: Row) -> Arc<Queue> {
        Arc::new(Queue {
            category,
            limits,
            counts,
            row,
            held: Mutex::default(),
            wake: Condvar::new(),
            bytes: AtomicUsize::new(0),
            trouble: Mutex::default(),
            settled: AtomicBool::new(false),
        })
    }

    pub fn is_full(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > self.limits.max_queue_bytes
    }

    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub fn trouble(&self) -> Option<String> {
        locked(&self.trouble).clone()
    }

    /// Is nothing of what was inherited held any longer?
    pub fn settled(&self) -> bool {
        self.settled.load(Ordering::Acquire)
    }

    /// Takes messages in. With `fsync`, the ticket is told what became of them.
    pub fn push<'a>(
        &self,
        name: &Name,
        messages: impl ExactSizeIterator<Item = &'a [u8]>,
        ticket: Option<&Arc<Ticket>>,
    ) {
        let count = messages.len();
        let mut held = locked(&self.held);
        let before = weight(&held.batch);
        for message in messages {
            held.batch.push(name, message);
        }
        let after = weight(&held.batch);
        self.bytes.fetch_add(after - before, Ordering::Relaxed);
        if let Some(ticket) = ticket {
            held.tickets.push(ticket.clone());
        } else {
            self.row.accept(count);
        }
        let first = held.since.is_none();
        if first {
            held.since = Some(Instant::now());
        }
        let target = self.limits.target_write_bytes;
        drop(held);
        if first || before < target && after >= target {
            self.wake.notify_one();
        }
    }

    /// Gives it messages that were answered with OK before. Only before it is started.
    pub fn inherit(&self, batch: &Batch) {
        self.bytes.fetch_add(weight(batch), Ordering::Relaxed);
        self.row.accept(batch.len());
        locked(&self.held).inherited.append(batch);
    }

    /// So many messages of its own are somebody else's now.
    pub fn hand_over(&self, count: usize) {
        self.row.settle(count);
    }

    pub fn stop(&self) {
        locked(&self.held).stop = true;
        self.wake.notify_one();
    }

    /// Starts the thread; it returns what the store had not taken when the queue was stopped.
    pub fn start(self: &Arc<Self>, store: Box<dyn Store>) -> std::io::Result<JoinHandle<Batch>> {
        let queue = self.clone();
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        thread.spawn(move || {
            let _all = EndsAll;
            Worker::new(queue, store).run()
        })
    }
}

/// What the thread of a queue has in hand.
struct Worker {
    queue: Arc<Queue>,
    store: Box<dyn Store>,
    /// Answered with OK, and to be given to the store before all others.
    head: Batch,
    batch: Batch,
    tickets: Vec<Arc<Ticket>>,
    next_check: Instant,
    /// Not before this is the head tried again.
    retry: Option<Instant>,
}

impl Worker {
    fn new(queue: Arc<Queue>, store: Box<dyn Store>) -> Worker {
        let head = std::mem::take(&mut locked(&queue.held).inherited);
        let next_check = Instant::now() + queue.limits.check_interval;
        let (batch, tickets) = (Batch::default(), Vec::new());
        Worker {
            queue,
            store,
            head,
            batch,
            tickets,
            next_check,
            retry: None,
        }
    }

    fn run(mut self) -> Batch {
        let _ = self.store.ready();
        self.note();
        loop {
            let stop = self.wait();
            let now = Instant::now();
            if now >= self.next_check {
                self.next_check = now + self.queue.limits.check_interval;
                let full = self.queue.bytes() as f64 / self.queue.limits.max_queue_bytes as f64;
                self.store.check(full);
            }
            if !self.head.is_empty() && (stop || self.retry.is_none_or(|at| now >= at)) {
                self.keep_head(stop);
            }
            if self.head.is_empty() {
                self.queue.settled.store(true, Ordering::Release);
            }
            if !self.batch.is_empty() {
                if self.queue.limits.fsync {
                    self.keep_and_tell();
                } else {
                    self.take_over(stop);
                }
            }
            self.note();
            if stop && self.queue.bytes() == weight(&self.head) {
                self.store.close();
                return self.head;
            }
        }
    }

    /// Until there is something to do; what is to be kept now is then in `batch`.
    fn wait(&mut self) -> bool {
        let limits = &self.queue.limits;
        let mut held = locked(&self.queue.held);
        loop {
            let now = Instant::now();
            let mut wake = self.next_check;
            if let (false, Some(at)) = (self.head.is_empty(), self.retry) {
                wake = wake.min(at);
            }
            let due = held.since.map(|since| since + limits.max_write_interval);
            let full = weight(&held.batch) >= limits.target_write_bytes;
            let blocked = !self.head.is_empty() && !limits.fsync;
            if held.stop || !blocked && due.is_some_and(|due| limits.fsync || full || now >= due) {
                std::mem::swap(&mut self.batch, &mut held.batch);
                std::mem::swap(&mut self.tickets, &mut held.tickets);
                held.since = None;
                return held.stop;
            }
            if now >= wake || !self.head.is_empty() && self.retry.is_none() {
                return false;
            }
            if let (Some(due), false) = (due, blocked) {
                wake = wake.min(due);
            }
            let pause = wake.saturating_duration_since(now);
            let waited = self.queue.wake.wait_timeout(held, pause);
            held = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Without `fsync`: what was taken in is the head now.
    fn take_over(&mut self, last: bool) {
        if self.head.is_empty() {
            std::mem::swap(&mut self.head, &mut self.batch);
            self.keep_head(last);
        } else {
            // Only when stopping: it goes where the head goes.
            self.head.append(&self.batch);
        }
        self.batch.clear();
    }

    /// Gives the head to the store. The `last` time, what is left is somebody else's.
    fn keep_head(&mut self, last: bool) {
        let (count, bytes) = (self.head.len(), weight(&self.head));
        let done = self.store.keep(&mut self.head);
        match done {
            Ok(()) => self.head.clear(),
            Err(_) if self.queue.limits.must_succeed => {
                add(&self.queue.counts.requeue, self.head.len());
                self.retry = Some(Instant::now() + jittered(self.queue.limits.max_write_interval));
            }
            Err(_) if last => {}
            Err(_) => {
                add(&self.queue.counts.lost, self.head.len());
                self.store.forget();
                self.head.clear();
            }
        }
        if self.head.is_empty() {
            self.retry = None;
        }
        self.queue.row.settle(count - self.head.len());
        self.queue
            .bytes
            .fetch_sub(bytes.saturating_sub(weight(&self.head)), Ordering::Relaxed);
    }

    /// With `fsync`: the clients wait for what the store says.
    fn keep_and_tell(&mut self) {
        let bytes = weight(&self.batch);
        // Nothing overtakes what was answered before.
        let done = self.head.is_empty() && self.store.keep(&mut self.batch).is_ok();
        if !done && self.head.is_empty() {
            self.store.forget();
        }
        for ticket in self.tickets.drain(..) {
            ticket.done(done);
        }
        self.batch.clear();
        self.queue.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn note(&self) {
        let trouble = self.store.trouble();
        let mut known = locked(&self.queue.trouble);
        if *known != trouble {
            let category = &self.queue.category;
            match &trouble {
                Some(why) => eprintln!("searchbench collect: {category}: {why}"),
                None => eprintln!("searchbench collect: {category}: all right again"),
            }
            *known = trouble;
        }
    }
}

/// Up to a quarter more or less, so that not all come at one time.
fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(0.75 + fastrand::f64() / 2.0)
}
