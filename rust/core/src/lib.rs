//! The measuring core: one loop and one wire boundary for every engine.
//!
//! ```text
//! arena     prepared requests: bytes, and where they end
//! pace      closed loops, open loops and replays: what is sent next and when, and when all is over
//! clock     nanoseconds since the start, from a calibrated counter
//! wire      where a reply ends: frames, http, mysql, sphinx, postgres
//! tls       TLS beneath a wire: trust, handshakes, records
//! plan      which targets are asked, and whose thread has which connection
//! conn      the state of one connection and of the request it carries
//! deadlines when a request is given up
//! connect   opening connections, and again those that are lost
//! thread    the loop: read everything that is ready, then write, then wait
//! begin     beginning requests and sending their bytes
//! reply     what the kernel reports, and the bytes of replies
//! ending    recording, and what a connection does next
//! idle      what a thread does while it waits
//! sample    what is written down of each request
//! region    where: memory that grows without moving
//! spill     what exceeds the memory goes to a file meanwhile
//! kept      replies that are kept
//! exchanges when each exchange of a request was sent and answered
//! options   what a drive can be asked to do
//! shared    what all threads of a drive see
//! drive     threads, start and stop
//! account   what a drive used and counted
//! trace     what is left of a drive
//! sys       the system calls
//! ```
//!
//! Knows no Python and no library host.

mod account;
mod arena;
mod begin;
mod clock;
mod conn;
mod connect;
mod deadlines;
mod drive;
mod ending;
#[cfg(test)]
mod exchange_tests;
mod exchanges;
#[cfg(test)]
mod failure_tests;
#[cfg(test)]
mod fault_tests;
mod idle;
mod kept;
#[cfg(test)]
mod operation_tests;
mod options;
mod pace;
mod plan;
#[cfg(test)]
mod port_tests;
mod region;
mod reply;
mod sample;
mod shared;
mod spill;
mod sys;
#[cfg(test)]
mod target_tests;
#[cfg(test)]
mod testing;
mod thread;
mod tls;
mod trace;
#[cfg(test)]
mod truth_tests;
pub mod wire;

pub use account::{Accounting, Counters, Opened, TargetUse, ThreadUse};
pub use arena::Requests;
pub use drive::Drive;
pub use exchanges::{EXCHANGE_BYTES, ExchangeTimes};
pub use idle::Idle;
pub use options::{Error, Options, resolve};
pub use pace::{ClosedLoop, Load, OpenLoop};
pub use sample::{NO_HOST_NS, OUTCOMES, Outcome, SAMPLE_BYTES, Sample, SampleLog};
pub use tls::{Tls, TlsSettings};
pub use trace::Trace;
pub use wire::{Login, Marks, WireKind};
