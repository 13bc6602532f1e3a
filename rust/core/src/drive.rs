//! A drive: one thread a cpu, a common start, and the trace that comes of it.

use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::account::{ThreadAccount, WholeAccount};
use crate::arena::Requests;
use crate::clock::{Clock, DriftCheck, unix_ns};
use crate::deadlines::Timeouts;
use crate::options::{Error, Options};
use crate::pace::Terms;
use crate::plan::RequestTargets;
use crate::shared::Shared;
use crate::spill::{Follower, Recorded};
use crate::sys::{self, StopFlag, Usage};
use crate::thread::Worker;
use crate::trace::{Part, Trace};
use crate::wire::{Frames, Http, Mysql, Postgres, Prelude, Sphinx, Wire, WireKind};

/// Between the moment when all threads are ready and the zero of the clock.
const START_AHEAD_NS: i64 = 500_000;
/// The clock of a start at an absolute time is set between this and twice as long before it.
const CLOCK_AHEAD_NS: i64 = 50_000_000;
/// The real-time priority that is asked for: above ordinary threads, below the kernel's own.
const PRIORITY: i32 = 10;

/// Fits into one segment on any network that is driven.
const ONE_SEGMENT_BYTES: usize = 1_000;

/// Where threads meet before the start and are counted after the end.
#[derive(Default)]
struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    ready: usize,
    ended: usize,
    start: Option<Clock>,
    called_off: bool,
}

/// Counts a thread as ended however it ends.
struct Ending(Arc<Gate>);

impl Drop for Ending {
    fn drop(&mut self) {
        if let Ok(mut state) = self.0.state.lock() {
            state.ended += 1;
            self.0.changed.notify_all();
        }
    }
}

/// A drive under way.
pub struct Drive {
    shared: Arc<Shared>,
    gate: Arc<Gate>,
    threads: Vec<JoinHandle<Result<Part, Error>>>,
    follower: Option<Follower>,
    start_unix_ns: Option<i64>,
    began: Option<(Clock, DriftCheck, i64)>,
    /// The absolute start had passed when all connections were open: by how much.
    late: Option<Error>,
    /// When the threads were seen to have ended.
    elapsed_ns: Option<i64>,
}

impl Drive {
    /// Checks the options and starts the threads, which open their connections.
    pub fn start(requests: Arc<Requests>, options: Options) -> Result<Drive, Error> {
        options.check(&requests)?;
        let wire = options.wire.clone();
        Drive::start_with(requests, options, wire)
    }

    /// The wire with what is said on each of its connections, if anything is.
    fn spawn_saying<W: Wire>(
        requests: Arc<Requests>,
        mut options: Options,
        wire: W,
    ) -> Result<Drive, Error> {
        if options.prelude.is_empty() {
            return Drive::spawn(requests, options, wire);
        }
        let prelude = std::mem::take(&mut options.prelude);
        Drive::spawn(requests, options, Prelude::new(wire, prelude))
    }

    fn start_with(
        requests: Arc<Requests>,
        options: Options,
        wire: WireKind,
    ) -> Result<Drive, Error> {
        match wire {
            WireKind::Frames => Drive::spawn(requests, options, Frames::default()),
            WireKind::Http(marks) => Drive::spawn(requests, options, Http::new(marks)),
            WireKind::Mysql(login) => Drive::spawn_saying(requests, options, Mysql::new(login)),
            WireKind::Sphinxql(login) => {
                Drive::spawn(requests, options, Mysql::minding_warnings(login))
            }
            WireKind::Sphinx => Drive::spawn(requests, options, Sphinx::default()),
            WireKind::Postgres(login) => {
                Drive::spawn_saying(requests, options, Postgres::new(login))
            }
        }
    }

    pub(crate) fn spawn<W: Wire>(
        requests: Arc<Requests>,
        options: Options,
        wire: W,
    ) -> Result<Drive, Error> {
        let threads = options.cpus.len().max(1);
        let targets = options.targets.len();
        let request_targets = RequestTargets::new(options.request_targets, requests.len(), targets)
            .map_err(Error::Invalid)?;
        let plan = options
            .load
            .plan(&request_targets, targets, options.connections, threads)
            .map_err(Error::Invalid)?;
        let connections: usize = plan.iter().map(Vec::len).sum();
        sys::allow_descriptors(connections as u64 + 64 + 4 * threads as u64)?;
        let each = options.request_timeouts_ns.as_deref();
        let timeouts = Timeouts::new(options.timeout_ns, each).map_err(Error::Invalid)?;
        let shared = Arc::new(Shared {
            // What fits one segment, and is sent when nothing is under way, waits for nothing; after
            // a handshake something is.
            at_once: requests.longest() > ONE_SEGMENT_BYTES || options.tls.is_some(),
            targets: options.targets,
            load: options.load,
            terms: Terms {
                request_targets,
                targets,
                connections: options.connections,
                threads,
                stop_ns: options.stop_ns,
                begun: AtomicU64::new(0),
            },
            plan,
            requests,
            timeouts,
            tls: options.tls,
            capture_every: options.capture_every,
            exchange_times: options.exchange_times,
            idle: options.idle,
            stop: Arc::new(StopFlag::new()?),
            cut_short: AtomicBool::new(false),
            recorded: (0..threads).map(|_| Recorded::default()).collect(),
            laid: (0..threads).map(|_| Recorded::default()).collect(),
        });
        let follower = match &options.spill {
            None => None,
            Some(folder) => Some(Follower::start(
                Arc::clone(&shared.recorded),
                Arc::clone(&shared.laid),
                folder,
                options.spill_after_bytes,
                options.cpus.clone(),
            )?),
        };
        // Calibrates on first use, before the threads are there to be disturbed by it.
        let provisional = Clock::starting_in(0);
        let gate = Arc::new(Gate::default());
        let mut drive = Drive {
            shared: Arc::clone(&shared),
            gate: Arc::clone(&gate),
            threads: Vec::with_capacity(threads),
            follower,
            start_unix_ns: options.start_unix_ns,
            began: None,
            late: None,
            elapsed_ns: None,
        };
        for index in 0..threads {
            let cpu = options.cpus.get(index).copied();
            let realtime = options.realtime;
            let (shared, gate, wire) = (Arc::clone(&shared), Arc::clone(&gate), wire.clone());
            let body = move || {
                let _ending = Ending(Arc::clone(&gate));
                thread_body(shared, &gate, index, cpu, realtime, wire, provisional)
            };
            let name = format!("drive-{index}");
            // On failure the drive is dropped, which stops and joins those already there.
            drive
                .threads
                .push(std::thread::Builder::new().name(name).spawn(body)?);
        }
        Ok(drive)
    }

    /// Waits for the threads, at most `patience`; true once all have ended.
    pub fn wait(&mut self, patience: Duration) -> bool {
        let threads = self.threads.len();
        let Ok(mut state) = self.gate.state.lock() else {
            return true;
        };
        if self.began.is_none() && state.ready + state.ended < threads {
            let settled = |state: &mut GateState| state.ready + state.ended < threads;
            state = match self
                .gate
                .changed
                .wait_timeout_while(state, patience, settled)
            {
                Ok((state, _)) => state,
                Err(_) => return true,
            };
        }
        if self.began.is_none() && state.ready + state.ended >= threads {
            let left_ns = self.start_unix_ns.map(|start| start - unix_ns());
            if let Some(left_ns) = left_ns
                && left_ns > 2 * CLOCK_AHEAD_NS
                && state.ended == 0
                && !state.called_off
            {
                // The clock is set shortly before: it drifts by some parts in a million.
                let until = Duration::from_nanos((left_ns - CLOCK_AHEAD_NS) as u64);
                let waiting = |state: &mut GateState| state.ended == 0 && !state.called_off;
                let _ = self
                    .gate
                    .changed
                    .wait_timeout_while(state, patience.min(until), waiting);
                return false;
            }
            let late_ns = left_ns.map_or(0, |left_ns| START_AHEAD_NS - left_ns);
            if late_ns > 0 {
                self.late = Some(Error::Invalid(format!(
                    "start_unix_ns had passed {:.3} s before all connections were open: set it \
                     later",
                    (late_ns - START_AHEAD_NS) as f64 / 1e9
                )));
            }
            if state.ended > 0 || late_ns > 0 {
                state.called_off = true;
            } else {
                let clock = match self.start_unix_ns {
                    Some(start) => Clock::starting_at(start),
                    None => Clock::starting_in(START_AHEAD_NS),
                };
                // Where it was given it is exact.
                let started_unix_ns = self.start_unix_ns.unwrap_or_else(|| clock.zero_unix_ns());
                self.began = Some((clock, DriftCheck::begin(clock), started_unix_ns));
                state.start = Some(clock);
            }
            self.gate.changed.notify_all();
        }
        let running = |state: &mut GateState| state.ended < threads;
        let ended = match self
            .gate
            .changed
            .wait_timeout_while(state, patience, running)
        {
            Ok((state, _)) => state.ended >= threads,
            Err(_) => true,
        };
        if ended && self.elapsed_ns.is_none() {
            self.elapsed_ns = Some(self.elapsed_ns());
        }
        ended
    }

    /// Requests recorded so far.
    pub fn completed(&self) -> u64 {
        self.shared
            .recorded
            .iter()
            .map(|recorded| recorded.samples() as u64)
            .sum()
    }

    /// The bytes of the samples that each thread finished last, `RECENT` of each at most.
    pub fn recent(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for recorded in &*self.shared.recorded {
            recorded.recent(&mut bytes);
        }
        bytes
    }

    /// Nanoseconds since the start; 0 before it.
    pub fn elapsed_ns(&self) -> i64 {
        self.elapsed_ns.unwrap_or_else(|| {
            self.began
                .as_ref()
                .map_or(0, |(clock, ..)| clock.now().max(0))
        })
    }

    /// Tells the threads to end at once.
    pub fn stop(&self) {
        self.shared.stop.raise();
        if let Ok(mut state) = self.gate.state.lock() {
            state.called_off = true;
            self.gate.changed.notify_all();
        }
    }

    /// Ends the drive now and keeps its trace: what is in flight is recorded as unfinished. Before
    /// the start it does nothing.
    pub fn cut_short(&self) {
        if self.elapsed_ns() > 0 {
            self.shared.cut_short.store(true, Relaxed);
            self.shared.stop.raise();
        }
    }

    /// The trace, once the threads have ended (waits for them).
    pub fn finish(mut self) -> Result<Trace, Error> {
        while !self.wait(Duration::from_millis(100)) {}
        let mut parts = Vec::new();
        let mut failure = None;
        for thread in self.threads.drain(..) {
            match thread.join() {
                Ok(Ok(part)) => parts.push(part),
                Ok(Err(Error::Stopped)) => failure = failure.or(Some(Error::Stopped)),
                Ok(Err(error)) => failure = Some(error),
                Err(_) => {
                    failure =
                        Some(io::Error::other("a thread of the measuring loop failed").into());
                }
            }
        }
        let spilled = self.follower.take().map(Follower::finish).transpose()?;
        match (self.late.take().or(failure), self.began.take()) {
            (Some(error), _) => Err(error),
            (None, None) => Err(Error::Stopped),
            (None, Some((clock, drift, started_unix_ns))) => {
                let elapsed_ns = self.elapsed_ns.unwrap_or_else(|| clock.now());
                let account = WholeAccount {
                    targets: &self.shared.targets,
                    clock: clock.name(),
                    drift_ppm: drift.ppm(),
                    started_unix_ns,
                    elapsed_ns,
                    cut_short: self.shared.cut_short.load(Relaxed),
                };
                Ok(Trace::gather(parts, spilled, &account)?)
            }
        }
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        self.stop();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn thread_body<W: Wire>(
    shared: Arc<Shared>,
    gate: &Gate,
    index: usize,
    cpu: Option<usize>,
    realtime: bool,
    wire: W,
    provisional: Clock,
) -> Result<Part, Error> {
    if let Some(cpu) = cpu {
        sys::pin(cpu).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("cpu {cpu} cannot be pinned to: {error}"),
            )
        })?;
    }
    sys::least_timer_slack();
    let stop = Arc::clone(&shared.stop);
    // A failure here stops the other threads: they are not to wait at the gate, or drive alone.
    let run = || {
        let mut worker = Worker::new(&shared, index, wire, provisional)?;
        if !worker.open_all()? {
            return Err(Error::Stopped);
        }
        // Asked for last: setting up at this priority would only get in the way of others.
        let priority = match realtime.then(|| sys::realtime(PRIORITY)) {
            None => "other".to_string(),
            Some(Ok(())) => format!("fifo {PRIORITY}"),
            Some(Err(error)) => format!("other (fifo refused: {error})"),
        };
        let clock = pass(gate).ok_or(Error::Stopped)?;
        let before = Usage::of_this_thread();
        let ended = worker.run(clock)?;
        let usage = Usage::of_this_thread().since(&before);
        if !ended {
            return Err(Error::Stopped);
        }
        let account = ThreadAccount {
            cpu,
            priority,
            usage,
            counters: worker.counters,
            statuses: worker.statuses,
            clients: worker.pace.clients(),
            opened: worker.opened,
            greeting_failed: worker.greeting_failed,
            agreed: worker.agreed,
        };
        Ok(Part {
            log: worker.log,
            kept: worker.kept,
            exchanges: worker.exchanges,
            account,
        })
    };
    run().inspect_err(|_| stop.raise())
}

/// Waits for the start; None where it was called off.
fn pass(gate: &Gate) -> Option<Clock> {
    let mut state = gate.state.lock().ok()?;
    state.ready += 1;
    gate.changed.notify_all();
    while state.start.is_none() && !state.called_off {
        state = gate.changed.wait(state).ok()?;
    }
    if state.called_off { None } else { state.start }
}

#[cfg(test)]
#[path = "drive_tests.rs"]
mod tests;
