//! One secured connection: records of TLS on the one side, bytes of the wire on the other.
//!
//! Nothing is buffered twice: records are decrypted where they were received, and encrypted into
//! what is handed to the kernel.

use std::io;
use std::ops::Range;
use std::os::fd::RawFd;

use rustls::client::UnbufferedClientConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, InsufficientSizeError, UnbufferedStatus};
use rustls::{Error, HandshakeKind};

use super::failure;
use crate::sample::Outcome;
use crate::sys;

/// What a record holds at most, and what it adds to that: header, nonce, type and tag, rounded up.
const RECORD_BYTES: usize = 16 << 10;
const AROUND_BYTES: usize = 64;

pub struct Secure {
    session: UnbufferedClientConnection,
    /// The server's name, for sentences.
    name: String,
    /// The beginning of a record whose end has not come.
    inbox: Vec<u8>,
    /// What is to be sent.
    out: Vec<u8>,
    /// How much of it the last exchange is.
    given: usize,
    /// The handshake is over.
    is_open: bool,
    /// The other side said that it sends no more.
    is_closed: bool,
    failure: Option<(Outcome, String)>,
}

impl Secure {
    pub(super) fn begin(session: UnbufferedClientConnection, name: &str) -> Result<Secure, String> {
        let mut secure = Secure {
            session,
            name: name.to_string(),
            inbox: Vec::new(),
            out: Vec::new(),
            given: 0,
            is_open: false,
            is_closed: false,
            failure: None,
        };
        match secure.take(&mut [], &mut []) {
            Ok(_) => Ok(secure),
            Err(error) => Err(error.to_string()),
        }
    }

    pub fn is_open(&self) -> bool {
        self.is_open
    }

    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// The handshake was spared by what was left of an earlier one.
    pub fn resumed(&self) -> bool {
        self.session.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// Version and cipher, as "TLSv1_3 TLS13_AES_256_GCM_SHA384".
    pub fn agreed(&self) -> Option<String> {
        let version = self.session.protocol_version()?;
        let suite = self.session.negotiated_cipher_suite()?.suite();
        Some(format!("{version:?} {suite:?}"))
    }

    /// What went wrong, if that is known: what it counts as, and why.
    pub fn failure(&mut self) -> Option<(Outcome, String)> {
        self.failure.take()
    }

    /// What is said where the other side ends the connection during the handshake.
    pub fn hung_up(&self) -> String {
        format!(
            "what answers as {} closed the connection during the handshake of TLS: see that it \
             speaks TLS, and what its log says",
            self.name
        )
    }

    /// Takes what has arrived, decrypted: how many bytes, 0 at the end, and whether nothing more was
    /// there. `WouldBlock` also where what came has nothing for the wire. `sealed` is as long as
    /// `plain` or shorter.
    pub fn receive(
        &mut self,
        fd: RawFd,
        plain: &mut [u8],
        sealed: &mut [u8],
    ) -> io::Result<(usize, bool)> {
        if self.is_closed {
            return Ok((0, true));
        }
        let kept = self.inbox.len();
        sealed[..kept].copy_from_slice(&self.inbox);
        let got = sys::receive(fd, &mut sealed[kept..])?;
        if got == 0 {
            return Ok((0, true));
        }
        let have = kept + got;
        let all = have < sealed.len();
        match self.take(&mut sealed[..have], plain) {
            Err(error) => {
                self.failure = Some(failure::told(&error, &self.name));
                Err(io::ErrorKind::InvalidData.into())
            }
            Ok(0) if self.is_closed => Ok((0, true)),
            Ok(0) if all => Err(io::ErrorKind::WouldBlock.into()),
            Ok(0) => Err(io::ErrorKind::Interrupted.into()),
            // What follows the last words is their end, for which the kernel may have no event.
            Ok(count) => Ok((count, all && !self.is_closed)),
        }
    }

    /// Takes records; how many bytes they hold for the wire.
    fn take(&mut self, sealed: &mut [u8], plain: &mut [u8]) -> Result<usize, Error> {
        let (mut at, mut count) = (0, 0);
        loop {
            let UnbufferedStatus {
                mut discard, state, ..
            } = self.session.process_tls_records(&mut sealed[at..]);
            let more = match state? {
                ConnectionState::ReadTraffic(mut records) => {
                    while let Some(record) = records.next_record() {
                        let record = record?;
                        discard += record.discard;
                        let bytes = record.payload;
                        plain[count..count + bytes.len()].copy_from_slice(bytes);
                        count += bytes.len();
                    }
                    true
                }
                ConnectionState::EncodeTlsData(mut words) => {
                    encode(&mut self.out, |room| words.encode(room))?;
                    true
                }
                ConnectionState::TransmitTlsData(words) => {
                    words.done();
                    true
                }
                ConnectionState::WriteTraffic(_) => {
                    self.is_open = true;
                    false
                }
                ConnectionState::BlockedHandshake => false,
                _ => {
                    self.is_closed = true;
                    false
                }
            };
            at += discard;
            if !more {
                self.inbox.clear();
                self.inbox.extend_from_slice(&sealed[at..]);
                return Ok(count);
            }
        }
    }

    /// Hands the kernel everything that the handshake, or a greeting, wants to say: false where it
    /// did not take all. That is little, on a socket that has carried nothing.
    pub fn say_all(&mut self, fd: RawFd) -> bool {
        let whole = self.out.is_empty()
            || sys::send(fd, &self.out).is_ok_and(|sent| sent == self.out.len());
        self.out.clear();
        self.given = 0;
        whole
    }

    /// Encrypts an exchange, all of whose predecessors were sent: which part of `sealed` to send.
    pub fn put(&mut self, exchange: &[u8]) -> Option<Range<usize>> {
        // Behind the last exchange may be an answer to what only TLS asked.
        self.out.drain(..self.given);
        let start = self.out.len();
        loop {
            match self.session.process_tls_records(&mut []).state.ok()? {
                ConnectionState::EncodeTlsData(mut words) => {
                    encode(&mut self.out, |room| words.encode(room)).ok()?;
                }
                ConnectionState::TransmitTlsData(words) => words.done(),
                ConnectionState::WriteTraffic(mut traffic) => {
                    let records = exchange.len().div_ceil(RECORD_BYTES);
                    let start = self.out.len();
                    let room = start + exchange.len() + AROUND_BYTES * records;
                    self.out.resize(room, 0);
                    let used = traffic.encrypt(exchange, &mut self.out[start..]).ok()?;
                    self.out.truncate(start + used);
                    break;
                }
                _ => return None,
            }
        }
        debug_assert!(self.out.len() > start);
        self.given = self.out.len();
        Some(0..self.given)
    }

    /// What `put` encrypted.
    pub fn sealed(&self) -> &[u8] {
        &self.out
    }
}

/// Appends what `words` writes into as much room as it needs.
fn encode(
    out: &mut Vec<u8>,
    mut words: impl FnMut(&mut [u8]) -> Result<usize, EncodeError>,
) -> Result<(), Error> {
    let start = out.len();
    let mut room = 2 << 10;
    loop {
        out.resize(start + room, 0);
        match words(&mut out[start..]) {
            Ok(used) => {
                out.truncate(start + used);
                return Ok(());
            }
            Err(EncodeError::InsufficientSize(InsufficientSizeError { required_size })) => {
                room = required_size;
            }
            Err(error) => return Err(Error::General(error.to_string())),
        }
    }
}
