//! What a drive can be asked to do, and what does not fit together.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use crate::arena::Requests;
use crate::clock::unix_ns;
use crate::idle::Idle;
use crate::pace::Load;
use crate::tls::Tls;
use crate::wire::WireKind;

/// How far ahead the zero of the clock may lie.
const LONGEST_AHEAD_S: f64 = 3_600.0;

/// What a drive is asked to do.
pub struct Options {
    pub targets: Vec<SocketAddr>,
    /// For each request which of the targets it asks; None: the first.
    pub request_targets: Option<Vec<u16>>,
    pub wire: WireKind,
    /// Exchanges that are sent once on each connection, after its login.
    pub prelude: Vec<Vec<u8>>,
    /// None: nothing is secured.
    pub tls: Option<Tls>,
    pub load: Load,
    pub connections: usize,
    /// Nothing is begun at or after this.
    pub stop_ns: Option<i64>,
    pub timeout_ns: i64,
    /// For each request how long it may take; None: `timeout_ns`.
    pub request_timeouts_ns: Option<Vec<i64>>,
    /// Keep the reply of every n-th request; 0 keeps none.
    pub capture_every: u64,
    /// Keep when each exchange of a request was sent and answered.
    pub exchange_times: bool,
    /// One pinned thread each; empty: one thread where the kernel likes it.
    pub cpus: Vec<usize>,
    pub idle: Idle,
    pub realtime: bool,
    /// The zero of the clock; None: as soon as all connections are open.
    pub start_unix_ns: Option<i64>,
    /// A folder for what exceeds `spill_after_bytes`; None keeps everything in memory.
    pub spill: Option<PathBuf>,
    pub spill_after_bytes: usize,
}

/// Why a drive did not begin or did not end well.
#[derive(Debug)]
pub enum Error {
    /// The options do not fit together.
    Invalid(String),
    /// The machine refused.
    Machine(io::Error),
    /// It was stopped from outside.
    Stopped,
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::Machine(error)
    }
}

/// The address of a target; the first IPv4 one if there is any. An IPv6 address may be in square
/// brackets. Addresses that are not loopback only where `remote` allows them.
pub fn resolve(host: &str, port: u16, remote: bool) -> Result<SocketAddr, Error> {
    let bare = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let found: Vec<SocketAddr> = match bare.unwrap_or(host).parse::<IpAddr>() {
        Ok(address) => vec![(address, port).into()],
        Err(_) => (host, port).to_socket_addrs().map_or_else(
            |error| Err(Error::Invalid(unresolved(host, port, &error))),
            |found| Ok(found.collect()),
        )?,
    };
    let allowed = |address: &&SocketAddr| remote || address.ip().is_loopback();
    if let Some(other) = found.iter().find(|address| !allowed(address)) {
        return Err(Error::Invalid(format!(
            "target {host}:{port} is {}, which is not this machine's loopback (127.0.0.1, ::1), \
             and load is sent to others only when that is asked for: give remote",
            other.ip()
        )));
    }
    let first = found
        .iter()
        .find(|address| address.is_ipv4())
        .or(found.first());
    first
        .copied()
        .ok_or_else(|| Error::Invalid(format!("target {host}:{port} has no address")))
}

fn unresolved(host: &str, port: u16, error: &io::Error) -> String {
    // The resolver's own words follow a prefix that says nothing more.
    let said = error.to_string();
    let reason = said.rsplit(": ").next().unwrap_or_default();
    format!("the name {host:?} of target {host}:{port} does not resolve to an address ({reason})")
}

impl Options {
    pub(crate) fn check(&self, requests: &Requests) -> Result<(), Error> {
        let wrong = |text: String| Err(Error::Invalid(text));
        if self.connections == 0 || self.connections > 65_536 {
            return wrong(format!(
                "connections is {}, not 1 to 65536",
                self.connections
            ));
        }
        if self.targets.is_empty() {
            return wrong("there is no target".into());
        }
        let says = matches!(self.wire, WireKind::Mysql(_) | WireKind::Postgres(_));
        if !self.prelude.is_empty() && !says {
            return wrong("prelude is given, and only wires mysql and postgres have one".into());
        }
        if let Some(at) = self.prelude.iter().position(Vec::is_empty) {
            return wrong(format!("prelude[{at}] is empty"));
        }
        if let Some(tls) = &self.tls {
            if matches!(self.wire, WireKind::Frames | WireKind::Sphinx) {
                return wrong("tls is given, and this wire has none".into());
            }
            if tls.targets() != self.targets.len() {
                return wrong(format!(
                    "tls has {} names, and there are {} targets",
                    tls.targets(),
                    self.targets.len()
                ));
            }
        }
        if let Some(each) = &self.request_timeouts_ns
            && each.len() != requests.len()
        {
            return wrong(format!(
                "request_timeouts_ns has {} entries, and there are {} requests",
                each.len(),
                requests.len()
            ));
        }
        if self.stop_ns.is_some_and(|stop| stop < 0) {
            return wrong("stop_ns is below 0".into());
        }
        if let Some(start) = self.start_unix_ns {
            let ahead_s = (start as f64 - unix_ns() as f64) / 1e9;
            if ahead_s <= 0.0 || ahead_s > LONGEST_AHEAD_S {
                return wrong(format!(
                    "start_unix_ns is {ahead_s:.3} s ahead, and must be in the future, at most \
                     {LONGEST_AHEAD_S:.0} s: do the machines' clocks agree?"
                ));
            }
        }
        let mut cpus = self.cpus.clone();
        cpus.sort_unstable();
        cpus.dedup();
        if cpus.len() != self.cpus.len() {
            return wrong(format!("cpus {:?} names a cpu twice", self.cpus));
        }
        if self.connections < self.cpus.len() {
            return wrong(format!(
                "{} connections cannot be spread over {} cpus",
                self.connections,
                self.cpus.len()
            ));
        }
        if let Err(text) = self.load.check(self.connections, self.stop_ns) {
            return wrong(text);
        }
        let sequence = self.load.sequence();
        if let Some(at) = sequence
            .iter()
            .position(|&index| index as usize >= requests.len())
        {
            return wrong(format!(
                "sequence[{at}] is request {}, but there are only {}",
                sequence[at],
                requests.len()
            ));
        }
        Ok(())
    }
}
