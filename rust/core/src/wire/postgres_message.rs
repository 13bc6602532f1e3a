//! How messages of the PostgreSQL protocol begin: what replies, copies and logins share.

/// A kind, and a length that counts itself.
pub(super) const HEADER_BYTES: usize = 5;
/// No message is longer: the server itself cannot make one of 1 GiB.
const MAX_MESSAGE_BYTES: u32 = 1 << 30;

/// Bytes after the header of a message; None where it is no header.
pub(super) fn length_of(header: &[u8]) -> Option<usize> {
    let length = u32::from_be_bytes(header[1..HEADER_BYTES].try_into().ok()?);
    (4..=MAX_MESSAGE_BYTES)
        .contains(&length)
        .then(|| length as usize - 4)
}
