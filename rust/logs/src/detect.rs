//! Which format a source has, by its first lines.

use crate::format::{Format, looks};

/// Lines that are looked at.
const LOOKED_AT: usize = 400;

/// The format of a source whose beginning is `head`; Err with what it looks like and the remedy.
///
/// It is the format that most of the first lines have, of those that one format alone can have; if two
/// have as many, the one that comes first in `Format::ALL`. Whether later lines have another one is
/// counted while they are read (`Seen::others`).
pub fn detect(head: &[u8], path: &str) -> Result<Format, String> {
    if head.iter().all(u8::is_ascii_whitespace) {
        return Err(format!("{path} is empty"));
    }
    let mut votes = [0u32; Format::ALL.len()];
    let mut lines = head.split(|&b| b == b'\n').peekable();
    let mut looked = 0;
    while let Some(line) = lines.next() {
        // The last line of the head may be cut.
        if looked == LOOKED_AT || (lines.peek().is_none() && looked > 0) {
            break;
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            continue;
        }
        looked += 1;
        if let Some(format) = looks(line)
            && let Some(at) = Format::ALL.iter().position(|f| *f == format)
        {
            votes[at] += 1;
        }
    }
    let most = votes.iter().copied().max().unwrap_or(0);
    if most > 0 {
        let at = votes.iter().position(|&n| n == most).unwrap_or(0);
        return Ok(Format::ALL[at]);
    }
    Err(unknown(head, path))
}

/// What a file that is no known log looks like.
fn unknown(head: &[u8], path: &str) -> String {
    let first = head
        .split(|&b| b == b'\n')
        .find(|l| !l.trim_ascii().is_empty());
    let first = String::from_utf8_lossy(first.unwrap_or(b""));
    let shown: String = first.chars().take(80).collect();
    let what = if memchr::memchr(0, head).is_some() {
        "binary data".to_owned()
    } else if first.trim_start().starts_with('{') {
        "JSON".to_owned()
    } else {
        format!("text that begins with {shown:?}")
    };
    let names: Vec<&str> = Format::ALL.iter().map(|f| f.name()).collect();
    format!(
        "{path} is no log of a known kind: it looks like {what}; if it is one, name its format with \
         --format ({})",
        names.join(", ")
    )
}
