//! No bytes end a reader: pieces of real logs, cut, doubled, mixed and overwritten, are given to
//! every format, as one block and as several.
//!
//! SEARCHBENCH_FUZZ=N makes N of them for each format; by hand it was more than the default.

use searchbench_logs::format::{Format, Out, Seen, Settings, reader};
use searchbench_logs::queries::{Local, Shared};
use searchbench_logs::source::{Block, Cutter};
use searchbench_logs::tally::Tally;

struct Draw(u64);

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

fn samples() -> Vec<Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/logs");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("tests/logs is there")
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| path.file_name().is_some_and(|name| name != "truth.json"))
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| std::fs::read(path).expect("it can be read"))
        .collect()
}

const PIECES: [&[u8]; 16] = [
    b"\n",
    b"\"",
    b"'",
    b"[",
    b"]",
    b"{",
    b"}",
    b"|",
    b"\\",
    b"# User@Host: ",
    b"/* ",
    b" */",
    b"\t",
    b"9999999999999999999999",
    b"\xff\x00",
    b": ",
];

fn spoiled(draw: &mut Draw, samples: &[Vec<u8>]) -> Vec<u8> {
    let mut text = Vec::new();
    for _ in 0..=draw.below(2) {
        let sample = &samples[draw.below(samples.len())];
        let from = draw.below(sample.len());
        let to = (from + draw.below(3000)).min(sample.len());
        text.extend_from_slice(&sample[from..to]);
    }
    for _ in 0..draw.below(12) {
        let at = draw.below(text.len() + 1);
        match draw.below(4) {
            0 => {
                let end = (at + draw.below(60)).min(text.len());
                text.drain(at..end);
            }
            1 => {
                let again = text[at..(at + draw.below(200)).min(text.len())].to_vec();
                text.splice(at..at, again);
            }
            2 if at < text.len() => text[at] = draw.below(256) as u8,
            _ => {
                text.splice(at..at, PIECES[draw.below(PIECES.len())].iter().copied());
            }
        }
    }
    text
}

/// The lines that a format finds. The tables of queries are large, so they are those of all rounds.
fn read(format: Format, blocks: &[Block], local: &mut Local, shared: &Shared) -> u64 {
    let settings = Settings {
        parameters: vec![b"q".to_vec()],
        pattern: "{time} {_} \"{request}\" {status} {duration:ms}".to_owned(),
        ..Settings::default()
    };
    let mut tally = Tally::default();
    let mut out = Out {
        tally: &mut tally,
        queries: local,
        shared,
        source: b"s",
        seen: Seen::default(),
    };
    let mut reader = reader(format, &settings);
    for block in blocks {
        reader.read(block, &mut out);
    }
    reader.end(&mut out);
    let lines = out.seen.lines;
    tally.settle();
    lines
}

fn block(bytes: &[u8], begin: usize, end: usize, number: u64) -> Block {
    Block {
        bytes: bytes.to_vec(),
        begin,
        end,
        number,
    }
}

#[test]
fn no_bytes_end_a_reader() {
    let rounds = std::env::var("SEARCHBENCH_FUZZ")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(500);
    let samples = samples();
    let (mut local, shared) = (Local::default(), Shared::new(1000));
    let mut draw = Draw(20_261_122);
    for _ in 0..rounds {
        for format in Format::ALL {
            let text = spoiled(&mut draw, &samples);
            let one = [block(&text, 0, text.len(), 0)];
            let lines = read(format, &one, &mut local, &shared);
            let breaks = text.iter().filter(|&&b| b == b'\n').count() as u64;
            assert!(
                lines <= breaks + 1 && breaks <= lines,
                "{format:?}: {lines} of {breaks}"
            );
            // The same in two blocks: what follows a block can be seen from it.
            let middle = memchr::memchr(b'\n', &text[text.len() / 2..]);
            let cut = middle.map_or(text.len(), |n| text.len() / 2 + n + 1);
            if !format.joins() {
                let two = [block(&text, 0, cut, 0), block(&text, cut, text.len(), 1)];
                let again = read(format, &two, &mut local, &shared);
                assert_eq!(again, lines, "{format:?}");
            }
            let mut cutter = Cutter::new(text.as_slice(), 0).expect("a slice can be read");
            while cutter.cut().expect("a slice can be read").is_some() {}
        }
    }
    local.empty_into(&shared);
    assert!(shared.kept() > 0);
}
