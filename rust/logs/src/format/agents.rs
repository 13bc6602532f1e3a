//! Which searches were asked by a distributed index of its agents.
//!
//! An agent on the same server writes a line of its own for its part: with the page (0,1000), the
//! words of the search, another index, and before the line of the search itself. So an entry with
//! that page is held until a search of the same words on another index follows; else it was asked
//! by somebody. It is held for 200 lines and 5 seconds at most.

use std::collections::VecDeque;

use xxhash_rust::xxh3::xxh3_64;

use crate::entry::{Entry, Held, Kind};
use crate::format::Out;

/// How many entries an agent's may be before its search.
pub const LINES: u64 = 200;
const WAIT_NS: i64 = 5_000_000_000;

struct Waiting {
    held: Held,
    text: u64,
    index: u64,
    line: u64,
    ended_ns: i64,
}

#[derive(Default)]
pub struct Agents {
    waiting: VecDeque<Waiting>,
    line: u64,
}

impl Agents {
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// An entry, in the order of the log. `as_agent`: it has the page that agents are asked for.
    /// `own`: it is to be counted; else it only tells what earlier ones are.
    #[inline]
    pub fn take(
        &mut self,
        entry: &Entry<'_>,
        ended_ns: i64,
        as_agent: bool,
        own: bool,
        out: &mut Out<'_>,
    ) {
        self.line += 1;
        if !self.waiting.is_empty() {
            self.look(entry, ended_ns, out);
        }
        if !own {
            return;
        }
        if !as_agent {
            out.entry(entry);
            return;
        }
        self.waiting.push_back(Waiting {
            held: Held::of(entry),
            text: xxh3_64(entry.text),
            index: xxh3_64(entry.index),
            line: self.line,
            ended_ns,
        });
    }

    fn look(&mut self, entry: &Entry<'_>, ended_ns: i64, out: &mut Out<'_>) {
        while let Some(first) = self.waiting.front() {
            if first.line + LINES >= self.line && first.ended_ns + WAIT_NS >= ended_ns {
                break;
            }
            let first = self.waiting.pop_front().expect("there is one");
            out.entry(&first.held.entry());
        }
        if self.waiting.is_empty() {
            return;
        }
        let (text, index) = (xxh3_64(entry.text), xxh3_64(entry.index));
        // The agent answered after the search began; a millisecond is what both are rounded to.
        let began_ns = entry.at_ns - 10_000_000;
        self.waiting.retain_mut(|one| {
            let part = one.text == text && one.index != index && one.ended_ns >= began_ns;
            if part {
                one.held.plain_mut().kind = Kind::Part;
                out.entry(&one.held.entry());
            }
            !part
        });
    }

    /// Nothing follows: what still waits was asked by somebody.
    pub fn end(&mut self, out: &mut Out<'_>) {
        for one in self.waiting.drain(..) {
            out.entry(&one.held.entry());
        }
    }
}
