//! Searches as JSON: their shape and their words.

/// The class of a source: its keys and values without what is searched for. Words that are searched
/// for go into `asked`.
pub fn shape(source: &[u8], class: &mut Vec<u8>, asked: &mut Vec<u8>) {
    class.clear();
    asked.clear();
    let mut at = 0;
    let mut key: &[u8] = b"";
    while at < source.len() {
        match source[at] {
            b'"' => {
                let start = at + 1;
                let mut end = start;
                while let Some(n) = memchr::memchr2(b'"', b'\\', &source[end.min(source.len())..]) {
                    end += n;
                    if source[end] == b'"' {
                        break;
                    }
                    end += 2;
                }
                let end = end.min(source.len());
                let text = &source[start.min(end)..end];
                at = end + 1;
                if source[at.min(source.len())..].trim_ascii_start().first() == Some(&b':') {
                    key = text;
                    class.extend_from_slice(text);
                } else {
                    class.push(b'?');
                    if matches!(
                        key,
                        b"query" | b"value" | b"match" | b"match_phrase" | b"multi_match"
                    ) || (!matches!(
                        key,
                        b"operator" | b"zero_terms_query" | b"type" | b"rewrite" | b"order"
                    ) && asked.is_empty())
                    {
                        if !asked.is_empty() {
                            asked.push(b' ');
                        }
                        asked.extend_from_slice(text);
                    }
                }
            }
            b @ (b'0'..=b'9' | b'-') => {
                let start = at;
                while at < source.len()
                    && matches!(source[at], b'0'..=b'9' | b'.' | b'-' | b'e' | b'E' | b'+')
                {
                    at += 1;
                }
                let _ = (b, start);
                if class.ends_with(b"?,") {
                    class.pop();
                } else {
                    class.push(b'?');
                }
            }
            b' ' | b'\n' | b'\t' | b'\r' => at += 1,
            b => {
                class.push(b);
                at += 1;
            }
        }
    }
}

/// How long the object of JSON at the start is; 0 where there is none.
pub fn balanced(text: &[u8]) -> usize {
    if text.first() != Some(&b'{') {
        return 0;
    }
    let (mut depth, mut at) = (0usize, 0);
    while at < text.len() {
        match text[at] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            b'"' => {
                at += 1;
                while at < text.len() && text[at] != b'"' {
                    at += if text[at] == b'\\' { 2 } else { 1 };
                }
            }
            _ => {}
        }
        at += 1;
    }
    text.len()
}
