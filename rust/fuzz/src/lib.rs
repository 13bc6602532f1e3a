//! For tests alone: bytes that nobody would send, for all that reads bytes of others.
//!
//! A *target* is one reader. An input is a seed (a real reply, frame or log) with some of its bytes
//! changed; the target says in assertions what must be true of each. The harness sees that none takes
//! more memory than its bytes justify, and that none is read for ever.
//!
//! `cargo test` gives each target some ten thousand inputs. By hand:
//!
//! ```text
//! SEARCHBENCH_FUZZ=N       so many inputs for each target
//! SEARCHBENCH_FUZZ_S=S     but for no longer than S seconds
//! SEARCHBENCH_FUZZ_SEED=N  other inputs
//! SEARCHBENCH_FUZZ_FROM=N  from input N on: with one input, one that was found, again
//! ```
//!
//! It builds on stable, so it is not guided by coverage: seeds must come near to every branch.

mod memory;
mod random;
mod seeds;
mod target;

pub use memory::Meter;
pub use random::Random;
pub use seeds::Seeds;
pub use target::Target;
