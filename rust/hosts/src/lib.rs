//! Library hosts.
