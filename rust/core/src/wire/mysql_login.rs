//! How a connection of the MySQL protocol is opened: the server's greeting, our answer, its verdict.
//!
//! Passwords: mysql_native_password, and the short way of caching_sha2_password, which works where
//! the server remembers the login. Its long way, the password itself, goes over TLS alone; RSA is
//! not spoken here. TLS begins after the server's greeting, and the rest of the login goes over it.
//! Sphinx greets with flags of its own, names no method, and lets everybody in.

use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::boundary::Greeting;
use super::login::Login;
use super::login::words;
use super::mysql_packet::length_of;
use crate::sample::Outcome;

/// A greeting beyond this is none.
const MAX_PACKET_BYTES: usize = 16 << 10;
/// What we say we take; the server's own limit is what counts.
const MAX_REPLY_BYTES: u32 = 1 << 30;
/// utf8mb4_general_ci, which every server since MySQL 5.5 has.
const UTF8: u8 = 45;
const NONCE_BYTES: usize = 20;

const NATIVE: &str = "mysql_native_password";
const CACHING: &str = "caching_sha2_password";

const BEFORE_41: &str =
    "the server wants the password as before MySQL 4.1, which is not spoken here";

const LONG_PASSWORD: u32 = 1;
const CONNECT_WITH_DB: u32 = 1 << 3;
/// Files are sent only with the exchange that asks for them to be loaded.
const LOCAL_FILES: u32 = 1 << 7;
const PROTOCOL_41: u32 = 1 << 9;
const SSL: u32 = 1 << 11;
const TRANSACTIONS: u32 = 1 << 13;
const SECURE_CONNECTION: u32 = 1 << 15;
const MULTI_STATEMENTS: u32 = 1 << 16;
const MULTI_RESULTS: u32 = 1 << 17;
const PLUGIN_AUTH: u32 = 1 << 19;
const DEPRECATE_EOF: u32 = 1 << 24;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Hello,
    Verdict,
}

#[derive(Clone)]
pub struct MysqlLogin {
    login: Login,
    stage: Stage,
    /// Bytes of a packet that is not whole.
    inbox: Vec<u8>,
    flags: u32,
    /// It goes over TLS.
    secure: bool,
    /// The server's greeting and the number of our last packet, while TLS begins.
    heard: Option<(Hello, u8)>,
    /// The method that was last answered with.
    method: String,
    complaint: Option<String>,
}

/// What the server says of itself.
#[derive(Clone)]
struct Hello {
    flags: u32,
    nonce: Vec<u8>,
    /// Empty where it names none.
    method: String,
}

impl MysqlLogin {
    pub fn new(login: Login) -> MysqlLogin {
        MysqlLogin {
            login,
            stage: Stage::Hello,
            inbox: Vec::new(),
            flags: 0,
            secure: false,
            heard: None,
            method: String::new(),
            complaint: None,
        }
    }

    /// Rows end with an OK rather than in the old style.
    pub fn rows_end_with_ok(&self) -> bool {
        self.flags & DEPRECATE_EOF != 0
    }

    /// As if this had been agreed upon with a server.
    #[cfg(test)]
    pub fn agree_for_test(&mut self, rows_end_with_ok: bool) {
        self.flags = if rows_end_with_ok { DEPRECATE_EOF } else { 0 };
    }

    pub fn complaint(&self) -> Option<&str> {
        self.complaint.as_deref()
    }

    /// `secure`: with TLS, after which `connected` goes on.
    pub fn begin(&mut self, secure: bool) -> Greeting {
        self.stage = Stage::Hello;
        self.secure = secure;
        self.heard = None;
        self.inbox.clear();
        self.flags = 0;
        self.complaint = None;
        Greeting::More
    }

    /// The connection stands; secured, where the greeting asked for that.
    pub fn connected(&mut self, out: &mut Vec<u8>) -> Greeting {
        match self.heard.take() {
            Some((hello, sequence)) => self.answer(&hello, sequence, out),
            None => self.begin(false),
        }
    }

    pub fn greet(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Greeting {
        self.inbox.extend_from_slice(piece);
        while self.inbox.len() >= 4 {
            let length = length_of(&self.inbox);
            if length == 0 || length > MAX_PACKET_BYTES {
                return self.stranger();
            }
            if self.inbox.len() < 4 + length {
                break;
            }
            let packet: Vec<u8> = self.inbox.drain(..4 + length).collect();
            let said = self.packet(packet[3], &packet[4..], out);
            match said {
                Greeting::More => {}
                // Nobody asked anything yet, so nothing can follow; what does in the clear is not to be
                // taken for what was said over TLS.
                Greeting::Ready | Greeting::Secure if !self.inbox.is_empty() => {
                    return self.stranger();
                }
                said => return said,
            }
        }
        Greeting::More
    }

    fn failed(&mut self, outcome: Outcome, why: impl Into<String>) -> Greeting {
        self.complaint = Some(why.into());
        Greeting::Failed(outcome)
    }

    fn stranger(&mut self) -> Greeting {
        self.failed(
            Outcome::Malformed,
            "what answers does not speak the MySQL protocol",
        )
    }

    fn packet(&mut self, sequence: u8, body: &[u8], out: &mut Vec<u8>) -> Greeting {
        match (self.stage, body[0]) {
            (_, 0xff) => self.failed(Outcome::EngineError, error(body)),
            (Stage::Hello, 10) => match hello(body) {
                Some(hello) if self.secure => self.ask_for_tls(hello, sequence, out),
                Some(hello) => self.answer(&hello, sequence, out),
                None => self.stranger(),
            },
            (Stage::Verdict, 0x00) => Greeting::Ready,
            (Stage::Verdict, 0xfe) => self.switch(sequence, &body[1..], out),
            (Stage::Verdict, 0x01) if self.method == CACHING => match body[1..] {
                // Remembered; an OK follows.
                [3] => Greeting::More,
                [4] if self.secure => {
                    send(
                        sequence,
                        &[self.login.password.as_bytes(), b"\0"].concat(),
                        out,
                    );
                    Greeting::More
                }
                [4] => self.failed(
                    Outcome::Unsupported,
                    "caching_sha2_password: the server does not remember this login and wants the \
                     password over TLS (mysql+tls://) or RSA, which is not spoken here; log in \
                     once by another client, or use a user with mysql_native_password",
                ),
                _ => self.stranger(),
            },
            _ => self.stranger(),
        }
    }

    fn ask_for_tls(&mut self, hello: Hello, sequence: u8, out: &mut Vec<u8>) -> Greeting {
        if hello.flags & SSL == 0 {
            return self.failed(
                Outcome::Unsupported,
                "the server offers no TLS: give it a certificate (ssl_cert, ssl_key), or ask in \
                 plain text (mysql://)",
            );
        }
        let mut body = Vec::with_capacity(32);
        begin_answer(&mut body, self.wanted() & hello.flags);
        send(sequence, &body, out);
        self.heard = Some((hello, sequence.wrapping_add(1)));
        Greeting::Secure
    }

    fn wanted(&self) -> u32 {
        let mut wanted = LONG_PASSWORD
            | LOCAL_FILES
            | PROTOCOL_41
            | TRANSACTIONS
            | SECURE_CONNECTION
            | MULTI_STATEMENTS
            | MULTI_RESULTS
            | PLUGIN_AUTH
            | DEPRECATE_EOF;
        if !self.login.database.is_empty() {
            wanted |= CONNECT_WITH_DB;
        }
        if self.secure {
            wanted |= SSL;
        }
        wanted
    }

    fn answer(&mut self, hello: &Hello, sequence: u8, out: &mut Vec<u8>) -> Greeting {
        let wanted = self.wanted();
        self.flags = wanted & hello.flags;
        if self.flags & PROTOCOL_41 == 0 {
            return self.failed(
                Outcome::Unsupported,
                "the server does not offer protocol 4.1",
            );
        }
        if self.flags & SECURE_CONNECTION == 0 && !self.login.password.is_empty() {
            return self.failed(Outcome::Unsupported, BEFORE_41);
        }
        if wanted & CONNECT_WITH_DB != self.flags & CONNECT_WITH_DB {
            return self.failed(
                Outcome::Unsupported,
                "a database is given, and the server knows none",
            );
        }
        // Another method is asked for by a switch, once the server knows who is coming.
        self.method = match hello.method.as_str() {
            CACHING => CACHING.into(),
            _ => NATIVE.into(),
        };
        let mut body = Vec::with_capacity(128);
        begin_answer(&mut body, self.flags);
        body.extend(self.login.user.as_bytes());
        body.push(0);
        let proof = self.proof(&hello.nonce);
        body.push(proof.len() as u8);
        body.extend(proof);
        if self.flags & CONNECT_WITH_DB != 0 {
            body.extend(self.login.database.as_bytes());
            body.push(0);
        }
        if self.flags & PLUGIN_AUTH != 0 {
            body.extend(self.method.as_bytes());
            body.push(0);
        }
        send(sequence, &body, out);
        self.stage = Stage::Verdict;
        Greeting::More
    }

    /// The server wants another method, or the same with another nonce.
    fn switch(&mut self, sequence: u8, body: &[u8], out: &mut Vec<u8>) -> Greeting {
        let Some(end) = body.iter().position(|&byte| byte == 0) else {
            return self.failed(Outcome::Unsupported, BEFORE_41);
        };
        let nonce = &body[end + 1..];
        self.method = words(&body[..end]);
        if self.method != NATIVE && self.method != CACHING {
            let why = format!(
                "the server wants {}, and only mysql_native_password and caching_sha2_password \
                 are spoken here",
                self.method
            );
            return self.failed(Outcome::Unsupported, why);
        }
        if nonce.len() < NONCE_BYTES {
            return self.stranger();
        }
        send(sequence, &self.proof(&nonce[..NONCE_BYTES]), out);
        Greeting::More
    }

    /// What proves the password, by the method at hand; empty for none.
    fn proof(&self, nonce: &[u8]) -> Vec<u8> {
        let password = self.login.password.as_bytes();
        if password.is_empty() {
            return Vec::new();
        }
        if self.method == CACHING {
            caching_proof(password, nonce)
        } else {
            native_proof(password, nonce)
        }
    }
}

/// The beginning of an answer to the greeting, which is also all of the wish for TLS.
fn begin_answer(body: &mut Vec<u8>, flags: u32) {
    body.extend(flags.to_le_bytes());
    body.extend(MAX_REPLY_BYTES.to_le_bytes());
    body.push(UTF8);
    body.extend([0; 23]);
}

fn send(after: u8, body: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(body.len() as u32).to_le_bytes()[..3]);
    out.push(after.wrapping_add(1));
    out.extend_from_slice(body);
}

/// SHA1(password) xor SHA1(nonce, SHA1(SHA1(password))).
fn native_proof(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    let once = Sha1::digest(password);
    let mask = Sha1::new()
        .chain_update(nonce)
        .chain_update(Sha1::digest(once))
        .finalize();
    once.iter().zip(mask).map(|(a, b)| a ^ b).collect()
}

/// SHA256(password) xor SHA256(SHA256(SHA256(password)), nonce).
fn caching_proof(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    let once = Sha256::digest(password);
    let mask = Sha256::new()
        .chain_update(Sha256::digest(once))
        .chain_update(nonce)
        .finalize();
    once.iter().zip(mask).map(|(a, b)| a ^ b).collect()
}

/// Takes `count` bytes off the front.
fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

/// The server's greeting of version 10; older servers end it before the second half of the nonce.
fn hello(body: &[u8]) -> Option<Hello> {
    let mut rest = &body[1..];
    let version = rest.iter().position(|&byte| byte == 0)?;
    take(&mut rest, version + 1 + 4)?;
    let mut nonce = take(&mut rest, 8)?.to_vec();
    take(&mut rest, 1)?;
    let low = take(&mut rest, 2)?;
    let mut flags = u32::from(u16::from_le_bytes([low[0], low[1]]));
    let mut method = String::new();
    if !rest.is_empty() {
        take(&mut rest, 3)?;
        let high = take(&mut rest, 2)?;
        flags |= u32::from(u16::from_le_bytes([high[0], high[1]])) << 16;
        let nonce_bytes = usize::from(take(&mut rest, 11)?[0]);
        if flags & SECURE_CONNECTION != 0 {
            // With a NUL at its end that is not part of it; Sphinx does not say how long it is.
            let second = nonce_bytes.saturating_sub(8).max(NONCE_BYTES - 8 + 1);
            let there = second.min(rest.len());
            let second = take(&mut rest, there)?;
            nonce.extend(second.get(..NONCE_BYTES - 8)?);
        }
        if flags & PLUGIN_AUTH != 0 {
            let name = rest.split(|&byte| byte == 0).next().unwrap_or_default();
            method = words(name);
        }
    }
    Some(Hello {
        flags,
        nonce,
        method,
    })
}

/// An error packet in words: its number and what the server says.
pub(super) fn error(body: &[u8]) -> String {
    let Some((code, text)) = body[1..].split_at_checked(2) else {
        return "the server refused without a word".into();
    };
    let text = match text {
        [b'#', _, _, _, _, _, text @ ..] => text,
        text => text,
    };
    let code = u16::from_le_bytes([code[0], code[1]]);
    format!("{code}: {}", words(text))
}

#[cfg(test)]
#[path = "mysql_login_tests.rs"]
mod tests;
