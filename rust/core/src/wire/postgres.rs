//! The replies of PostgreSQL's protocol, framed and not read.
//!
//! An exchange is one Query message, and behind it the data of the copies that it asks for: for
//! each `COPY .. FROM STDIN`, CopyData messages and a CopyDone (or CopyFail). Or it is messages of
//! the extended protocol (Parse, Bind, Describe, Execute, Close) and a Sync. Several of either may be
//! sent at once. Its reply is whole at the last ReadyForQuery, of which each Query and Sync has one, whatever came before: the results of several statements, notices, or an error,
//! which makes all of it an engine error. The server says so in mid-copy and passes over the rest
//! of the data; where some of it is still to be sent by then, that costs the connection, as does
//! what the server says unasked between exchanges (its settings changed).

use super::boundary::{Greeting, Reply, Step, Wire};
use super::login::Login;
use super::postgres_login::{PostgresLogin, error};
use super::postgres_message::{HEADER_BYTES, length_of};
use crate::sample::Outcome;

#[derive(Clone)]
pub struct Postgres {
    login: PostgresLogin,
    header: [u8; HEADER_BYTES],
    /// How much of the header is there.
    have: usize,
    /// Bytes of the message under way that must still come.
    left: usize,
    outcome: Outcome,
    /// Copies that the exchange brings data for and that the server has not asked for.
    copies: usize,
    /// How often the server must still be ready: once for each Query and Sync.
    ends: usize,
    /// The message under way is the last of the reply.
    last: bool,
    /// The connection cannot be used again.
    close: bool,
}

impl Postgres {
    pub fn new(login: Login) -> Postgres {
        Postgres {
            login: PostgresLogin::new(login),
            header: [0; HEADER_BYTES],
            have: 0,
            left: 0,
            outcome: Outcome::Ok,
            copies: 0,
            ends: 1,
            last: false,
            close: false,
        }
    }

    /// The header is there. None where such a message cannot come here.
    fn message(&mut self) -> Option<()> {
        let kind = self.header[0];
        let length = length_of(&self.header)?;
        self.left = length;
        match kind {
            // RowDescription, DataRow, CommandComplete, EmptyQueryResponse; notices, settings and
            // notifications; a copy to us: CopyOutResponse, CopyData, CopyDone.
            b'T' | b'D' | b'C' | b'I' | b'N' | b'S' | b'A' | b'H' | b'd' | b'c' => {}
            // Of the extended protocol: ParseComplete, BindComplete, CloseComplete,
            // ParameterDescription, NoData.
            b'1' | b'2' | b'3' | b't' | b'n' => {}
            b'E' => self.outcome = Outcome::EngineError,
            b'G' if self.copies > 0 => self.copies -= 1,
            // CopyInResponse, CopyBothResponse: the server would wait for data nobody has.
            b'G' | b'W' => {
                self.outcome = Outcome::Unsupported;
                self.last = true;
                self.close = true;
            }
            b'Z' if length == 1 => {
                self.ends = self.ends.saturating_sub(1);
                self.last = self.ends == 0;
            }
            _ => return None,
        }
        Some(())
    }

    fn reply(&self) -> Reply {
        Reply {
            outcome: self.outcome,
            close: self.close,
            ..Reply::ok()
        }
    }
}

impl Wire for Postgres {
    fn securing(&mut self, out: &mut Vec<u8>) -> Greeting {
        self.login.ask_for_tls(out)
    }

    fn connected(&mut self, out: &mut Vec<u8>) -> Greeting {
        self.login.begin(out)
    }

    fn greet(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Greeting {
        self.login.greet(piece, out)
    }

    fn complaint(&self) -> Option<&str> {
        self.login.complaint()
    }

    fn words(&self, reply: &[u8]) -> String {
        match reply.first() {
            Some(b'E') => error(reply.get(HEADER_BYTES..).unwrap_or_default()),
            _ => String::from_utf8_lossy(reply).into_owned(),
        }
    }

    fn begin(&mut self, exchange: &[u8]) {
        (self.copies, self.ends) = counted(exchange);
        self.have = 0;
        self.left = 0;
        self.outcome = Outcome::Ok;
        self.last = false;
        self.close = false;
    }

    fn feed(&mut self, piece: &[u8]) -> Step {
        let mut at = 0;
        loop {
            let passed = self.left.min(piece.len() - at);
            at += passed;
            self.left -= passed;
            if self.left > 0 {
                return Step::More;
            }
            if self.last {
                return Step::Whole {
                    used: at,
                    reply: self.reply(),
                };
            }
            let taken = (HEADER_BYTES - self.have).min(piece.len() - at);
            self.header[self.have..self.have + taken].copy_from_slice(&piece[at..at + taken]);
            self.have += taken;
            at += taken;
            if self.have < HEADER_BYTES {
                return Step::More;
            }
            self.have = 0;
            if self.message().is_none() {
                return Step::Malformed;
            }
        }
    }

    /// A fatal error (the server is shut down, a session is ended) has no ReadyForQuery.
    fn ended(&mut self) -> Option<Reply> {
        let between_messages = self.left == 0 && self.have == 0;
        (self.outcome == Outcome::EngineError && between_messages).then(|| Reply {
            close: true,
            ..self.reply()
        })
    }
}

/// How many copies an exchange brings all data for (its CopyDone and CopyFail messages), and how
/// often the server is ready again: after each Query and Sync.
fn counted(exchange: &[u8]) -> (usize, usize) {
    let (mut copies, mut ends) = (0, 0);
    let mut at = 0;
    while let Some(header) = exchange.get(at..at + HEADER_BYTES) {
        let Some(length) = length_of(header) else {
            break;
        };
        at += HEADER_BYTES + length;
        let whole = usize::from(at <= exchange.len());
        match header[0] {
            b'c' | b'f' => copies += whole,
            b'Q' | b'S' => ends += whole,
            _ => {}
        }
    }
    (copies, ends.max(1))
}

#[cfg(test)]
#[path = "postgres_tests.rs"]
mod tests;
