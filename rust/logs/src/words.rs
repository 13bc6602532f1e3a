//! How many words a search has.
//!
//! A word is a run of letters and digits of ASCII and of bytes above it, as Sphinx and most others
//! take them. Names of fields (`@title`) are none. What is written without blanks, as Japanese, is
//! one word.

use crate::entry::NO_WORDS;

/// What a byte can be in a text.
const WORD: u8 = 1;
const PHRASE: u8 = 2;
const OR: u8 = 4;
const NOT: u8 = 8;
const FIELD: u8 = 16;
const WILDCARD: u8 = 32;
const NEAR: u8 = 64;
const SLASH: u8 = 128;

const fn table() -> [u8; 256] {
    let mut kinds = [0u8; 256];
    let mut b = 0;
    while b < 256 {
        let byte = b as u8;
        kinds[b] = match byte {
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | 0x80.. | b'_' | b'\'' => WORD,
            b'"' => PHRASE,
            b'|' => OR,
            b'-' | b'!' => NOT,
            b'@' => FIELD,
            b'*' => WILDCARD,
            b'~' => NEAR,
            // A boost: `^1.5`.
            b'/' | b'^' => SLASH,
            _ => 0,
        };
        b += 1;
    }
    kinds
}

static KINDS: [u8; 256] = table();

/// What one pass over a text finds. `operators`: a bit for each of `OPERATORS`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    pub words: u32,
    pub operators: u8,
}

const OPERATORS: [&[u8]; 6] = [
    b" phrase",
    b" or",
    b" not",
    b" field",
    b" wildcard",
    b" near",
];

/// Words and operators of a text in Sphinx's or Lucene's syntax, or of plain words.
#[inline]
pub fn look(text: &[u8]) -> Look {
    let (mut words, mut before, mut seen) = (0u32, 0u8, 0u8);
    for &byte in text {
        let kind = KINDS[byte as usize];
        words += u32::from(kind & !before & WORD);
        seen |= kind;
        before = kind;
    }
    if seen <= WORD {
        return Look {
            words,
            operators: 0,
        };
    }
    closer(text, words, seen)
}

/// Which of the bytes that were seen are operators.
#[inline(never)]
fn closer(text: &[u8], mut words: u32, mut seen: u8) -> Look {
    if seen & (FIELD | SLASH | NEAR) != 0 {
        words = words.saturating_sub(words_of_operators(text));
    }
    if seen & NOT != 0 {
        let mut before = b' ';
        let negates = text.iter().any(|&byte| {
            let first = before == b' ' || before == b'(';
            before = byte;
            first && KINDS[byte as usize] == NOT
        });
        if !negates {
            seen &= !NOT;
        }
    }
    Look {
        words,
        operators: (seen & !SLASH) >> 1,
    }
}

/// The number of words alone.
#[inline]
pub fn count(text: &[u8]) -> u32 {
    look(text).words
}

/// What looks like a word and is part of an operator: `@field`, `@!field`, `@(field,field)`,
/// `"a b"/2`, `"a b"~10`, `a NEAR/3 b`, `word~2`, `word^1.5`.
fn words_of_operators(text: &[u8]) -> u32 {
    let mut found = 0;
    for (i, pair) in text.windows(2).enumerate() {
        if pair[0] == b'@' {
            found += words_of_fields(&text[i + 1..]);
        }
        let behind = if i > 0 { text[i - 1] } else { b' ' };
        let operator = match pair[0] {
            b'/' => behind == b'"' || nears(&text[..i]),
            b'~' | b'^' => !matches!(behind, b' ' | b'(' | b'|'),
            _ => false,
        };
        if operator && pair[1].is_ascii_digit() {
            found += words_of_number(&text[i + 1..]);
            found += u32::from(pair[0] == b'/' && behind != b'"');
        }
    }
    found
}

/// Whether a text ends with Sphinx's operator of words that are near to each other, or are not.
fn nears(text: &[u8]) -> bool {
    let name = text
        .strip_suffix(b"NEAR")
        .map(|rest| rest.strip_suffix(b"NOT").unwrap_or(rest));
    name.is_some_and(|rest| rest.last().is_none_or(|&b| KINDS[b as usize] != WORD))
}

/// How many words a number is taken for: `0.5` is two of them.
fn words_of_number(text: &[u8]) -> u32 {
    let digits = |text: &[u8]| text.iter().take_while(|b| b.is_ascii_digit()).count();
    let whole = digits(text);
    let part = text[whole..].strip_prefix(b".").map_or(0, digits);
    1 + u32::from(part > 0)
}

/// How many words the name of a field has, or a list of them in parentheses.
fn words_of_fields(text: &[u8]) -> u32 {
    let text = text.strip_prefix(b"!").unwrap_or(text);
    let is_word = |&byte: &u8| KINDS[byte as usize] == WORD;
    let Some(list) = text.strip_prefix(b"(") else {
        return u32::from(text.first().is_some_and(is_word));
    };
    let end = memchr::memchr(b')', list).unwrap_or(0);
    list[..end]
        .split(|byte| !is_word(byte))
        .filter(|word| !word.is_empty())
        .count() as u32
}

/// The operators that a text has (`Look::operators`) at the end of the name of its class.
#[inline]
pub fn name_operators(operators: u8, into: &mut Vec<u8>) {
    if operators == 0 {
        return;
    }
    for (bit, name) in OPERATORS.iter().enumerate() {
        if operators & (1 << bit) != 0 {
            into.extend_from_slice(name);
        }
    }
}

/// Words of a text that may be absent.
pub fn maybe(text: Option<&[u8]>) -> u32 {
    text.map_or(NO_WORDS, count)
}

/// `%41+b` as bytes, into `out`.
pub fn percent_decoded(text: &[u8], out: &mut Vec<u8>) {
    // It never grows, so it is written in place of being pushed.
    out.clear();
    out.resize(text.len(), 0);
    let (mut i, mut n) = (0, 0);
    while i < text.len() {
        let hex = |at: usize| text.get(at).and_then(|&b| (b as char).to_digit(16));
        let mut byte = text[i];
        if byte == b'+' {
            byte = b' ';
        } else if byte == b'%'
            && let (Some(a), Some(b)) = (hex(i + 1), hex(i + 2))
        {
            byte = (a * 16 + b) as u8;
            i += 2;
        }
        out[n] = byte;
        n += 1;
        i += 1;
    }
    out.truncate(n);
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
            ("(@(f_text) renkanipa turen)", 2),
            ("@(title, body) a @!note b @!(note,f_x) c @* d", 4),
            ("a@(b c", 3),
            ("\"a b c\"/1", 3),
            ("\"a b c\"/0.5", 3),
            ("\"red lamp vase\"~10", 3),
            ("red NEAR/3 lamp NOTNEAR/12 vase", 3),
            ("LINEAR/3 a~ b ~10 c^", 6),
            ("roam~0.8 title:lamp^2 ^first x^y", 6),
            ("東京 café", 2),
            ("  -not (this|that)*  ", 3),
        ] {
            assert_eq!(count(text.as_bytes()), words, "{text}");
        }
    }

    #[test]
    fn operators_are_told_from_what_only_looks_like_them() {
        for (text, names) in [
            ("one two", ""),
            ("well-known a!b", ""),
            ("-not", " not"),
            ("(!this|that)", " or not"),
            ("\"a b\"~5 c*", " phrase wildcard near"),
            ("@title a/b", " field"),
        ] {
            let mut found = Vec::new();
            name_operators(look(text.as_bytes()).operators, &mut found);
            assert_eq!(String::from_utf8_lossy(&found), names, "{text}");
        }
    }

    #[test]
    fn escapes_are_undone_and_broken_ones_stay() {
        let mut out = Vec::new();
        percent_decoded(b"a%20b+c%zz%4", &mut out);
        assert_eq!(out, b"a b c%zz%4");
    }
}
