//! The declared analysis, the same code for every library host.
//!
//! A term is a longest run of letters and digits (Unicode general category L* or N*), each
//! character lowered on its own by its simple mapping. No stop words, no stemming, no limit of
//! length.

use std::sync::LazyLock;

use regex_syntax::hir::HirKind;

/// One bit a code point: is it a letter or a digit.
static WORD: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let class = regex_syntax::parse(r"[\p{L}\p{N}]").expect("a constant pattern");
    let HirKind::Class(regex_syntax::hir::Class::Unicode(class)) = class.kind() else {
        unreachable!("the pattern is a Unicode class");
    };
    let mut bits = vec![0u64; 0x11_0000 / 64];
    for range in class.iter() {
        for code in u32::from(range.start())..=u32::from(range.end()) {
            bits[code as usize / 64] |= 1 << (code % 64);
        }
    }
    bits
});

fn is_word(table: &[u64], c: char) -> bool {
    let code = c as usize;
    table[code / 64] >> (code % 64) & 1 == 1
}

/// Simple lower case. Of all characters only U+0130 has a longer full mapping; its first
/// character is its simple one.
fn lower(c: char) -> char {
    c.to_lowercase().next().unwrap_or(c)
}

/// Finds the terms of a text one after another.
pub struct Terms<'a> {
    text: &'a str,
    at: usize,
    table: &'static [u64],
}

impl<'a> Terms<'a> {
    /// The terms of `text`, from its start.
    pub fn new(text: &'a str) -> Terms<'a> {
        Terms {
            text,
            at: 0,
            table: &WORD,
        }
    }

    /// Writes the next term into `out` (cleared first); its byte range in the text.
    pub fn next_into(&mut self, out: &mut String) -> Option<(usize, usize)> {
        out.clear();
        let bytes = self.text.as_bytes();
        let mut start = None;
        while self.at < bytes.len() {
            let byte = bytes[self.at];
            let (c, width) = if byte < 128 {
                (byte as char, 1)
            } else {
                let c = self.text[self.at..].chars().next()?;
                (c, c.len_utf8())
            };
            let word = if byte < 128 {
                byte.is_ascii_alphanumeric()
            } else {
                is_word(self.table, c)
            };
            if word {
                start.get_or_insert(self.at);
                out.push(if byte < 128 {
                    c.to_ascii_lowercase()
                } else {
                    lower(c)
                });
            } else if let Some(start) = start {
                return Some((start, self.at));
            }
            self.at += width;
        }
        start.map(|start| (start, self.at))
    }
}

/// All terms of `text` in order, repetitions kept.
pub fn terms(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut term = String::new();
    let mut stream = Terms::new(text);
    while stream.next_into(&mut term).is_some() {
        found.push(term.clone());
    }
    found
}

/// Whether `word` is exactly one term; another cannot be in any index.
pub fn is_term(word: &str) -> bool {
    let mut term = String::new();
    Terms::new(word).next_into(&mut term) == Some((0, word.len())) && term == word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_digits_are_lowered_and_all_else_separates() {
        assert_eq!(
            terms("The C++ 2nd-Edition_x, naïve ÉTÉ!"),
            ["the", "c", "2nd", "edition", "x", "naïve", "été"]
        );
        assert_eq!(terms("日本語 Ⅷ ½ x²"), ["日本語", "ⅷ", "½", "x²"]);
        assert!(terms(" -- \u{301} ").is_empty());
    }

    #[test]
    fn no_rule_looks_at_the_neighbours_and_no_character_becomes_two() {
        assert_eq!(terms("ΟΔΟΣ İstanbul"), ["οδοσ", "istanbul"]);
    }

    #[test]
    fn a_combining_mark_separates_because_it_is_neither_letter_nor_digit() {
        assert_eq!(terms("e\u{301}a"), ["e", "a"]);
    }

    #[test]
    fn only_what_analysis_leaves_as_it_is_can_be_a_term() {
        assert!(is_term("naïve"));
        for word in ["", "Naive", "a b", "a-", "\"", "x\u{301}"] {
            assert!(!is_term(word), "{word:?}");
        }
    }
}
