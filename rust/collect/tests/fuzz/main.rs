//! What reads frames, configurations and buffered files may refuse what nobody would send, and must
//! not crash, hang or ask for memory that it does not justify (`searchbench_fuzz` says how many
//! inputs). Beside it proptest: what was written comes out as it went in.

use std::sync::Arc;

use searchbench_collect::scribe::{self, Call, Entry};
use searchbench_collect::thrift::{self, Framed, Head, Reader, put_field, put_frame, put_string};
use searchbench_collect::{Batch, conf, read_records};
use searchbench_fuzz::{Meter, Seeds, Target};

#[global_allocator]
static METER: Meter = Meter;

/// Calls as frames: strict and old, with fields and types that Scribe never uses.
fn calls() -> Vec<Vec<u8>> {
    let mut log = Vec::new();
    let entries: [(&[u8], &[u8]); 3] = [(b"web", b"a\n"), (b"", b""), (b"x", &[0xff; 40])];
    scribe::put_log(&mut log, 7, entries.into_iter());
    let mut all = vec![log];
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
        all.push(frame);
    }
    all
}

/// Answers to a `Log`.
fn answers() -> Vec<Vec<u8>> {
    let answer = |kind, field, id, value: &[u8]| {
        let mut frame = Vec::new();
        let head = Head {
            strict: true,
            name: b"Log",
            kind,
            number: 7,
        };
        put_frame(&mut frame, head, |out| {
            put_field(out, field, id);
            out.extend_from_slice(value);
            out.push(thrift::STOP);
        });
        frame[4..].to_vec()
    };
    vec![
        answer(thrift::REPLY, thrift::I32, 0, &[0, 0, 0, 0]),
        answer(thrift::REPLY, thrift::I32, 0, &[0, 0, 0, 1]),
        answer(thrift::EXCEPTION, thrift::STRING, 1, b"\0\0\0\x02no"),
    ]
}

#[test]
fn calls_and_answers() {
    let seeds = calls().into_iter().map(|frame| frame[4..].to_vec());
    let seeds = Seeds::new(seeds.chain(answers()));
    let (mut input, mut entries) = (Vec::new(), Vec::<Entry>::new());
    let target = Target {
        name: "calls_and_answers",
        inputs: 50_000,
        most_bytes: 64 << 10,
    };
    target.run(|random| {
        seeds.spoiled(random, &mut input);
        let read = scribe::read(&input, &mut entries);
        assert!(matches!(read, Ok((_, Call::Log))) || entries.is_empty() || read.is_err());
        // No list is longer than its bytes allow.
        assert!(entries.len() <= input.len());
        for entry in &entries {
            let bytes = entry.category(&input).len() + entry.message(&input).len();
            assert!(bytes <= input.len());
        }
        let answer = scribe::read_log_answer(&input);
        read.is_ok() || answer.is_ok()
    });
}

/// As a connection takes frames out of what arrives, keeping what is no whole one yet.
fn frames_of(bytes: &[u8], cuts: &[usize], kept: &mut Vec<u8>) -> (Vec<Vec<u8>>, bool) {
    let (mut found, mut from) = (Vec::new(), 0);
    kept.clear();
    for &cut in cuts.iter().chain([&bytes.len()]) {
        kept.extend_from_slice(&bytes[from..cut.max(from)]);
        from = cut.max(from);
        let mut at = 0;
        loop {
            match thrift::framed(&kept[at..]) {
                Framed::Part => break,
                Framed::Whole(frame) => {
                    found.push(frame.to_vec());
                    at += 4 + frame.len();
                }
                Framed::Http | Framed::Malformed => return (found, false),
            }
        }
        kept.drain(..at);
    }
    (found, true)
}

#[test]
fn frames() {
    let each = calls();
    let pipelined = [&each[0][..], &each[1], &each[2], b"\0\0\0\0", &each[3]].concat();
    let seeds = Seeds::new(
        each.iter()
            .cloned()
            .chain([pipelined, b"GET / HTTP/1.1\r\n".to_vec()]),
    )
    .with_pieces(&[
        b"\0\0\0\0",
        b"\0\0\0\x05",
        b"\x10\0\0\0",
        b"\x10\0\0\x01",
        b"GET ",
    ]);
    let (mut input, mut cuts, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    let target = Target {
        name: "frames",
        inputs: 50_000,
        most_bytes: 64 << 10,
    };
    target.run(|random| {
        seeds.spoiled(random, &mut input);
        random.cuts(input.len(), &mut cuts);
        let (found, open) = frames_of(&input, &[], &mut kept);
        let left = kept.len();
        assert_eq!(
            frames_of(&input, &cuts, &mut kept),
            (found.clone(), open),
            "{input:?}"
        );
        let framed: usize = found.iter().map(|frame| 4 + frame.len()).sum();
        assert!(
            !open || framed + left == input.len(),
            "bytes were lost: {input:?}"
        );
        !found.is_empty()
    });
}

const CONFIGURATION: &str = "port=1463\nmax_queue_size=0x10 # remark\nfile::max_size=10\n<store>\n\
    category=web*\ntype=buffer\nretry_interval=30\n<primary>\ntype=network\nremote_host=a\n\
    remote_port=1\n</primary>\n<secondary>\ntype=file\nrotate_period=15m\n</secondary>\n</store>\n\
    <store>\ncategories=a b default\ntype=bucket\nnum_buckets=3\nbucket_type=key_hash\n\
    bucket_subdir=b\n<bucket>\ntype=thriftfile\nfile_path=/tmp/x\n</bucket>\n</store>\n<store>\n\
    category=m\ntype=multi\n<store0>\ntype=null\n</store0>\n</store>\n";

/// A store of each type in few lines: what is short is read in little time, so many can be.
const STORES: [&str; 9] = [
    "type=null\n",
    "type=file\nfile_path=/t\nrotate_period=1h\n",
    "type=thriftfile\nfile_path=/t\nmax_size=1\n",
    "type=multifile\nfile_path=/t\nadd_newlines=1\n",
    "type=network\nremote_host=h\nremote_port=1\n",
    "type=buffer\n<primary>\ntype=null\n</primary>\n<secondary>\ntype=file\nfile_path=/s\n\
     </secondary>\n",
    "type=bucket\nnum_buckets=1\nbucket_type=random\nbucket_subdir=b\n<bucket>\ntype=file\n\
     file_path=/t\n</bucket>\n",
    "type=multi\nreport_success=any\n<store0>\ntype=null\n</store0>\n",
    "type=category\n<model>\ntype=file\nfile_path=/t\n</model>\n",
];

#[test]
fn configurations() {
    let lines = CONFIGURATION.lines().map(|line| format!("{line}\n"));
    let stores = STORES.map(|lines| format!("<store>\ncategory=default\n{lines}</store>\n"));
    let seeds = lines.chain(stores).chain([CONFIGURATION.to_owned()]);
    let seeds = Seeds::new(seeds).with_pieces(&[
        b"<store>\n",
        b"</store>\n",
        b"\n",
        b"=",
        b"::",
        b"99999999999999999999",
        b"num_buckets=4000000000\n",
        b"bucket_offset=18446744073709551615\n",
        b"<bucket>\n",
        b"# ",
        b"-1",
        b"\r",
    ]);
    let mut input = Vec::new();
    let target = Target {
        name: "configurations",
        inputs: 5_000,
        // 100,000 buckets may be asked for in a line.
        most_bytes: 64 << 20,
    };
    target.run(|random| {
        seeds.spoiled(random, &mut input);
        let (_, mistakes) = conf::read(&String::from_utf8_lossy(&input));
        let lines = input.iter().filter(|byte| **byte == b'\n').count() as u32;
        assert!(mistakes.iter().all(|mistake| mistake.line <= lines + 1));
        mistakes.iter().all(|mistake| !mistake.fatal)
    });
}

#[test]
fn buffered_files() {
    let record = |text: &[u8]| [&(text.len() as u32).to_le_bytes(), text].concat();
    let seeds = Seeds::new([
        [
            record(b"web\n"),
            record(b"message"),
            record(b"web\n"),
            record(b""),
        ]
        .concat(),
        [record(&[7; 300]), record(b"x")].concat(),
    ]);
    let (mut input, name) = (Vec::new(), Arc::from(&b"web"[..]));
    let target = Target {
        name: "buffered_files",
        inputs: 50_000,
        most_bytes: 256 << 10,
    };
    target.run(|random| {
        seeds.spoiled(random, &mut input);
        let mut understood = false;
        for category in [None, Some(&name)] {
            let (batch, whole): (Batch, usize) = read_records(&input, category);
            assert!(whole <= input.len() && batch.bytes().len() + 4 * batch.len() <= whole);
            understood |= !batch.is_empty();
        }
        understood
    });
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
