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

/// TRY_LATER for this long is told. A queue that is full for a moment is nothing to tell.
const MOMENT: Duration = Duration::from_secs(2);

/// Sends each line with its newline as a message, or (`whole`) everything as one. While the server
/// says TRY_LATER, or is away, the same call is tried again, up to `patience`. A server that is not
/// there at the beginning is a mistake at once, and so is a category that it never takes, if it says
/// so. How many messages were sent.
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
    let mut told = false;
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
        let mut slow = || {
            if !std::mem::replace(&mut told, true) {
                eprintln!(
                    "searchbench collect cat: {host}:{port} answers TRY_LATER: a queue may be \
                     full, a store may fail, or no store takes {category:?}; trying for up to {} s",
                    patience.as_secs()
                );
            }
        };
        send(
            &mut client,
            &connect,
            category,
            &messages,
            patience,
            &mut slow,
        )
        .map_err(|why| format!("{host}:{port}: {why}; {sent} messages were sent before"))?;
        sent += messages.len() as u64;
    }
}

/// Sends one call until it is taken; how many seconds it may take is `patience`. `slow` is called
/// where TRY_LATER lasts.
fn send(
    client: &mut Option<Client>,
    connect: &dyn Fn() -> Result<Client, String>,
    category: &str,
    messages: &[Vec<u8>],
    patience: Duration,
    slow: &mut dyn FnMut(),
) -> Result<(), String> {
    let began = Instant::now();
    let mut asked = false;
    loop {
        let entries = messages
            .iter()
            .map(|message| (category.as_bytes(), message.as_slice()));
        let said = match client {
            Some(open) => open.log(entries),
            None => connect().and_then(|new| client.insert(new).log(entries)),
        };
        let later = matches!(said, Ok(Answer::TryLater));
        let why = match said {
            Ok(Answer::Ok) => return Ok(()),
            Ok(Answer::TryLater) => {
                if !std::mem::replace(&mut asked, true) {
                    match client.as_mut().map(|open| open.refusal(category)) {
                        Some(Ok(Some(why))) => return Err(why),
                        Some(Err(_)) => *client = None,
                        _ => {}
                    }
                }
                if began.elapsed() >= MOMENT {
                    slow();
                }
                "it answers TRY_LATER".into()
            }
            Err(why) => {
                // An answer that comes late must not be taken for that of the next call.
                *client = None;
                why
            }
        };
        if began.elapsed() >= patience {
            let seconds = patience.as_secs();
            let where_to_look = if later {
                "; a collector's standard error, and /metrics at its port, say why"
            } else {
                ""
            };
            return Err(format!("{why}, for {seconds} s{where_to_look}"));
        }
        std::thread::sleep(Duration::from_millis(200 + fastrand::u64(0..100)));
    }
}
