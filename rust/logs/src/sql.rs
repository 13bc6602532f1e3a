//! Statements: their fingerprint, the first table, and what is searched for in words.
//!
//! A fingerprint has `?` in place of each value, lists of values as one, no comments, one blank
//! where there were several, and lower case. Statements that differ only in values share it.
//!
//! Longer than 450 lines with its tests: one walk over a statement finds all of it.

use crate::entry::NO_WORDS;
use crate::words;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Sphinx,
    Mysql,
    Postgres,
}

/// What a statement says. `search`: it reads and changes nothing.
#[derive(Debug, Clone, Copy)]
pub struct Found<'a> {
    pub table: &'a [u8],
    pub words: u32,
    pub search: bool,
    pub matched: Option<&'a [u8]>,
}

const BLANK: u8 = 1;
const LETTER: u8 = 2;
const DIGIT: u8 = 3;

const fn table() -> [u8; 256] {
    let mut kinds = [0u8; 256];
    let mut b = 0;
    while b < 256 {
        let byte = b as u8;
        kinds[b] = match byte {
            b' ' | b'\t' | b'\n' | b'\r' | 0 => BLANK,
            b'0'..=b'9' => DIGIT,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | b'@' | 0x80.. => LETTER,
            _ => 0,
        };
        b += 1;
    }
    kinds
}

static KINDS: [u8; 256] = table();

/// Where the literal that begins at `at` (a quote) ends, after its closing quote.
fn literal_end(text: &[u8], at: usize, escapes: bool) -> usize {
    let quote = text[at];
    let mut i = at + 1;
    while i < text.len() {
        let Some(n) = memchr::memchr2(quote, b'\\', &text[i..]) else {
            return text.len();
        };
        i += n;
        if text[i] == b'\\' {
            i += if escapes { 2 } else { 1 };
        } else if text.get(i + 1) == Some(&quote) {
            i += 2;
        } else {
            return i + 1;
        }
    }
    text.len()
}

/// Where the literal in dollar quotes that begins at `at` ends: `$$..$$`, `$tag$..$tag$`; None where it
/// is none.
fn dollar_end(text: &[u8], at: usize) -> Option<usize> {
    let rest = &text[at + 1..];
    let name = rest.iter().position(|&b| b == b'$')?;
    let of_name = |&b: &u8| KINDS[b as usize] >= LETTER && !matches!(b, b'@' | b'$');
    if !rest[..name].iter().all(of_name) || rest[0].is_ascii_digit() {
        return None;
    }
    let tag = &text[at..at + name + 2];
    let inner = at + tag.len();
    let end = memchr::memmem::find(&text[inner..], tag);
    Some(end.map_or(text.len(), |n| inner + n + tag.len()))
}

/// Where the comment that begins at `at` ends. PostgreSQL's may have others within.
fn comment_end(text: &[u8], at: usize, nested: bool) -> usize {
    // An asterisk that begins a comment does not end it too.
    let (mut i, mut depth, mut begun) = (at + 2, 1, at + 2);
    while depth > 0 {
        let Some(n) = memchr::memchr(b'/', &text[i.min(text.len())..]) else {
            return text.len();
        };
        let slash = i + n;
        i = slash + 1;
        if slash > begun && text[slash - 1] == b'*' {
            depth -= 1;
        } else if nested && text.get(i) == Some(&b'*') {
            depth += 1;
            i += 1;
            begun = i;
        }
    }
    i
}

/// What stands between the quotes of a literal, which may lack its closing one.
fn inside(text: &[u8], at: usize, end: usize) -> &[u8] {
    let inner = &text[at + 1..end];
    inner.strip_suffix(&[text[at]]).unwrap_or(inner)
}

/// What a word makes of the literals after it.
#[derive(Clone, Copy, PartialEq)]
enum Wait {
    No,
    Match,
    TsQuery,
}

/// A fingerprint while it is written. It is never longer than what was read of the statement, so
/// there is room for all of it from the beginning.
struct Print<'a> {
    to: &'a mut [u8],
    len: usize,
    /// A blank was read that is not written yet.
    blank: bool,
}

impl Print<'_> {
    #[inline(always)]
    fn push(&mut self, byte: u8) {
        self.to[self.len] = byte;
        self.len += 1;
    }

    #[inline(always)]
    fn written(&self) -> &[u8] {
        &self.to[..self.len]
    }

    /// The blank that was read, where it separates.
    #[inline(always)]
    fn space(&mut self) {
        if std::mem::take(&mut self.blank)
            && self.written().last().is_some_and(|&b| {
                KINDS[b as usize] >= LETTER || matches!(b, b'?' | b')' | b'*' | b'`' | b'"')
            })
        {
            self.push(b' ');
        }
    }

    /// A value: `?`, and of a list of them only one.
    #[inline(always)]
    fn value(&mut self) {
        if self.written().ends_with(b"?,") {
            self.len -= 1;
            self.blank = false;
            return;
        }
        self.space();
        self.push(b'?');
    }
}

/// Looks at a statement; its fingerprint is in `class` afterwards.
pub fn statement<'a>(text: &'a [u8], dialect: Dialect, class: &mut Vec<u8>) -> Found<'a> {
    class.clear();
    class.resize(text.len(), 0);
    let mut print = Print {
        to: class,
        len: 0,
        blank: false,
    };
    let mut found = read(text, dialect, &mut print);
    let len = print.len;
    class.truncate(len);
    while matches!(class.last(), Some(b';' | b' ')) {
        class.pop();
    }
    // Sphinx writes an UPDATE and a DELETE as a SELECT without columns.
    found.search &= !(dialect == Dialect::Sphinx && class.starts_with(b"select from "));
    if let Some(matched) = found.matched {
        let look = words::look(matched);
        found.words = look.words;
        if dialect == Dialect::Sphinx {
            words::name_operators(look.operators, class);
        }
    }
    found
}

/// What a statement says, and its fingerprint, with blanks and semicolons at its end.
#[inline(always)]
fn read<'a>(text: &'a [u8], dialect: Dialect, print: &mut Print<'_>) -> Found<'a> {
    let mut found = Found {
        table: b"",
        words: NO_WORDS,
        search: false,
        matched: None,
    };
    let mut begins: &[u8] = b"";
    let (mut after_from, mut wait) = (false, Wait::No);
    // How many brackets are open, and how many were where a function began that has a FROM of its own.
    let (mut depth, mut within) = (0u32, None);
    let mut i = 0;
    while i < text.len() {
        let b = text[i];
        match KINDS[b as usize] {
            BLANK => {
                print.blank = true;
                i += 1;
            }
            LETTER => {
                let start = i;
                if b == b'$'
                    && dialect == Dialect::Postgres
                    && let Some(end) = dollar_end(text, i)
                {
                    print.value();
                    i = end;
                    continue;
                }
                if b == b'$' {
                    let rest = &text[i + 1..];
                    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
                    let ends = rest.get(digits).is_none_or(|&b| KINDS[b as usize] < LETTER);
                    if digits > 0 && ends {
                        print.value();
                        i += 1 + digits;
                        continue;
                    }
                }
                print.space();
                let at = print.len;
                while i < text.len() && KINDS[text[i] as usize] >= LETTER {
                    print.push(text[i].to_ascii_lowercase());
                    i += 1;
                }
                let word = &text[start..i];
                let lower = &print.to[at..print.len];
                if begins.is_empty() {
                    begins = word;
                }
                if after_from {
                    found.table = table_name(text, start);
                    after_from = false;
                } else if lower == b"from" && within == Some(depth) {
                    within = None;
                } else if lower == b"from" && found.table.is_empty() {
                    after_from = true;
                } else if text.get(i) == Some(&b'(')
                    && matches!(lower, b"extract" | b"substring" | b"trim" | b"overlay")
                {
                    within = Some(depth + 1);
                } else if found.matched.is_none() {
                    match lower {
                        b"match" if dialect == Dialect::Sphinx => wait = Wait::Match,
                        b"against" => wait = Wait::Match,
                        _ if lower.ends_with(b"to_tsquery") => wait = Wait::TsQuery,
                        _ => {}
                    }
                }
            }
            DIGIT => {
                i += 1;
                while i < text.len()
                    && (KINDS[text[i] as usize] >= LETTER
                        || text[i] == b'.'
                        || (matches!(text[i], b'+' | b'-') && matches!(text[i - 1], b'e' | b'E')))
                {
                    i += 1;
                }
                print.value();
            }
            _ => match b {
                b'\'' | b'"' if b == b'\'' || dialect != Dialect::Postgres => {
                    // E'..', and not LIKE'..'
                    let escapes = dialect != Dialect::Postgres
                        || (i > 0
                            && matches!(text[i - 1], b'E' | b'e')
                            && (i < 2 || KINDS[text[i - 2] as usize] < LETTER));
                    let end = literal_end(text, i, escapes);
                    let inner = inside(text, i, end);
                    if wait != Wait::No && found.matched.is_none() {
                        let comma = text[end..].trim_ascii_start().first() == Some(&b',');
                        // Of two literals the first is the name of a configuration.
                        if wait == Wait::Match || !comma {
                            found.matched = Some(inner);
                            wait = Wait::No;
                        }
                    }
                    i = end;
                    print.value();
                }
                b'`' | b'"' => {
                    let end = literal_end(text, i, false);
                    print.space();
                    if after_from {
                        found.table = inside(text, i, end);
                        after_from = false;
                    }
                    text[i..end].iter().for_each(|&b| print.push(b));
                    i = end;
                }
                b'/' if text.get(i + 1) == Some(&b'*') => {
                    i = comment_end(text, i, dialect == Dialect::Postgres);
                    print.blank = true;
                }
                b'-' if text.get(i + 1) == Some(&b'-') => i = line_end(text, i),
                b'#' if dialect == Dialect::Mysql => i = line_end(text, i),
                _ => {
                    if b == b'*' {
                        print.space();
                    } else if b == b'(' {
                        after_from = false;
                        depth += 1;
                    } else if b == b')' {
                        if wait == Wait::TsQuery {
                            wait = Wait::No;
                        }
                        if within == Some(depth) {
                            within = None;
                        }
                        depth = depth.saturating_sub(1);
                    }
                    print.push(b);
                    i += 1;
                    print.blank = false;
                    if b == b')' && print.written().ends_with(b"(?),(?)") {
                        print.len -= 4;
                    }
                }
            },
        }
    }
    found.search = [&b"select"[..], b"with", b"table", b"values"]
        .iter()
        .any(|verb| begins.eq_ignore_ascii_case(verb));
    found
}

fn line_end(text: &[u8], at: usize) -> usize {
    memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |n| at + n)
}

/// The name that begins at `at`, with its parts: `schema.table`, `index1,index2` of Sphinx.
fn table_name(text: &[u8], at: usize) -> &[u8] {
    let mut end = at;
    while end < text.len()
        && (KINDS[text[end] as usize] >= LETTER
            || text[end] == b'.'
            || (text[end] == b','
                && text
                    .get(end + 1)
                    .is_some_and(|&b| KINDS[b as usize] == LETTER)))
    {
        end += 1;
    }
    &text[at..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, dialect: Dialect) -> (String, String, Option<String>, bool) {
        let mut class = Vec::new();
        let found = statement(text.as_bytes(), dialect, &mut class);
        let string = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
        (
            string(&class),
            string(found.table),
            found.matched.map(string),
            found.search,
        )
    }

    #[test]
    fn statements_that_differ_in_values_share_a_fingerprint() {
        let (class, table, matched, search) = of(
            "SELECT  id, title FROM `pages` WHERE id IN (1, 2,3) AND t='o\\'neil' -- why\n LIMIT 10;",
            Dialect::Mysql,
        );
        assert_eq!(
            class,
            "select id,title from `pages` where id in(?) and t=? limit ?"
        );
        assert_eq!((table.as_str(), matched, search), ("pages", None, true));
        let (class, ..) = of(
            "INSERT INTO t VALUES (1,'a'),(2,'b') , (3,'c')",
            Dialect::Mysql,
        );
        assert_eq!(class, "insert into t values(?)");
    }

    #[test]
    fn what_is_searched_for_is_found_in_each_dialect() {
        let (class, table, matched, _) = of(
            "SELECT * FROM part0,part1 WHERE MATCH('\"a b\" | c') LIMIT 0,20",
            Dialect::Sphinx,
        );
        assert_eq!(
            class,
            "select * from part0,part1 where match(?) limit ? phrase or"
        );
        assert_eq!(
            (table.as_str(), matched.as_deref()),
            ("part0,part1", Some("\"a b\" | c"))
        );
        let (_, table, matched, _) = of(
            "SELECT id FROM pages WHERE MATCH(body) AGAINST('+qqq' IN BOOLEAN MODE)",
            Dialect::Mysql,
        );
        assert_eq!(
            (table.as_str(), matched.as_deref()),
            ("pages", Some("+qqq"))
        );
        let (_, table, matched, _) = of(
            "SELECT 1 FROM pages, plainto_tsquery('simple','o''neil') q WHERE tsv @@ q",
            Dialect::Postgres,
        );
        assert_eq!(
            (table.as_str(), matched.as_deref()),
            ("pages", Some("o''neil"))
        );
    }

    #[test]
    fn literals_and_comments_of_postgresql_end_where_they_end_there() {
        for (text, wanted) in [
            (
                "SELECT 1 WHERE a = $$it's$$ AND b = 'x'",
                "select ? where a=? and b=?",
            ),
            ("SELECT $q$ $$ '$q$ a, $1 b", "select ? a,? b"),
            (
                "SELECT 1 WHERE a LIKE'50\\' AND b = 'x'",
                "select ? where a like? and b=?",
            ),
            ("SELECT E'it\\'s' a, 'x'", "select e? a,?"),
            ("SELECT /* by /* who */ x */ 1", "select ?"),
            ("SELECT /* by /* who */ 1", "select"),
            ("SELECT /* by /*/ who */ x */ 1", "select ?"),
            ("SELECT $a$ $b$ 'x", "select ?"),
        ] {
            assert_eq!(of(text, Dialect::Postgres).0, wanted, "{text}");
        }
        assert_eq!(of("SELECT /* by /* who */ 1", Dialect::Mysql).0, "select ?");
        assert_eq!(of("SELECT /*/ who */ 1", Dialect::Mysql).0, "select ?");
    }

    #[test]
    fn the_from_of_a_function_names_no_table() {
        for text in [
            "SELECT extract(dow FROM born) FROM people",
            "SELECT trim(BOTH 'x' FROM name), substring(name FROM 2 FOR 3) FROM people",
            "SELECT trim(upper(name)) FROM people",
            "SELECT extract(year FROM (SELECT max(born) FROM people))",
        ] {
            assert_eq!(of(text, Dialect::Postgres).1, "people", "{text}");
        }
    }

    #[test]
    fn an_update_of_sphinx_is_no_search() {
        assert!(!of("SELECT  FROM rt WHERE @id=1", Dialect::Sphinx).3);
        assert!(!of("UPDATE pages SET a=1", Dialect::Mysql).3);
    }

    #[test]
    fn broken_literals_and_comments_end_with_the_text() {
        for text in [
            "'", "\"", "`", "/*", "--", "'a\\", "select '", "$", "1e+", "match('",
        ] {
            for dialect in [Dialect::Sphinx, Dialect::Mysql, Dialect::Postgres] {
                of(text, dialect);
            }
        }
    }
}
