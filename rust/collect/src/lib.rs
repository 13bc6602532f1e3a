//! A Scribe server: messages by category over framed Thrift, into files and to other servers.
//!
//! ```text
//! server → conn → thrift, scribe      bytes of clients to calls and back
//! collector → route → queue → store   messages to what keeps them
//! conf                                Scribe's own configuration format
//! ledger                              what must outlive the process
//! ```
//!
//! docs/COLLECT.md says what it promises, and where it differs from scribed.

mod batch;
mod cat;
mod collector;
pub mod conf;
mod conn;
mod counters;
mod ledger;
mod queue;
mod refusals;
mod route;
mod run;
pub mod scribe;
mod server;
mod store;
mod sys;
pub mod thrift;
mod ticket;

pub use batch::{Batch, Name};
pub use cat::cat;
pub use run::{Trouble, check, serve};
pub use store::{Client, read_records};
