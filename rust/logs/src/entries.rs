//! The entries of a log one by one, in the order in which they stand there: what counts cannot give
//! back. Whoever sends a log again, or looks at it over time, needs them.
//!
//! What repeats (the text, its index, its class) is kept once; an entry is some numbers and the
//! number of what it asked. One thread reads, because the order matters.

use std::collections::HashMap;
use std::io::Read;

use xxhash_rust::xxh3::xxh3_64;

use crate::damage::Damage;
use crate::detect::detect;
use crate::entry::{Entry, Fault, Kind};
use crate::format::{Format, Out, Reader, Seen, reader};
use crate::queries::{Local, Shared};
use crate::run::{Follows, Open, Options, Read as Done, Source};
use crate::seam::{Moved, before, newlines, tail};
use crate::source::{Cutter, Opened, open};
use crate::tally::Tally;

/// The parts of what was asked, in this order.
pub const PARTS: [&str; 5] = ["format", "index", "class", "text", "around"];

/// Entries as columns; those of `asked` have one row for each distinct thing that was asked.
#[derive(Default)]
pub struct Entries {
    /// When each began (`NO_TIME`: the log does not say), and how long it took (`UNKNOWN`), in ns.
    pub at_ns: Vec<i64>,
    pub ns: Vec<u64>,
    pub resolution_ns: Vec<u32>,
    pub words: Vec<u32>,
    /// 0 a search, 1 a part of one, 2 something else; plus 4: it failed; plus 8: answered in part.
    pub kind: Vec<u8>,
    /// The number of what was asked.
    pub asked: Vec<u32>,
    /// The number of the source.
    pub source: Vec<u32>,
    /// The parts of each thing asked one after another, and where each part ends.
    pub bytes: Vec<u8>,
    pub ends: Vec<u64>,
    known: HashMap<u64, u32>,
    scratch: Vec<u8>,
    now: (u32, &'static str),
}

impl Entries {
    pub fn add(&mut self, entry: &Entry<'_>, _server: &[u8]) {
        let parts = [
            self.now.1.as_bytes(),
            entry.index,
            entry.class,
            entry.text,
            entry.around,
        ];
        // Of what is no search nothing but its class is wanted.
        let parts = match entry.kind {
            Kind::Asked => parts,
            _ => [parts[0], b"", parts[2], b"", b""],
        };
        self.scratch.clear();
        for part in parts {
            self.scratch
                .extend_from_slice(&(part.len() as u64).to_le_bytes());
            self.scratch.extend_from_slice(part);
        }
        let next = self.known.len() as u32;
        let number = *self.known.entry(xxh3_64(&self.scratch)).or_insert(next);
        if number == next {
            for part in parts {
                self.bytes.extend_from_slice(part);
                self.ends.push(self.bytes.len() as u64);
            }
        }
        let kind = match entry.kind {
            Kind::Asked => 0,
            Kind::Part => 1,
            Kind::Other => 2,
        };
        let fault = match entry.fault {
            Fault::None => 0,
            Fault::Error => 4,
            Fault::Partial => 8,
        };
        self.at_ns.push(entry.at_ns);
        self.ns.push(entry.ns);
        self.resolution_ns.push(entry.resolution_ns);
        self.words.push(entry.words);
        self.kind.push(kind | fault);
        self.asked.push(number);
        self.source.push(self.now.0);
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.asked.len()
    }

    pub fn is_empty(&self) -> bool {
        self.asked.is_empty()
    }
}

/// Reads sources one after another. `tick` is told the bytes so far after each block; false ends it.
///
/// As `run::read`: a source that is no known log is left out and says so. Err where none could be
/// read, where one breaks off, or where `tick` said so ("interrupted").
pub fn read(
    sources: &[Source],
    options: &Options,
    tick: &mut dyn FnMut(u64) -> bool,
) -> Result<(Entries, Vec<Done>), String> {
    let mut tally = Tally::keeping();
    tally.within = options.settings.within;
    let (mut queries, shared) = (Local::default(), Shared::new(0));
    let mut reads = Vec::new();
    let mut bytes = 0;
    let mut going_on: Option<(Box<dyn Reader>, Format, Vec<u8>)> = None;
    for (number, source) in sources.iter().enumerate() {
        let next = sources.get(number + 1);
        let goes_on = next.is_some_and(|next| next.follows != Follows::No);
        let mut done = Done {
            source: source.clone(),
            format: None,
            refused: String::new(),
            bytes: 0,
            seen: Seen::default(),
            open: Open::default(),
        };
        let mut named = source.clone();
        if let Some((_, format, _)) = &going_on {
            named.format = format.name().to_owned();
        }
        let (format, mut stream, damage) = match opened(&named) {
            Ok(found) => found,
            Err(why) if going_on.is_some() => return Err(why),
            Err(why) => {
                done.refused = why;
                reads.push(done);
                continue;
            }
        };
        done.format = Some(format);
        if let Some(kept) = &mut tally.kept {
            kept.now = (number as u32, format.name());
        }
        let damaged = |e: std::io::Error| format!("{} is damaged: {e}", source.path);
        let mut out = Out {
            tally: &mut tally,
            queries: &mut queries,
            shared: &shared,
            source: source.server.as_bytes(),
            seen: Seen::default(),
        };
        let (mut reader, text) = match going_on.take() {
            Some((reader, _, text)) => (reader, before(text, source.follows)),
            None => {
                let settings = options.settings.of_server(source.server.as_bytes());
                (reader(format, &settings), Vec::new())
            }
        };
        std::io::copy(&mut (&mut stream).take(source.skip), &mut std::io::sink())
            .map_err(damaged)?;
        let whole = std::io::Cursor::new(text.clone()).chain(stream);
        let mut cutter = Cutter::new(whole, 0, format, options.sizes).map_err(damaged)?;
        let mut open = Vec::new();
        while let Some(mut block) = cutter.cut().map_err(damaged)? {
            if goes_on {
                open = tail(&mut block, &mut cutter.bytes, format, true);
            }
            reader.read(&block, &mut out);
            cutter.give_back(&block.bytes[block.end - reader.left()..block.end]);
            if !tick(bytes + cutter.bytes) {
                return Err("interrupted".to_owned());
            }
        }
        if let Some(why) = damage.why() {
            return Err(format!("{} is damaged: {why}", source.path));
        }
        if !goes_on {
            reader.end(&mut out);
        }
        let moved = Moved {
            taken: newlines(&text),
            handed: newlines(&open),
        };
        done.seen = moved.counted(out.seen);
        done.bytes = (cutter.bytes + open.len() as u64).saturating_sub(text.len() as u64);
        bytes += done.bytes;
        reads.push(done);
        if goes_on {
            going_on = Some((reader, format, open));
        }
    }
    if !reads.is_empty() && reads.iter().all(|r| r.format.is_none()) {
        let reasons: Vec<&str> = reads.iter().map(|r| r.refused.as_str()).collect();
        return Err(reasons.join("\n"));
    }
    Ok((*tally.kept.unwrap_or_default(), reads))
}

/// A source as a stream, and its format.
fn opened(source: &Source) -> Result<(Format, Box<dyn Read + Send>, Damage), String> {
    let (opened, head) = open(&source.path)?;
    let format = if source.format.is_empty() {
        detect(&head, &source.path)?
    } else {
        Format::named(&source.format).ok_or_else(|| format!("{:?} is no format", source.format))?
    };
    let mut damage = Damage::default();
    let stream: Box<dyn Read + Send> = match opened {
        Opened::Stream(stream, of) => {
            damage = of;
            stream
        }
        Opened::File(file, _) => Box::new(
            file.try_clone()
                .map_err(|e| format!("{} cannot be read: {e}", source.path))?,
        ),
    };
    Ok((format, stream, damage))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Settings;
    use crate::source::Sizes;

    fn read_log(text: &str) -> Entries {
        let name = format!(
            "searchbench-entries-{}-{}",
            std::process::id(),
            xxh3_64(text.as_bytes())
        );
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).unwrap();
        let source = Source {
            path: path.to_str().unwrap().to_owned(),
            server: "a".to_owned(),
            ..Source::default()
        };
        let options = Options {
            settings: Settings::default(),
            threads: 1,
            keep_tail: false,
            sizes: Sizes::default(),
        };
        let (found, _) = read(&[source], &options, &mut |_| true).unwrap();
        std::fs::remove_file(&path).unwrap();
        found
    }

    fn part(of: &Entries, entry: usize, part: usize) -> String {
        let at = of.asked[entry] as usize * PARTS.len() + part;
        let from = if at == 0 { 0 } else { of.ends[at - 1] as usize };
        String::from_utf8(of.bytes[from..of.ends[at] as usize].to_vec()).unwrap()
    }

    const LOG: &str = "\
[Fri Nov 20 20:39:57.302 2026] 0.003 sec 0.003 sec [ext2/1/rel 9 (20,10) @kind] [docs] red lamp
[Fri Nov 20 20:39:57.402 2026] 0.001 sec 0.001 sec [ext2/0/rel 9 (0,1000)] [part0] blue
[Fri Nov 20 20:39:57.403 2026] 0.002 sec 0.002 sec [ext2/0/rel 9 (0,10)] [docs] blue
[Fri Nov 20 20:39:58.302 2026] 0.013 sec 0.013 sec [ext2/1/rel 9 (20,10) @kind] [docs] red lamp
";

    #[test]
    fn entries_are_in_order_and_what_repeats_is_kept_once() {
        let found = read_log(LOG);
        assert_eq!(found.len(), 4);
        let searches: Vec<usize> = (0..4).filter(|&i| found.kind[i] == 0).collect();
        assert_eq!(found.kind.iter().filter(|&&k| k == 1).count(), 1);
        let texts: Vec<String> = searches.iter().map(|&i| part(&found, i, 3)).collect();
        assert_eq!(texts, ["red lamp", "blue", "red lamp"]);
        assert_eq!(found.asked[searches[0]], found.asked[searches[2]]);
        assert_eq!(part(&found, searches[0], 4), "ext2/1/rel 9 (20,10) @kind");
        assert_eq!(part(&found, searches[0], 0), "sphinx");
        let second = found.at_ns[searches[2]] - found.at_ns[searches[0]];
        assert_eq!(second, 1_000_000_000 - 10_000_000);
        assert_eq!(found.ns[searches[2]], 13_000_000);
    }

    #[test]
    fn a_log_of_statements_has_the_statement_around_the_words() {
        let found = read_log(
            "/* Fri Nov 20 20:40:01.065 2026 conn 6 real 0.002 wall 0.002 found 1 */ \
             SELECT * FROM docs WHERE MATCH('red lamp') AND size > 3 LIMIT 0,10;\n",
        );
        assert_eq!(found.len(), 1);
        let around = part(&found, 0, 4);
        assert!(around.starts_with("SELECT * FROM docs") && around.ends_with("LIMIT 0,10"));
        assert!(part(&found, 0, 3).contains("red lamp"));
    }
}
