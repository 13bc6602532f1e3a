//! The replies of the MySQL protocol, framed and not read: MariaDB, MySQL, Sphinx, Manticore.
//!
//! An exchange is one command (COM_QUERY, COM_STMT_PREPARE, COM_STMT_EXECUTE with its header), or
//! several of one packet each, sent at once. A reply is whole after an OK, an error, or the end of
//! the last result set, that of an exchange after as many as it has commands. Of a packet only its
//! header and, at most, the first 23 bytes are looked at; rows, be they text or binary, are passed
//! over by their lengths.
//!
//! Requests are bytes that were made beforehand, in which the prepared statements of a connection are
//! numbered from 1. MariaDB goes on counting where a thread served another connection before: then
//! what is executed gets the server's number as it is sent. A server that does not count is refused.
//!
//! After LOAD DATA LOCAL an exchange goes on with the file, in packets numbered from the server's
//! request for it, and an empty one. The file is sent without waiting for that request, which is
//! passed over; where no file came along, the server is not given any.
//!
//! An OK and an end of rows count warnings. Plain, they are passed over: a database warns of much
//! that leaves its answer whole. Where they are minded, a reply that counts any is partial: searchd
//! warns of an agent that did not answer, and else only of a query that it changed before it
//! answered (a quorum of more words than there are).

use super::boundary::{Greeting, Reply, Step, Wire};
use super::login::Login;
use super::mysql_login::{MysqlLogin, error};
use super::mysql_packet::{HEADER_BYTES, length_of};
use crate::sample::Outcome;

/// The longest beginning that matters: an OK's mark, two counts of up to 9 bytes, the status and
/// the number of warnings.
const LOOK_BYTES: usize = 23;
/// A packet of this length is continued by the next.
const FULL_BYTES: usize = 0xff_ffff;
/// An end of rows in the old style is shorter than this; a row that begins alike is longer.
const EOF_BYTES: usize = 9;
/// More columns than any server has are no result set.
const MAX_COLUMNS: u64 = 65_535;
const MORE_RESULTS: u16 = 0x0008;

/// Errors of the connection itself, from "packet too large" on: the server ends it.
const GOING: std::ops::RangeInclusive<u16> = 1153..=1161;

/// Commands: the one whose reply describes a statement, and those that have no reply.
const PREPARE: u8 = 0x16;
const UNANSWERED: [u8; 2] = [0x18, 0x19];
/// Those that name a statement: to execute, send data for, close, or reset it.
const NUMBERED: [u8; 4] = [0x17, 0x18, 0x19, 0x1a];

const OK: u8 = 0x00;
const LOCAL_INFILE: u8 = 0xfb;
const EOF: u8 = 0xfe;
const ERR: u8 = 0xff;

/// What the next packet is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Awaited {
    /// An OK, an error, or the number of columns of a result set.
    Result,
    Columns(u64),
    ColumnsEnd,
    Row,
    /// An OK with a statement's number, or an error.
    Prepared,
    /// Descriptions of parameters and columns, and what ends them.
    Described(u64),
}

#[derive(Clone)]
pub struct Mysql {
    login: MysqlLogin,
    /// A reply that counts warnings is partial.
    minds_warnings: bool,
    /// A part of the reply counted some.
    warned: bool,
    awaited: Awaited,
    /// A header and the beginning of its packet, where they come in pieces.
    head: [u8; HEADER_BYTES + LOOK_BYTES],
    have: usize,
    /// Bytes of the packet under way that must still come.
    left: usize,
    /// The number that the next packet must have.
    sequence: u8,
    /// The number of a reply to the command's first packet alone, until a packet has come.
    earliest: u8,
    /// The exchange brings a file that the server has not asked for yet.
    brings_file: bool,
    /// The next packet continues the one before.
    continued: bool,
    /// The reply, once the packet under way is whole.
    over: Option<Reply>,
    /// Commands of the exchange whose replies have not ended; the worst of those that have.
    commands: usize,
    worst: Outcome,
    /// Statements prepared on this connection, and the server's number before the first of them.
    prepared: u32,
    before: u32,
}

impl Mysql {
    pub fn new(login: Login) -> Mysql {
        Mysql {
            login: MysqlLogin::new(login),
            minds_warnings: false,
            warned: false,
            awaited: Awaited::Result,
            head: [0; HEADER_BYTES + LOOK_BYTES],
            have: 0,
            left: 0,
            sequence: 0,
            earliest: 0,
            brings_file: false,
            continued: false,
            over: None,
            commands: 0,
            worst: Outcome::Ok,
            prepared: 0,
            before: 0,
        }
    }

    /// The same where a reply that counts warnings is partial.
    pub fn minding_warnings(login: Login) -> Mysql {
        Mysql {
            minds_warnings: true,
            ..Mysql::new(login)
        }
    }

    /// Gathers a header and the beginning of its packet from pieces; how much of `rest` that took,
    /// and whether they are there.
    fn gather(&mut self, rest: &[u8]) -> (usize, bool) {
        let mut used = 0;
        loop {
            let wanted = look_bytes(&self.head[..self.have]);
            if self.have >= HEADER_BYTES && self.have == wanted {
                return (used, true);
            }
            let taken = (wanted - self.have).min(rest.len() - used);
            if taken == 0 {
                return (used, false);
            }
            self.head[self.have..self.have + taken].copy_from_slice(&rest[used..used + taken]);
            self.have += taken;
            used += taken;
        }
    }

    /// A packet begins with `head`. None where it cannot come here.
    fn packet(&mut self, head: &[u8]) -> Option<()> {
        let length = length_of(head);
        let start = &head[HEADER_BYTES..];
        if self.brings_file && head[3] == self.earliest && start.first() == Some(&LOCAL_INFILE) {
            self.brings_file = false;
            self.left = length - start.len();
            return Some(());
        }
        let early = self.sequence.wrapping_sub(head[3]);
        if early > 0
            && (early > self.sequence.wrapping_sub(self.earliest) || start.first() != Some(&ERR))
        {
            return None;
        }
        self.sequence = self.sequence.wrapping_add(1);
        self.earliest = self.sequence;
        self.left = length - start.len();
        let continues = std::mem::replace(&mut self.continued, length == FULL_BYTES);
        if continues {
            return Some(());
        }
        match (self.awaited, start.first().copied()) {
            // A command that is too large is refused, perhaps before its last packet, and the
            // server goes.
            (
                Awaited::Result | Awaited::Columns(_) | Awaited::Row | Awaited::Prepared,
                Some(ERR),
            ) => {
                let goes = early > 0 || u16_at(start, 1).is_some_and(|code| GOING.contains(&code));
                self.end(Outcome::EngineError, goes)?;
            }
            (Awaited::Result, Some(OK)) => self.result_ended(end_in_ok(start)?)?,
            // The server would wait for a file that nobody said may be read.
            (Awaited::Result, Some(LOCAL_INFILE)) => self.end(Outcome::Unsupported, true)?,
            (Awaited::Result, Some(_)) => {
                let (columns, bytes) = counted(start)?;
                if bytes != length || columns == 0 || columns > MAX_COLUMNS {
                    return None;
                }
                self.awaited = Awaited::Columns(columns);
            }
            (Awaited::Columns(left), Some(_)) => {
                self.awaited = match left - 1 {
                    0 if self.login.rows_end_with_ok() => Awaited::Row,
                    0 => Awaited::ColumnsEnd,
                    left => Awaited::Columns(left),
                };
            }
            (Awaited::ColumnsEnd, Some(EOF)) if length < EOF_BYTES => self.awaited = Awaited::Row,
            (Awaited::Row, Some(EOF)) if self.login.rows_end_with_ok() && !self.continued => {
                self.result_ended(end_in_ok(start)?)?;
            }
            (Awaited::Row, Some(EOF)) if length < EOF_BYTES => {
                self.result_ended((u16_at(start, 3)?, u16_at(start, 1)?))?;
            }
            (Awaited::Row, Some(_)) => {}
            (Awaited::Prepared, Some(OK)) => self.described(start)?,
            (Awaited::Described(1), Some(_)) => self.end(Outcome::Ok, false)?,
            (Awaited::Described(left), Some(_)) => self.awaited = Awaited::Described(left - 1),
            _ => return None,
        }
        Some(())
    }

    fn result_ended(&mut self, (status, warnings): (u16, u16)) -> Option<()> {
        self.warned |= warnings > 0;
        if status & MORE_RESULTS == 0 {
            let partial = self.minds_warnings && self.warned;
            return self.end(
                if partial {
                    Outcome::Partial
                } else {
                    Outcome::Ok
                },
                false,
            );
        }
        self.awaited = Awaited::Result;
        (!self.continued).then_some(())
    }

    /// A statement was prepared; descriptions of its parameters and columns follow.
    fn described(&mut self, start: &[u8]) -> Option<()> {
        let number = u32::from_le_bytes(start.get(1..5)?.try_into().ok()?);
        let ends = u64::from(!self.login.rows_end_with_ok());
        let follow = |count: u16| match u64::from(count) {
            0 => 0,
            count => count + ends,
        };
        let left = follow(u16_at(start, 5)?) + follow(u16_at(start, 7)?);
        if self.prepared == 0 {
            self.before = number.wrapping_sub(1);
        }
        self.prepared += 1;
        if number != self.before.wrapping_add(self.prepared) {
            return self.end(Outcome::Unsupported, true);
        }
        match left {
            0 => self.end(Outcome::Ok, false),
            left => {
                self.awaited = Awaited::Described(left);
                Some(())
            }
        }
    }

    /// The packet under way is the last of a command's reply; the last is never continued.
    fn end(&mut self, outcome: Outcome, close: bool) -> Option<()> {
        self.worst = self.worst.worse(outcome);
        self.commands = self.commands.saturating_sub(1);
        if self.commands > 0 && !close {
            // Those that are sent at once have one packet each.
            self.awaited = Awaited::Result;
            self.sequence = 1;
            self.earliest = 1;
            return (!self.continued).then_some(());
        }
        self.over = Some(Reply {
            outcome: self.worst,
            close,
            ..Reply::ok()
        });
        (!self.continued).then_some(())
    }
}

impl Wire for Mysql {
    fn securing(&mut self, _out: &mut Vec<u8>) -> Greeting {
        self.login.begin(true)
    }

    fn connected(&mut self, out: &mut Vec<u8>) -> Greeting {
        self.prepared = 0;
        self.before = 0;
        self.login.connected(out)
    }

    fn greet(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Greeting {
        self.login.greet(piece, out)
    }

    fn complaint(&self) -> Option<&str> {
        self.login.complaint()
    }

    fn words(&self, reply: &[u8]) -> String {
        match reply.get(HEADER_BYTES) {
            Some(&ERR) => error(&reply[HEADER_BYTES..]),
            _ => "the server does not count the statements that it prepares".into(),
        }
    }

    fn begin(&mut self, exchange: &[u8]) {
        self.awaited = Awaited::Result;
        self.have = 0;
        self.left = 0;
        self.continued = false;
        self.over = None;
        self.warned = false;
        // The reply's packets are numbered after the command's, of which there may be several.
        self.sequence = 0;
        self.earliest = exchange.get(3).map_or(0, |number| number.wrapping_add(1));
        self.brings_file = false;
        self.commands = 0;
        self.worst = Outcome::Ok;
        let (mut at, mut continues) = (0, false);
        while let Some(header) = exchange.get(at..at + HEADER_BYTES) {
            let length = length_of(header);
            if !continues && !self.brings_file {
                if at == 0 || header[3] == 0 {
                    let command = exchange.get(at + HEADER_BYTES);
                    let unanswered = command.is_some_and(|code| UNANSWERED.contains(code));
                    self.commands += usize::from(!unanswered);
                } else {
                    // The command ended before: this is the file, after the request for it.
                    self.brings_file = true;
                    self.earliest = self.sequence;
                }
            }
            if self.commands <= 1 {
                self.sequence = header[3].wrapping_add(1);
            }
            continues = length == FULL_BYTES;
            at += HEADER_BYTES + length;
        }
        if exchange.get(HEADER_BYTES) == Some(&PREPARE) {
            self.awaited = Awaited::Prepared;
        }
    }

    #[inline]
    fn adapt(&self, exchange: &[u8], out: &mut Vec<u8>) -> bool {
        if self.before == 0
            || !exchange
                .get(HEADER_BYTES)
                .is_some_and(|c| NUMBERED.contains(c))
        {
            return false;
        }
        out.extend_from_slice(exchange);
        let mut at = 0;
        let mut continues = false;
        while let Some(header) = out.get(at..at + HEADER_BYTES) {
            let length = length_of(header);
            let number = at + HEADER_BYTES + 1;
            let names = out.get(number - 1).is_some_and(|c| NUMBERED.contains(c));
            if !continues
                && names
                && let Some(bytes) = out.get_mut(number..number + 4)
            {
                let own = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                bytes.copy_from_slice(&own.wrapping_add(self.before).to_le_bytes());
            }
            continues = length == FULL_BYTES;
            at += HEADER_BYTES + length;
        }
        true
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
            if let Some(reply) = self.over.take() {
                return Step::Whole { used: at, reply };
            }
            let rest = &piece[at..];
            if rest.is_empty() {
                return Step::More;
            }
            let wanted = look_bytes(rest);
            let known = if self.have == 0 && rest.len() >= wanted {
                at += wanted;
                self.packet(&rest[..wanted])
            } else {
                let (used, there) = self.gather(rest);
                at += used;
                if !there {
                    return Step::More;
                }
                let (head, have) = (self.head, self.have);
                self.have = 0;
                self.packet(&head[..have])
            };
            if known.is_none() {
                return Step::Malformed;
            }
        }
    }
}

/// How many bytes of a packet and its header are looked at, as far as can be told.
fn look_bytes(bytes: &[u8]) -> usize {
    if bytes.len() < HEADER_BYTES {
        return HEADER_BYTES;
    }
    HEADER_BYTES + length_of(bytes).min(LOOK_BYTES)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?;
    Some(u16::from_le_bytes([bytes[0], bytes[1]]))
}

/// A number whose first byte says how long it is, and its length.
fn counted(bytes: &[u8]) -> Option<(u64, usize)> {
    let width = match *bytes.first()? {
        small @ 0..=0xfa => return Some((u64::from(small), 1)),
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        _ => return None,
    };
    let mut number = [0; 8];
    number[..width].copy_from_slice(bytes.get(1..=width)?);
    Some((u64::from_le_bytes(number), 1 + width))
}

/// The status and the number of warnings in an OK, or in the OK that ends rows.
fn end_in_ok(start: &[u8]) -> Option<(u16, u16)> {
    let (_, rows) = counted(&start[1..])?;
    let (_, id) = counted(&start[1 + rows..])?;
    let at = 1 + rows + id;
    Some((u16_at(start, at)?, u16_at(start, at + 2).unwrap_or(0)))
}

#[cfg(test)]
#[path = "mysql_tests.rs"]
mod tests;
