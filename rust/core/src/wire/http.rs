//! HTTP/1.1 and 1.0 replies, framed as RFC 9112 section 6 has it; nothing of them is kept, but
//! where marks are given the beginning of each body, without the framing of its chunks: a reply of
//! status 2xx that lacks one of them is partial.
//!
//! Seen are the status, `content-length`, `transfer-encoding` and `connection`, in any case and
//! tolerating folded lines and bare line feeds. A whole head in one piece is never copied.

use super::boundary::{Reply, Step, Wire};
use super::marks::{Beginning, Marks};
use crate::sample::{NO_HOST_NS, Outcome};

/// A head (with all interim heads before it), a chunk's size line or the trailers beyond this
/// are no HTTP.
const MAX_HEAD_BYTES: usize = 64 << 10;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    StatusLine,
    Fields,
    /// A body of known length: bytes that must still come.
    Length(u64),
    ChunkSize,
    ChunkData(u64),
    ChunkEnd,
    Trailers,
    UntilEnd,
}

/// A field whose value matters; also the one that a folded line continues.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Length,
    Encoding,
    Connection,
    Other,
    /// No field yet: a folded line here continues nothing.
    None,
}

#[derive(Clone)]
pub struct Http {
    state: State,
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
    /// Bytes of lines so far, against `MAX_HEAD_BYTES`.
    line_bytes: usize,
    head_only: bool,
    status: u16,
    http_1_0: bool,
    length: Option<u64>,
    /// The last `content-length` has had no value yet (it may be on a folded line).
    length_open: bool,
    encoded: bool,
    /// The last transfer coding named is `chunked`.
    chunked: bool,
    close: bool,
    keep_alive: bool,
    field: Field,
    marks: Marks,
    /// Of the body under way; empty where there are no marks.
    beginning: Option<Box<Beginning>>,
}

impl Default for Http {
    fn default() -> Http {
        Http::new(Marks::default())
    }
}

impl Http {
    pub fn new(marks: Marks) -> Http {
        Http {
            state: State::StatusLine,
            line: Vec::with_capacity(1024),
            line_bytes: 0,
            head_only: false,
            status: 0,
            http_1_0: false,
            length: None,
            length_open: false,
            encoded: false,
            chunked: false,
            close: false,
            keep_alive: false,
            field: Field::None,
            beginning: (!marks.is_empty()).then(|| Box::new(Beginning::new())),
            marks,
        }
    }
}

/// What a line or a piece leads to.
enum Next {
    Go,
    Whole,
    Malformed,
}

impl Http {
    /// Forgets the head that was read, for the next one.
    fn new_head(&mut self) {
        self.state = State::StatusLine;
        self.status = 0;
        self.http_1_0 = false;
        self.length = None;
        self.length_open = false;
        self.encoded = false;
        self.chunked = false;
        self.close = false;
        self.keep_alive = false;
        self.field = Field::None;
    }

    fn reply(&self) -> Reply {
        let outcome = match self.status {
            400.. => Outcome::HttpError,
            200..300 if self.lacks_a_mark() => Outcome::Partial,
            _ => Outcome::Ok,
        };
        let close = self.close
            || (self.http_1_0 && !self.keep_alive)
            || self.state == State::UntilEnd
            // Chunks in HTTP/1.0, or a length beside an encoding: the framing is not to be
            // relied upon again (RFC 9112, 6.1 and 6.3).
            || (self.encoded && (self.http_1_0 || self.length.is_some()));
        Reply {
            outcome,
            host_ns: NO_HOST_NS,
            close,
        }
    }

    fn lacks_a_mark(&self) -> bool {
        match &self.beginning {
            Some(beginning) => !self.marks.are_in(beginning.bytes()),
            None => false,
        }
    }

    /// A piece of the body, without the framing of chunks.
    fn body(&mut self, piece: &[u8]) {
        if let Some(beginning) = &mut self.beginning {
            beginning.take(piece);
        }
    }

    /// One line without its end.
    fn take_line(&mut self, line: &[u8]) -> Next {
        match self.state {
            State::StatusLine => self.status_line(line),
            State::Fields if line.is_empty() => self.head_ended(),
            State::Fields => self.field_line(line),
            State::ChunkSize => match chunk_size(line) {
                None => Next::Malformed,
                Some(0) => {
                    self.state = State::Trailers;
                    Next::Go
                }
                Some(size) => {
                    self.state = State::ChunkData(size);
                    self.line_bytes = 0;
                    Next::Go
                }
            },
            State::ChunkEnd if line.is_empty() => {
                self.state = State::ChunkSize;
                Next::Go
            }
            State::Trailers if line.is_empty() => Next::Whole,
            State::Trailers => Next::Go,
            _ => Next::Malformed,
        }
    }

    fn status_line(&mut self, line: &[u8]) -> Next {
        // "HTTP/1.1 200" and, after a space, words that nobody needs.
        let well_formed = line.len() >= 12
            && line.starts_with(b"HTTP/1.")
            && matches!(line[7], b'0' | b'1')
            && line[8] == b' '
            && line[9..12].iter().all(u8::is_ascii_digit)
            && line.get(12).is_none_or(|&byte| byte == b' ');
        if !well_formed {
            return Next::Malformed;
        }
        self.http_1_0 = line[7] == b'0';
        self.status = line[9..12]
            .iter()
            .fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0'));
        // Nobody asked for another protocol, so 101 is as wrong as a status below 100.
        if self.status < 100 || self.status == 101 {
            return Next::Malformed;
        }
        self.state = State::Fields;
        Next::Go
    }

    fn field_line(&mut self, line: &[u8]) -> Next {
        if matches!(line[0], b' ' | b'\t') {
            return match self.field {
                Field::None => Next::Malformed,
                field => self.value(field, line.trim_ascii()),
            };
        }
        if self.length_open {
            return Next::Malformed;
        }
        let Some(colon) = line.iter().position(|&byte| byte == b':') else {
            return Next::Malformed;
        };
        let name = line[..colon].trim_ascii_end();
        if name.is_empty() {
            return Next::Malformed;
        }
        self.field = match name.len() {
            14 if name.eq_ignore_ascii_case(b"content-length") => Field::Length,
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => Field::Encoding,
            10 if name.eq_ignore_ascii_case(b"connection") => Field::Connection,
            _ => Field::Other,
        };
        self.length_open = self.field == Field::Length;
        self.value(self.field, line[colon + 1..].trim_ascii())
    }

    /// A value, or what a folded line adds to it.
    fn value(&mut self, field: Field, value: &[u8]) -> Next {
        if value.is_empty() {
            return Next::Go;
        }
        match field {
            Field::Length => {
                if !self.length_open {
                    return Next::Malformed;
                }
                self.length_open = false;
                for part in value.split(|&byte| byte == b',') {
                    let Some(length) = decimal(part.trim_ascii()) else {
                        return Next::Malformed;
                    };
                    if self.length.is_some_and(|known| known != length) {
                        return Next::Malformed;
                    }
                    self.length = Some(length);
                }
            }
            Field::Encoding => {
                self.encoded = true;
                for coding in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
                    if !coding.is_empty() {
                        self.chunked = coding.eq_ignore_ascii_case(b"chunked");
                    }
                }
            }
            Field::Connection => {
                for option in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
                    self.close |= option.eq_ignore_ascii_case(b"close");
                    self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            Field::Other | Field::None => {}
        }
        Next::Go
    }

    fn head_ended(&mut self) -> Next {
        if self.length_open {
            return Next::Malformed;
        }
        if self.status < 200 {
            self.new_head();
            return Next::Go;
        }
        self.line_bytes = 0;
        if self.head_only || self.status == 204 || self.status == 304 {
            return Next::Whole;
        }
        self.state = match (self.encoded, self.chunked, self.length) {
            (true, true, _) => State::ChunkSize,
            (true, false, _) | (false, _, None) => State::UntilEnd,
            (false, _, Some(0)) => return Next::Whole,
            (false, _, Some(length)) => State::Length(length),
        };
        Next::Go
    }

    /// Bytes that cannot become a status line, however they go on.
    fn is_hopeless(&self) -> bool {
        let wanted = b"HTTP/1.";
        let seen = self.line.len().min(wanted.len());
        self.state == State::StatusLine && self.line[..seen] != wanted[..seen]
    }
}

impl Wire for Http {
    fn begin(&mut self, exchange: &[u8]) {
        self.new_head();
        if let Some(beginning) = &mut self.beginning {
            beginning.clear();
        }
        self.line.clear();
        self.line_bytes = 0;
        self.head_only = exchange.starts_with(b"HEAD ");
    }

    fn feed(&mut self, piece: &[u8]) -> Step {
        let mut at = 0;
        while at < piece.len() {
            let rest = &piece[at..];
            match self.state {
                State::Length(left) => {
                    self.body(&rest[..left.min(rest.len() as u64) as usize]);
                    if (rest.len() as u64) < left {
                        self.state = State::Length(left - rest.len() as u64);
                        return Step::More;
                    }
                    return Step::Whole {
                        used: at + left as usize,
                        reply: self.reply(),
                    };
                }
                State::ChunkData(left) => {
                    let taken = left.min(rest.len() as u64);
                    self.body(&rest[..taken as usize]);
                    at += taken as usize;
                    self.state = match left - taken {
                        0 => State::ChunkEnd,
                        left => State::ChunkData(left),
                    };
                    continue;
                }
                State::UntilEnd => {
                    self.body(rest);
                    return Step::More;
                }
                _ => {}
            }
            let Some(end) = find(rest, b'\n') else {
                self.line.extend_from_slice(rest);
                self.line_bytes += rest.len();
                if self.line_bytes > MAX_HEAD_BYTES || self.is_hopeless() {
                    return Step::Malformed;
                }
                return Step::More;
            };
            at += end + 1;
            self.line_bytes += end + 1;
            if self.line_bytes > MAX_HEAD_BYTES {
                return Step::Malformed;
            }
            let next = if self.line.is_empty() {
                self.take_line(without_return(&rest[..end]))
            } else {
                let mut line = std::mem::take(&mut self.line);
                line.extend_from_slice(&rest[..end]);
                let next = self.take_line(without_return(&line));
                line.clear();
                self.line = line;
                next
            };
            match next {
                Next::Go => {}
                Next::Whole => {
                    return Step::Whole {
                        used: at,
                        reply: self.reply(),
                    };
                }
                Next::Malformed => return Step::Malformed,
            }
        }
        Step::More
    }

    fn status(&self) -> u16 {
        self.status
    }

    fn ended(&mut self) -> Option<Reply> {
        (self.state == State::UntilEnd).then(|| self.reply())
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |sum, &digit| {
        let digit = digit
            .is_ascii_digit()
            .then_some(u64::from(digit.wrapping_sub(b'0')))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

/// The size in a chunk's first line; extensions after `;` are passed over.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = line
        .split(|&byte| byte == b';')
        .next()
        .unwrap_or_default()
        .trim_ascii_end();
    if digits.is_empty() || digits.len() > 15 {
        return None;
    }
    digits.iter().try_fold(0, |sum, &digit| {
        Some(sum << 4 | u64::from(char::from(digit).to_digit(16)?))
    })
}

/// Where `byte` first is; the C library's search is vectorised.
fn find(bytes: &[u8], byte: u8) -> Option<usize> {
    // SAFETY: reads at most `len` bytes of a valid slice.
    let found =
        unsafe { libc::memchr(bytes.as_ptr().cast(), i32::from(byte), bytes.len()) }.cast::<u8>();
    (!found.is_null()).then(|| found as usize - bytes.as_ptr() as usize)
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
