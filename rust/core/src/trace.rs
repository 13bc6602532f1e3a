//! What is left of a drive: all samples in one piece, kept replies, and the accounting.

use std::fmt::Write;
use std::io;
use std::net::SocketAddr;

use crate::lane::Opened;
use crate::region::Region;
use crate::sample::{SAMPLE_BYTES, Sample, SampleLog};
use crate::spill::{self, Prefix, Spilled};
use crate::sys::Usage;
use crate::thread::{Counters, Kept, Statuses};

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
}

/// What one thread hands over.
pub(crate) struct Part {
    pub log: SampleLog,
    pub kept: Region,
    pub replies: Vec<Kept>,
    pub account: ThreadAccount,
}

struct KeptPart {
    bytes: Region,
    replies: Vec<Kept>,
    /// Index of the thread's first sample in the whole.
    first_sample: u64,
}

/// The whole trace, ordered by thread and then by completion.
pub struct Trace {
    samples: Region,
    kept: Vec<KeptPart>,
    accounting: String,
}

impl Trace {
    pub(crate) fn gather(
        parts: Vec<Part>,
        mut spilled: Option<Spilled>,
        drive: &WholeAccount,
    ) -> io::Result<Trace> {
        let spilled_bytes = spilled.as_ref().map_or(0, |spilled| {
            spilled.prefixes.iter().map(|p: &Prefix| p.bytes).sum()
        });
        let mut accounts = Vec::with_capacity(parts.len());
        let mut regions = Vec::with_capacity(parts.len());
        let mut kept = Vec::with_capacity(parts.len());
        let mut first_sample = 0;
        for part in parts {
            accounts.push(part.account);
            kept.push(KeptPart {
                bytes: part.kept,
                replies: part.replies,
                first_sample,
            });
            first_sample += part.log.len() as u64;
            regions.push(part.log.into_region());
        }
        let samples = spill::gather(regions, spilled.as_mut())?;
        let spill_failed = spilled.and_then(|spilled| spilled.failed);
        let accounting = accounting(&accounts, drive, spilled_bytes, spill_failed);
        Ok(Trace {
            samples,
            kept,
            accounting,
        })
    }

    /// How many requests were recorded.
    pub fn len(&self) -> usize {
        self.samples.as_slice().len() / SAMPLE_BYTES
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The samples as they lie in memory, 64 bytes each.
    pub fn bytes(&self) -> &[u8] {
        self.samples.as_slice()
    }

    /// The first `samples` were read for now: their memory is given back where a file has them.
    pub fn pass(&self, samples: usize) {
        self.samples.pass(samples.saturating_mul(SAMPLE_BYTES));
    }

    pub fn sample(&self, index: usize) -> Sample {
        let bytes = &self.bytes()[index * SAMPLE_BYTES..][..SAMPLE_BYTES];
        // SAFETY: the bytes were a Sample, and every bit pattern is one.
        unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) }
    }

    /// Each kept reply with the index of its sample.
    pub fn replies(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.kept.iter().flat_map(|part| {
            part.replies.iter().map(move |kept| {
                let bytes = &part.bytes.as_slice()[kept.start..kept.start + kept.len];
                (part.first_sample + kept.sample, bytes)
            })
        })
    }

    /// JSON, as the stub of the module describes it.
    pub fn accounting(&self) -> &str {
        &self.accounting
    }
}

/// What is accounted for once, and not for each thread.
pub(crate) struct WholeAccount<'a> {
    pub targets: &'a [SocketAddr],
    pub clock: &'a str,
    pub drift_ppm: f64,
    pub started_unix_ns: i64,
    pub elapsed_ns: i64,
    pub cut_short: bool,
}

fn accounting(
    threads: &[ThreadAccount],
    drive: &WholeAccount,
    spilled_bytes: usize,
    spill_failed: Option<String>,
) -> String {
    let WholeAccount {
        targets,
        clock,
        drift_ppm,
        started_unix_ns,
        elapsed_ns,
        cut_short,
    } = drive;
    let mut text = String::new();
    let sum = |get: fn(&Counters) -> u64| -> u64 {
        threads.iter().map(|thread| get(&thread.counters)).sum()
    };
    let pause_ns: i64 = threads.iter().map(|thread| thread.counters.pause_ns).sum();
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        "{{\"started_unix_ns\": {started_unix_ns}, \"elapsed_ns\": {elapsed_ns}, \
         \"cut_short\": {cut_short}, \
         \"clock\": \"{clock}\", \"clock_drift_ppm\": {drift_ppm:.3}, \"threads\": ["
    );
    for (index, thread) in threads.iter().enumerate() {
        let comma = if index > 0 { ", " } else { "" };
        let cpu = thread.cpu.map_or("null".to_string(), |cpu| cpu.to_string());
        let usage = &thread.usage;
        let priority = quoted(&thread.priority);
        let _ = write!(
            text,
            "{comma}{{\"cpu\": {cpu}, \"user_ns\": {}, \"system_ns\": {}, \"run_wait_ns\": {}, \
             \"voluntary_switches\": {}, \"involuntary_switches\": {}, \"minor_faults\": {}, \
             \"priority\": {priority}}}",
            usage.user_ns,
            usage.system_ns,
            usage.run_wait_ns,
            usage.voluntary_switches,
            usage.involuntary_switches,
            usage.minor_faults,
        );
    }
    let clients: u64 = threads.iter().map(|thread| thread.clients).sum();
    let mut opened = vec![Opened::default(); targets.len()];
    let mut all = Opened::default();
    for thread in threads {
        for (sum, of_thread) in opened.iter_mut().zip(&thread.opened) {
            sum.add(of_thread);
            all.add(of_thread);
        }
    }
    let greeting_failed = threads
        .iter()
        .find_map(|thread| thread.greeting_failed.as_deref())
        .map_or("null".to_string(), quoted);
    let spill_failed = spill_failed.as_deref().map_or("null".to_string(), quoted);
    let _ = write!(
        text,
        "], \"connects\": {}, \"reconnects\": {}, \"refused_connects\": {}, \
         \"partial_sends\": {}, \"unsent\": {}, \"unsolicited\": {}, \"pauses\": {}, \
         \"pause_ns\": {pause_ns}, \"greeting_failed\": {greeting_failed}, \
         \"spilled_bytes\": {spilled_bytes}, \"spill_failed\": {spill_failed}, \
         \"statuses\": {{{}}}, \"clients\": {clients}, \"targets\": [",
        all.connects,
        all.reconnects,
        all.refused_connects,
        sum(|c| c.partial_sends),
        sum(|c| c.unsent),
        sum(|c| c.unsolicited),
        sum(|c| c.pauses),
        statuses(threads),
    );
    for (index, (address, opened)) in targets.iter().zip(&opened).enumerate() {
        let comma = if index > 0 { ", " } else { "" };
        let _ = write!(
            text,
            "{comma}{{\"address\": \"{address}\", \"connects\": {}, \"reconnects\": {}, \
             \"refused_connects\": {}}}",
            opened.connects, opened.reconnects, opened.refused_connects
        );
    }
    text.push_str("]}");
    text
}

/// The members of a JSON object: how many whole replies had each status.
fn statuses(threads: &[ThreadAccount]) -> String {
    let mut all = Statuses::default();
    for thread in threads {
        all.add(&thread.statuses);
    }
    let members: Vec<String> = all
        .seen()
        .map(|(status, count)| format!("\"{status}\": {count}"))
        .collect();
    members.join(", ")
}

/// A text as JSON has it; it may be a server's own words.
fn quoted(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    json.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => json.extend(['\\', character]),
            control if control < ' ' => {
                let _ = write!(json, "\\u{:04x}", u32::from(control));
            }
            other => json.push(other),
        }
    }
    json.push('"');
    json
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn the_words_of_a_server_are_quoted_as_json() {
        assert_eq!(quoted("no \"x\"\\\n\u{7}ü"), r#""no \"x\"\\\u000a\u0007ü""#);
    }
}
