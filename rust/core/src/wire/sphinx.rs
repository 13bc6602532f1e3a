//! The replies of Sphinx's native API, framed and not read.
//!
//! A connection begins with the server's version and ours; then we ask it to stay (PERSIST), which
//! is not answered. An exchange is one command: its code, its version, the length of its body, the
//! body. The reply is alike, with a status for a code. The reply to a SEARCH is a success even where
//! its queries failed: each has a status of its own, of which the first is looked at. An error or a
//! warning (an agent that did not answer) of a query alone is seen so; of a batch, what became of
//! the second query and those after it shows only once the reply is decoded.
//!
//! A status that is an error for the whole reply costs the connection: after some (a command that
//! the server does not know) searchd ends it, without saying so.

use super::boundary::{Greeting, Reply, Step, Wire};
use super::login::words;
use crate::sample::Outcome;

/// A status, a version, the length of the body.
const HEADER_BYTES: usize = 8;
/// Of a body: the status of the first query, or the length of a message.
const LOOK_BYTES: usize = 4;
/// The server counts the bytes of a reply in a signed number.
const MAX_BODY_BYTES: u32 = i32::MAX as u32;
/// A greeting beyond this is none.
const MAX_GREETING_BYTES: usize = 4 << 10;

/// The protocol's version, which has always been 1, from either side.
const VERSION: [u8; 4] = [0, 0, 0, 1];
/// Command 4 of version 0 with a body of 4 bytes, which say yes.
const PERSIST: [u8; 12] = [0, 4, 0, 0, 0, 0, 0, 4, 0, 0, 0, 1];
const SEARCH: u16 = 0;

const OK: u16 = 0;
const ERROR: u16 = 1;
const RETRY: u16 = 2;
const WARNING: u16 = 3;

#[derive(Clone, Default)]
pub struct Sphinx {
    /// Bytes of a greeting that is not whole.
    inbox: Vec<u8>,
    complaint: Option<String>,
    /// The command was a SEARCH.
    search: bool,
    head: [u8; HEADER_BYTES + LOOK_BYTES],
    have: usize,
    /// The reply, and how many of its bytes must still come.
    over: Option<Reply>,
    left: usize,
}

impl Sphinx {
    fn failed(&mut self, outcome: Outcome, why: impl Into<String>) -> Greeting {
        self.complaint = Some(why.into());
        Greeting::Failed(outcome)
    }

    fn stranger(&mut self) -> Greeting {
        self.failed(
            Outcome::Malformed,
            "what answers does not speak Sphinx's native API",
        )
    }

    /// What follows the server's version at once: a reply to nothing, by which it sends us away.
    fn sent_away(&mut self) -> Greeting {
        let Some((header, body)) = self.inbox[VERSION.len()..].split_at_checked(HEADER_BYTES)
        else {
            return Greeting::More;
        };
        let length = length_of(header) as usize;
        if !matches!(u16_at(header, 0), ERROR | RETRY)
            || !(LOOK_BYTES..MAX_GREETING_BYTES).contains(&length)
        {
            return self.stranger();
        }
        if body.len() < length {
            return Greeting::More;
        }
        let why = words(&body[LOOK_BYTES..length]);
        self.failed(Outcome::EngineError, why)
    }

    /// How many bytes from the beginning of the reply are looked at, as far as can be told.
    fn wanted(&self) -> usize {
        if self.have < HEADER_BYTES {
            return HEADER_BYTES;
        }
        HEADER_BYTES + (length_of(&self.head) as usize).min(LOOK_BYTES)
    }

    /// The beginning of the reply is there: what it is. None where it cannot be.
    fn outcome(&self) -> Option<Outcome> {
        let length = length_of(&self.head);
        if length > MAX_BODY_BYTES {
            return None;
        }
        let status = u16_at(&self.head, 0);
        if status == OK && !self.search {
            return Some(Outcome::Ok);
        }
        let after_first = length.checked_sub(LOOK_BYTES as u32)?;
        let first = u32_at(&self.head, HEADER_BYTES);
        match status {
            OK => match u16::try_from(first).ok()? {
                OK => Some(Outcome::Ok),
                ERROR => Some(Outcome::EngineError),
                WARNING => Some(Outcome::Partial),
                _ => None,
            },
            // A message, and nothing else.
            ERROR | RETRY if first == after_first => Some(Outcome::EngineError),
            // A message, and the reply.
            WARNING if first <= after_first => Some(Outcome::Partial),
            _ => None,
        }
    }
}

impl Wire for Sphinx {
    fn connected(&mut self, _out: &mut Vec<u8>) -> Greeting {
        self.inbox.clear();
        self.complaint = None;
        Greeting::More
    }

    fn greet(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Greeting {
        self.inbox.extend_from_slice(piece);
        let version = self.inbox.len().min(VERSION.len());
        if self.inbox[..version] != VERSION[..version] {
            return self.stranger();
        }
        if self.inbox.len() < VERSION.len() {
            return Greeting::More;
        }
        if self.inbox.len() > VERSION.len() {
            return self.sent_away();
        }
        out.extend(VERSION);
        out.extend(PERSIST);
        Greeting::Ready
    }

    fn complaint(&self) -> Option<&str> {
        self.complaint.as_deref()
    }

    fn begin(&mut self, exchange: &[u8]) {
        self.search = exchange.len() >= 2 && u16_at(exchange, 0) == SEARCH;
        self.have = 0;
        self.over = None;
        self.left = 0;
    }

    fn feed(&mut self, piece: &[u8]) -> Step {
        let mut at = 0;
        while self.over.is_none() {
            let wanted = self.wanted();
            let taken = (wanted - self.have).min(piece.len() - at);
            self.head[self.have..self.have + taken].copy_from_slice(&piece[at..at + taken]);
            self.have += taken;
            at += taken;
            if self.have < wanted {
                return Step::More;
            }
            if self.have < self.wanted() {
                continue;
            }
            let Some(outcome) = self.outcome() else {
                return Step::Malformed;
            };
            self.left = HEADER_BYTES + length_of(&self.head) as usize - self.have;
            self.over = Some(Reply {
                outcome,
                close: matches!(u16_at(&self.head, 0), ERROR | RETRY),
                ..Reply::ok()
            });
        }
        let passed = self.left.min(piece.len() - at);
        self.left -= passed;
        match self.over {
            Some(reply) if self.left == 0 => Step::Whole {
                used: at + passed,
                reply,
            },
            _ => Step::More,
        }
    }
}

/// The length of the body that a header announces.
fn length_of(header: &[u8]) -> u32 {
    u32_at(header, 4)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
#[path = "sphinx_tests.rs"]
mod tests;
