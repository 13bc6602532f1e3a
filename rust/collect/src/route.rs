//! Which store a category goes to: the exact one; else the first prefix in the order of bytes; else
//! `default`. Several stores of one pattern get every message each.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::JoinHandle;

use crate::batch::{Batch, Name};
use crate::conf::{Pattern, Settings, TopStore};
use crate::counters::{Counters, Counts};
use crate::ledger::Ledger;
use crate::queue::{Limits, Queue};
use crate::store::{Pool, Purpose, build, largest, numbers, spools};

const LONGEST: usize = 200;

/// Can this be a category? It becomes the name of a folder and a file.
pub fn allowed(category: &[u8]) -> bool {
    unfit(category).is_none()
}

/// Why this cannot be a category.
fn unfit(category: &[u8]) -> Option<String> {
    let control = |byte: &u8| *byte < 0x20 || *byte == 0x7f;
    Some(match category {
        [] => "it is empty".into(),
        _ if category.len() > LONGEST => format!("it is longer than {LONGEST} bytes"),
        [b'.', ..] => "it begins with a dot".into(),
        _ if category.contains(&b'/') => "it contains a /".into(),
        _ if category.iter().any(control) => "it contains a control character".into(),
        _ if std::str::from_utf8(category).is_err() => "it is not UTF-8".into(),
        _ => return None,
    })
}

/// A category in a sentence: anybody may have sent it, of any length.
pub fn shown(category: &[u8]) -> String {
    const MOST: usize = 60;
    let name = String::from_utf8_lossy(&category[..category.len().min(4 * MOST)]);
    let mut short: String = name.chars().take(MOST).collect();
    if short.len() < category.len() && short.chars().count() == MOST {
        short.push_str("...");
    }
    format!("{short:?}")
}

/// Where the messages of one category go.
pub struct Route {
    pub name: Name,
    pub counts: Arc<Counts>,
    pub queues: Vec<Arc<Queue>>,
    /// Bytes of the largest message that all of its stores can take.
    pub largest: usize,
}

/// What outlives a configuration.
#[derive(Clone)]
pub struct Shared {
    pub counters: Arc<Counters>,
    pub ledger: Arc<Ledger>,
}

struct Running {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<Batch>>,
    store: usize,
    category: String,
    copied: bool,
}

pub struct Router {
    pub settings: Settings,
    shared: Shared,
    pool: Arc<Pool>,
    routes: RwLock<HashMap<Vec<u8>, Arc<Route>>>,
    running: Mutex<Vec<Running>>,
    /// Threads are started as queues are made; before, what is pushed waits.
    started: Mutex<bool>,
}

impl Router {
    pub fn new(settings: Settings, shared: Shared) -> Router {
        let router = Router {
            settings,
            shared,
            pool: Arc::default(),
            routes: RwLock::default(),
            running: Mutex::default(),
            started: Mutex::new(false),
        };
        for store in &router.settings.stores {
            for pattern in &store.categories {
                if let Pattern::Exact(name) = pattern {
                    router.route(name.as_bytes());
                }
            }
            router.find_buffered(store);
        }
        router
    }

    /// Categories that have buffered files of an earlier run get their queues at once.
    fn find_buffered(&self, store: &TopStore) {
        for files in spools(&store.store) {
            for entry in std::fs::read_dir(&files.path)
                .into_iter()
                .flatten()
                .flatten()
            {
                let name = entry.file_name();
                let Some(name) = name.to_str() else { continue };
                let folder = match &files.sub_directory {
                    Some(sub) => entry.path().join(sub),
                    None => entry.path(),
                };
                if numbers(&folder, name).is_ok_and(|numbers| !numbers.is_empty()) {
                    self.route(name.as_bytes());
                }
            }
        }
    }

    /// The stores of a category, by their numbers.
    fn stores(&self, category: &str) -> Vec<usize> {
        let numbered = || self.settings.stores.iter().enumerate();
        let with = |wanted: &Pattern| {
            let has = |(_, store): &(usize, &TopStore)| store.categories.contains(wanted);
            numbered()
                .filter(has)
                .map(|(number, _)| number)
                .collect::<Vec<_>>()
        };
        let exact = with(&Pattern::Exact(category.into()));
        if !exact.is_empty() {
            return exact;
        }
        let prefixes = numbered().flat_map(|(_, store)| &store.categories);
        let matching = prefixes.filter_map(|pattern| match pattern {
            Pattern::Prefix(prefix) if category.starts_with(prefix.as_str()) => Some(prefix),
            _ => None,
        });
        match matching.min() {
            Some(prefix) => with(&Pattern::Prefix(prefix.clone())),
            None => with(&Pattern::Default),
        }
    }

    /// Why messages of this category are not taken, however often they come.
    pub fn refusal(&self, category: &[u8]) -> Option<String> {
        let name = shown(category);
        if let Some(why) = unfit(category) {
            return Some(format!(
                "category {name} cannot be the name of a file: {why}"
            ));
        }
        let none = self.stores(&String::from_utf8_lossy(category)).is_empty();
        none.then(|| {
            format!("no store takes category {name}: give it one, or add one with category=default")
        })
    }

    /// Where this category goes; None where nothing would keep it.
    pub fn route(&self, category: &[u8]) -> Option<Arc<Route>> {
        let routes = self.routes.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(route) = routes.get(category) {
            return Some(route.clone());
        }
        drop(routes);
        let name = std::str::from_utf8(category)
            .ok()
            .filter(|_| allowed(category))?;
        let mut routes = self.routes.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(route) = routes.get(category) {
            return Some(route.clone());
        }
        let stores = self.stores(name);
        if stores.is_empty() {
            return None;
        }
        let queues: Option<Vec<_>> = stores
            .into_iter()
            .map(|number| self.queue(number, name))
            .collect();
        let queues = queues?;
        let route = Arc::new(Route {
            name: Arc::from(category),
            counts: self.shared.counters.of(category),
            largest: queues
                .iter()
                .map(|queue| queue.limits.largest)
                .min()
                .unwrap_or(usize::MAX),
            queues,
        });
        routes.insert(category.into(), route.clone());
        Some(route)
    }

    /// The queue of a store for a category; None where its thread cannot be started.
    fn queue(&self, number: usize, category: &str) -> Option<Arc<Queue>> {
        let store = &self.settings.stores[number];
        let first = &store.categories[0];
        let single = !store.several && matches!(first, Pattern::Exact(_));
        let copied = !single && self.settings.new_thread_per_category;
        let category = match first {
            _ if copied || single => category,
            Pattern::Exact(name) => name,
            Pattern::Prefix(prefix) => &format!("{prefix}*"),
            Pattern::Default => "default",
        };
        let mut running = self.running();
        let found = running
            .iter()
            .find(|one| one.store == number && one.category == category);
        if let Some(found) = found {
            return Some(found.queue.clone());
        }
        let mut one = self.make(number, category, copied);
        if *self.started.lock().unwrap_or_else(PoisonError::into_inner) {
            self.start_one(&mut one).ok()?;
        }
        let queue = one.queue.clone();
        running.push(one);
        Some(queue)
    }

    fn make(&self, number: usize, category: &str, copied: bool) -> Running {
        let store = &self.settings.stores[number];
        let limits = Limits {
            target_write_bytes: store.target_write_bytes as usize,
            max_write_interval: store.max_write_interval,
            check_interval: self.settings.check_interval,
            max_queue_bytes: self.settings.max_queue_bytes as usize,
            must_succeed: store.must_succeed,
            fsync: store.fsync,
            largest: largest(&store.store),
        };
        let counts = self.shared.counters.of(category.as_bytes());
        let row = self.shared.ledger.row(category);
        let queue = Queue::new(category.into(), limits, counts, row);
        Running {
            queue,
            thread: None,
            store: number,
            category: category.into(),
            copied,
        }
    }

    fn start_one(&self, one: &mut Running) -> std::io::Result<()> {
        let store = &self.settings.stores[one.store];
        let single = matches!(store.categories.as_slice(), [Pattern::Exact(_)]);
        // A store for all of a prefix has no star in the names of its files, as with scribed.
        let named = match one.category.strip_suffix('*') {
            Some(stem) if !one.copied && !stem.is_empty() => stem,
            _ => &one.category,
        };
        let purpose = Purpose {
            category: named.into(),
            copied: one.copied,
            shared: !one.copied && !single,
            fsync: store.fsync,
            counts: self.shared.counters.of(one.category.as_bytes()),
            pool: self.pool.clone(),
        };
        one.thread = Some(one.queue.start(build(&store.store, &purpose))?);
        Ok(())
    }

    fn running(&self) -> MutexGuard<'_, Vec<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the threads of the queues that there are, and from now on those of new ones.
    pub fn start(&self) -> std::io::Result<()> {
        let mut running = self.running();
        *self.started.lock().unwrap_or_else(PoisonError::into_inner) = true;
        running.iter_mut().try_for_each(|one| self.start_one(one))
    }

    /// Gives messages that were answered with OK before to the queues of their categories. Those
    /// for which nothing is configured come back. Only before it is started.
    pub fn inherit(&self, batch: &Batch, queue_number: usize) -> Batch {
        let mut parts: BTreeMap<Name, Batch> = BTreeMap::new();
        for (name, message) in batch.iter() {
            parts.entry(name.clone()).or_default().push(name, message);
        }
        let mut homeless = Batch::default();
        for (name, part) in parts {
            match self.route(&name) {
                Some(route) => {
                    let last = route.queues.len() - 1;
                    route.queues[queue_number.min(last)].inherit(&part);
                }
                None => homeless.append(&part),
            }
        }
        homeless
    }

    /// Stops all queues and waits for their threads; what their stores had not taken, with the
    /// number of the store among those of its category.
    pub fn stop(&self) -> Vec<(usize, Batch)> {
        let mut running = std::mem::take(&mut *self.running());
        running.iter().for_each(|one| one.queue.stop());
        let mut left = Vec::new();
        for one in &mut running {
            let Some(thread) = one.thread.take() else {
                continue;
            };
            let batch = thread.join().unwrap_or_default();
            if !batch.is_empty() {
                one.queue.hand_over(batch.len());
                let same = self.stores(&one.category);
                let number = same.iter().position(|store| *store == one.store);
                left.push((number.unwrap_or(0), batch));
            }
        }
        left
    }

    /// Has everything been kept that was inherited?
    pub fn settled(&self) -> bool {
        self.running().iter().all(|one| one.queue.settled())
    }

    /// What is wrong with its stores: category and why.
    pub fn troubles(&self) -> Vec<(String, String)> {
        let running = self.running();
        let trouble = |one: &Running| Some((one.category.clone(), one.queue.trouble()?));
        running.iter().filter_map(trouble).collect()
    }

    /// Bytes that are held, by category.
    pub fn held(&self) -> Vec<(String, usize)> {
        self.running()
            .iter()
            .map(|one| (one.category.clone(), one.queue.bytes()))
            .collect()
    }
}
