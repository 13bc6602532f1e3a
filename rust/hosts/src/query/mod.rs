//! The query algebra: `asked` is its form on the wire, `checked` holds it to a schema, and `sought`
//! is what a library looks for.

mod asked;
mod checked;
mod sought;

pub use asked::{Facet, Filter, Match, Mode, Query, Range, Sort, Values};
pub use checked::{Checked, Condition, Key, Matching, Scalar};
pub use sought::Sought;
