//! How many words a search has.
//!
//! A word is a run of letters and digits of ASCII and of bytes above it, as Sphinx and most others
//! take them. Names of fields (`@title`) are none. What is written without blanks, as Japanese, is
//! one word.

use crate::entry::NO_WORDS;

const fn table() -> [u8; 256] {
    let mut kinds = [0u8; 256];
    let mut b = 0;
    while b < 256 {
        let byte = b as u8;
        if byte.is_ascii_alphanumeric() || byte >= 0x80 || byte == b'_' || byte == b'\'' {
            kinds[b] = 1;
        }
        b += 1;
    }
    kinds
}

static KINDS: [u8; 256] = table();

/// Words of a text in Sphinx's or Lucene's syntax, or of plain words.
#[inline]
pub fn count(text: &[u8]) -> u32 {
    let mut words = 0u32;
    let mut before = 0u8;
    for &byte in text {
        let kind = KINDS[byte as usize];
        words += u32::from(kind & !before);
        before = kind;
    }
    if memchr::memchr2(b'@', b'/', text).is_some() {
        return words.saturating_sub(operators(text));
    }
    words
}

/// What looks like a word and is part of an operator: `@field`, `"a b"/2`, `"a b"~10`.
#[cold]
fn operators(text: &[u8]) -> u32 {
    let mut found = 0;
    for (i, pair) in text.windows(2).enumerate() {
        let field = pair[0] == b'@' && KINDS[pair[1] as usize] == 1;
        let quorum = pair[0] == b'/' && pair[1].is_ascii_digit() && i > 0 && text[i - 1] == b'"';
        found += u32::from(field || quorum);
    }
    found
}

/// The operators that a text has, as letters of a class: phrase, or, not, field, wildcard, near.
pub fn operators_of(text: &[u8], into: &mut Vec<u8>) {
    let mut seen = 0u8;
    let mut before = b' ';
    for &byte in text {
        seen |= match byte {
            b'"' => 1,
            b'|' => 2,
            b'-' | b'!' if before == b' ' || before == b'(' => 4,
            b'@' => 8,
            b'*' => 16,
            b'~' => 32,
            _ => 0,
        };
        before = byte;
    }
    for (bit, name) in ["phrase", "or", "not", "field", "wildcard", "near"]
        .iter()
        .enumerate()
    {
        if seen & (1 << bit) != 0 {
            into.push(b' ');
            into.extend_from_slice(name.as_bytes());
        }
    }
}

/// Words of a text that may be absent.
pub fn maybe(text: Option<&[u8]>) -> u32 {
    text.map_or(NO_WORDS, count)
}

/// `%41+b` as bytes, into `out`.
pub fn percent_decoded(text: &[u8], out: &mut Vec<u8>) {
    out.clear();
    let mut i = 0;
    while i < text.len() {
        let hex = |at: usize| text.get(at).and_then(|&b| (b as char).to_digit(16));
        match text[i] {
            b'+' => out.push(b' '),
            b'%' => {
                if let (Some(a), Some(b)) = (hex(i + 1), hex(i + 2)) {
                    out.push((a * 16 + b) as u8);
                    i += 2;
                } else {
                    out.push(b'%');
                }
            }
            byte => out.push(byte),
        }
        i += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_runs_of_letters_and_digits() {
        for (text, words) in [
            ("", 0),
            ("one", 1),
            ("two words", 2),
            ("o'neil", 1),
            ("@title renkanipa | @body turen", 2),
            ("\"a b c\"/1", 3),
            ("東京 café", 2),
            ("  -not (this|that)*  ", 3),
        ] {
            assert_eq!(count(text.as_bytes()), words, "{text}");
        }
    }

    #[test]
    fn escapes_are_undone_and_broken_ones_stay() {
        let mut out = Vec::new();
        percent_decoded(b"a%20b+c%zz%4", &mut out);
        assert_eq!(out, b"a b c%zz%4");
    }
}
