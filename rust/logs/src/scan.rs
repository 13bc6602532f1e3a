//! What is near in a line: fields of some bytes, where a call to a search of long texts costs more
//! than the search.

const LOW: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;
/// Bytes that are looked at here; what is further away is looked for by `memchr`.
const NEAR: usize = 64;

/// Where `byte` is first. The same as `memchr`, and faster where it is among the first 30 bytes.
#[inline(always)]
pub fn near(byte: u8, text: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(eight) = text[at..].first_chunk::<8>() {
        let differs = u64::from_le_bytes(*eight) ^ (LOW * u64::from(byte));
        // The high bit of each byte that is zero; of those the first is never a wrong one.
        let found = differs.wrapping_sub(LOW) & !differs & HIGH;
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
        if at == NEAR {
            return memchr::memchr(byte, &text[at..]).map(|n| at + n);
        }
    }
    let rest = &text[at..];
    rest.iter().position(|&b| b == byte).map(|n| at + n)
}

/// The part up to `byte`, and what follows it.
#[inline(always)]
pub fn cut(byte: u8, text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = near(byte, text)?;
    Some((&text[..at], &text[at + 1..]))
}

/// The part up to the first blank, and what follows the part, with the blank.
#[inline(always)]
pub fn word(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(near(b' ', text).unwrap_or(text.len()))
}

/// Whether `word` is in `text`, told by its byte at `mark`, which should be rare there.
#[inline]
pub fn has(text: &[u8], word: &[u8], mark: usize) -> bool {
    find(text, word, mark).is_some()
}

/// Where `word` is first.
#[inline]
pub fn find(text: &[u8], word: &[u8], mark: usize) -> Option<usize> {
    memchr::memchr_iter(word[mark], text)
        .filter_map(|at| at.checked_sub(mark))
        .find(|&at| text[at..].starts_with(word))
}

/// Where `word` is last.
#[inline]
pub fn rfind(text: &[u8], word: &[u8], mark: usize) -> Option<usize> {
    memchr::memrchr_iter(word[mark], text)
        .filter_map(|at| at.checked_sub(mark))
        .find(|&at| text[at..].starts_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_is_where_memchr_finds_it() {
        let mut state = 7u64;
        for _ in 0..20_000 {
            let mut draw = |n: u64| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 33) % n
            };
            // Values beside the wanted one, where the trick with whole words could be wrong.
            let wanted = [b' ', 0, 1, 0x7f, 0x80, 0xff][draw(6) as usize];
            let len = draw(100) as usize;
            let few = draw(40) + 2;
            let text: Vec<u8> = (0..len)
                .map(|_| match draw(few) {
                    0 => wanted,
                    1 => wanted ^ 1,
                    2 => wanted.wrapping_sub(1),
                    3 => wanted ^ 0x80,
                    _ => b'x',
                })
                .collect();
            assert_eq!(
                near(wanted, &text),
                memchr::memchr(wanted, &text),
                "{text:?}"
            );
        }
    }

    #[test]
    fn a_word_is_found_first_and_last() {
        let text = b"; /* a; /* b */";
        assert_eq!(find(text, b"; /*", 3), Some(0));
        assert_eq!(rfind(text, b"; /*", 3), Some(6));
        assert_eq!(find(text, b" */", 1), Some(12));
        assert_eq!(find(b"*/", b" */", 1), None);
        assert!(!has(b"; /", b"; /*", 3));
    }
}
