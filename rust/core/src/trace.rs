//! What is left of a drive: all samples in one piece, kept replies, and the accounting.

use std::borrow::Cow;
use std::io;

use crate::account::{Accounting, ThreadAccount, WholeAccount};
use crate::exchanges::{ExchangeLog, ExchangeTimes};
use crate::kept::Kept;
use crate::region::Region;
use crate::sample::{SAMPLE_BYTES, Sample, SampleLog};
use crate::spill::{self, Prefix, Written};

/// What one thread hands over.
pub(crate) struct Part {
    pub log: SampleLog,
    pub kept: Kept,
    pub exchanges: ExchangeLog,
    pub account: ThreadAccount,
}

struct KeptPart {
    kept: Kept,
    /// Index of the thread's first sample in the whole.
    first_sample: u64,
}

/// The whole trace, ordered by thread and then by completion.
pub struct Trace {
    samples: Region,
    kept: Vec<KeptPart>,
    exchanges: Vec<ExchangeTimes>,
    accounting: Accounting,
}

impl Trace {
    pub(crate) fn gather(
        parts: Vec<Part>,
        mut spilled: Option<Written>,
        whole: &WholeAccount,
    ) -> io::Result<Trace> {
        let spilled_bytes = spilled.as_ref().map_or(0, |spilled| {
            spilled
                .samples
                .prefixes
                .iter()
                .map(|p: &Prefix| p.bytes)
                .sum()
        });
        let mut accounts = Vec::with_capacity(parts.len());
        let mut regions = Vec::with_capacity(parts.len());
        let mut kept = Vec::with_capacity(parts.len());
        let mut exchanges = Vec::with_capacity(parts.len());
        let mut first_sample = 0;
        for (thread, mut part) in parts.into_iter().enumerate() {
            if let Some(spilled) = &spilled {
                part.kept.put(&spilled.kept.prefixes[thread])?;
            }
            accounts.push(part.account);
            kept.push(KeptPart {
                kept: part.kept,
                first_sample,
            });
            exchanges.push((first_sample, part.exchanges));
            first_sample += part.log.len() as u64;
            regions.push(part.log.into_region());
        }
        let samples = spill::gather(
            regions,
            spilled.as_mut().map(|spilled| &mut spilled.samples),
        )?;
        let spill_failed =
            spilled.and_then(|spilled| spilled.samples.failed.or(spilled.kept.failed));
        let accounting = Accounting::new(accounts, whole, spilled_bytes, spill_failed);
        Ok(Trace {
            samples,
            kept,
            exchanges: ExchangeLog::gathered(exchanges),
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
    pub fn replies(&self) -> impl Iterator<Item = (u64, Cow<'_, [u8]>)> {
        self.kept.iter().flat_map(|part| {
            let replies = part.kept.replies();
            replies.map(|(sample, bytes)| (part.first_sample + sample, bytes))
        })
    }

    /// Of each kept reply the index of its sample, and how many pieces it has.
    pub fn kept(&self) -> impl Iterator<Item = (u64, usize)> {
        self.kept.iter().flat_map(|part| {
            let places = part.kept.places();
            places.map(|(sample, pieces)| (part.first_sample + sample, pieces))
        })
    }

    /// One piece of a kept reply, both by their numbers. What comes before it was read for now: its
    /// memory is given back where a file has it.
    pub fn piece(&self, mut reply: usize, piece: usize) -> Option<&[u8]> {
        for part in &self.kept {
            let own = part.kept.places().len();
            if reply < own {
                part.kept.pass(reply, piece);
                return part.kept.piece(reply, piece);
            }
            reply -= own;
        }
        None
    }

    /// The exchanges of all requests, where they were asked for, in the order of the samples.
    pub fn exchanges(&self) -> &[ExchangeTimes] {
        &self.exchanges
    }

    /// The same as they lie in memory, `EXCHANGE_BYTES` each.
    pub fn exchange_bytes(&self) -> &[u8] {
        ExchangeLog::bytes(&self.exchanges)
    }

    /// What the loop itself used and counted.
    pub fn accounting(&self) -> &Accounting {
        &self.accounting
    }
}
