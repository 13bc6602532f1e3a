//! The members of an object of JSON, without making values of them.
//!
//! Logs are not always JSON: a server may write a header of the client's raw into it. What comes
//! before the first mistake is given.

/// Calls `each` with the key (as written) and the value (raw: with its quotes) of each member.
///
/// Values that are objects are gone into, their keys joined by points. Where it ends; None where it is
/// no object or not whole.
pub fn members<'a>(text: &'a [u8], each: &mut dyn FnMut(&[u8], &'a [u8])) -> Option<usize> {
    let mut at = skip(text, 0);
    if text.get(at) != Some(&b'{') {
        return None;
    }
    let mut path = Vec::new();
    object(text, &mut at, &mut path, each, 0)?;
    Some(at)
}

fn skip(text: &[u8], mut at: usize) -> usize {
    while at < text.len() && matches!(text[at], b' ' | b'\t' | b'\n' | b'\r') {
        at += 1;
    }
    at
}

/// From an opening brace to after the closing one.
fn object<'a>(
    text: &'a [u8],
    at: &mut usize,
    path: &mut Vec<u8>,
    each: &mut dyn FnMut(&[u8], &'a [u8]),
    depth: usize,
) -> Option<()> {
    *at = skip(text, *at + 1);
    if text.get(*at) == Some(&b'}') {
        *at += 1;
        return Some(());
    }
    loop {
        let key = string(text, at)?;
        *at = skip(text, *at);
        if text.get(*at) != Some(&b':') {
            return None;
        }
        *at = skip(text, *at + 1);
        let known = path.len();
        if known > 0 {
            path.push(b'.');
        }
        path.extend_from_slice(&key[1..key.len() - 1]);
        let start = *at;
        if text.get(*at) == Some(&b'{') && depth < 8 {
            object(text, at, path, each, depth + 1)?;
        } else {
            value(text, at)?;
            each(path, &text[start..*at]);
        }
        path.truncate(known);
        *at = skip(text, *at);
        match text.get(*at)? {
            b',' => *at = skip(text, *at + 1),
            b'}' => {
                *at += 1;
                return Some(());
            }
            _ => return None,
        }
    }
}

/// A string with its quotes.
fn string<'a>(text: &'a [u8], at: &mut usize) -> Option<&'a [u8]> {
    let start = *at;
    if text.get(start) != Some(&b'"') {
        return None;
    }
    let mut i = start + 1;
    loop {
        i += memchr::memchr2(b'"', b'\\', text.get(i..)?)?;
        if text[i] == b'"' {
            *at = i + 1;
            return Some(&text[start..=i]);
        }
        i += 2;
    }
}

fn value(text: &[u8], at: &mut usize) -> Option<()> {
    match text.get(*at)? {
        b'"' => string(text, at).map(|_| ()),
        b'[' | b'{' => {
            let mut depth = 0usize;
            loop {
                match text.get(*at)? {
                    b'"' => {
                        string(text, at)?;
                        continue;
                    }
                    b'[' | b'{' => depth += 1,
                    b']' | b'}' => depth -= 1,
                    _ => {}
                }
                *at += 1;
                if depth == 0 {
                    return Some(());
                }
            }
        }
        _ => {
            let start = *at;
            while *at < text.len() && !matches!(text[*at], b',' | b'}' | b']' | b' ' | b'\n') {
                *at += 1;
            }
            (*at > start).then_some(())
        }
    }
}

/// What a raw value says: a string without quotes and escapes, else the value as it is; null is
/// nothing. `into` holds it where there were escapes.
pub fn plain<'a>(raw: &'a [u8], into: &'a mut Vec<u8>) -> &'a [u8] {
    if raw == b"null" {
        return b"";
    }
    let Some(inner) = raw.strip_prefix(b"\"").and_then(|r| r.strip_suffix(b"\"")) else {
        return raw;
    };
    if memchr::memchr(b'\\', inner).is_none() {
        return inner;
    }
    unescaped(inner, into);
    into
}

/// A string's inside without its escapes, into `out`. Broken escapes stay as they are.
pub fn unescaped(text: &[u8], out: &mut Vec<u8>) {
    out.clear();
    let mut i = 0;
    while i < text.len() {
        let Some(n) = memchr::memchr(b'\\', &text[i..]) else {
            out.extend_from_slice(&text[i..]);
            return;
        };
        out.extend_from_slice(&text[i..i + n]);
        i += n;
        let escape = text.get(i + 1).copied().unwrap_or(b'\\');
        i += 2;
        match escape {
            b'n' => out.push(b'\n'),
            b't' => out.push(b'\t'),
            b'r' => out.push(b'\r'),
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'u' => {
                let four = |at: usize| {
                    let text = std::str::from_utf8(text.get(at..at + 4)?).ok()?;
                    u32::from_str_radix(text, 16).ok()
                };
                let Some(high) = four(i) else {
                    out.extend_from_slice(b"\\u");
                    continue;
                };
                i += 4;
                let mut code = high;
                if (0xd800..0xdc00).contains(&high)
                    && text.get(i..i + 2) == Some(b"\\u")
                    && let Some(low) = four(i + 2)
                    && (0xdc00..0xe000).contains(&low)
                {
                    code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                    i += 6;
                }
                let letter = char::from_u32(code).unwrap_or('\u{fffd}');
                out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
            }
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> (Vec<(String, String)>, bool) {
        let mut found = Vec::new();
        let string = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
        let whole = members(text.as_bytes(), &mut |k, v| {
            let mut into = Vec::new();
            found.push((string(k), string(plain(v, &mut into))));
        });
        (found, whole.is_some())
    }

    #[test]
    fn members_are_given_as_far_as_it_is_json() {
        let (found, whole) =
            all(r#"{"a": "x\"y\u00e9\ud83d\ude00", "b": {"c": [1, "]"], "d": 2}}"#);
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert!(whole);
        assert_eq!(
            found,
            [
                pair("a", "x\"yé😀"),
                pair("b.c", r#"[1, "]"]"#),
                pair("b.d", "2")
            ]
        );
        let (found, whole) = all(r#"{"a": 1, "id": "req-7, "q"..""#);
        assert!(!whole);
        assert_eq!(found[0], pair("a", "1"));
        for broken in [
            "",
            "{",
            "{\"",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":\"\\",
            "[",
            "{\"a\":[[",
            "{}",
        ] {
            all(broken);
        }
    }
}
