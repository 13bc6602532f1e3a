//! Bytes that nobody would send: what reads frames, configurations and buffered files may refuse
//! them, and must not crash, hang or ask for memory that they do not justify.
//!
//! `cargo test` runs a few seconds of it. By hand: `SEARCHBENCH_FUZZ=100000000 cargo test --release
//! -p searchbench-collect fuzz -- --nocapture`, with `SEARCHBENCH_FUZZ_SEED` for another sequence.

use std::sync::Arc;

use crate::batch::Batch;
use crate::scribe::{self, Call, Entry};
use crate::thrift::{self, Head, Reader, put_field, put_frame, put_string};
use crate::{conf, read_records};

fn inputs() -> u64 {
    std::env::var("SEARCHBENCH_FUZZ").map_or(50_000, |text| text.parse().expect("a number"))
}

fn random() -> fastrand::Rng {
    let seed = std::env::var("SEARCHBENCH_FUZZ_SEED")
        .ok()
        .and_then(|text| text.parse().ok());
    fastrand::Rng::with_seed(seed.unwrap_or(1))
}

/// One of the seeds with a few of its bytes changed, cut, doubled, or taken from another.
fn mutated(random: &mut fastrand::Rng, seeds: &[Vec<u8>], out: &mut Vec<u8>) {
    const TELLING: [u8; 12] = [0, 1, 2, 8, 10, 11, 12, 13, 15, 0x7f, 0x80, 0xff];
    out.clear();
    out.extend_from_slice(&seeds[random.usize(..seeds.len())]);
    for _ in 0..random.usize(1..6) {
        if out.is_empty() {
            out.push(random.u8(..));
        }
        let at = random.usize(..out.len());
        match random.u8(..7) {
            0 => out[at] = random.u8(..),
            1 => out[at] = TELLING[random.usize(..TELLING.len())],
            2 => out[at] ^= 1 << random.u8(..8),
            3 => out.truncate(at),
            4 => {
                let to = random.usize(at..out.len().min(at + 16) + 1).min(out.len());
                let part = out[at..to].to_vec();
                out.splice(at..at, part);
            }
            5 => {
                out.remove(at);
            }
            _ => {
                let other = &seeds[random.usize(..seeds.len())];
                let from = random.usize(..=other.len());
                out.truncate(at);
                out.extend_from_slice(&other[from..]);
            }
        }
    }
}

fn frames() -> Vec<Vec<u8>> {
    let mut log = Vec::new();
    let entries: [(&[u8], &[u8]); 3] = [(b"web", b"a\n"), (b"", b""), (b"x", &[0xff; 40])];
    scribe::put_log(&mut log, 7, entries.into_iter());
    let mut all = vec![log[4..].to_vec()];
    for (strict, name) in [
        (true, &b"getCounters"[..]),
        (false, b"setOption"),
        (true, b"Log"),
    ] {
        let mut frame = Vec::new();
        let head = Head {
            strict,
            name,
            kind: thrift::CALL,
            number: -3,
        };
        put_frame(&mut frame, head, |out| {
            put_field(out, thrift::STRING, 1);
            put_string(out, b"key");
            put_field(out, thrift::MAP, 2);
            out.extend_from_slice(&[thrift::STRING, thrift::LIST, 0, 0, 0, 1]);
            put_string(out, b"k");
            out.extend_from_slice(&[thrift::STRUCT, 0, 0, 0, 1, thrift::STOP]);
            out.push(thrift::STOP);
        });
        all.push(frame[4..].to_vec());
    }
    all
}

#[test]
fn fuzz_frames() {
    let (mut random, seeds) = (random(), frames());
    let (mut input, mut entries) = (Vec::new(), Vec::<Entry>::new());
    let mut understood = 0u64;
    for _ in 0..inputs() {
        mutated(&mut random, &seeds, &mut input);
        if let Ok((_, call)) = scribe::read(&input, &mut entries) {
            understood += 1;
            assert!(call == Call::Log || entries.is_empty());
        }
        // No list is longer than its bytes allow.
        assert!(entries.len() <= input.len());
        for entry in &entries {
            let bytes = entry.category(&input).len() + entry.message(&input).len();
            assert!(bytes <= input.len());
        }
        let _ = scribe::read_log_answer(&input);
    }
    assert!(
        understood > inputs() / 100,
        "{understood} were understood: they are not near enough"
    );
}

const CONFIGURATION: &str = "port=1463\nmax_queue_size=0x10 # remark\nfile::max_size=10\n<store>\n\
    category=web*\ntype=buffer\nretry_interval=30\n<primary>\ntype=network\nremote_host=a\n\
    remote_port=1\n</primary>\n<secondary>\ntype=file\nrotate_period=15m\n</secondary>\n</store>\n\
    <store>\ncategories=a b default\ntype=bucket\nnum_buckets=3\nbucket_type=key_hash\n\
    bucket_subdir=b\n<bucket>\ntype=thriftfile\nfile_path=/tmp/x\n</bucket>\n</store>\n<store>\n\
    category=m\ntype=multi\n<store0>\ntype=null\n</store0>\n</store>\n";

#[test]
fn fuzz_configurations() {
    let mut random = random();
    let lines: Vec<_> = CONFIGURATION
        .lines()
        .map(|line| format!("{line}\n").into_bytes())
        .collect();
    let seeds: Vec<_> = [vec![CONFIGURATION.as_bytes().to_vec()], lines].concat();
    let mut input = Vec::new();
    let (mut right, mut wrong) = (0u64, 0u64);
    for _ in 0..inputs() / 10 {
        mutated(&mut random, &seeds, &mut input);
        let (_, mistakes) = conf::read(&String::from_utf8_lossy(&input));
        if mistakes.iter().any(|mistake| mistake.fatal) {
            wrong += 1
        } else {
            right += 1
        }
        let lines = input.iter().filter(|byte| **byte == b'\n').count() as u32;
        assert!(mistakes.iter().all(|mistake| mistake.line <= lines + 1));
    }
    assert!(right > 0 && wrong > 0, "{right} right, {wrong} wrong");
}

#[test]
fn fuzz_buffered_files() {
    let mut random = random();
    let record = |text: &[u8]| [&(text.len() as u32).to_le_bytes(), text].concat();
    let seeds = [
        [
            record(b"web\n"),
            record(b"message"),
            record(b"web\n"),
            record(b""),
        ]
        .concat(),
        [record(&[7; 300]), record(b"x")].concat(),
    ];
    let (mut input, name) = (Vec::new(), Arc::from(&b"web"[..]));
    for _ in 0..inputs() {
        mutated(&mut random, &seeds, &mut input);
        for category in [None, Some(&name)] {
            let (batch, whole): (Batch, usize) = read_records(&input, category);
            assert!(whole <= input.len() && batch.bytes().len() + 4 * batch.len() <= whole);
        }
    }
}

proptest::proptest! {
    #[test]
    fn a_log_comes_out_as_it_went_in(
        number in proptest::num::i32::ANY,
        entries in proptest::collection::vec((bytes(20), bytes(200)), 0..20),
    ) {
        let mut frame = Vec::new();
        let given = entries.iter().map(|(category, message)| (&category[..], &message[..]));
        scribe::put_log(&mut frame, number, given.clone());
        let length = u32::from_be_bytes(frame[..4].try_into().unwrap()) as usize;
        assert_eq!(length, frame.len() - 4);
        let mut read = Vec::new();
        let (head, call) = scribe::read(&frame[4..], &mut read).unwrap();
        assert_eq!((head.number, head.strict, call), (number, false, Call::Log));
        let came: Vec<_> =
            read.iter().map(|e| (e.category(&frame[4..]), e.message(&frame[4..]))).collect();
        assert_eq!(came, given.collect::<Vec<_>>());
    }

    #[test]
    fn a_log_that_is_cut_is_malformed(
        entries in proptest::collection::vec((bytes(5), bytes(20)), 1..5),
        share in 0.0..1.0f64,
    ) {
        let mut frame = Vec::new();
        scribe::put_log(&mut frame, 1, entries.iter().map(|(c, m)| (&c[..], &m[..])));
        let cut = 4 + ((frame.len() - 4) as f64 * share) as usize;
        assert!(scribe::read(&frame[4..cut], &mut Vec::new()).is_err());
    }

    #[test]
    fn any_value_is_passed_over_whole(kinds in proptest::collection::vec(0u8..20, 0..40)) {
        // Types without values: each is passed over or refused, and nothing is read twice.
        let mut reader = Reader::new(&kinds);
        let mut before = reader.left();
        while reader.skip(thrift::STRUCT).is_ok() {
            assert!(reader.left() < before);
            before = reader.left();
        }
    }
}

fn bytes(most: usize) -> impl proptest::strategy::Strategy<Value = Vec<u8>> {
    proptest::collection::vec(proptest::num::u8::ANY, 0..most)
}
