//! Access logs of nginx, Apache and HAProxy.
//!
//! ```text
//! HOST:PORT ADDRESS - USER [22/Nov/2026:11:03:06 +0900] "GET /search?q=a HTTP/1.1" 200 10 "referer"
//!     "agent" 0.003 0.003
//! ADDRESS:PORT [22/Nov/2026:11:03:22.636] front back/server 0/0/0/1/1 200 125 - - ---- 1/1/0/0/0
//!     0/0 {..} "GET /search?q=a HTTP/1.1"
//! ```
//!
//! A header of syslog may stand before any of them (`syslog`), as HAProxy's lines mostly have.
//!
//! The duration is what follows the agent, if it is a number: with a point seconds (`$request_time`),
//! a whole number microseconds (`%D`), unless `Settings::unit_ns` says otherwise. Of a whole number
//! before one with a point the latter is it (`$request_length $request_time`, as Kubernetes'
//! ingress has them), and `rt=0.003` names it; of two whole numbers (Apache's `%I %O`) neither is known
//! to be. nginx writes the time of the end, Apache that of the start; both only in seconds here, so
//! nothing is subtracted. A search is a request with a parameter that is searched for, or whose path
//! says so.
//!
//! Longer than most files: the ways in which servers write one line are read side by side.

use crate::clock::{Clock, clock, date, decimal, duration, month, number, offset};
use crate::entry::{Entry, Fault, Kind, NO_WORDS};
use crate::format::{Out, Reader, Settings, syslog};
use crate::scan::{self, near, word};
use crate::source::{Block, Lines};
use crate::words;

const MICROSECONDS: &str = "durations without a point, taken as microseconds (Apache's %D)";

const NUMBERS: &str = "two whole numbers after the agent, of which neither is known to be a duration \
                       (--unit us says that the first is)";

const OTHERS: &str = "more than one number that may be the duration after the user agent: the \
                      first was taken, although another follows it in a list (0.049, 0.001), is \
                      greater, or is written to the millisecond where the first is not (--line \
                      with a format string names the duration)";

const EARLY: &str = "a time that ends with the headers of the answer, and not with the answer \
                     (HAProxy's option logasap)";

/// Files that pages are made of; what their names say of searches says nothing.
const OF_PAGES: [&[u8]; 16] = [
    b"js", b"mjs", b"css", b"map", b"png", b"jpg", b"jpeg", b"gif", b"svg", b"webp", b"avif",
    b"ico", b"woff", b"woff2", b"ttf", b"eot",
];

/// Whether a word that says so begins in a path at `i`: `search` (but not of research), `query` (but
/// not of jquery), `suggest`; `select` and `find` as whole words.
fn searching(path: &[u8], i: usize) -> bool {
    let (before, rest) = path.split_at(i);
    let begins = |word: &[u8]| {
        rest.get(..word.len())
            .is_some_and(|first| first.eq_ignore_ascii_case(word))
    };
    if begins(b"search") {
        return !before.ends_with(b"re") && !before.ends_with(b"Re");
    }
    if begins(b"query") {
        return !before.ends_with(b"j");
    }
    let whole = [&b"select"[..], b"find"]
        .into_iter()
        .find(|word| begins(word));
    let Some(after) = whole.map(|word| &rest[word.len()..]) else {
        return begins(b"suggest");
    };
    !before.last().is_some_and(u8::is_ascii_alphabetic)
        && !after.first().is_some_and(u8::is_ascii_lowercase)
}

/// Whether a path is a file that pages are made of.
fn of_a_page(path: &[u8]) -> bool {
    let name = path.rsplit(|&b| b == b'/').next().unwrap_or(path);
    memchr::memrchr(b'.', name).is_some_and(|dot| OF_PAGES.contains(&&name[dot + 1..]))
}

/// What a byte of a path can be: a digit, or what a word begins with that says it is a search.
const DIGIT: u8 = 1;
const FIRST: u8 = 2;

const fn table() -> [u8; 256] {
    let mut kinds = [0u8; 256];
    let mut digit = b'0';
    while digit <= b'9' {
        kinds[digit as usize] = DIGIT;
        digit += 1;
    }
    let first = *b"sqfSQF";
    let mut letter = 0;
    while letter < first.len() {
        kinds[first[letter] as usize] = FIRST;
        letter += 1;
    }
    kinds
}

static KINDS: [u8; 256] = table();

pub struct Access {
    clock: Clock,
    unit_ns: u64,
    parameters: Vec<Vec<u8>>,
    class: Vec<u8>,
    asked: Vec<u8>,
}

impl Access {
    pub fn new(settings: &Settings) -> Access {
        Access {
            clock: Clock::new(&settings.zone),
            unit_ns: settings.unit_ns,
            parameters: settings.parameters.clone(),
            class: Vec::new(),
            asked: Vec::new(),
        }
    }
}

/// `22/Nov/2026:11:03:06` as seconds of its zone.
fn second(text: &[u8]) -> Option<i64> {
    if text.len() != 20 || text[2] != b'/' || text[6] != b'/' || text[11] != b':' {
        return None;
    }
    let day = date(
        number(&text[7..11])?,
        month(&text[3..6])?,
        number(&text[..2])?,
    )?;
    Some(day * 86_400 + clock(&text[12..])?)
}

/// The stamp in brackets as nanoseconds: with milliseconds (HAProxy), with a zone (all others).
#[inline]
pub fn stamp(clock: &mut Clock, text: &[u8]) -> Option<i64> {
    let rest = text.get(20..)?;
    if let Some(millis) = rest.strip_prefix(b".") {
        let s = clock.second(&text[..20], |key| Some((second(key)?, false)))?;
        let (ns, _) = decimal(millis, 1_000_000)?;
        return Some(s * 1_000_000_000 + ns as i64);
    }
    // The zone belongs to what is remembered: summer and winter differ in it.
    let s = clock.second(text, |key| {
        let zone = offset(&key[20..]);
        Some((second(&key[..20])? - zone.unwrap_or(0), zone.is_some()))
    })?;
    Some(s * 1_000_000_000)
}

/// What is between the quotes at the start, where escapes are `\"`, and what follows.
#[inline]
fn quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let inner = text.strip_prefix(b"\"")?;
    let mut at = 0;
    loop {
        at += memchr::memchr(b'"', &inner[at..])?;
        let slashes = inner[..at]
            .iter()
            .rev()
            .take_while(|&&b| b == b'\\')
            .count();
        if slashes % 2 == 0 {
            return Some((&inner[..at], &inner[at + 1..]));
        }
        at += 1;
    }
}

/// What a line says, before it is known whether it is a search.
struct Line<'a> {
    at_ns: i64,
    request: &'a [u8],
    status: u16,
    ns: Option<(u64, u32)>,
    user: &'a [u8],
    server: &'a [u8],
    index: &'a [u8],
    assumed: bool,
    /// Whole numbers, of which none is known to be the duration.
    numbers: bool,
    /// Another number after the duration that may rather be it.
    others: bool,
    /// The duration ends with the headers of the answer.
    early: bool,
    /// The line was cut before its end, as HAProxy does.
    cut: bool,
}

pub fn looks(line: &[u8]) -> bool {
    parse(line, &mut Clock::default(), 0).is_some()
}

#[inline]
fn parse<'a>(line: &'a [u8], clock: &mut Clock, unit_ns: u64) -> Option<Line<'a>> {
    let (host, line) = syslog::cut(line);
    let open = near(b'[', &line[..line.len().min(300)])?;
    let close = open + near(b']', &line[open..line.len().min(open + 60)])?;
    let at_ns = stamp(clock, &line[open + 1..close])?;
    let rest = line[close + 1..].strip_prefix(b" ")?;
    if rest.first() != Some(&b'"') {
        return haproxy(rest, at_ns);
    }
    let (request, rest) = quoted(rest)?;
    let (status, rest) = word(rest.strip_prefix(b" ")?);
    let status = if status == b"-" {
        0
    } else {
        number(status)? as u16
    };
    let (_bytes, mut rest) = word(rest.strip_prefix(b" ").unwrap_or(rest));
    // The referer, the agent and whatever else is in quotes.
    let mut agent = false;
    while let Some(after) = rest.strip_prefix(b" ")
        && after.first() == Some(&b'"')
    {
        agent = true;
        let Some((_, after)) = quoted(after) else {
            rest = b"";
            break;
        };
        rest = after;
    }
    let (mut assumed, mut numbers, mut others) = (false, false, false);
    // A number that stands before the referer and the agent is another.
    let behind = rest
        .strip_prefix(b" ")
        .filter(|rest| agent || memchr::memchr(b'"', rest).is_none());
    let ns = behind.and_then(|rest| {
        let (text, after) = word(rest);
        // Of several servers that were asked in turn (`$upstream_response_time`).
        others = text.ends_with(b",");
        let text = text.strip_suffix(b",").unwrap_or(text);
        if near(b'=', text).is_some() {
            return named_time(rest);
        }
        if unit_ns > 0 {
            return duration(text, unit_ns);
        }
        if near(b'.', text).is_some() {
            let found = duration(text, 1_000_000_000);
            others |= found.is_some_and(|first| another(first, after));
            return found;
        }
        if number(text).is_some() {
            let (next, _) = word(after.strip_prefix(b" ").unwrap_or(after));
            let next = next.strip_suffix(b",").unwrap_or(next);
            if near(b'.', next).is_some()
                && let Some(found) = duration(next, 1_000_000_000)
            {
                return Some(found);
            }
            if number(next).is_some() {
                numbers = true;
                return None;
            }
        }
        assumed = true;
        duration(text, 1_000)
    });
    let mut before = line[..open].trim_ascii_end().rsplitn(3, |&b| b == b' ');
    let user = before.next().filter(|&u| u != b"-").unwrap_or(b"");
    let first = before.nth(1).unwrap_or(b"");
    // `HOST:PORT ADDRESS - USER`: a virtual host; else the host that syslog names.
    let server = virtual_host(first).unwrap_or(host);
    Some(Line {
        at_ns,
        request,
        status,
        ns,
        user,
        server,
        index: b"",
        assumed: assumed && ns.is_some(),
        numbers,
        others,
        early: false,
        cut: false,
    })
}

/// The host of `HOST:PORT ADDRESS`; None where something else stands before the address, such as other
/// addresses (`X-Forwarded-For`), or what a collector of logs puts there.
fn virtual_host(before: &[u8]) -> Option<&[u8]> {
    let (name, address) = scan::cut(b' ', before)?;
    let of_name = |&b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b':');
    let is_one = !name.is_empty() && name.iter().all(of_name) && name.last() != Some(&b':');
    let dated = matches!(name, [_, _, _, _, b'-', _, _, b'-', ..]);
    (is_one && !dated && address != b"-" && !address.contains(&b' ')).then_some(name)
}

/// The duration among what stands with its names: `rt=0.500 uct="0.000"`, as many have `$request_time`.
#[cold]
fn named_time(rest: &[u8]) -> Option<(u64, u32)> {
    let text = rest.split(|&b| b == b' ').take(16).find_map(|part| {
        let (name, value) = scan::cut(b'=', part)?;
        matches!(name, b"rt" | b"request_time").then_some(value)
    })?;
    let text = text.strip_prefix(b"\"").unwrap_or(text);
    let text = text.strip_suffix(b"\"").unwrap_or(text);
    near(b'.', text)?;
    duration(text, 1_000_000_000)
}

/// Whether one of the next numbers with a point is rather the duration of the request: it is greater
/// than the first, as that of a request is than that of a part of it; or nginx wrote it, which gives
/// three digits to times, and not to ratios.
fn another((first_ns, resolution_ns): (u64, u32), mut rest: &[u8]) -> bool {
    const MILLISECOND: u32 = 1_000_000;
    for _ in 0..4 {
        let Some(after) = rest.strip_prefix(b" ") else {
            break;
        };
        let (text, after) = word(after);
        rest = after;
        let text = text.strip_suffix(b",").unwrap_or(text);
        if near(b'.', text).is_none() {
            continue;
        }
        if let Some((ns, resolution)) = duration(text, 1_000_000_000)
            && (ns > first_ns + u64::from(resolution.max(resolution_ns))
                || (resolution == MILLISECOND && resolution_ns > MILLISECOND))
        {
            return true;
        }
    }
    false
}

/// What HAProxy writes after the time.
fn haproxy<'a>(rest: &'a [u8], at_ns: i64) -> Option<Line<'a>> {
    let mut parts = rest.splitn(5, |&b| b == b' ');
    let (_front, back, times) = (parts.next()?, parts.next()?, parts.next()?);
    // -1: the client left before there was an answer.
    let status = number(parts.next()?).unwrap_or(0) as u16;
    if times.iter().filter(|&&b| b == b'/').count() != 4 {
        return None;
    }
    let total = times.rsplit(|&b| b == b'/').next()?;
    let early = total.starts_with(b"+");
    let ns = duration(total.strip_prefix(b"+").unwrap_or(total), 1_000_000);
    let tail = parts.next()?;
    let at = scan::find(tail, b" \"", 1)?;
    let (request, cut) = match quoted(&tail[at + 1..]) {
        Some((request, _)) => (request, false),
        None => (&tail[at + 2..], true),
    };
    let slash = memchr::memchr(b'/', back)?;
    Some(Line {
        at_ns,
        request,
        status,
        ns,
        user: b"",
        server: &back[slash + 1..],
        index: &back[..slash],
        assumed: false,
        numbers: false,
        others: false,
        early,
        cut,
    })
}

/// What a path asks: the class of the request, the words, the index; used by other formats too.
pub struct Path<'a> {
    pub search: bool,
    pub words: u32,
    pub index: &'a [u8],
}

/// Reads a request's target. The class is the path with the names of its parameters; numbers in the
/// path are `N`.
pub fn target<'a>(
    method: &[u8],
    target: &'a [u8],
    parameters: &[Vec<u8>],
    class: &mut Vec<u8>,
    scratch: &mut Vec<u8>,
) -> Path<'a> {
    let (path, query) = scan::cut(b'?', target).unwrap_or((target, &b""[..]));
    // The class is no longer than the method, a blank and the path, and is written there.
    class.clear();
    class.extend_from_slice(method);
    class.push(b' ');
    let from = class.len();
    class.resize(from + path.len(), 0);
    let to = &mut class[from..];
    let (mut written, mut before, mut search) = (0, 0, false);
    for (i, &b) in path.iter().enumerate() {
        let kind = KINDS[b as usize];
        if kind != DIGIT {
            to[written] = b;
            written += 1;
            search |= kind == FIRST && searching(path, i);
        } else if before != DIGIT {
            to[written] = b'N';
            written += 1;
        }
        before = kind;
    }
    class.truncate(from + written);
    search = search && !of_a_page(path);
    let mut found = Path {
        search,
        words: NO_WORDS,
        index: index_of(path),
    };
    let mut separator = b'?';
    let mut rest = query;
    while !rest.is_empty() {
        let (pair, after) = match memchr::memchr2(b'&', b';', rest) {
            Some(at) => (&rest[..at], &rest[at + 1..]),
            None => (rest, &b""[..]),
        };
        rest = after;
        if pair.is_empty() {
            continue;
        }
        let (name, value) = scan::cut(b'=', pair).unwrap_or((pair, &b""[..]));
        class.push(separator);
        class.extend_from_slice(&name[..name.len().min(40)]);
        separator = b'&';
        if name == b"table" && found.index.is_empty() {
            found.index = value;
        }
        if found.words == NO_WORDS && parameters.iter().any(|p| p.eq_ignore_ascii_case(name)) {
            found.words = if memchr::memchr2(b'%', b'+', value).is_some() {
                words::percent_decoded(value, scratch);
                words::count(scratch)
            } else {
                words::count(value)
            };
            found.search = true;
        }
    }
    found
}

/// The index in a path: `/INDEX/_search`, `/solr/CORE/select`.
fn index_of(path: &[u8]) -> &[u8] {
    let mut parts = path.split(|&b| b == b'/').skip(1);
    let (first, second) = (parts.next().unwrap_or(b""), parts.next().unwrap_or(b""));
    if first == b"solr" {
        return second;
    }
    if second.starts_with(b"_") && !first.starts_with(b"_") {
        return first;
    }
    b""
}

impl Reader for Access {
    fn clock(&mut self) -> &mut Clock {
        &mut self.clock
    }

    fn read(&mut self, block: &Block, out: &mut Out<'_>) {
        let mut lines = Lines::new(block);
        let (mut assumed, mut numbers, mut cut, mut strange) = (0u64, 0u64, 0u64, 0u64);
        let (mut others, mut early) = (0u64, 0u64);
        while lines.at < block.end {
            let Some((_, line)) = lines.step() else { break };
            out.seen.line(line.len());
            let Some(found) = parse(line, &mut self.clock, self.unit_ns) else {
                if !line.is_empty() {
                    out.seen.unread(line, "it is not a line of an access log");
                }
                continue;
            };
            assumed += u64::from(found.assumed);
            numbers += u64::from(found.numbers);
            others += u64::from(found.others);
            early += u64::from(found.early);
            cut += u64::from(found.cut);
            let mut entry = Entry {
                at_ns: found.at_ns,
                user: found.user,
                server: found.server,
                ..Entry::default()
            };
            if let Some((ns, resolution)) = found.ns {
                (entry.ns, entry.resolution_ns) = (ns, resolution);
            }
            if found.status == 0 || found.status >= 400 {
                entry.fault = Fault::Error;
            }
            let (method, rest) = word(found.request);
            let (path, _) = word(rest.strip_prefix(b" ").unwrap_or(b""));
            if path.is_empty() {
                strange += 1;
                entry.kind = Kind::Other;
                entry.class = b"(no request of HTTP)";
            } else {
                let asked = target(
                    method,
                    path,
                    &self.parameters,
                    &mut self.class,
                    &mut self.asked,
                );
                entry.kind = if asked.search {
                    Kind::Asked
                } else {
                    Kind::Other
                };
                entry.words = asked.words;
                entry.index = if asked.index.is_empty() {
                    found.index
                } else {
                    asked.index
                };
                entry.text = path;
                entry.class = &self.class;
            }
            out.entry(&entry);
        }
        if self.unit_ns == 0 {
            out.seen.note(MICROSECONDS, assumed);
            out.seen.note(NUMBERS, numbers);
            out.seen.note(OTHERS, others);
        }
        out.seen.note(EARLY, early);
        out.seen.note("cut short by the server that wrote it", cut);
        out.seen.note("no request of HTTP/1", strange);
        out.seen.clock(&mut self.clock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(after_agent: &str, unit_ns: u64) -> (Option<u64>, bool, bool) {
        let line = format!(
            "10.0.0.1 - - [20/Nov/2026:09:00:00 +0000] \"GET /s?q=a HTTP/1.1\" 200 10 \"-\" \"x\"{after_agent}"
        );
        let found = parse(line.as_bytes(), &mut Clock::default(), unit_ns).unwrap();
        (found.ns.map(|(ns, _)| ns), found.assumed, found.numbers)
    }

    #[test]
    fn the_size_of_a_request_is_not_its_duration() {
        // $request_time; %D; what is no number.
        assert_eq!(ns(" 0.250 0.249", 0), (Some(250_000_000), false, false));
        assert_eq!(ns(" 1719", 0), (Some(1_719_000), true, false));
        assert_eq!(
            ns(" 1719 www.example.org", 0),
            (Some(1_719_000), true, false)
        );
        assert_eq!(ns(" - 12", 0).0, None);
        // Kubernetes' ingress: $request_length $request_time [$proxy_upstream_name] ..
        let ingress = " 512 0.250 [default-search-80] [] 10.1.2.3:8080 1234 0.249 200 abc";
        assert_eq!(ns(ingress, 0), (Some(250_000_000), false, false));
        // Apache's combinedio: %I %O; the user may know that they are others.
        assert_eq!(ns(" 512 5120", 0), (None, false, true));
        assert_eq!(ns(" 512 5120", 1_000), (Some(512_000), false, false));
    }

    #[test]
    fn another_number_that_may_be_the_duration_is_told() {
        let others = |after_agent: &str| {
            let line = format!(
                "10.0.0.1 - - [20/Nov/2026:09:00:00 +0000] \"GET /s?q=a HTTP/1.1\" 200 10 \"-\" \"x\"{after_agent}"
            );
            parse(line.as_bytes(), &mut Clock::default(), 0)
                .unwrap()
                .others
        };
        // $request_time $upstream_response_time; $upstream_connect_time first; $gzip_ratio first.
        assert!(!others(" 0.250 0.249"));
        assert!(!others(" 0.250"));
        assert!(!others(" 0.250 - 10.1.2.3:8080"));
        assert!(others(" 0.001 0.049 0.050"));
        assert!(others(" 3.02 0.050"));
    }
}
