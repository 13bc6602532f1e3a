//! The measuring core.
