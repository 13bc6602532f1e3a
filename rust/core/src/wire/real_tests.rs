//! The wires against real servers that somebody has started; only with the feature `real-servers`.
//! A login names each, as `port user password database` with `-` for what is empty, in a variable:
//!
//! - `SEARCHBENCH_TEST_MYSQL`: MariaDB or MySQL, max_allowed_packet 64M
//! - `SEARCHBENCH_TEST_SPHINX`: searchd's or Manticore's MySQL port
//! - `SEARCHBENCH_TEST_SEARCHD`: searchd's MySQL port, with three indexes: `p1` of documents that
//!   have the word hello, `half` of `local = p1` and an agent that nobody listens at, `none` of such
//!   an agent alone
//! - `SEARCHBENCH_TEST_SEARCHD_API`: the port of its native API
//! - `SEARCHBENCH_TEST_POSTGRES`: PostgreSQL, where the login is asked for a password

mod mysql;
mod postgres;
mod prepared;
mod sphinx;

use std::borrow::Cow;
use std::sync::Arc;

use super::{Login, WireKind};
use crate::sample::Outcome;
use crate::testing::{closed, counted, drive_these, open, options, requests, samples};
use crate::{ClosedLoop, Load, Options, Requests, Trace};

struct Server {
    port: u16,
    login: Login,
}

fn server(variable: &str) -> Server {
    let text = std::env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set"));
    let parts: Vec<&str> = text.split_whitespace().collect();
    let [port, user, password, database] = parts[..] else {
        panic!("{variable} is not `port user password database`");
    };
    let part = |text: &str| if text == "-" { "" } else { text }.to_string();
    Server {
        port: port.parse().expect("a port"),
        login: Login::new(part(user), part(password), part(database)).unwrap(),
    }
}

/// A command packet of the MySQL protocol.
fn query(text: &str) -> Vec<u8> {
    let mut bytes = (text.len() as u32 + 1).to_le_bytes();
    bytes[3] = 0;
    [bytes.as_slice(), b"\x03", text.as_bytes()].concat()
}

/// All of them in their order over one connection; every reply is kept.
fn ask(port: u16, wire: WireKind, each: &[Vec<u8>]) -> Trace {
    let each: Vec<&[u8]> = each.iter().map(Vec::as_slice).collect();
    ask_these(port, wire, requests(&each))
}

fn ask_these(port: u16, wire: WireKind, requests: Arc<Requests>) -> Trace {
    let load = Load::Closed(ClosedLoop {
        sequence: (0..requests.len() as u32).collect(),
        starts: vec![0, requests.len() as u32],
        think_ns: 0,
        repeat: false,
        stop_after: None,
    });
    let target = ([127, 0, 0, 1], port).into();
    drive_these(
        requests,
        Options {
            wire,
            capture_every: 1,
            timeout_ns: 60_000_000_000,
            ..options(target, 1, load)
        },
    )
}

fn outcomes(trace: &Trace) -> Vec<Outcome> {
    let known = [
        Outcome::Ok,
        Outcome::EngineError,
        Outcome::Unsupported,
        Outcome::Partial,
    ];
    let known = |code| known.into_iter().find(|outcome| *outcome as u8 == code);
    samples(trace)
        .iter()
        .map(|sample| known(sample.outcome).unwrap_or_else(|| panic!("{sample:?}")))
        .collect()
}

fn reply(trace: &Trace, index: u64) -> Cow<'_, [u8]> {
    let found = trace.replies().find(|(sample, _)| *sample == index);
    found.expect("every reply is kept").1
}

fn refused(port: u16, wire: WireKind, statement: &[u8], outcome: Outcome, why: &str) {
    let target = ([127, 0, 0, 1], port).into();
    let options = Options {
        wire,
        ..options(target, 1, open(1, 0))
    };
    let trace = drive_these(requests(&[statement]), options);
    assert_eq!(trace.sample(0).outcome, outcome as u8);
    let account = trace.accounting().json();
    assert!(account.contains(why), "{account}");
}
