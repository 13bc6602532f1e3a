//! Where a log is cut decides nothing: blocks of any size, read by several threads, a stream, pieces that
//! others read, increments and files that follow each other give the answer of one reading, with what
//! could not be read, its examples and their line numbers.
//!
//! The logs are those that make it hard: garbage, half entries, quotes that stay open, lines within
//! statements that look like heads, lines of other programs, line breaks of Windows, empty lines. By
//! hand, `SEARCHBENCH_FUZZ=N` gives each format N of them (`searchbench_fuzz`).

#[macro_use]
#[path = "../fuzz/each.rs"]
mod each;
#[path = "../fuzz/samples.rs"]
mod samples;
#[path = "../fuzz/short.rs"]
mod short;

mod nasty;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use searchbench_fuzz::{Random, Target};
use searchbench_logs::clock::{self, Zone};
use searchbench_logs::format::{Format, Seen, Settings};
use searchbench_logs::run::read_open;
use searchbench_logs::source::{AHEAD, BLOCK, Sizes};
use searchbench_logs::tables::{self, Table};
use searchbench_logs::{Follows, Log, Open, Options, Part, Source, run};

use nasty::Nasty;
use samples::PATTERN;

/// Everything that a reading says.
struct Answer {
    seen: Told,
    tables: Vec<(&'static str, Table)>,
}

/// What was met besides entries; notes in the order of their names.
#[derive(Debug, PartialEq)]
struct Told {
    lines: u64,
    entries: u64,
    unread: u64,
    examples: Vec<(u64, &'static str, String)>,
    others: Vec<(Format, u64, u64)>,
    notes: Vec<(&'static str, u64)>,
    span_ns: Option<(i64, i64)>,
    longest: u64,
    back: u64,
}

fn told(seen: Seen) -> Told {
    let mut notes = seen.notes;
    notes.sort_unstable();
    let shown = |text: Vec<u8>| String::from_utf8_lossy(&text).into_owned();
    let examples = seen.examples.into_iter();
    Told {
        lines: seen.lines,
        entries: seen.entries,
        unread: seen.unread,
        examples: examples
            .map(|(n, why, text)| (n, why, shown(text)))
            .collect(),
        others: seen.others,
        notes,
        span_ns: seen.first_ns.map(|first| (first, seen.last_ns)),
        longest: seen.longest,
        back: seen.back,
    }
}

impl Answer {
    fn of(log: Log, seen: Seen) -> Answer {
        Answer {
            seen: told(seen),
            tables: tables::of(log),
        }
    }

    /// Without the lines of single files, which are numbered in each.
    fn without_lines(mut self) -> Answer {
        self.seen.examples.clear();
        self.seen.others.iter_mut().for_each(|other| other.2 = 0);
        self
    }
}

/// Says where two answers differ, if they do: tables are long.
fn assert_same(found: &Answer, once: &Answer, how: &str) {
    assert_eq!(found.seen, once.seen, "{how}");
    for (one, other) in found.tables.iter().zip(&once.tables) {
        for (a, b) in one.1.iter().zip(&other.1) {
            assert!(a == b, "{how}: {} of {} differs", a.0, one.0);
        }
    }
}

/// A log in a file, and how it is read.
struct Case<'a> {
    format: Format,
    path: PathBuf,
    text: &'a [u8],
    settings: &'a Settings,
    ahead: usize,
}

impl Case<'_> {
    fn options(&self, block: usize, keep_tail: bool) -> Options {
        Options {
            settings: self.settings.clone(),
            threads: if block == BLOCK { 1 } else { 2 },
            keep_tail,
            sizes: Sizes {
                block,
                ahead: self.ahead,
            },
        }
    }

    fn source(&self, path: &Path) -> Source {
        Source {
            path: path.to_str().expect("it is text").to_owned(),
            server: "s".to_owned(),
            format: self.format.name().to_owned(),
            ..Source::default()
        }
    }

    /// One log, which is read into; what was seen in the sources, together.
    fn read(&self, log: &mut Log, sources: &[Source], options: &Options) -> Seen {
        let before = log.reads.len();
        run::read(log, sources, options, &mut |_| true).expect("it can be read");
        let mut seen = Seen::default();
        for read in &log.reads[before..] {
            seen.append(read.seen.clone());
        }
        seen
    }

    fn whole(&self, path: &Path, block: usize) -> Answer {
        let mut log = Log::new(1000);
        let seen = self.read(&mut log, &[self.source(path)], &self.options(block, false));
        Answer::of(log, seen)
    }

    fn packed(&self, block: usize) -> Answer {
        let path = self.path.with_extension("gz");
        let file = fs::File::create(&path).expect("it can be written");
        let mut packer = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        packer.write_all(self.text).expect("it can be written");
        packer.finish().expect("it can be written");
        self.whole(&path, block)
    }

    /// Its blocks some by some, each lot as another machine would.
    fn in_parts(&self, block: usize, random: &mut Random) -> Answer {
        let (mut log, mut seen) = (Log::new(1000), Seen::default());
        let blocks = self.text.len().div_ceil(block) as u64;
        let mut from = 0;
        while from < blocks {
            let to = (from + 1 + random.below(3) as u64).min(blocks);
            let len = self.text.len() as u64;
            let source = Source {
                part: Some(Part { len, from, to }),
                ..self.source(&self.path)
            };
            seen.append(self.read(&mut log, &[source], &self.options(block, false)));
            from = to;
        }
        Answer::of(log, seen)
    }

    /// It grows, and is read again and again.
    fn in_increments(&self, block: usize, packed: bool, random: &mut Random) -> Answer {
        let (mut log, mut seen) = (Log::new(1000), Seen::default());
        let path = self.path.with_extension("grows");
        let (mut cuts, mut skip, mut open) = (Vec::new(), 0, Open::default());
        random.cuts(self.text.len().max(1), &mut cuts);
        // One after each byte takes long.
        let step = cuts.len().div_ceil(12).max(1);
        // What is open at the end is read with the bytes ahead that there are for all.
        let agents = matches!(self.format, Format::SphinxPlain | Format::SphinxQl);
        let may_end = self.ahead == AHEAD || !agents;
        let ends = may_end && self.text.ends_with(b"\n") && random.once_in(2);
        let last = self.text.len();
        for upto in cuts.into_iter().step_by(step).chain([last]) {
            let now = &self.text[..upto];
            if packed {
                let file = fs::File::create(&path).expect("it can be written");
                let mut packer = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
                packer.write_all(now).expect("it can be written");
                packer.finish().expect("it can be written");
            } else {
                fs::write(&path, now).expect("it can be written");
            }
            let source = Source {
                skip,
                open,
                ..self.source(&path)
            };
            let keep = upto < last || ends;
            seen.append(self.read(&mut log, &[source], &self.options(block, keep)));
            let read = log.reads.pop().expect("there is one");
            (skip, open) = (skip + read.bytes, read.open);
        }
        if ends {
            let source = Source {
                open,
                ..self.source(&path)
            };
            for more in read_open(&mut log, &[(source, self.format)], self.settings) {
                seen.append(more);
            }
        }
        Answer::of(log, seen)
    }

    /// Files of which each goes on where the last ended, perhaps within a line.
    fn in_files(&self, block: usize, random: &mut Random) -> Answer {
        let (mut log, mut cuts) = (Log::new(1000), Vec::new());
        random.cuts(self.text.len().max(1), &mut cuts);
        let step = cuts.len().div_ceil(5).max(1);
        let cuts: Vec<usize> = cuts.into_iter().step_by(step).collect();
        let (mut sources, mut from) = (Vec::new(), 0);
        for (number, upto) in cuts.into_iter().chain([self.text.len()]).enumerate() {
            let path = self.path.with_extension(format!("{number}"));
            fs::write(&path, &self.text[from..upto]).expect("it can be written");
            let follows = if number == 0 {
                Follows::No
            } else {
                Follows::Within
            };
            sources.push(Source {
                follows,
                ..self.source(&path)
            });
            from = upto;
        }
        let seen = self.read(&mut log, &sources, &self.options(block, false));
        Answer::of(log, seen).without_lines()
    }
}

fn settings() -> [Settings; 2] {
    let plain = Settings {
        pattern: PATTERN.to_owned(),
        parameters: vec![b"q".to_vec()],
        ..Settings::default()
    };
    let day = |day| clock::days(2026, 11, day) * 86_400;
    let zoned = Settings {
        zone: Zone(vec![
            (0, 7_200),
            (day(22) + 3_600, 3_600),
            (day(27) + 3_600, 7_200),
        ]),
        ..plain.clone()
    };
    [plain, zoned]
}

fn run_edges(name: &'static str, format: Format) {
    let nasty = Nasty::of(format);
    let settings = settings();
    let folder =
        std::env::temp_dir().join(format!("searchbench-edges-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("it can be made");
    let mut text = Vec::new();
    let target = Target {
        name,
        inputs: 12,
        most_bytes: usize::MAX,
    };
    target.run(|random| {
        nasty.log(random, &mut text);
        let path = folder.join("log");
        fs::write(&path, &text).expect("it can be written");
        let case = Case {
            format,
            path: path.clone(),
            text: &text,
            settings: random.of_these(&settings),
            ahead: if random.once_in(3) {
                AHEAD
            } else {
                1 + random.below(700)
            },
        };
        let once = case.whole(&path, BLOCK);
        let most = if random.once_in(3) { 40 } else { 1500 };
        let block = 1 + random.below(most);
        let whole = case.whole(&path, block);
        assert_same(&whole, &once, &format!("blocks of {block} bytes"));
        let packed = case.packed(block);
        assert_same(
            &packed,
            &once,
            &format!("a stream in blocks of {block} bytes"),
        );
        if !format.joins() {
            let parts = case.in_parts(block, random);
            assert_same(&parts, &once, &format!("pieces of blocks of {block} bytes"));
        }
        // The columns of CSV are named by its first line alone, which whoever reads on gives again.
        if format != Format::Csv {
            for packed in [false, true] {
                let grown = case.in_increments(block, packed, random);
                let how = format!("increments in blocks of {block} bytes, packed: {packed}");
                assert_same(&grown, &once, &how);
            }
        }
        let understood = once.seen.entries > 0;
        let once = once.without_lines();
        let files = case.in_files(block, random);
        assert_same(&files, &once, &format!("files in blocks of {block} bytes"));
        understood
    });
    fs::remove_dir_all(&folder).expect("it can be removed");
}

each_format!(run_edges);
