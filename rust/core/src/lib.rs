//! The measuring core: one loop and one wire boundary for every engine.
//!
//! ```text
//! arena     prepared requests: bytes, and where they end
//! schedule  which request is next and when it is due: tables, nothing computed
//! clock     nanoseconds since the start, from a calibrated counter
//! wire      where a reply ends: frames, http, mysql, sphinx, postgres
//! plan      which connections are opened, and where to
//! conn      the state of one connection and of the request it carries
//! lane      what a thread keeps for each target
//! deadlines when a request is given up
//! open      opening connections, and again those that are lost
//! thread    the loop: read everything that is ready, then write, then wait
//! begin     beginning requests and sending their bytes
//! reply     what the kernel reports, and the bytes of replies
//! ending    recording, and what a connection does next
//! idle      what a thread does while it waits
//! sample    what is written down of each request
//! region    where: memory that grows without moving
//! spill     what exceeds the memory goes to a file meanwhile
//! options   what a drive can be asked to do
//! drive     threads, start and stop
//! trace     what is left of a drive
//! sys       the system calls
//! ```
//!
//! Knows no Python and no library host.

mod arena;
mod begin;
mod clock;
mod conn;
mod deadlines;
mod drive;
mod ending;
#[cfg(test)]
mod exchange_tests;
#[cfg(test)]
mod failure_tests;
#[cfg(test)]
mod fault_tests;
mod idle;
mod lane;
mod open;
mod options;
mod plan;
#[cfg(test)]
mod port_tests;
mod region;
mod reply;
mod sample;
mod schedule;
mod spill;
mod sys;
#[cfg(test)]
mod target_tests;
#[cfg(test)]
mod testing;
mod thread;
mod trace;
#[cfg(test)]
mod truth_tests;
pub mod wire;

pub use arena::Requests;
pub use drive::Drive;
pub use idle::Idle;
pub use options::{Error, Options, resolve};
pub use sample::{NO_HOST_NS, OUTCOMES, Outcome, SAMPLE_BYTES, Sample, SampleLog};
pub use schedule::Load;
pub use trace::Trace;
pub use wire::{Login, Marks, WireKind};
