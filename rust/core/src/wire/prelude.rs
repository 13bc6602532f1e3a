//! What is said once on every connection, after its login: settings of the session, statements that
//! are prepared.
//!
//! Each exchange is sent once the one before was answered well. A connection on which one of them
//! was not is no good: its complaint has the server's words.

use std::sync::Arc;

use super::boundary::{Greeting, Reply, Step, Wire};
use super::login::MAX_WORDS;
use crate::sample::Outcome;

/// A wire with a prelude. Clones share the exchanges.
#[derive(Clone)]
pub struct Prelude<W> {
    wire: W,
    each: Arc<[Vec<u8>]>,
    /// How many were sent; None until the login is over.
    said: Option<usize>,
    /// The beginning of the reply to the last.
    reply: Vec<u8>,
    complaint: Option<String>,
}

impl<W: Wire> Prelude<W> {
    pub fn new(wire: W, each: Vec<Vec<u8>>) -> Prelude<W> {
        Prelude {
            wire,
            each: each.into(),
            said: None,
            reply: Vec::new(),
            complaint: None,
        }
    }

    /// What comes after a greeting of the wire itself.
    fn after(&mut self, said: Greeting, out: &mut Vec<u8>) -> Greeting {
        match said {
            Greeting::Ready => self.say(0, out),
            said => said,
        }
    }

    fn say(&mut self, number: usize, out: &mut Vec<u8>) -> Greeting {
        self.said = Some(number);
        self.reply.clear();
        let Some(exchange) = self.each.get(number) else {
            return Greeting::Ready;
        };
        self.wire.begin(exchange);
        out.extend_from_slice(exchange);
        Greeting::More
    }

    fn failed(&mut self, number: usize, outcome: Outcome) -> Greeting {
        let words = self.wire.words(&self.reply);
        self.complaint = Some(format!(
            "statement {} of those that open a connection: {words}",
            number + 1
        ));
        Greeting::Failed(outcome)
    }
}

impl<W: Wire> Wire for Prelude<W> {
    fn securing(&mut self, out: &mut Vec<u8>) -> Greeting {
        self.said = None;
        self.complaint = None;
        self.wire.securing(out)
    }

    fn connected(&mut self, out: &mut Vec<u8>) -> Greeting {
        self.said = None;
        self.complaint = None;
        let said = self.wire.connected(out);
        self.after(said, out)
    }

    fn greet(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Greeting {
        let Some(number) = self.said else {
            let said = self.wire.greet(piece, out);
            return self.after(said, out);
        };
        let room = MAX_WORDS.saturating_sub(self.reply.len());
        self.reply
            .extend_from_slice(&piece[..piece.len().min(room)]);
        match self.wire.feed(piece) {
            Step::More => Greeting::More,
            Step::Whole { used, reply } if used == piece.len() && !reply.close => {
                match reply.outcome {
                    Outcome::Ok | Outcome::Partial => self.say(number + 1, out),
                    outcome => self.failed(number, outcome),
                }
            }
            Step::Whole { reply, .. } if reply.outcome != Outcome::Ok => {
                self.failed(number, reply.outcome)
            }
            Step::Whole { .. } | Step::Malformed => self.failed(number, Outcome::Malformed),
        }
    }

    fn complaint(&self) -> Option<&str> {
        self.complaint.as_deref().or(self.wire.complaint())
    }

    fn begin(&mut self, exchange: &[u8]) {
        self.wire.begin(exchange);
    }

    #[inline]
    fn adapt(&self, exchange: &[u8], out: &mut Vec<u8>) -> bool {
        self.wire.adapt(exchange, out)
    }

    #[inline]
    fn feed(&mut self, piece: &[u8]) -> Step {
        self.wire.feed(piece)
    }

    fn status(&self) -> u16 {
        self.wire.status()
    }

    fn ended(&mut self) -> Option<Reply> {
        self.wire.ended()
    }
}
