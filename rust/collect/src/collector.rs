//! The collector as its connections see it: answers calls, and swaps its configuration.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

use crate::batch::Batch;
use crate::conf::Settings;
use crate::counters::{Counts, add, escaped};
use crate::refusals::Refusals;
use crate::route::{Route, Router, Shared, allowed, shown};
use crate::scribe::{Answer, Call, Entry, REFUSAL, Value};
use crate::sys::unix_seconds;
use crate::ticket::{Asker, Mailbox, Ticket};

/// fb303's status; scribed never says 2 (alive) with another number.
const STARTING: u8 = 1;
const ALIVE: u8 = 2;
const STOPPING: u8 = 3;
const WARNING: u8 = 5;

pub enum Command {
    Reload,
    Stop,
}

/// The second that is counted for `max_msg_per_second`.
struct Rate {
    second: Instant,
    messages: u64,
}

pub struct Collector {
    pub shared: Shared,
    router: RwLock<Arc<Router>>,
    status: AtomicU8,
    /// Why the last reload was refused.
    complaint: Mutex<Option<String>>,
    rate: Mutex<Rate>,
    refusals: Mutex<Refusals>,
    options: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
    since: i64,
    commands: Sender<Command>,
}

/// The runs of one category in a `Log`, kept by the reactor between calls.
pub type Runs = Vec<(Arc<Route>, Range<usize>)>;

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Collector {
    pub fn new(router: Router, shared: Shared, commands: Sender<Command>) -> Collector {
        Collector {
            shared,
            router: RwLock::new(Arc::new(router)),
            status: AtomicU8::new(STARTING),
            complaint: Mutex::default(),
            rate: Mutex::new(Rate {
                second: Instant::now(),
                messages: 0,
            }),
            refusals: Mutex::default(),
            options: Mutex::default(),
            since: unix_seconds(),
            commands,
        }
    }

    fn router(&self) -> Arc<Router> {
        self.router
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Starts to keep what was inherited and what comes.
    pub fn start(&self) -> Result<(), String> {
        self.router()
            .start()
            .map_err(|error| format!("a store's thread cannot start: {error}"))?;
        self.status.store(ALIVE, Ordering::Release);
        Ok(())
    }

    /// Takes a `Log` in. None: the answer comes by the ticket of `asker`.
    pub fn log(
        &self,
        frame: &[u8],
        entries: &[Entry],
        runs: &mut Runs,
        asker: Asker,
        mailbox: &Arc<Mailbox>,
    ) -> Option<Answer> {
        // Held while messages are taken in: a queue that is stopped gets no more of them.
        let router = self.router.read().unwrap_or_else(PoisonError::into_inner);
        if self.status.load(Ordering::Acquire) != ALIVE {
            return Some(Answer::TryLater);
        }
        if !self.within_rate(router.settings.max_msg_per_second, entries.len() as u64) {
            add(&self.shared.counters.overall.denied_rate, entries.len());
            return Some(Answer::TryLater);
        }
        runs.clear();
        let taken = self.find(&router, frame, entries, runs);
        if !taken {
            runs.clear();
            return Some(Answer::TryLater);
        }
        let waiting = |route: &Arc<Route>| route.queues.iter().filter(|q| q.limits.fsync).count();
        let wait: usize = runs.iter().map(|(route, _)| waiting(route)).sum();
        let ticket = (wait > 0).then(|| {
            let counted = runs
                .iter()
                .map(|(route, run)| (route.counts.clone(), run.len()));
            Ticket::new(asker, mailbox.clone(), wait, counted.collect())
        });
        for (route, run) in runs.iter() {
            if ticket.is_none() {
                add(&route.counts.received_good, run.len());
            }
            for queue in &route.queues {
                let messages = entries[run.clone()]
                    .iter()
                    .map(|entry| entry.message(frame));
                queue.push(
                    &route.name,
                    messages,
                    ticket.as_ref().filter(|_| queue.limits.fsync),
                );
            }
        }
        runs.clear();
        if ticket.is_some() {
            None
        } else {
            Some(Answer::Ok)
        }
    }

    /// The routes of all entries. False, and counted: one of them could not be kept, and an answer
    /// is for all of them.
    fn find(&self, router: &Router, frame: &[u8], entries: &[Entry], runs: &mut Runs) -> bool {
        let mut last: &[u8] = b"";
        for (index, entry) in entries.iter().enumerate() {
            let category = entry.category(frame);
            match runs.last_mut() {
                Some((_, run)) if category == last => run.end = index + 1,
                _ => match router.route(category) {
                    Some(route) => runs.push((route, index..index + 1)),
                    None => {
                        let of = &self.shared.counters.overall;
                        let counter = match category {
                            b"" => &of.received_blank,
                            category if !allowed(category) => &of.received_bad,
                            _ => &of.denied_no_store,
                        };
                        add(counter, 1);
                        let why = router.refusal(category).unwrap_or_else(|| {
                            let name = shown(category);
                            format!("the thread of a store for category {name} cannot start")
                        });
                        locked(&self.refusals).say(why);
                        return false;
                    }
                },
            }
            last = category;
            let (route, _) = runs.last().expect("pushed above");
            if entry.message(frame).len() > route.largest {
                add(&route.counts.denied_size, 1);
                locked(&self.refusals).say(format!(
                    "a message of category {} is longer than the {} bytes that its store can take \
                     (chunk_size)",
                    shown(category),
                    route.largest
                ));
                return false;
            }
        }
        for (route, run) in runs.iter() {
            if route.queues.iter().any(|queue| queue.is_full()) {
                add(&route.counts.denied_queue, run.len());
                return false;
            }
        }
        true
    }

    /// Counts by the second. A call of more than half of what is allowed passes uncounted: it could
    /// never be sent otherwise.
    fn within_rate(&self, most: u64, messages: u64) -> bool {
        if most == 0 || messages > most / 2 {
            return true;
        }
        let mut rate = locked(&self.rate);
        if rate.second.elapsed().as_secs() >= 1 {
            *rate = Rate {
                second: Instant::now(),
                messages: 0,
            };
        }
        if rate.messages + messages > most {
            return false;
        }
        rate.messages += messages;
        true
    }

    /// Answers a call of fb303 by giving its value to `say`; nothing is said to what is oneway.
    pub fn answer(&self, call: &Call<'_>, say: &mut dyn FnMut(&Value<'_>)) {
        match call {
            Call::GetName => say(&Value::Text(b"Scribe")),
            Call::GetVersion => {
                let version = concat!("2.2 (searchbench ", env!("CARGO_PKG_VERSION"), ")");
                say(&Value::Text(version.as_bytes()));
            }
            Call::GetStatus => say(&Value::I32(self.status().0.into())),
            Call::GetStatusDetails => say(&Value::Text(self.status().1.as_bytes())),
            Call::GetCounters => say(&Value::Counters(&self.shared.counters.all())),
            Call::GetCounter(name) => {
                let all = self.shared.counters.all();
                let found = all.iter().find(|(known, _)| known.as_bytes() == *name);
                say(&Value::I64(found.map_or(0, |(_, count)| *count)));
            }
            Call::SetOption(name, value) => {
                locked(&self.options).insert(name.to_vec(), value.to_vec());
                say(&Value::Void);
            }
            Call::GetOption(name) if name.starts_with(REFUSAL) => {
                let why = self.router().refusal(&name[REFUSAL.len()..]);
                say(&Value::Text(why.unwrap_or_default().as_bytes()));
            }
            Call::GetOption(name) => {
                let options = locked(&self.options);
                say(&Value::Text(options.get(*name).map_or(b"", Vec::as_slice)));
            }
            Call::GetOptions => {
                let options = locked(&self.options)
                    .clone()
                    .into_iter()
                    .collect::<Vec<_>>();
                say(&Value::Texts(&options));
            }
            Call::GetCpuProfile => say(&Value::Text(b"")),
            Call::AliveSince => say(&Value::I64(self.since)),
            Call::Reinitialize => drop(self.commands.send(Command::Reload)),
            Call::Shutdown => drop(self.commands.send(Command::Stop)),
            Call::Log | Call::Unknown => {}
        }
    }

    fn status(&self) -> (u8, String) {
        let status = self.status.load(Ordering::Acquire);
        let mut said = locked(&self.complaint)
            .clone()
            .into_iter()
            .collect::<Vec<_>>();
        let troubles = self.router().troubles();
        said.extend(
            troubles
                .into_iter()
                .map(|(category, why)| format!("{category}: {why}")),
        );
        let warned = status == ALIVE && !said.is_empty();
        (if warned { WARNING } else { status }, said.join("; "))
    }

    /// What /metrics says.
    pub fn metrics(&self) -> String {
        let mut text = self.shared.counters.prometheus();
        let router = self.router();
        let mut held: BTreeMap<String, usize> = BTreeMap::new();
        for (category, bytes) in router.held() {
            *held.entry(category).or_default() += bytes;
        }
        text += "# HELP scribe_queue_bytes Bytes that wait for their store.\n";
        text += "# TYPE scribe_queue_bytes gauge\n";
        for (category, bytes) in held {
            let category = escaped(&category);
            let _ = writeln!(
                text,
                "scribe_queue_bytes{{category=\"{category}\"}} {bytes}"
            );
        }
        let status = self.status().0;
        text += "# HELP scribe_status fb303's: 1 starting, 2 alive, 3 stopping, 5 warning.\n";
        let _ = writeln!(text, "# TYPE scribe_status gauge\nscribe_status {status}");
        text += "# HELP scribe_start_time_seconds When it was started.\n";
        text += "# TYPE scribe_start_time_seconds gauge\n";
        let _ = writeln!(text, "scribe_start_time_seconds {}", self.since);
        text
    }

    /// Works by these settings from now on. What stores of the old ones have not taken goes to the
    /// stores of the new, before everything else; for what has none there, it is saved.
    pub fn reload(&self, settings: Settings) -> Result<(), String> {
        let new = Arc::new(Router::new(settings, self.shared.clone()));
        let mut router = self.router.write().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut *router, new.clone());
        drop(router);
        let mut homeless = Batch::default();
        for (number, batch) in old.stop() {
            homeless.append(&new.inherit(&batch, number));
        }
        *locked(&self.complaint) = None;
        *locked(&self.refusals) = Refusals::default();
        let saved = self.save(homeless);
        new.start()
            .map_err(|error| format!("a store's thread cannot start: {error}"))?;
        saved
    }

    fn save(&self, mut batch: Batch) -> Result<(), String> {
        if batch.is_empty() {
            return Ok(());
        }
        let categories: Vec<_> = batch.iter().map(|(name, _)| name.clone()).collect();
        let count = categories.len();
        if let Err(why) = self.shared.ledger.save(&mut batch) {
            for name in categories {
                add(&self.shared.counters.of(&name).lost, 1);
            }
            return Err(format!(
                "{count} messages that no store took cannot be saved either, and are lost: {why}"
            ));
        }
        eprintln!("searchbench collect: {count} messages that no store took are saved for later");
        Ok(())
    }

    pub fn complain(&self, what: String) {
        eprintln!("searchbench collect: {what}");
        *locked(&self.complaint) = Some(what);
    }

    /// Takes what an earlier process saved; the files may go once it has [`Collector::settled`].
    pub fn inherit(&self) -> Result<Vec<PathBuf>, String> {
        let (batch, files) = self.shared.ledger.saved()?;
        let homeless = self.router().inherit(&batch, 0);
        if !homeless.is_empty() {
            let name = String::from_utf8_lossy(homeless.get(0).0).into_owned();
            let count = homeless.len();
            self.complain(format!(
                "{count} messages of an earlier run have no store: give category {name} one"
            ));
            self.save(homeless)?;
        }
        Ok(files)
    }

    pub fn settled(&self) -> bool {
        self.router().settled()
    }

    /// Answers TRY_LATER from now on, and empties all queues into their stores. What these do not
    /// take is saved.
    pub fn stop(&self) -> Result<(), String> {
        let router = self.router.write().unwrap_or_else(PoisonError::into_inner);
        self.status.store(STOPPING, Ordering::Release);
        let stopped = router.clone();
        drop(router);
        let mut left = Batch::default();
        for (_, batch) in stopped.stop() {
            left.append(&batch);
        }
        self.save(left)?;
        self.shared.ledger.clear();
        Ok(())
    }
}

/// Names of counters for what a killed process lost.
pub fn count_lost(shared: &Shared, lost: &[(String, u64)]) {
    for (category, count) in lost {
        let counts: Arc<Counts> = shared.counters.of(category.as_bytes());
        add(&counts.lost, *count as usize);
        eprintln!(
            "searchbench collect: {category}: up to {count} messages were answered with OK and not \
             kept when the last process ended; fsync=yes would have kept them"
        );
    }
}
