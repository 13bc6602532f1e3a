//! Query logs that production wrote, read and counted.
//!
//! A log is a list of sources (files, compressed or not, or standard input). Each is told by its
//! content (`detect`), cut into blocks (`source`), read into entries (`format`), and counted
//! (`tally`). Counts are sums, so those of blocks, of threads and of days merge to the same answer
//! as one reading of everything (`run`). What the counts are as tables stands in `tables`.

mod cells;
pub mod clock;
pub mod damage;
pub mod detect;
pub mod entries;
pub mod entry;
pub mod format;
pub mod generate;
pub mod histogram;
pub mod look;
pub mod minutes;
pub mod names;
mod often;
pub mod queries;
mod queue;
pub mod run;
mod saved;
mod scan;
mod seam;
pub mod source;
pub mod sql;
mod table;
pub mod tables;
pub mod tally;
pub mod words;

pub use look::{look, look_at_ends};
pub use run::{Follows, Log, Open, Options, Part, Read, Source};
