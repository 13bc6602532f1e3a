//! Which searches were asked by a distributed index of its agents.
//!
//! An agent on the same server writes a line of its own for its part: with the page (0,1000), the
//! words of the search, another index, and before the line of the search itself. So an entry with
//! that page is held until a search of the same words on another index follows; else it was asked
//! by somebody. It is held for 200 entries, 5 seconds and 256 KiB at most: each by itself, and no
//! further than can be seen behind a block, so that where blocks are cut decides nothing.

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
    at: usize,
    ended_ns: i64,
}

/// Where an entry stands in its block, and what stands behind it. `own`: it is to be counted; else it
/// only tells what earlier ones are.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub at: usize,
    pub behind: usize,
    pub own: bool,
}

pub struct Agents {
    waiting: VecDeque<Waiting>,
    line: u64,
    /// Bytes that can surely be seen behind an entry.
    ahead: usize,
}

impl Agents {
    pub fn new(ahead: usize) -> Agents {
        Agents {
            waiting: VecDeque::new(),
            line: 0,
            ahead,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// An entry, in the order of the log. `as_agent`: it has the page that agents are asked for.
    #[inline]
    pub fn take(
        &mut self,
        entry: &Entry<'_>,
        place: Place,
        ended_ns: i64,
        as_agent: bool,
        out: &mut Out<'_>,
    ) {
        self.line += 1;
        if !self.waiting.is_empty() {
            self.look(entry, place, ended_ns, out);
        }
        if !place.own {
            return;
        }
        if !as_agent {
            out.entry(entry);
            return;
        }
        out.passes(entry.at_ns);
        self.waiting.push_back(Waiting {
            held: Held::of(entry),
            text: xxh3_64(entry.text),
            index: xxh3_64(entry.index),
            line: self.line,
            at: place.at,
            ended_ns,
        });
    }

    fn look(&mut self, entry: &Entry<'_>, place: Place, ended_ns: i64, out: &mut Out<'_>) {
        let (text, index) = (xxh3_64(entry.text), xxh3_64(entry.index));
        // The agent answered after the search began; a millisecond is what both are rounded to.
        let began_ns = entry.at_ns - 10_000_000;
        let (line, ahead) = (self.line, self.ahead);
        self.waiting.retain_mut(|one| {
            let waits = one.line + LINES >= line
                && one.ended_ns + WAIT_NS >= ended_ns
                && one.at + ahead >= place.behind;
            let part = waits && one.text == text && one.index != index && one.ended_ns >= began_ns;
            if part {
                one.held.plain_mut().kind = Kind::Part;
            }
            if part || !waits {
                out.counts(&one.held.entry());
            }
            waits && !part
        });
    }

    /// Nothing follows: what still waits was asked by somebody.
    pub fn end(&mut self, out: &mut Out<'_>) {
        for one in self.waiting.drain(..) {
            out.counts(&one.held.entry());
        }
    }
}
