//! Frames of the protocol in FORMATS.md: reading requests, writing replies.

use std::io::{self, Read};
use std::ops::Range;

/// Bytes before the payload of a request.
pub const REQUEST_HEADER_BYTES: usize = 8;
/// Bytes before the payload of a reply.
pub const REPLY_HEADER_BYTES: usize = 16;
/// A longer payload is refused.
pub const MAX_PAYLOAD_BYTES: usize = 1 << 30;

/// Status codes of a reply.
pub const OK: u8 = 0;
pub const ERROR: u8 = 1;
pub const UNSUPPORTED: u8 = 2;

/// Verbs of a request.
pub const FACTS: u8 = 1;
pub const CREATE: u8 = 2;
pub const BATCH: u8 = 3;
pub const SETTLE: u8 = 4;
pub const QUERY: u8 = 5;
pub const ANALYSE: u8 = 6;
pub const COMMIT: u8 = 7;
pub const REPLACE: u8 = 8;
pub const DELETE: u8 = 9;

const BUFFER_BYTES: usize = 64 << 10;

/// What came in.
#[derive(Debug, PartialEq)]
pub enum Incoming {
    /// A whole request; its payload is in the buffer at that range.
    Request { verb: u8, payload: Range<usize> },
    /// Not a request of this protocol: answer with this sentence and close.
    Garbage(String),
    /// The other side has closed, between requests or within one.
    Closed,
}

/// Bytes received and not yet handled. Memory grows with what arrives, not with what a header
/// promises.
#[derive(Default)]
pub struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Buffer {
    /// The bytes of a payload that `next` or `parse` has named.
    pub fn payload(&self, range: Range<usize>) -> &[u8] {
        &self.bytes[range]
    }

    /// The next request if it is wholly here; None if more must be read.
    pub fn parse(&mut self) -> Option<Incoming> {
        let here = &self.bytes[self.start..self.end];
        if here.len() < REQUEST_HEADER_BYTES {
            return None;
        }
        let length = u32::from_le_bytes(here[..4].try_into().expect("four bytes")) as usize;
        let verb = here[4];
        if here[5..8] != [0, 0, 0] {
            return Some(Incoming::Garbage(
                "bytes 5 to 7 of a request are zero".into(),
            ));
        }
        if !(FACTS..=DELETE).contains(&verb) {
            return Some(Incoming::Garbage(format!(
                "there is no verb {verb}; they are 1 to 9"
            )));
        }
        if length > MAX_PAYLOAD_BYTES {
            return Some(Incoming::Garbage(format!(
                "a payload of {length} bytes is above 1 GiB"
            )));
        }
        if here.len() < REQUEST_HEADER_BYTES + length {
            return None;
        }
        let from = self.start + REQUEST_HEADER_BYTES;
        self.start = from + length;
        Some(Incoming::Request {
            verb,
            payload: from..from + length,
        })
    }

    /// Reads once; false at the end of the stream. Payloads named before are invalid after it.
    pub fn fill(&mut self, from: &mut impl Read) -> io::Result<bool> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.bytes.len() > 64 * BUFFER_BYTES {
                self.bytes = Vec::new();
            }
        }
        if self.end == self.bytes.len() {
            if self.start > 0 {
                self.bytes.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            }
            if self.end + BUFFER_BYTES / 2 > self.bytes.len() {
                self.bytes
                    .resize((2 * self.bytes.len()).max(BUFFER_BYTES), 0);
            }
        }
        let count = from.read(&mut self.bytes[self.end..])?;
        self.end += count;
        Ok(count > 0)
    }

    /// The next request, read as far as needed.
    pub fn next(&mut self, from: &mut impl Read) -> io::Result<Incoming> {
        loop {
            if let Some(incoming) = self.parse() {
                return Ok(incoming);
            }
            match self.fill(from) {
                Ok(true) => {}
                Ok(false) => return Ok(Incoming::Closed),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Begins a reply at the end of `out`; `finish` fills in what `begin` leaves open.
pub fn begin(out: &mut Vec<u8>) -> usize {
    let at = out.len();
    out.extend_from_slice(&[0; REPLY_HEADER_BYTES]);
    at
}

/// Completes the reply that begins at `at`: all bytes after its header are its payload.
pub fn finish(out: &mut [u8], at: usize, status: u8, host_ns: u64) {
    let length = out.len() - at - REPLY_HEADER_BYTES;
    out[at..at + 4].copy_from_slice(&(length as u32).to_le_bytes());
    out[at + 4] = status;
    out[at + 8..at + 16].copy_from_slice(&host_ns.to_le_bytes());
}

/// `{"error": sentence}`.
pub fn error_payload(sentence: &str) -> Vec<u8> {
    serde_json::json!({ "error": sentence })
        .to_string()
        .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(verb: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = (payload.len() as u32).to_le_bytes().to_vec();
        bytes.extend_from_slice(&[verb, 0, 0, 0]);
        bytes.extend_from_slice(payload);
        bytes
    }

    /// Gives its bytes out at most `step` at a time.
    struct Drip<'a>(&'a [u8], usize);
    impl Read for Drip<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = self.0.len().min(self.1).min(into.len());
            into[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    #[test]
    fn requests_come_out_whole_however_they_arrive() {
        let long = vec![7u8; 300_000];
        let mut bytes = request(QUERY, b"{}");
        bytes.extend(request(BATCH, &long));
        bytes.extend(request(FACTS, b""));
        for step in [1, 3, 8, 4096, 1 << 20] {
            let (mut buffer, mut drip) = (Buffer::default(), Drip(&bytes, step));
            let mut got = Vec::new();
            loop {
                match buffer.next(&mut drip).unwrap() {
                    Incoming::Request { verb, payload } => {
                        got.push((verb, buffer.payload(payload).to_vec()))
                    }
                    other => break assert_eq!(other, Incoming::Closed),
                }
            }
            assert_eq!(
                got,
                [
                    (QUERY, b"{}".to_vec()),
                    (BATCH, long.clone()),
                    (FACTS, vec![])
                ]
            );
        }
    }

    #[test]
    fn what_is_not_a_request_is_named() {
        for (bytes, said) in [
            (*b"GET / HT", "zero"),
            ([0, 0, 0, 0, 10, 0, 0, 0], "no verb 10"),
            ([1, 0, 0, 64, 5, 0, 0, 0], "above 1 GiB"),
        ] {
            match Buffer::default().next(&mut Drip(&bytes, 8)).unwrap() {
                Incoming::Garbage(sentence) => assert!(sentence.contains(said), "{sentence}"),
                other => panic!("{other:?}"),
            }
        }
    }
}
