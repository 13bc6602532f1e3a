//! Thrift's TFileTransport: events of a length and bytes, none across a chunk's border.

/// 16 MiB, Thrift's own.
pub const CHUNK: u64 = 16 << 20;

/// Appends an event to what will be written at `offset`. A length of zero is what readers take for
/// padding, so an empty message leaves no event that they see.
pub fn put(buffer: &mut Vec<u8>, offset: u64, message: &[u8], chunk: u64) -> Result<(), String> {
    let length = 4 + message.len() as u64;
    if length > chunk {
        let bytes = message.len();
        return Err(format!(
            "a message of {bytes} bytes is larger than a thriftfile's chunk"
        ));
    }
    let used = (offset + buffer.len() as u64) % chunk;
    if used > 0 && used + length > chunk {
        buffer.resize(buffer.len() + (chunk - used) as usize, 0);
    }
    buffer.extend_from_slice(&(message.len() as u32).to_ne_bytes());
    buffer.extend_from_slice(message);
    Ok(())
}
