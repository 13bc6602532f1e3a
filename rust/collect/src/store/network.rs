//! Store `network`: `Log` calls to another Scribe server.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::{Purpose, Store};
use crate::batch::Batch;
use crate::conf::Network;
use crate::counters::add;
use crate::scribe::{self, Answer};

/// Message bytes of one call. What is larger goes in several, so that a server with a limit for
/// frames takes a whole buffered file too.
const CALL_BYTES: usize = 8 << 20;

/// No answer to a `Log` is longer.
const ANSWER_BYTES: usize = 1 << 20;

/// A connection to a Scribe server.
pub struct Client {
    stream: TcpStream,
    number: i32,
    frame: Vec<u8>,
}

impl Client {
    pub fn connect(host: &str, port: u16, timeout: Duration) -> Result<Client, String> {
        let place = format!("{host}:{port}");
        let addresses = (host, port).to_socket_addrs();
        let addresses = addresses.map_err(|error| format!("{place}: {error}"))?;
        let mut why = format!("{place}: the name has no address");
        for address in addresses {
            match TcpStream::connect_timeout(&address, timeout) {
                Ok(stream) => {
                    let set = |stream: &TcpStream| {
                        stream.set_nodelay(true)?;
                        stream.set_read_timeout(Some(timeout))?;
                        stream.set_write_timeout(Some(timeout))
                    };
                    set(&stream).map_err(|error: io::Error| format!("{place}: {error}"))?;
                    return Ok(Client {
                        stream,
                        number: 0,
                        frame: Vec::new(),
                    });
                }
                Err(error) => why = format!("{place}: {error}"),
            }
        }
        Err(why)
    }

    /// Did the other side close it while it was not used?
    fn is_stale(&self) -> bool {
        let mut byte = [0];
        let _ = self.stream.set_nonblocking(true);
        let peeked = self.stream.peek(&mut byte);
        let back = self.stream.set_nonblocking(false);
        back.is_err() || !matches!(peeked, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Sends these messages in one call; what the server says to them.
    pub fn log<'a>(
        &mut self,
        entries: impl ExactSizeIterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Result<Answer, String> {
        self.frame.clear();
        self.number = self.number.wrapping_add(1);
        scribe::put_log(&mut self.frame, self.number, entries);
        self.exchange().map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                "it did not answer in time".into()
            }
            io::ErrorKind::UnexpectedEof => "it closed the connection".into(),
            _ => error.to_string(),
        })?;
        scribe::read_log_answer(&self.frame)
    }

    /// Why messages of this category are not taken, however often they are sent, as far as the
    /// server says it. An error: the connection is of no use any more.
    pub fn refusal(&mut self, category: &str) -> io::Result<Option<String>> {
        self.frame.clear();
        self.number = self.number.wrapping_add(1);
        scribe::put_refusal(&mut self.frame, self.number, category.as_bytes());
        self.exchange()?;
        Ok(scribe::read_text_answer(&self.frame).filter(|why| !why.is_empty()))
    }

    fn exchange(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.frame)?;
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > ANSWER_BYTES {
            return Err(io::Error::other(
                "what it answered is not a frame of Thrift",
            ));
        }
        self.frame.resize(length, 0);
        self.stream.read_exact(&mut self.frame)
    }
}

type Shared = Arc<Mutex<Option<Client>>>;

/// Connections that stores with `use_conn_pool` share, by their servers.
#[derive(Default)]
pub struct Pool(Mutex<HashMap<Vec<(String, u16)>, Shared>>);

impl Pool {
    fn of(&self, servers: &[(String, u16)]) -> Shared {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(servers.to_vec()).or_default().clone()
    }
}

pub struct Upstream {
    conf: Network,
    purpose: Purpose,
    connection: Shared,
    trouble: Option<String>,
}

impl Upstream {
    pub fn new(conf: &Network, purpose: &Purpose) -> Upstream {
        let connection = if conf.pooled {
            purpose.pool.of(&conf.servers)
        } else {
            Shared::default()
        };
        Upstream {
            conf: conf.clone(),
            purpose: purpose.clone(),
            connection,
            trouble: None,
        }
    }

    fn noted(&mut self, done: Result<(), String>) -> Result<(), String> {
        let done = done.map_err(|why| format!("upstream {why}"));
        self.trouble = done.as_ref().err().cloned();
        done
    }
}

/// A connection that is open, as far as can be known.
fn connected<'a>(slot: &'a mut Option<Client>, conf: &Network) -> Result<&'a mut Client, String> {
    if slot.as_ref().is_some_and(Client::is_stale) {
        *slot = None;
    }
    if slot.is_none() {
        let mut servers: Vec<_> = conf.servers.iter().collect();
        fastrand::shuffle(&mut servers);
        let mut why = String::new();
        for (host, port) in servers {
            match Client::connect(host, *port, conf.timeout) {
                Ok(client) => {
                    *slot = Some(client);
                    break;
                }
                Err(error) => why = error,
            }
        }
        if slot.is_none() {
            return Err(why);
        }
    }
    Ok(slot.as_mut().expect("just connected"))
}

/// Sends until something is not taken; how many were.
fn send(slot: &mut Option<Client>, conf: &Network, batch: &Batch) -> (usize, Result<(), String>) {
    let mut sent = 0;
    while sent < batch.len() {
        let client = match connected(slot, conf) {
            Ok(client) => client,
            Err(why) => return (sent, Err(why)),
        };
        let start = if sent == 0 { 0 } else { batch.end(sent - 1) };
        let mut next = sent + 1;
        while next < batch.len() && batch.end(next) - start <= CALL_BYTES {
            next += 1;
        }
        let entries = (sent..next).map(|index| batch.get(index));
        match client.log(entries) {
            Ok(Answer::Ok) => sent = next,
            Ok(Answer::TryLater) => return (sent, Err("answers TRY_LATER".into())),
            Err(why) => {
                // An answer that comes late must not be taken for that of the next call.
                *slot = None;
                return (sent, Err(why));
            }
        }
    }
    (sent, Ok(()))
}

impl Store for Upstream {
    fn keep(&mut self, batch: &mut Batch) -> Result<(), String> {
        let shared = self.connection.clone();
        let mut slot = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let (sent, done) = send(&mut slot, &self.conf, batch);
        drop(slot);
        add(&self.purpose.counts.sent, sent);
        batch.drop_front(sent);
        self.noted(done)
    }

    fn ready(&mut self) -> Result<(), String> {
        let shared = self.connection.clone();
        let mut slot = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let done = connected(&mut slot, &self.conf).map(|_| ());
        drop(slot);
        self.noted(done)
    }

    fn close(&mut self) {
        if !self.conf.pooled {
            *self
                .connection
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = None;
        }
    }

    fn trouble(&self) -> Option<String> {
        if self.conf.ignore_error {
            None
        } else {
            self.trouble.clone()
        }
    }
}
