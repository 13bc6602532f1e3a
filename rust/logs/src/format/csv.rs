//! Cells of CSV, quoted or not.

/// The cells of a record of csvlog that begins at `at`, and where the next begins. None where the
/// record goes on beyond the text.
pub fn record<'a>(text: &'a [u8], mut at: usize, cells: &mut Vec<&'a [u8]>) -> Option<usize> {
    cells.clear();
    loop {
        let start = at;
        if text.get(at) == Some(&b'"') {
            at += 1;
            loop {
                at += memchr::memchr(b'"', text.get(at..)?)? + 1;
                if text.get(at) != Some(&b'"') {
                    break;
                }
                at += 1;
            }
        } else {
            at += memchr::memchr2(b',', b'\n', &text[at..]).unwrap_or(text.len() - at);
        }
        cells.push(&text[start..at]);
        match text.get(at) {
            Some(b',') => at += 1,
            Some(b'\n') => return Some(at + 1),
            None => return Some(at),
            Some(_) => return None,
        }
    }
}

/// Whether the last cell of the record at `at` is quoted and goes on beyond the text.
pub fn unclosed(text: &[u8], mut at: usize) -> bool {
    loop {
        if text.get(at) == Some(&b'"') {
            at += 1;
            loop {
                match memchr::memchr(b'"', &text[at..]) {
                    None => return true,
                    Some(n) => at += n + 1,
                }
                if text.get(at) != Some(&b'"') {
                    break;
                }
                at += 1;
            }
        } else {
            at += memchr::memchr2(b',', b'\n', &text[at..]).unwrap_or(text.len() - at);
        }
        if text.get(at) != Some(&b',') {
            return false;
        }
        at += 1;
    }
}

/// A cell of CSV as written, and what follows its separator.
pub fn cell(text: &[u8], separator: u8) -> (&[u8], Option<&[u8]>) {
    let mut end = 0;
    if text.first() == Some(&b'"') {
        end = 1;
        while let Some(n) = memchr::memchr(b'"', &text[end..]) {
            end += n + 1;
            if text.get(end) != Some(&b'"') {
                break;
            }
            end += 1;
        }
    }
    match memchr::memchr(separator, &text[end.min(text.len())..]) {
        Some(n) => (&text[..end + n], Some(&text[end + n + 1..])),
        None => (text, None),
    }
}

/// What a cell says, into `into`: without its quotes, and doubled ones single.
pub fn unquoted(cell: &[u8], into: &mut Vec<u8>) {
    into.clear();
    match cell.strip_prefix(b"\"").and_then(|c| c.strip_suffix(b"\"")) {
        Some(inner) => {
            let mut again = false;
            for &b in inner {
                again = b == b'"' && !again;
                if !again {
                    into.push(b);
                }
            }
        }
        None => into.extend_from_slice(cell),
    }
}
