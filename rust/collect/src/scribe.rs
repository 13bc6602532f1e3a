//! What a client may ask: `Log`, and all of fb303.

use crate::thrift::{self, Head, Malformed, Reader, put_field, put_frame, put_string};

/// One entry of a `Log`: where its category and its message lie in the frame, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    category: (u32, u32),
    message: (u32, u32),
}

impl Entry {
    pub fn category<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        slice(frame, self.category)
    }

    pub fn message<'a>(&self, frame: &'a [u8]) -> &'a [u8] {
        slice(frame, self.message)
    }
}

fn slice(frame: &[u8], (at, length): (u32, u32)) -> &[u8] {
    &frame[at as usize..at as usize + length as usize]
}

/// The option of this name and a category has the reason why its messages are not taken, however
/// often they are sent; a `Log` is only answered with TRY_LATER. Empty where they may be taken, and
/// from scribed, which knows no such option.
pub const REFUSAL: &[u8] = b"refusal:";

/// A call; the entries of a `Log` are left in the list given to [`read`].
#[derive(Debug, PartialEq, Eq)]
pub enum Call<'a> {
    Log,
    GetName,
    GetVersion,
    GetStatus,
    GetStatusDetails,
    GetCounters,
    GetCounter(&'a [u8]),
    SetOption(&'a [u8], &'a [u8]),
    GetOption(&'a [u8]),
    GetOptions,
    GetCpuProfile,
    AliveSince,
    Reinitialize,
    Shutdown,
    Unknown,
}

/// `ResultCode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Ok = 0,
    TryLater = 1,
}

/// Reads a frame's call; `entries` is emptied, and filled where it is a `Log`. With a call that is
/// malformed comes its head, if that could be read.
pub fn read<'a>(
    frame: &'a [u8],
    entries: &mut Vec<Entry>,
) -> Result<(Head<'a>, Call<'a>), (Option<Head<'a>>, Malformed)> {
    entries.clear();
    let mut reader = Reader::new(frame);
    let head = reader.head().map_err(|why| (None, why))?;
    let call = arguments(&mut reader, head.name, entries).map_err(|why| (Some(head), why))?;
    Ok((head, call))
}

fn arguments<'a>(
    reader: &mut Reader<'a>,
    name: &[u8],
    entries: &mut Vec<Entry>,
) -> Result<Call<'a>, Malformed> {
    if name == b"Log" {
        while let Some((kind, id)) = reader.field()? {
            if (kind, id) == (thrift::LIST, 1) {
                log_entries(reader, entries)?;
            } else {
                reader.skip(kind)?;
            }
        }
        return Ok(Call::Log);
    }
    let mut texts: [&[u8]; 2] = [b"", b""];
    while let Some((kind, id)) = reader.field()? {
        match (kind, id) {
            (thrift::STRING, 1 | 2) => texts[id as usize - 1] = reader.string()?,
            _ => reader.skip(kind)?,
        }
    }
    Ok(match name {
        b"getName" => Call::GetName,
        b"getVersion" => Call::GetVersion,
        b"getStatus" => Call::GetStatus,
        b"getStatusDetails" => Call::GetStatusDetails,
        b"getCounters" => Call::GetCounters,
        b"getCounter" => Call::GetCounter(texts[0]),
        b"setOption" => Call::SetOption(texts[0], texts[1]),
        b"getOption" => Call::GetOption(texts[0]),
        b"getOptions" => Call::GetOptions,
        b"getCpuProfile" => Call::GetCpuProfile,
        b"aliveSince" => Call::AliveSince,
        b"reinitialize" => Call::Reinitialize,
        b"shutdown" => Call::Shutdown,
        _ => Call::Unknown,
    })
}

fn log_entries(reader: &mut Reader<'_>, entries: &mut Vec<Entry>) -> Result<(), Malformed> {
    let (kind, count) = reader.list()?;
    if kind != thrift::STRUCT && count > 0 {
        return Err(Malformed("messages that are no structs"));
    }
    for _ in 0..count {
        let mut entry = Entry::default();
        while let Some((kind, id)) = reader.field()? {
            match (kind, id) {
                (thrift::STRING, 1) => entry.category = string(reader)?,
                (thrift::STRING, 2) => entry.message = string(reader)?,
                _ => reader.skip(kind)?,
            }
        }
        entries.push(entry);
    }
    Ok(())
}

fn string(reader: &mut Reader<'_>) -> Result<(u32, u32), Malformed> {
    let value = reader.string()?;
    Ok(((reader.position() - value.len()) as u32, value.len() as u32))
}

/// What a call returns.
pub enum Value<'a> {
    Void,
    I32(i32),
    I64(i64),
    Text(&'a [u8]),
    Counters(&'a [(String, i64)]),
    Texts(&'a [(Vec<u8>, Vec<u8>)]),
}

/// Appends the answer to the call with this head.
pub fn answer(out: &mut Vec<u8>, head: Head<'_>, value: &Value<'_>) {
    let head = Head {
        kind: thrift::REPLY,
        ..head
    };
    put_frame(out, head, |out| {
        match value {
            Value::Void => {}
            Value::I32(number) => {
                put_field(out, thrift::I32, 0);
                out.extend_from_slice(&number.to_be_bytes());
            }
            Value::I64(number) => {
                put_field(out, thrift::I64, 0);
                out.extend_from_slice(&number.to_be_bytes());
            }
            Value::Text(text) => {
                put_field(out, thrift::STRING, 0);
                put_string(out, text);
            }
            Value::Counters(counters) => {
                put_field(out, thrift::MAP, 0);
                out.extend_from_slice(&[thrift::STRING, thrift::I64]);
                out.extend_from_slice(&(counters.len() as u32).to_be_bytes());
                for (name, count) in *counters {
                    put_string(out, name.as_bytes());
                    out.extend_from_slice(&count.to_be_bytes());
                }
            }
            Value::Texts(texts) => {
                put_field(out, thrift::MAP, 0);
                out.extend_from_slice(&[thrift::STRING, thrift::STRING]);
                out.extend_from_slice(&(texts.len() as u32).to_be_bytes());
                for (name, text) in *texts {
                    put_string(out, name);
                    put_string(out, text);
                }
            }
        }
        out.push(thrift::STOP);
    });
}

/// TApplicationException: the method is unknown (1), or the call breaks the protocol (7).
pub fn exception(out: &mut Vec<u8>, head: Head<'_>, kind: i32, why: &str) {
    let head = Head {
        kind: thrift::EXCEPTION,
        ..head
    };
    put_frame(out, head, |out| {
        put_field(out, thrift::STRING, 1);
        put_string(out, why.as_bytes());
        put_field(out, thrift::I32, 2);
        out.extend_from_slice(&kind.to_be_bytes());
        out.push(thrift::STOP);
    });
}

/// Appends a `Log` of these entries, with an old header, as scribed itself sends it: every server
/// of Scribe reads that.
pub fn put_log<'a>(
    out: &mut Vec<u8>,
    number: i32,
    entries: impl ExactSizeIterator<Item = (&'a [u8], &'a [u8])>,
) {
    let head = Head {
        strict: false,
        name: b"Log",
        kind: thrift::CALL,
        number,
    };
    put_frame(out, head, |out| {
        put_field(out, thrift::LIST, 1);
        out.push(thrift::STRUCT);
        out.extend_from_slice(&(entries.len() as u32).to_be_bytes());
        for (category, message) in entries {
            put_field(out, thrift::STRING, 1);
            put_string(out, category);
            put_field(out, thrift::STRING, 2);
            put_string(out, message);
            out.push(thrift::STOP);
        }
        out.push(thrift::STOP);
    });
}

/// The answer to a `Log` out of its frame.
pub fn read_log_answer(frame: &[u8]) -> Result<Answer, String> {
    let mut reader = Reader::new(frame);
    let broken = |why: Malformed| format!("its answer is malformed: {why}");
    let head = reader.head().map_err(broken)?;
    let mut said = String::new();
    while let Some((kind, id)) = reader.field().map_err(broken)? {
        match (head.kind, kind, id) {
            (thrift::REPLY, thrift::I32, 0) => {
                return match reader.i32().map_err(broken)? {
                    0 => Ok(Answer::Ok),
                    1 => Ok(Answer::TryLater),
                    other => Err(format!(
                        "it answered {other}, which is neither OK nor TRY_LATER"
                    )),
                };
            }
            (thrift::EXCEPTION, thrift::STRING, 1) => {
                said = String::from_utf8_lossy(reader.string().map_err(broken)?).into_owned();
            }
            _ => reader.skip(kind).map_err(broken)?,
        }
    }
    Err(match head.kind {
        thrift::EXCEPTION => format!("it answered with an exception: {said}"),
        _ => "its answer has no result".into(),
    })
}

/// Appends a question for [`REFUSAL`], with an old header too.
pub fn put_refusal(out: &mut Vec<u8>, number: i32, category: &[u8]) {
    let head = Head {
        strict: false,
        name: b"getOption",
        kind: thrift::CALL,
        number,
    };
    put_frame(out, head, |out| {
        put_field(out, thrift::STRING, 1);
        put_string(out, &[REFUSAL, category].concat());
        out.push(thrift::STOP);
    });
}

/// The text in the frame of an answer; None where it has none, as from a server that does not know
/// the call.
pub fn read_text_answer(frame: &[u8]) -> Option<String> {
    let mut reader = Reader::new(frame);
    let head = reader.head().ok()?;
    while let Some((kind, id)) = reader.field().ok()? {
        if (head.kind, kind, id) == (thrift::REPLY, thrift::STRING, 0) {
            return Some(String::from_utf8_lossy(reader.string().ok()?).into_owned());
        }
        reader.skip(kind).ok()?;
    }
    None
}
