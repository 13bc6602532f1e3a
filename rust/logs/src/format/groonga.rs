//! Groonga's query log: the start of a request, its steps, its end.
//!
//! ```text
//! 2026-11-22 10:59:09.777281|0x7fa957ffe940|>/d/select?table=Pages&query=a
//! 2026-11-22 10:59:09.802360|0x7fa957ffe940|:000000025080926 select(32)
//! 2026-11-22 10:59:09.802755|0x7fa957ffe940|<000000025476466 rc=0
//! ```
//!
//! They are joined by the context, which a later request uses again. `select(N)` is how many were
//! found; an answer out of the cache has `cache(bytes)` and no such number. Time is local.

use std::collections::HashMap;

use crate::clock::{Clock, duration, number};
use crate::entry::{Entry, Fault, Held, Kind, NO_WORDS, UNKNOWN};
use crate::format::access::target;
use crate::format::{Out, Reader, Settings};
use crate::saved::{Saved, Saving};
use crate::source::{Block, Lines};
use crate::words;

/// Commands that search.
const SEARCHES: [&[u8]; 4] = [
    b"select",
    b"logical_select",
    b"logical_range_filter",
    b"suggest",
];

pub struct Groonga {
    clock: Clock,
    open: HashMap<Vec<u8>, Held>,
    class: Vec<u8>,
    scratch: Vec<u8>,
    asked: Vec<Vec<u8>>,
}

/// The stamp, the context, what kind of line it is, and what it says.
type Parts<'a> = (&'a [u8], &'a [u8], u8, &'a [u8]);

fn parts(line: &[u8]) -> Option<Parts<'_>> {
    let (stamp, rest) = line.split_at_checked(26)?;
    if stamp[4] != b'-' || stamp[19] != b'.' {
        return None;
    }
    let rest = rest.strip_prefix(b"|")?;
    let at = memchr::memchr(b'|', &rest[..rest.len().min(40)])?;
    let (&kind, said) = rest[at + 1..].split_first()?;
    Some((stamp, &rest[..at], kind, said))
}

pub fn looks(line: &[u8]) -> bool {
    parts(line).is_some_and(|(_, _, kind, _)| matches!(kind, b'>' | b':' | b'<'))
}

impl Groonga {
    pub fn new(settings: &Settings) -> Groonga {
        Groonga {
            clock: Clock::new(&settings.zone),
            open: HashMap::new(),
            class: Vec::new(),
            scratch: Vec::new(),
            asked: vec![b"query".to_vec()],
        }
    }

    fn start(&mut self, at_ns: i64, said: &[u8]) -> Held {
        let mut entry = Entry {
            at_ns,
            text: said,
            ..Entry::default()
        };
        if said.first() == Some(&b'/') {
            let found = target(b"", said, &self.asked, &mut self.class, &mut self.scratch);
            let path = &said[..memchr::memchr(b'?', said).unwrap_or(said.len())];
            let name = path.rsplit(|&b| b == b'/').next().unwrap_or(b"");
            let name = &name[..memchr::memchr(b'.', name).unwrap_or(name.len())];
            entry.kind = if SEARCHES.contains(&name) {
                Kind::Asked
            } else {
                Kind::Other
            };
            (entry.words, entry.index) = (found.words, found.index);
            if entry.words == NO_WORDS
                && let Some(script) = parameter(said, b"filter")
            {
                words::percent_decoded(script, &mut self.scratch);
                entry.words = in_script(&self.scratch);
            }
            // Without the blank after the method, which the log does not have.
            entry.class = self.class.trim_ascii();
        } else {
            let mut parts = said.split(|&b| b == b' ').filter(|p| !p.is_empty());
            let name = parts.next().unwrap_or(b"");
            entry.kind = if SEARCHES.contains(&name) {
                Kind::Asked
            } else {
                Kind::Other
            };
            entry.class = name;
            entry.index = option(said, b"--table ")
                .or_else(|| parts.next())
                .unwrap_or(b"");
            if let Some(query) = option(said, b"--query ") {
                entry.words = words::count(query);
            } else if let Some(script) = script(said) {
                entry.words = in_script(script);
            }
        }
        Held::of(&entry)
    }
}

/// The value of a parameter of a path, as it is written.
fn parameter<'a>(target: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let query = &target[memchr::memchr(b'?', target)? + 1..];
    query
        .split(|&b| b == b'&')
        .find_map(|pair| pair.strip_prefix(name)?.strip_prefix(b"="))
}

/// The filter of a command: it may have quotes in its quotes, so it goes up to the next option.
fn script(said: &[u8]) -> Option<&[u8]> {
    const NAME: &[u8] = b"--filter ";
    let at = memchr::memmem::find(said, NAME)? + NAME.len();
    let rest = said[at..].trim_ascii();
    let rest = &rest[..memchr::memmem::find(rest, b" --").unwrap_or(rest.len())];
    match rest.first()? {
        quote @ (b'"' | b'\'') => Some(rest[1..].strip_suffix(&[*quote]).unwrap_or(&rest[1..])),
        _ => Some(rest),
    }
}

/// The words that a script looks for: those of its strings. Names of columns, operators and numbers
/// are none.
fn in_script(text: &[u8]) -> u32 {
    let (mut found, mut rest) = (NO_WORDS, text);
    while let Some(open) = memchr::memchr2(b'"', b'\'', rest) {
        let quote = rest[open];
        // In a command quotes are written with a backslash.
        let escaped = open > 0 && rest[open - 1] == b'\\';
        let inner = &rest[open + 1..];
        let (mut end, mut at) = (inner.len(), 0);
        while let Some(n) = memchr::memchr(quote, &inner[at..]) {
            let behind = at + n > 0 && inner[at + n - 1] == b'\\';
            if behind == escaped {
                end = at + n;
                break;
            }
            at += n + 1;
        }
        let n = words::count(&inner[..end]);
        found = if found == NO_WORDS { n } else { found + n };
        rest = inner.get(end + 1..).unwrap_or(b"");
    }
    found
}

/// The value of an option of a command, with its quotes taken away.
fn option<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let at = memchr::memmem::find(text, name)? + name.len();
    let rest = &text[at..];
    let (rest, ends) = match rest.first()? {
        quote @ (b'"' | b'\'') => (&rest[1..], *quote),
        _ => (rest, b' '),
    };
    Some(&rest[..memchr::memchr(ends, rest).unwrap_or(rest.len())])
}

impl Reader for Groonga {
    fn clock(&mut self) -> &mut Clock {
        &mut self.clock
    }

    fn read(&mut self, block: &Block, out: &mut Out<'_>) {
        let mut lines = Lines::new(block);
        while lines.at < block.end {
            let Some((_, line)) = lines.step() else { break };
            out.seen.line(line.len());
            let Some((stamp, context, kind, said)) = parts(line) else {
                if !line.is_empty() {
                    out.seen
                        .unread(line, "it is not a line of Groonga's query log");
                }
                continue;
            };
            match kind {
                b'>' => {
                    let Some(at_ns) = self.clock.iso_ns(stamp) else {
                        out.seen.unread(line, "its time cannot be read");
                        continue;
                    };
                    let held = self.start(at_ns, said);
                    if self.open.insert(context.to_vec(), held).is_some() {
                        out.seen.note("requests whose end is not in the log", 1);
                    }
                }
                b':' => {
                    let Some(held) = self.open.get_mut(context) else {
                        continue;
                    };
                    let Some(at) = memchr::memchr(b' ', said) else {
                        continue;
                    };
                    let step = &said[at + 1..];
                    let count = memchr::memchr(b'(', step).and_then(|open| {
                        let end = memchr::memchr(b')', &step[open..])? + open;
                        Some((&step[..open], number(&step[open + 1..end])?))
                    });
                    match count {
                        Some((b"select", n)) if held.entry().hits == UNKNOWN => {
                            held.plain_mut().hits = n as u64;
                        }
                        Some((b"cache", _)) => held.plain_mut().cached = true,
                        _ => {}
                    }
                }
                b'<' => {
                    let Some(mut held) = self.open.remove(context) else {
                        out.seen
                            .note("requests whose beginning is not in the log", 1);
                        continue;
                    };
                    let at = memchr::memchr(b' ', said).unwrap_or(said.len());
                    let plain = held.plain_mut();
                    if let Some((ns, _)) = duration(&said[..at], 1) {
                        (plain.ns, plain.resolution_ns) = (ns, 1);
                    }
                    if said[at..].trim_ascii() != b"rc=0" {
                        plain.fault = Fault::Error;
                        plain.hits = UNKNOWN;
                    }
                    out.entry(&held.entry());
                }
                // `| query log will be closed: ..` and its like.
                _ => {}
            }
        }
        out.seen.clock(&mut self.clock);
    }

    fn end(&mut self, out: &mut Out<'_>) {
        out.seen.note(
            "requests whose end is not in the log",
            self.open.len() as u64,
        );
    }

    fn save(&self, into: &mut Saving) {
        let mut all: Vec<_> = self.open.iter().collect();
        all.sort_unstable_by_key(|(context, _)| *context);
        for (context, held) in all {
            into.text(context);
            held.save(into);
        }
    }

    fn restore(&mut self, from: &mut Saved<'_>) -> Option<()> {
        while !from.is_empty() {
            let context = from.text()?.to_vec();
            self.open.insert(context, Held::restored(from)?);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_of(said: &str) -> u32 {
        let mut reader = Groonga::new(&Settings::default());
        reader.start(0, said.as_bytes()).entry().words
    }

    #[test]
    fn words_of_a_filter_are_those_of_its_strings() {
        let path = "/d/select?table=Pages&filter=";
        assert_eq!(
            words_of(&format!(
                "{path}content+%40+%22red+lamp%22+%26%26+price+%3E+30"
            )),
            2
        );
        let either = "title%20%40%20'a'%20%7C%7C%20content%20%40%20%22b%20c%22";
        assert_eq!(words_of(&format!("{path}{either}")), 3);
        assert_eq!(words_of(&format!("{path}price+%3E+30")), NO_WORDS);
        let both = "/d/select?table=Pages&query=red&filter=kind+%3D%3D+%22a+b%22";
        assert_eq!(
            words_of(both),
            1,
            "the query has the words where there is one"
        );
        let command =
            "select --table Pages --filter 'content @ \"red lamp\" && price > 30' --limit 9";
        assert_eq!(words_of(command), 2);
        let escaped = r#"select Pages --filter "content @ \"red old lamp\" && price > 30""#;
        assert_eq!(words_of(escaped), 3);
    }
}
