//! No bytes end a reader: pieces of real logs, cut, doubled, mixed and overwritten, are given to
//! every format, as one block and as several, with the same answer (`searchbench_fuzz` says how many).

#[macro_use]
mod each;
mod samples;
mod short;

use std::cell::RefCell;

use searchbench_fuzz::{Meter, Random, Target};
use searchbench_logs::clock::{self, Zone};
use searchbench_logs::detect::detect;
use searchbench_logs::format::named::check_pattern;
use searchbench_logs::format::roles::Role;
use searchbench_logs::format::{Format, Out, Seen, Settings, hold, reader};
use searchbench_logs::queries::{Local, Shared};
use searchbench_logs::source::{AHEAD, Block, Cutter, Sizes};
use searchbench_logs::tally::Tally;

use samples::{PATTERN, Samples};

#[global_allocator]
static METER: Meter = Meter;

/// Most of it is what many inputs are counted into, where it grows.
const MOST_BYTES: usize = 4 << 20;

/// What a user may say of a log, and nothing; and a zone whose clocks are set on days that the logs have.
fn settings() -> [Settings; 3] {
    let nothing = Settings {
        pattern: PATTERN.to_owned(),
        ..Settings::default()
    };
    let said = Settings {
        unit_ns: 1_000,
        parameters: vec![b"q".to_vec()],
        columns: vec![
            (b"when".to_vec(), Role::Time, 0),
            (b"took".to_vec(), Role::Duration, 1_000),
            (b"what".to_vec(), Role::Text, 0),
        ],
        ..nothing.clone()
    };
    let day = |day| clock::days(2026, 11, day) * 86_400;
    let zoned = Settings {
        zone: Zone(vec![
            (0, 7_200),
            (day(22) + 3_600, 3_600),
            (day(27) + 3_600, 7_200),
        ]),
        ..nothing.clone()
    };
    [nothing, said, zoned]
}

/// A tally settles what it counted, and a new one takes its place, after so many readings: both take
/// longer than to read a line.
const SETTLED_EVERY: u32 = 1_000;
const NEW_EVERY: u32 = 10_000;

/// What is counted into is large, so it is that of many inputs.
struct Tables {
    tally: Tally,
    /// What was read into it, of any input.
    reads: u32,
    local: Local,
    shared: Shared,
}

impl Tables {
    fn new() -> Tables {
        Tables {
            tally: Tally::default(),
            reads: 0,
            local: Local::default(),
            shared: Shared::new(1000),
        }
    }
}

/// What a format finds in a text that is cut into blocks of these sizes; of each block by itself, if
/// lines are not joined.
fn read(
    format: Format,
    settings: &Settings,
    text: &[u8],
    sizes: Sizes,
    tables: &mut Tables,
) -> Seen {
    tables.reads += 1;
    if tables.reads.is_multiple_of(SETTLED_EVERY) {
        tables.tally.settle();
    }
    if tables.reads.is_multiple_of(NEW_EVERY) {
        tables.tally = Tally::default();
    }
    let mut out = Out {
        tally: &mut tables.tally,
        queries: &mut tables.local,
        shared: &tables.shared,
        source: b"s",
        seen: Seen::default(),
    };
    let mut seen = Seen::default();
    let mut reader = reader(format, settings);
    let mut read_one = |block: &Block| {
        if !format.joins() {
            seen.append(std::mem::take(&mut out.seen));
        }
        reader.read(block, &mut out);
        reader.left()
    };
    if sizes.block >= text.len() {
        read_one(&Block {
            ahead: sizes.ahead,
            ..Block::all(text.to_vec())
        });
    } else {
        let mut cutter = Cutter::new(text, 0, format, sizes).expect("a slice can be read");
        while let Some(block) = cutter.cut().expect("a slice can be read") {
            let left = read_one(&block);
            cutter.give_back(&block.bytes[block.end - left..block.end]);
        }
    }
    reader.end(&mut out);
    seen.append(out.seen);
    seen.notes.sort_unstable();
    seen
}

const WHOLE: Sizes = Sizes {
    block: usize::MAX,
    ahead: AHEAD,
};

/// True where an entry was found.
fn check(
    format: Format,
    settings: &Settings,
    text: &[u8],
    random: &mut Random,
    tables: &mut Tables,
) -> bool {
    let ahead = 1 + random.below(400);
    let of = |block| Sizes { block, ahead };
    let seen = read(format, settings, text, of(usize::MAX), tables);
    let breaks = memchr::memchr_iter(b'\n', text).count() as u64;
    assert!(
        (breaks..=breaks + 1).contains(&seen.lines),
        "{} lines of {breaks}",
        seen.lines
    );
    assert!(seen.unread <= seen.lines);
    // The same in blocks of any size: what follows a block can be seen from it.
    let most = if random.once_in(2) { text.len() } else { 60 };
    let bytes = 1 + random.below(most.max(1));
    let again = read(format, settings, text, of(bytes), tables);
    assert_eq!(
        format!("{again:?}"),
        format!("{seen:?}"),
        "blocks of {bytes} bytes, and {ahead} ahead"
    );
    // Where the next reading would go on is where a line begins.
    let whole = memchr::memrchr(b'\n', text).map_or(0, |at| at + 1);
    for begins in [false, true] {
        if let Some(at) = hold(format, &text[..whole], begins) {
            assert!(at <= whole && (at == 0 || text[at - 1] == b'\n'), "{at}");
        }
    }
    seen.entries > 0
}

fn run(name: &'static str, format: Format) {
    let samples = Samples::of(format);
    let settings = settings();
    let tables = RefCell::new(Tables::new());
    let mut text = Vec::new();
    let target = Target {
        name,
        inputs: 10_000,
        most_bytes: MOST_BYTES,
    };
    target.run(|random| {
        samples.spoiled(random, &mut text);
        let settings = random.of_these(&settings);
        check(format, settings, &text, random, &mut tables.borrow_mut())
    });
    let mut tables = tables.into_inner();
    tables.tally.settle();
    tables.local.empty_into(&tables.shared);
    // One input alone may have no query.
    assert!(tables.reads < 1_000 || tables.shared.kept() > 0);
}

each_format!(run);

/// What a log is, and how a stream of it is cut, are found out before any format reads it.
#[test]
fn what_a_log_is() {
    let samples: Vec<Samples> = Format::ALL.into_iter().map(Samples::of).collect();
    let mut text = Vec::new();
    let target = Target {
        name: "what_a_log_is",
        inputs: 10_000,
        most_bytes: MOST_BYTES,
    };
    target.run(|random| {
        let long = random.of_these(&samples).spoiled(random, &mut text);
        if long {
            let (format, sizes) = (Format::Access, Sizes::default());
            let mut cutter = Cutter::new(&text[..], 0, format, sizes).expect("a slice can be read");
            let mut bytes = 0;
            while let Some(block) = cutter.cut().expect("a slice can be read") {
                bytes += block.end - block.begin;
            }
            assert_eq!(bytes, text.len());
        }
        detect(&text, "a log").is_ok()
    });
}

/// What a user may ask, and once ended a reading.
#[test]
fn a_statement_that_ends_with_half_a_comment_is_read() {
    let text = b"/* Sun Nov 22 02:59:00.970 2026 conn 5 real 0.001 wall 0.002 found 3 */ \
                 SELECT * FROM pages; /*/\n";
    let seen = read(
        Format::SphinxQl,
        &Settings::default(),
        text,
        WHOLE,
        &mut Tables::new(),
    );
    assert_eq!((seen.entries, seen.unread), (1, 0));
}

/// Two ends of entries in one block: the second number goes on from where the first was counted.
#[test]
fn lines_behind_entries_of_a_slow_log_are_named_by_their_numbers() {
    let entry = "# User@Host: a[a] @ h []  Id: 8\n# Query_time: 1.5\nSET timestamp=1795312334;\n\
                 SELECT 1;\n";
    let server = "mariadbd, Version: 10.11. started with:\n";
    let text = [entry, server, "first\n", entry, entry, server, "other\n"].concat();
    let seen = read(
        Format::MysqlSlow,
        &Settings::default(),
        text.as_bytes(),
        WHOLE,
        &mut Tables::new(),
    );
    let numbers: Vec<u64> = seen.examples.iter().map(|example| example.0).collect();
    assert_eq!((seen.lines, seen.entries), (16, 3));
    assert_eq!(numbers, [6, 16]);
}

/// What a whole log of PostgreSQL has, given as one block.
fn of_postgres(format: Format, text: &[u8]) -> (Seen, u64) {
    let mut tables = Tables::new();
    let seen = read(format, &Settings::default(), text, WHOLE, &mut tables);
    tables.tally.settle();
    let [servers, ..] = &tables.tally.kinds;
    let most = servers.iter().map(|(_, group)| group.max_ns).max();
    (seen, most.unwrap_or(0))
}

#[test]
fn a_record_of_csv_at_the_end_is_a_line_though_it_has_no_line_break() {
    let [record, ..] = short::entries(Format::PostgresCsv) else {
        panic!("there are entries of csvlog")
    };
    let text = [record, record.trim_ascii_end()].concat();
    let (seen, _) = of_postgres(Format::PostgresCsv, text.as_bytes());
    assert_eq!((seen.lines, seen.entries, seen.unread), (2, 2, 0));
}

/// What a statement quotes may look like a record, also where a block begins with it.
#[test]
fn a_record_within_a_record_of_csv_is_none_wherever_blocks_are_cut() {
    let [record, ..] = short::entries(Format::PostgresCsv) else {
        panic!("there are entries of csvlog")
    };
    let quoted = record.replace('"', "\"\"");
    let text = record.replace("FROM p", &format!("FROM p\n{quoted}"));
    for block in 1..text.len() + 2 {
        let (settings, sizes) = (Settings::default(), Sizes { block, ahead: 9 });
        let text = text.as_bytes();
        let seen = read(
            Format::PostgresCsv,
            &settings,
            text,
            sizes,
            &mut Tables::new(),
        );
        assert_eq!(
            (seen.entries, seen.unread),
            (1, 0),
            "blocks of {block} bytes"
        );
    }
}

#[test]
fn times_of_many_steps_of_a_statement_add_up_to_what_can_be_subtracted() {
    let line = |step: &str| {
        format!(
            "2026-11-22 02:56:33 CET [3] LOG:  duration: 9999999999 ms  {step} S: SELECT a FROM p\n"
        )
    };
    let text = line("bind").repeat(2_000) + &line("execute");
    let (seen, most_ns) = of_postgres(Format::PostgresText, text.as_bytes());
    assert_eq!((seen.entries, most_ns), (1, 10_000_000_000_000_000));
}

/// Format strings are what a user says, right or wrong.
#[test]
fn format_strings() {
    let seeds = searchbench_fuzz::Seeds::new([PATTERN, "{time}", "[{time}] {text} {_}{hits}"])
        .with_pieces(&[
            b"{",
            b"}",
            b"{_}",
            b"{text}",
            b"{duration:us}",
            b":",
            b"\xc2\xb5",
        ]);
    let mut tables = Tables::new();
    let samples = Samples::of(Format::Pattern);
    let (mut pattern, mut text) = (Vec::new(), Vec::new());
    let target = Target {
        name: "format_strings",
        inputs: 10_000,
        most_bytes: MOST_BYTES,
    };
    target.run(|random| {
        seeds.spoiled(random, &mut pattern);
        let settings = Settings {
            pattern: String::from_utf8_lossy(&pattern).into_owned(),
            ..Settings::default()
        };
        if check_pattern(&settings.pattern).is_err() {
            return false;
        }
        samples.spoiled(random, &mut text);
        read(Format::Pattern, &settings, &text, WHOLE, &mut tables).entries > 0
    });
}
