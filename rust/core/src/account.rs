//! What a drive accounts for beside its samples: what its threads used, what they counted, and what
//! holds for the whole.
//!
//! `Accounting` is also the form in which it is kept: its fields are the keys of the JSON, and
//! whoever renames one changes the records.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::Serialize;

use crate::sys::Usage;

/// What a thread counts beside the samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// The kernel took less than was handed to it.
    pub partial_sends: u64,
    /// Slots due before the end that never got a connection.
    pub unsent: u64,
    /// Times that bytes came which no request asked for.
    pub unsolicited: u64,
    /// Waits before trying again after a connection that nothing came of, and their sum.
    pub pauses: u64,
    pub pause_ns: i64,
}

impl Counters {
    /// Counts one pause.
    pub fn paused(&mut self, pause_ns: i64) {
        self.pauses += 1;
        self.pause_ns += pause_ns;
    }

    fn add(&mut self, other: &Counters) {
        self.partial_sends += other.partial_sends;
        self.unsent += other.unsent;
        self.unsolicited += other.unsolicited;
        self.pauses += other.pauses;
        self.pause_ns += other.pause_ns;
    }
}

/// Connections opened to one target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Opened {
    pub connects: u64,
    pub reconnects: u64,
    pub refused_connects: u64,
    /// Of TLS, and how many of them an earlier one spared.
    pub handshakes: u64,
    pub resumed: u64,
}

impl Opened {
    fn add(&mut self, other: &Opened) {
        self.connects += other.connects;
        self.reconnects += other.reconnects;
        self.refused_connects += other.refused_connects;
        self.handshakes += other.handshakes;
        self.resumed += other.resumed;
    }
}

/// Whole replies by the status that their protocol gave them.
#[derive(Clone)]
pub struct Statuses(Box<[u64; 1000]>);

impl Default for Statuses {
    fn default() -> Statuses {
        Statuses(Box::new([0; 1000]))
    }
}

impl Statuses {
    /// Counts one reply; 0 is no status.
    #[inline]
    pub fn count(&mut self, status: u16) {
        if let Some(count) = self.0.get_mut(usize::from(status)) {
            *count += 1;
        }
    }

    /// Each status that was seen, with how often.
    fn seen(&self) -> impl Iterator<Item = (u16, u64)> {
        let counted = (0..).zip(self.0.iter().copied()).skip(1);
        counted.filter(|&(_, count)| count > 0)
    }
}

/// What one thread used and counted.
pub struct ThreadAccount {
    pub cpu: Option<usize>,
    pub priority: String,
    pub usage: Usage,
    pub counters: Counters,
    pub statuses: Statuses,
    /// Clients that began a request.
    pub clients: u64,
    /// By target.
    pub opened: Vec<Opened>,
    pub greeting_failed: Option<String>,
    pub agreed: Option<String>,
}

/// What is accounted for once, and not for each thread.
pub struct WholeAccount<'a> {
    pub targets: &'a [SocketAddr],
    pub clock: &'static str,
    pub drift_ppm: f64,
    pub started_unix_ns: i64,
    pub elapsed_ns: i64,
    pub cut_short: bool,
}

/// What a drive used and counted, as records keep it.
#[derive(Clone, Debug, Serialize)]
pub struct Accounting {
    /// The zero of the clock, nanoseconds since 1970 UTC.
    pub started_unix_ns: i64,
    pub elapsed_ns: i64,
    /// It was ended before its time.
    pub cut_short: bool,
    /// `"tsc"` or `"monotonic"`.
    pub clock: &'static str,
    /// Against CLOCK_MONOTONIC, in parts per million.
    pub clock_drift_ppm: f64,
    pub threads: Vec<ThreadUse>,
    #[serde(flatten)]
    pub opened: Opened,
    #[serde(flatten)]
    pub counters: Counters,
    /// Why the first login that failed did, in the server's words; or the first handshake of TLS.
    pub greeting_failed: Option<String>,
    /// Version and cipher of the first handshake of TLS.
    pub tls: Option<String>,
    /// Samples written to a file during the drive.
    pub spilled_bytes: usize,
    /// Why no more were.
    pub spill_failed: Option<String>,
    /// Whole replies by status, where the protocol has one.
    pub statuses: BTreeMap<u16, u64>,
    /// Closed loop: how many clients began at least one request.
    pub clients: u64,
    /// In the order given; they add up to those of the whole.
    pub targets: Vec<TargetUse>,
}

/// What one thread used.
#[derive(Clone, Debug, Serialize)]
pub struct ThreadUse {
    pub cpu: Option<usize>,
    #[serde(flatten)]
    pub usage: Usage,
    pub priority: String,
}

/// What was opened to one target.
#[derive(Clone, Debug, Serialize)]
pub struct TargetUse {
    pub address: SocketAddr,
    #[serde(flatten)]
    pub opened: Opened,
}

impl Accounting {
    pub fn new(
        threads: Vec<ThreadAccount>,
        whole: &WholeAccount,
        spilled_bytes: usize,
        spill_failed: Option<String>,
    ) -> Accounting {
        let mut account = Accounting {
            started_unix_ns: whole.started_unix_ns,
            elapsed_ns: whole.elapsed_ns,
            cut_short: whole.cut_short,
            clock: whole.clock,
            // What is measured is no finer.
            clock_drift_ppm: (whole.drift_ppm * 1e3).round() / 1e3,
            threads: Vec::with_capacity(threads.len()),
            opened: Opened::default(),
            counters: Counters::default(),
            greeting_failed: None,
            tls: None,
            spilled_bytes,
            spill_failed,
            statuses: BTreeMap::new(),
            clients: 0,
            targets: whole.targets.iter().map(TargetUse::none).collect(),
        };
        for thread in threads {
            account.add(thread);
        }
        account
    }

    fn add(&mut self, thread: ThreadAccount) {
        self.counters.add(&thread.counters);
        for (target, opened) in self.targets.iter_mut().zip(&thread.opened) {
            target.opened.add(opened);
            self.opened.add(opened);
        }
        for (status, count) in thread.statuses.seen() {
            *self.statuses.entry(status).or_default() += count;
        }
        self.clients += thread.clients;
        self.greeting_failed = self.greeting_failed.take().or(thread.greeting_failed);
        self.tls = self.tls.take().or(thread.agreed);
        self.threads.push(ThreadUse {
            cpu: thread.cpu,
            usage: thread.usage,
            priority: thread.priority,
        });
    }

    /// As the stub of the module describes it.
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("numbers and texts are always JSON")
    }
}

impl TargetUse {
    fn none(address: &SocketAddr) -> TargetUse {
        TargetUse {
            address: *address,
            opened: Opened::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(cpu: Option<usize>, priority: &str, unsent: u64) -> ThreadAccount {
        let mut statuses = Statuses::default();
        for status in [200, 503, 200, 0, 1000] {
            statuses.count(status);
        }
        let mut counters = Counters {
            partial_sends: 1,
            unsent,
            unsolicited: 3,
            ..Counters::default()
        };
        counters.paused(1_000_000);
        counters.paused(2_000_000);
        let opened = Opened {
            connects: 5,
            reconnects: 6,
            refused_connects: 7,
            handshakes: 8,
            resumed: 9,
        };
        ThreadAccount {
            cpu,
            priority: priority.into(),
            usage: Usage {
                user_ns: 11,
                system_ns: 12,
                run_wait_ns: 13,
                voluntary_switches: 14,
                involuntary_switches: 15,
                minor_faults: 16,
            },
            counters,
            statuses,
            clients: 2,
            opened: vec![Opened::default(), opened],
            greeting_failed: cpu.map(|_| "no \"x\"\\\n\u{7}ü".into()),
            agreed: cpu.map(|_| "TLSv1_3 X".into()),
        }
    }

    #[test]
    fn the_accounting_has_these_keys_with_these_values_in_this_order() {
        let targets = ["127.0.0.1:80".parse().unwrap(), "[::1]:81".parse().unwrap()];
        let whole = WholeAccount {
            targets: &targets,
            clock: "tsc",
            drift_ppm: -0.123_456,
            started_unix_ns: 1_800_000_000_123_456_789,
            elapsed_ns: 42,
            cut_short: false,
        };
        let threads = vec![thread(None, "other", 4), thread(Some(1), "fifo 10", 40)];
        let account = Accounting::new(threads, &whole, 64, Some("the disk is full".into()));
        let golden = concat!(
            r#"{"started_unix_ns":1800000000123456789,"elapsed_ns":42,"cut_short":false,"#,
            r#""clock":"tsc","clock_drift_ppm":-0.123,"threads":["#,
            r#"{"cpu":null,"user_ns":11,"system_ns":12,"run_wait_ns":13,"#,
            r#""voluntary_switches":14,"involuntary_switches":15,"minor_faults":16,"#,
            r#""priority":"other"},"#,
            r#"{"cpu":1,"user_ns":11,"system_ns":12,"run_wait_ns":13,"#,
            r#""voluntary_switches":14,"involuntary_switches":15,"minor_faults":16,"#,
            r#""priority":"fifo 10"}],"#,
            r#""connects":10,"reconnects":12,"refused_connects":14,"handshakes":16,"resumed":18,"#,
            r#""partial_sends":2,"#,
            r#""unsent":44,"unsolicited":6,"pauses":4,"pause_ns":6000000,"#,
            r#""greeting_failed":"no \"x\"\\\n\u0007ü","tls":"TLSv1_3 X","spilled_bytes":64,"#,
            r#""spill_failed":"the disk is full","statuses":{"200":4,"503":2},"clients":4,"#,
            r#""targets":[{"address":"127.0.0.1:80","connects":0,"reconnects":0,"#,
            r#""refused_connects":0,"handshakes":0,"resumed":0},{"address":"[::1]:81","connects":10,"reconnects":12,"#,
            r#""refused_connects":14,"handshakes":16,"resumed":18}]}"#,
        );
        assert_eq!(account.json(), golden);
    }

    #[test]
    fn what_did_not_happen_is_null_or_empty_and_not_left_out() {
        let whole = WholeAccount {
            targets: &[],
            clock: "monotonic",
            drift_ppm: 0.0,
            started_unix_ns: 0,
            elapsed_ns: 0,
            cut_short: true,
        };
        let json = Accounting::new(vec![], &whole, 0, None).json();
        let read: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(read.as_object().unwrap().len(), 23);
        for key in ["greeting_failed", "tls", "spill_failed"] {
            assert!(read[key].is_null(), "{key} in {json}");
        }
        assert_eq!(read["statuses"], serde_json::json!({}));
        assert_eq!(read["threads"], serde_json::json!([]));
    }
}
