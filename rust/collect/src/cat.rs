//! Standard input, or any other, to a category: what `scribe_cat` does, and line by line.

use std::io::{BufRead, BufReader, Read};
use std::time::{Duration, Instant};

use crate::scribe::Answer;
use crate::store::Client;

/// Lines and bytes of one call.
const LINES: usize = 100;
const CALL_BYTES: usize = 1 << 20;

/// To connect, and for one answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Sends each line with its newline as a message, or (`whole`) everything as one. While the server
/// says TRY_LATER, or is away, the same call is tried again, up to `patience`. A server that is not
/// there at the beginning is a mistake at once. How many messages were sent.
pub fn cat(
    input: impl Read,
    host: &str,
    port: u16,
    category: &str,
    whole: bool,
    patience: Duration,
) -> Result<u64, String> {
    let connect = || Client::connect(host, port, TIMEOUT);
    let mut client = Some(connect()?);
    let mut input = BufReader::with_capacity(256 << 10, input);
    let mut messages: Vec<Vec<u8>> = Vec::new();
    let mut sent = 0;
    loop {
        messages.clear();
        let mut bytes = 0;
        while messages.len() < LINES && bytes < CALL_BYTES {
            let mut message = Vec::new();
            let read = if whole && sent == 0 && messages.is_empty() {
                input.read_to_end(&mut message)
            } else {
                input.read_until(b'\n', &mut message)
            };
            bytes += read.map_err(|error| format!("what is to be sent cannot be read: {error}"))?;
            if message.is_empty() {
                break;
            }
            messages.push(message);
            // Lines that come slowly are not held back.
            if !whole && input.buffer().is_empty() {
                break;
            }
        }
        if messages.is_empty() {
            return Ok(sent);
        }
        send(&mut client, &connect, category, &messages, patience)
            .map_err(|why| format!("{host}:{port}: {why}; {sent} messages were sent before"))?;
        sent += messages.len() as u64;
    }
}

/// Sends one call until it is taken; how many seconds it may take is `patience`.
fn send(
    client: &mut Option<Client>,
    connect: &dyn Fn() -> Result<Client, String>,
    category: &str,
    messages: &[Vec<u8>],
    patience: Duration,
) -> Result<(), String> {
    let began = Instant::now();
    loop {
        let entries = messages
            .iter()
            .map(|message| (category.as_bytes(), message.as_slice()));
        let said = match client {
            Some(open) => open.log(entries),
            None => connect().and_then(|new| client.insert(new).log(entries)),
        };
        let why = match said {
            Ok(Answer::Ok) => return Ok(()),
            Ok(Answer::TryLater) => "it answers TRY_LATER".into(),
            Err(why) => {
                // An answer that comes late must not be taken for that of the next call.
                *client = None;
                why
            }
        };
        if began.elapsed() >= patience {
            return Err(format!("{why}, for {} s", patience.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(200 + fastrand::u64(0..100)));
    }
}
