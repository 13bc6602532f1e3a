//! The measuring core: one loop and one wire boundary for every engine.
//!
//!     arena     prepared requests: bytes, and where they end
//!     schedule  which request is next and when it is due: tables, nothing computed
//!     clock     nanoseconds since the start, from a calibrated counter
//!     wire      where a reply ends: frames, http
//!     conn      the state of one connection and of the request it carries
//!     open      opening connections, and again those that are lost
//!     thread    the loop: read everything that is ready, then write, then wait
//!     idle      what a thread does while it waits
//!     sample    what is written down of each request, and where
//!     drive     checked options, threads, start and stop
//!     trace     what is left of a drive
//!     sys       the system calls
//!
//! Knows no Python and no library host.

mod arena;
mod clock;
mod conn;
mod drive;
mod idle;
mod open;
mod sample;
mod schedule;
mod sys;
mod thread;
mod trace;
pub mod wire;

pub use arena::Requests;
pub use drive::{Drive, Error, Options, resolve};
pub use idle::Idle;
pub use sample::{NO_HOST_NS, OUTCOMES, Outcome, SAMPLE_BYTES, Sample};
pub use schedule::Load;
pub use trace::Trace;
pub use wire::WireKind;
