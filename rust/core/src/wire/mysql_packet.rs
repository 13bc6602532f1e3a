//! How packets of the MySQL protocol begin: what commands, replies and logins share.

/// A length of three bytes, and the packet's number.
pub(super) const HEADER_BYTES: usize = 4;

/// The length of the packet that a header announces.
pub(super) fn length_of(header: &[u8]) -> usize {
    usize::from(header[0]) | usize::from(header[1]) << 8 | usize::from(header[2]) << 16
}
