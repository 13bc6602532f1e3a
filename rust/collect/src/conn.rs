//! One connection: frames out of what arrives, and answers in the order of their calls.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::sync::Arc;

use mio::net::TcpStream;

use crate::collector::{Collector, Runs};
use crate::scribe::{self, Answer, Call, Entry, Value};
use crate::thrift::{Framed, Head, framed};
use crate::ticket::{Asker, Mailbox};

/// Calls that wait for their stores, and bytes of answers that the client does not fetch: beyond
/// these its next calls are not read.
const CALLS: usize = 1024;
const ANSWERS_BYTES: usize = 4 << 20;

/// The head of an HTTP request.
const HTTP_BYTES: usize = 16 << 10;

const UNKNOWN_METHOD: i32 = 1;
const PROTOCOL_ERROR: i32 = 7;

/// What a reactor has for all of its connections.
pub struct Desk {
    pub collector: Arc<Collector>,
    pub mailbox: Arc<Mailbox>,
    pub input: Vec<u8>,
    pub entries: Vec<Entry>,
    pub runs: Runs,
}

enum Turn {
    /// The answer to a `Log`, by its ticket: what is needed to write it.
    Waits {
        call: u64,
        strict: bool,
        number: i32,
        kept: Option<bool>,
    },
    Ready(Vec<u8>),
}

pub struct Connection {
    pub stream: TcpStream,
    index: usize,
    generation: u64,
    /// What arrived and is no whole frame yet.
    rest: Vec<u8>,
    out: Vec<u8>,
    written: usize,
    /// Answers behind one that waits.
    turns: VecDeque<Turn>,
    calls: u64,
    /// No more is read; it is closed once the answers are written.
    closing: bool,
    /// The socket may have more: it was left before it was empty.
    pub unread: bool,
}

impl Connection {
    pub fn new(stream: TcpStream, index: usize, generation: u64) -> Connection {
        let _ = stream.set_nodelay(true);
        Connection {
            stream,
            index,
            generation,
            rest: Vec::new(),
            out: Vec::new(),
            written: 0,
            turns: VecDeque::new(),
            calls: 0,
            closing: false,
            unread: true,
        }
    }

    fn is_held_up(&self) -> bool {
        self.turns.len() >= CALLS || self.out.len() - self.written > ANSWERS_BYTES
    }

    /// Reads and answers as much as there is, for a while. False: it is over.
    pub fn turn(&mut self, desk: &mut Desk) -> bool {
        const ROUNDS: usize = 8;
        if !self.rest.is_empty() && !self.closing && !self.is_held_up() {
            let rest = std::mem::take(&mut self.rest);
            self.take_in(&rest, desk);
        }
        for _ in 0..ROUNDS {
            if self.closing || self.is_held_up() || !self.unread {
                break;
            }
            let mut input = std::mem::take(&mut desk.input);
            let got = self.stream.read(&mut input);
            let alive = match got {
                Ok(0) => false,
                Ok(count) => {
                    self.unread = count == input.len();
                    self.take_in(&input[..count], desk);
                    true
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.unread = false;
                    true
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
                Err(_) => false,
            };
            desk.input = input;
            if !alive {
                return false;
            }
        }
        self.write()
    }

    /// Frames out of these bytes and what was left of those before.
    fn take_in(&mut self, input: &[u8], desk: &mut Desk) {
        if self.rest.is_empty() {
            let used = self.frames(input, desk);
            self.rest.extend_from_slice(&input[used..]);
            return;
        }
        let mut rest = std::mem::take(&mut self.rest);
        rest.extend_from_slice(input);
        let used = self.frames(&rest, desk);
        rest.drain(..used);
        if rest.is_empty() {
            // Ten thousand idle connections hold nothing.
            rest = Vec::new();
        }
        self.rest = rest;
    }

    /// Answers the whole frames at the beginning; how many bytes they were.
    fn frames(&mut self, bytes: &[u8], desk: &mut Desk) -> usize {
        let mut at = 0;
        while !self.closing && !self.is_held_up() {
            match framed(&bytes[at..]) {
                Framed::Part => break,
                Framed::Whole(frame) => {
                    self.call(frame, desk);
                    at += 4 + frame.len();
                }
                Framed::Http => return self.http(&bytes[at..], desk),
                Framed::Malformed => {
                    self.malformed(desk);
                    return bytes.len();
                }
            }
        }
        if self.closing { bytes.len() } else { at }
    }

    fn malformed(&mut self, desk: &Desk) {
        use std::sync::atomic::Ordering;
        desk.collector
            .shared
            .counters
            .malformed
            .fetch_add(1, Ordering::Relaxed);
        self.closing = true;
    }

    fn call(&mut self, frame: &[u8], desk: &mut Desk) {
        let (head, call) = match scribe::read(frame, &mut desk.entries) {
            Ok(read) => read,
            Err((head, why)) => {
                if let Some(head) = head {
                    self.say(|out| scribe::exception(out, head, PROTOCOL_ERROR, why.0));
                }
                return self.malformed(desk);
            }
        };
        match call {
            Call::Log => self.log(frame, head, desk),
            Call::Unknown => {
                let name = String::from_utf8_lossy(head.name);
                let why = format!("there is no method {name:?}; Scribe has Log and those of fb303");
                self.say(|out| scribe::exception(out, head, UNKNOWN_METHOD, &why));
            }
            call => desk.collector.answer(&call, &mut |value: &Value<'_>| {
                self.say(|out| scribe::answer(out, head, value));
            }),
        }
    }

    fn log(&mut self, frame: &[u8], head: Head<'_>, desk: &mut Desk) {
        let Desk {
            collector,
            mailbox,
            entries,
            runs,
            ..
        } = desk;
        let call = self.calls;
        let asker = Asker {
            connection: self.index,
            generation: self.generation,
            call,
        };
        self.calls += 1;
        match collector.log(frame, entries, runs, asker, mailbox) {
            Some(answer) => self.say(|out| put_answer(out, head, answer)),
            None => {
                let Head { strict, number, .. } = head;
                self.turns.push_back(Turn::Waits {
                    call,
                    strict,
                    number,
                    kept: None,
                });
            }
        }
    }

    /// An answer, behind those that wait.
    fn say(&mut self, put: impl FnOnce(&mut Vec<u8>)) {
        if self.turns.is_empty() {
            return put(&mut self.out);
        }
        if !matches!(self.turns.back(), Some(Turn::Ready(_))) {
            self.turns.push_back(Turn::Ready(Vec::new()));
        }
        if let Some(Turn::Ready(bytes)) = self.turns.back_mut() {
            put(bytes);
        }
    }

    /// What became of a call. False: the connection is another by now.
    pub fn told(&mut self, asker: Asker, kept: bool) -> bool {
        if asker.generation != self.generation {
            return false;
        }
        for turn in &mut self.turns {
            if let Turn::Waits {
                call, kept: known, ..
            } = turn
                && *call == asker.call
            {
                *known = Some(kept);
                break;
            }
        }
        while let Some(turn) = self.turns.front() {
            match turn {
                Turn::Waits { kept: None, .. } => break,
                Turn::Waits {
                    strict,
                    number,
                    kept: Some(kept),
                    ..
                } => {
                    let head = Head {
                        strict: *strict,
                        name: b"Log",
                        kind: 0,
                        number: *number,
                    };
                    let answer = if *kept { Answer::Ok } else { Answer::TryLater };
                    put_answer(&mut self.out, head, answer);
                }
                Turn::Ready(bytes) => self.out.extend_from_slice(bytes),
            }
            self.turns.pop_front();
        }
        true
    }

    /// Writes what there is to say; false where the connection is over. What the socket does not
    /// take goes when it says that it can.
    pub fn write(&mut self) -> bool {
        while self.written < self.out.len() {
            match self.stream.write(&self.out[self.written..]) {
                Ok(0) => return false,
                Ok(count) => self.written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        self.out.clear();
        self.out.shrink_to(4096);
        self.written = 0;
        !(self.closing && self.turns.is_empty())
    }

    /// Could it be read on, once there is time?
    pub fn is_waiting_for_turn(&self) -> bool {
        !self.closing && !self.is_held_up() && (self.unread || self.has_frame())
    }

    /// Was a whole frame left because it was held up?
    fn has_frame(&self) -> bool {
        matches!(framed(&self.rest), Framed::Whole(_) | Framed::Malformed)
    }

    /// Nothing is owed to the client.
    pub fn is_done(&self) -> bool {
        self.turns.is_empty() && self.written == self.out.len()
    }

    /// `GET /metrics`, on the port of Scribe.
    fn http(&mut self, bytes: &[u8], desk: &Desk) -> usize {
        if !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
            if bytes.len() > HTTP_BYTES {
                self.malformed(desk);
            }
            // Kept, and looked at again when more has come.
            return 0;
        }
        let path = bytes[4..]
            .split(|byte| matches!(byte, b' ' | b'?' | b'\r'))
            .next();
        let (status, text) = match path {
            Some(b"/metrics") => ("200 OK", desk.collector.metrics()),
            _ => ("404 Not Found", "there is /metrics\n".into()),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{text}",
            text.len()
        );
        self.say(|out| out.extend_from_slice(head.as_bytes()));
        self.closing = true;
        bytes.len()
    }
}

fn put_answer(out: &mut Vec<u8>, head: Head<'_>, answer: Answer) {
    scribe::answer(out, head, &Value::I32(answer as i32));
}
