//! Standard input, or any other, to a category: what `scribe_cat` does, and line by line.

use std::io::{BufRead, BufReader, Read};
use std::time::Duration;

use crate::scribe::Answer;
use crate::store::Client;

/// Lines and bytes of one call.
const LINES: usize = 100;
const CALL_BYTES: usize = 1 << 20;

/// Sends each line with its newline as a message, or (`whole`) everything as one. Waits as long as
/// the server says TRY_LATER, up to `patience` for one call. How many messages were sent.
pub fn cat(
    input: impl Read,
    host: &str,
    port: u16,
    category: &str,
    whole: bool,
    patience: Duration,
) -> Result<u64, String> {
    let mut client = Client::connect(host, port, Duration::from_secs(5))?;
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
        send(&mut client, category, &messages, patience)
            .map_err(|why| format!("{host}:{port}: {why}; {sent} messages were sent before"))?;
        sent += messages.len() as u64;
    }
}

fn send(
    client: &mut Client,
    category: &str,
    messages: &[Vec<u8>],
    patience: Duration,
) -> Result<(), String> {
    let mut waited = Duration::ZERO;
    loop {
        let entries = messages
            .iter()
            .map(|message| (category.as_bytes(), message.as_slice()));
        if client.log(entries)? == Answer::Ok {
            return Ok(());
        }
        if waited >= patience {
            return Err(format!(
                "it answers TRY_LATER for {} s: `searchbench collect cat` has waited long enough",
                patience.as_secs()
            ));
        }
        let pause = Duration::from_millis(200 + fastrand::u64(0..100));
        std::thread::sleep(pause);
        waited += pause;
    }
}
