//! Thrift's binary protocol, as much of it as Scribe speaks, in both of its headers.
//!
//! All numbers are big-endian. A message is a header (strict: a version with the kind in its last
//! byte, name, number; old: name, kind, number) and a struct: fields of type, id and value, ended
//! by a zero. Around it is a frame: four bytes of length.

use std::fmt;

pub const CALL: u8 = 1;
pub const REPLY: u8 = 2;
pub const EXCEPTION: u8 = 3;

pub const STOP: u8 = 0;
pub const I32: u8 = 8;
pub const I64: u8 = 10;
pub const STRING: u8 = 11;
pub const STRUCT: u8 = 12;
pub const MAP: u8 = 13;
pub const LIST: u8 = 15;

const VERSION: u32 = 0x8001_0000;

/// Structs within structs: nobody's call has more than three.
const DEEPEST: u32 = 32;

/// What is no message of this protocol, and why.
#[derive(Debug, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

type Read<T> = Result<T, Malformed>;

/// A larger frame is none: scribed's own limit. A client's first bytes in another protocol
/// (`GET ` is a length of 1.2 GB) are above it.
pub const FRAME_BYTES: usize = 256 << 20;

/// What a client's bytes begin with.
#[derive(Debug, PartialEq, Eq)]
pub enum Framed<'a> {
    /// A frame of which not all is there.
    Part,
    /// A frame, without its length.
    Whole(&'a [u8]),
    /// A request of HTTP.
    Http,
    Malformed,
}

pub fn framed(bytes: &[u8]) -> Framed<'_> {
    let Some((length, rest)) = bytes.split_first_chunk::<4>() else {
        return Framed::Part;
    };
    if length == b"GET " {
        return Framed::Http;
    }
    let length = u32::from_be_bytes(*length) as usize;
    if length > FRAME_BYTES {
        return Framed::Malformed;
    }
    rest.get(..length).map_or(Framed::Part, Framed::Whole)
}

/// The head of a message. `strict` is how it was written, and how the answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head<'a> {
    pub strict: bool,
    pub name: &'a [u8],
    pub kind: u8,
    pub number: i32,
}

/// Bytes of one frame, read from its beginning.
pub struct Reader<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub fn new(data: &'a [u8]) -> Reader<'a> {
        Reader { data, at: 0 }
    }

    /// How far it has been read, in bytes from the frame's beginning.
    pub fn position(&self) -> usize {
        self.at
    }

    pub fn left(&self) -> usize {
        self.data.len() - self.at
    }

    fn take(&mut self, count: usize) -> Read<&'a [u8]> {
        if count > self.left() {
            return Err(Malformed("a value goes beyond the end of its frame"));
        }
        let taken = &self.data[self.at..self.at + count];
        self.at += count;
        Ok(taken)
    }

    fn fixed<const N: usize>(&mut self) -> Read<[u8; N]> {
        let mut value = [0; N];
        value.copy_from_slice(self.take(N)?);
        Ok(value)
    }

    pub fn byte(&mut self) -> Read<u8> {
        self.fixed().map(|[byte]| byte)
    }

    pub fn i32(&mut self) -> Read<i32> {
        self.fixed().map(i32::from_be_bytes)
    }

    pub fn i64(&mut self) -> Read<i64> {
        self.fixed().map(i64::from_be_bytes)
    }

    /// A string: any bytes.
    pub fn string(&mut self) -> Read<&'a [u8]> {
        let length = self.i32()?;
        let length = usize::try_from(length).map_err(|_| Malformed("a negative length"))?;
        self.take(length)
    }

    pub fn head(&mut self) -> Read<Head<'a>> {
        let first = self.i32()?;
        if first < 0 {
            let first = first.cast_unsigned();
            if first & 0xffff_0000 != VERSION {
                return Err(Malformed("a version of the protocol that is unknown"));
            }
            let name = self.string()?;
            let number = self.i32()?;
            let kind = (first & 0xff) as u8;
            return Ok(Head {
                strict: true,
                name,
                kind,
                number,
            });
        }
        let name = self.take(first as usize)?;
        let kind = self.byte()?;
        let number = self.i32()?;
        Ok(Head {
            strict: false,
            name,
            kind,
            number,
        })
    }

    /// The next field's type and id; None at the end of the struct.
    pub fn field(&mut self) -> Read<Option<(u8, i16)>> {
        match self.byte()? {
            STOP => Ok(None),
            kind => Ok(Some((kind, i16::from_be_bytes(self.fixed()?)))),
        }
    }

    /// The type and number of a list's elements; as many as there is room for in the frame.
    pub fn list(&mut self) -> Read<(u8, usize)> {
        let kind = self.byte()?;
        let count = self.count(1)?;
        Ok((kind, count))
    }

    fn count(&mut self, least_bytes: usize) -> Read<usize> {
        let count = self.i32()?;
        let count = usize::try_from(count).map_err(|_| Malformed("a negative count"))?;
        if count > self.left() / least_bytes {
            return Err(Malformed("more elements than their frame has room for"));
        }
        Ok(count)
    }

    /// Passes over a value of this type.
    pub fn skip(&mut self, kind: u8) -> Read<()> {
        self.skip_within(kind, DEEPEST)
    }

    fn skip_within(&mut self, kind: u8, deeper: u32) -> Read<()> {
        let Some(deeper) = deeper.checked_sub(1) else {
            return Err(Malformed("values within values, too deep"));
        };
        match kind {
            2 | 3 => self.take(1).map(|_| ()),
            6 => self.take(2).map(|_| ()),
            I32 => self.take(4).map(|_| ()),
            4 | I64 => self.take(8).map(|_| ()),
            STRING => self.string().map(|_| ()),
            STRUCT => {
                while let Some((kind, _)) = self.field()? {
                    self.skip_within(kind, deeper)?;
                }
                Ok(())
            }
            MAP => {
                let (key, value) = (self.byte()?, self.byte()?);
                for _ in 0..self.count(2)? {
                    self.skip_within(key, deeper)?;
                    self.skip_within(value, deeper)?;
                }
                Ok(())
            }
            14 | LIST => {
                let (kind, count) = self.list()?;
                for _ in 0..count {
                    self.skip_within(kind, deeper)?;
                }
                Ok(())
            }
            _ => Err(Malformed("a type of value that is unknown")),
        }
    }
}

pub fn put_string(out: &mut Vec<u8>, value: &[u8]) {
    out.extend_from_slice(&(value.len() as u32).to_be_bytes());
    out.extend_from_slice(value);
}

pub fn put_field(out: &mut Vec<u8>, kind: u8, id: i16) {
    out.push(kind);
    out.extend_from_slice(&id.to_be_bytes());
}

/// Appends a whole frame: length, head, and what `body` writes.
pub fn put_frame(out: &mut Vec<u8>, head: Head<'_>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    if head.strict {
        out.extend_from_slice(&(VERSION | u32::from(head.kind)).to_be_bytes());
        put_string(out, head.name);
    } else {
        put_string(out, head.name);
        out.push(head.kind);
    }
    out.extend_from_slice(&head.number.to_be_bytes());
    body(out);
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}
