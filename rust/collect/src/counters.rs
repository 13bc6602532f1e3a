//! Counters by category, as fb303 and Prometheus give them. Those that were never hit are absent.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

macro_rules! counters {
    ($($field:ident $name:literal $about:literal,)*) => {
        /// Of one category. All but the last three are Scribe's own.
        #[derive(Default)]
        pub struct Counts { $(pub $field: AtomicU64,)* }

        impl Counts {
            fn each(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
                [$(($name, $about, self.$field.load(Ordering::Relaxed)),)*].into_iter()
            }
        }
    };
}

counters! {
    received_good "received good" "Messages answered with OK.",
    received_bad "received bad" "Messages whose category cannot be kept.",
    received_blank "received blank category" "Messages without a category.",
    requeue "requeue" "Messages that a store did not take and that wait to be tried again.",
    lost "lost" "Messages answered with OK that are lost.",
    bytes_lost "bytes lost" "Bytes of buffer files that are no whole message.",
    retries "retries" "Failures of a buffer's primary.",
    ignored "ignored" "Messages given to null.",
    denied_queue "denied for queue size" "Messages answered with TRY_LATER because a queue is full.",
    denied_rate "denied for rate" "Messages answered with TRY_LATER because of max_msg_per_second.",
    denied_no_store "denied for no store" "Messages answered with TRY_LATER because no store has their category.",
    denied_failed "denied for failed store" "Messages answered with TRY_LATER because fsync is asked for and their store failed.",
    denied_size "denied for size" "Messages answered with TRY_LATER because they are larger than their store can take.",
    written "written" "Messages that a store of this category has taken.",
    sent "sent" "Messages that an upstream server answered with OK.",
}

pub fn add(counter: &AtomicU64, count: usize) {
    counter.fetch_add(count as u64, Ordering::Relaxed);
}

/// All of them, for as long as the process lives.
#[derive(Default)]
pub struct Counters {
    categories: Mutex<BTreeMap<String, Arc<Counts>>>,
    /// What has no category: calls that are malformed, connections.
    pub overall: Counts,
    pub malformed: AtomicU64,
    pub connections: AtomicU64,
}

impl Counters {
    pub fn of(&self, category: &[u8]) -> Arc<Counts> {
        let name = String::from_utf8_lossy(category).into_owned();
        self.lock().entry(name).or_default().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<Counts>>> {
        self.categories
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// `CATEGORY:NAME` and `scribe_overall:NAME`, sorted.
    pub fn all(&self) -> Vec<(String, i64)> {
        let mut all: BTreeMap<String, u64> = BTreeMap::new();
        let mut hit = |name: String, count: u64| {
            if count > 0 {
                *all.entry(name).or_default() += count;
            }
        };
        for (name, _, count) in self.overall.each() {
            hit(format!("scribe_overall:{name}"), count);
        }
        for (category, counts) in self.lock().iter() {
            for (name, _, count) in counts.each() {
                hit(format!("{category}:{name}"), count);
                hit(format!("scribe_overall:{name}"), count);
            }
        }
        hit(
            "scribe_overall:malformed".into(),
            self.malformed.load(Ordering::Relaxed),
        );
        all.into_iter()
            .map(|(name, count)| (name, count as i64))
            .collect()
    }

    /// The same in Prometheus' text format, with all categories of a counter together.
    pub fn prometheus(&self) -> String {
        let categories = self.lock().clone();
        let mut text = String::new();
        for (index, (name, about, _)) in self.overall.each().enumerate() {
            let name = format!("scribe_{}_total", name.replace(' ', "_"));
            let _ = writeln!(text, "# HELP {name} {about}\n# TYPE {name} counter");
            let overall = self
                .overall
                .each()
                .nth(index)
                .map_or(0, |(_, _, count)| count);
            if overall > 0 {
                let _ = writeln!(text, "{name} {overall}");
            }
            for (category, counts) in &categories {
                let count = counts.each().nth(index).map_or(0, |(_, _, count)| count);
                if count > 0 {
                    let _ = writeln!(text, "{name}{{category=\"{}\"}} {count}", escaped(category));
                }
            }
        }
        let others = [
            (
                "scribe_malformed_total",
                "counter",
                "Frames that are no call.",
                &self.malformed,
            ),
            (
                "scribe_connections",
                "gauge",
                "Connections that are open.",
                &self.connections,
            ),
        ];
        for (name, kind, about, count) in others {
            let count = count.load(Ordering::Relaxed);
            let _ = writeln!(
                text,
                "# HELP {name} {about}\n# TYPE {name} {kind}\n{name} {count}"
            );
        }
        text
    }
}

pub fn escaped(label: &str) -> String {
    label
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
