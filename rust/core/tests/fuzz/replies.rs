//! Replies, spoiled. Of each: the same step at the same byte, whole or in pieces, and nothing kept
//! of one exchange for the next.

use searchbench_core::Marks;
use searchbench_core::wire::{Frames, Http, Mysql, Postgres, Reply, Sphinx, Step, Wire};
use searchbench_fuzz::{Random, Seeds, Target};

use crate::said::{self, MYSQL_FLAGS, OK, OLD_FLAGS, frame, let_in, messages, packets, sphinx};

/// HTTP keeps the beginning of a line, of at most 64 KiB; no other wire keeps anything.
const MOST_BYTES: usize = 256 << 10;
const INPUTS: u64 = 20_000;

/// What a wire made of some bytes: the reply and where it ends, or that it goes on or is none.
#[derive(Debug, PartialEq)]
enum Made {
    Whole(Reply, usize, u16),
    /// And what it would be if the connection ended here.
    More(Option<Reply>),
    Malformed,
}

fn made(wire: &mut impl Wire, bytes: &[u8], cuts: &[usize]) -> Made {
    let mut at = 0;
    for &cut in cuts.iter().chain([&bytes.len()]) {
        if cut <= at {
            continue;
        }
        match wire.feed(&bytes[at..cut]) {
            Step::More => at = cut,
            Step::Whole { used, reply } => {
                assert!(used <= cut - at, "more was used than there was");
                return Made::Whole(reply, at + used, wire.status());
            }
            Step::Malformed => return Made::Malformed,
        }
    }
    Made::More(wire.ended())
}

/// Gives the wire spoiled replies to these exchanges, one or two on a connection.
fn run<W: Wire>(name: &'static str, wire: &W, exchanges: &[&[u8]], seeds: &Seeds) {
    let target = Target {
        name,
        inputs: INPUTS,
        most_bytes: MOST_BYTES,
    };
    let asked = Seeds::new(exchanges.iter().copied());
    let (mut exchange, mut bytes, mut sent) = (Vec::new(), Vec::new(), Vec::new());
    let mut cuts = Vec::new();
    target.run(|random: &mut Random| {
        let (mut at_once, mut in_pieces) = (wire.clone(), wire.clone());
        let mut understood = false;
        for _ in 0..1 + random.below(2) {
            if random.once_in(16) {
                asked.spoiled(random, &mut exchange);
            } else {
                asked.whole(random, &mut exchange);
            }
            seeds.spoiled(random, &mut bytes);
            random.cuts(bytes.len(), &mut cuts);
            sent.clear();
            if at_once.adapt(&exchange, &mut sent) {
                assert_eq!(sent.len(), exchange.len());
            }
            at_once.begin(&exchange);
            in_pieces.begin(&exchange);
            let seen = made(&mut at_once, &bytes, &[]);
            let again = made(&mut in_pieces, &bytes, &cuts);
            assert_eq!(seen, again, "{bytes:?} cut at {cuts:?}, asked {exchange:?}");
            let Made::Whole(reply, end, _) = seen else {
                break;
            };
            understood = true;
            // Nobody needs more than is said of an error; whatever it is, it must not panic.
            let _ = at_once.words(&bytes[..end]);
            if reply.close || end < bytes.len() {
                break;
            }
        }
        understood
    });
}

#[test]
fn frames() {
    let seeds = Seeds::new([
        frame(0, 1234, b"{\"total\": 5}"),
        frame(1, 0, b"no such field"),
        frame(2, u64::MAX, b""),
        frame(3, 7, &[b'x'; 300]),
    ]);
    run("replies::frames", &Frames::default(), &[b"x"], &seeds);
}

fn http_seeds() -> Seeds {
    let each: [&[u8]; 13] = [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200\nserver: x\ncOnTeNt-lEnGtH:5 \n\nhello",
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json; charset=UTF-8\r\nTransfer-Encoding: \
          chunked\r\n\r\n9\r\n{\"took\":5\r\n14\r\n,\"timed_out\":false}\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, Chunked\r\n\r\n1A;a=b\r\nabcdefghijklmnopqrst\
          uvwxyz\r\n2 \r\n\r\n\r\n000\r\nExpires: never\r\nX: y\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nContent-Length: 9\r\n\r\n\
          HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n",
        b"HTTP/1.1 503 Busy\r\nConnection: foo, CLOSE\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\nx",
        b"HTTP/1.0 200 OK\r\n\r\nuntil the end",
        b"HTTP/1.1 200 OK\r\nContent-Length:\r\n 5\r\nX-Folded: a\r\n\tb\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\ncontent-length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
    ];
    Seeds::new(each).with_pieces(&[
        b"\r\n",
        b"\n",
        b"\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Content-Length: 18446744073709551615\r\n",
        b"fffffffffffffff\r\n",
        b"0\r\n\r\n",
        b"Connection: close\r\n",
        b"X: ",
        b" ",
        b";",
    ])
}

const HTTP_EXCHANGES: [&[u8]; 3] = [
    b"GET / HTTP/1.1\r\n\r\n",
    b"POST /_msearch HTTP/1.1\r\nContent-Length: 1\r\n\r\nx",
    b"HEAD / HTTP/1.1\r\n\r\n",
];

#[test]
fn http() {
    run(
        "replies::http",
        &Http::default(),
        &HTTP_EXCHANGES,
        &http_seeds(),
    );
}

#[test]
fn http_with_marks() {
    let marks = Marks::new(vec![b"hello".to_vec(), b"\"timed_out\":false".to_vec()]);
    let wire = Http::new(marks.expect("they are short"));
    run(
        "replies::http_with_marks",
        &wire,
        &HTTP_EXCHANGES,
        &http_seeds(),
    );
}

const COLUMN: &[u8] = b"\x03def\0\0\0\x011\0\x0c\x3f\0\x01\0\0\0\x03\x81\0\0\0\0";
const ROW: &[u8] = b"\x011\xfb\x03two";
const BINARY_ROW: &[u8] = b"\0\x04\x01\0\0\0\x03two";
const ERROR: &[u8] = b"\xff\x28\x04#42000You have an error";
const TOO_LARGE: &[u8] = b"\xff\x81\x04#08S01Got a packet bigger than 'max_allowed_packet' bytes";
const EOF: &[u8] = b"\xfe\0\0\x02\0";
const EOF_MORE: &[u8] = b"\xfe\x01\0\x0a\0";
const END: &[u8] = b"\xfe\0\0\x02\0\x01\0";
const END_LONG: &[u8] =
    b"\xfe\xfe\x01\x02\x03\x04\x05\x06\x07\x08\xfe\x01\x02\x03\x04\x05\x06\x07\x08\x02\0\0\0";
const END_MORE: &[u8] = b"\xfe\0\0\x0a\0\0\0";
const OK_MORE: &[u8] = b"\0\0\0\x0a\0\0\0";
/// Statement 1 has a column and two parameters.
const PREPARED: &[u8] = b"\0\x01\0\0\0\x01\0\x02\0\0\0\0";

fn mysql_seeds() -> Seeds {
    let bodies: [&[&[u8]]; 14] = [
        &[OK],
        &[ERROR],
        &[TOO_LARGE],
        &[b"\xfb/etc/file"],
        &[b"\x02", COLUMN, COLUMN, EOF, ROW, ROW, EOF],
        &[b"\x02", COLUMN, COLUMN, ROW, ROW, END],
        &[
            b"\x01", COLUMN, EOF, ROW, EOF_MORE, OK_MORE, b"\x01", COLUMN, EOF, EOF,
        ],
        &[b"\x01", COLUMN, ROW, END_MORE, b"\x01", COLUMN, END_LONG],
        &[b"\x01", COLUMN, EOF, BINARY_ROW, BINARY_ROW, ERROR],
        &[b"\x01", COLUMN, BINARY_ROW, END_LONG],
        &[b"\xfc\x02\0", COLUMN, COLUMN, END],
        &[PREPARED, COLUMN, COLUMN, EOF, COLUMN, EOF],
        &[PREPARED, COLUMN, COLUMN, COLUMN],
        &[b"\0\x02\0\0\0\0\0\0\0\0\0\0"],
    ];
    let several = [packets(1, &[OK]), packets(1, &[b"\x01", COLUMN, END])].concat();
    let after_file = packets(3, &[OK]);
    let asks_for_file = [packets(1, &[b"\xfbf"]), packets(3, &[OK])].concat();
    let each = bodies.iter().map(|bodies| packets(1, bodies));
    Seeds::new(each.chain([several, after_file, asks_for_file])).with_pieces(&[
        b"\xff\xff\xff\x01",
        b"\0\0\0\x02",
        b"\x05\0\0\x03\xfe\0\0\x02\0",
        b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\xfd\xff\xff\xff",
        b"\xfc\xff\xff",
        ROW,
    ])
}

/// A query, a file that goes with it, a statement that is prepared, executed, and both at once.
fn mysql_exchanges() -> Vec<Vec<u8>> {
    let query: &[u8] = b"\x03SELECT 1";
    let execute: &[u8] = b"\x17\x01\0\0\0\0\x01\0\0\0";
    let load: &[u8] = b"\x03LOAD DATA LOCAL INFILE 'f' INTO TABLE t";
    vec![
        packets(0, &[query]),
        [packets(0, &[load]), packets(2, &[b"a\n", b""])].concat(),
        packets(0, &[b"\x16SELECT ?, ?"]),
        packets(0, &[execute]),
        [packets(0, &[query]), packets(0, &[query])].concat(),
        [packets(0, &[b"\x19\x01\0\0\0"]), packets(0, &[execute])].concat(),
    ]
}

fn run_mysql(name: &'static str, wire: Mysql, flags: u32) {
    let exchanges = mysql_exchanges();
    let exchanges: Vec<&[u8]> = exchanges.iter().map(Vec::as_slice).collect();
    run(name, &let_in(wire, flags), &exchanges, &mysql_seeds());
}

#[test]
fn mysql() {
    run_mysql("replies::mysql", Mysql::new(said::login()), MYSQL_FLAGS);
}

#[test]
fn mysql_in_the_old_style() {
    run_mysql(
        "replies::mysql_in_the_old_style",
        Mysql::new(said::login()),
        OLD_FLAGS,
    );
}

#[test]
fn sphinxql() {
    let wire = Mysql::minding_warnings(said::login());
    run_mysql("replies::sphinxql", wire, OLD_FLAGS);
}

#[test]
fn postgres() {
    const ROWS: &[u8] = b"\0\x01?column?\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0";
    const ROW: &[u8] = b"\0\x01\0\0\0\x011";
    const DONE: &[u8] = b"SELECT 1\0";
    const ERROR: &[u8] = b"SERROR\0C42601\0Msyntax error\0\0";
    let ready: (u8, &[u8]) = (b'Z', b"I");
    let each: [&[(u8, &[u8])]; 9] = [
        &[(b'T', ROWS), (b'D', ROW), (b'D', ROW), (b'C', DONE), ready],
        &[(b'C', b"SET\0"), (b'S', b"a\0b\0"), (b'Z', b"T")],
        &[(b'I', b""), ready],
        &[(b'E', ERROR), ready],
        &[(b'E', b"SFATAL\0C57P01\0Mterminating connection\0\0")],
        &[(b'G', b"\0\0\x01\0\0"), (b'C', b"COPY 1\0"), ready],
        &[
            (b'H', b"\0\0\x01\0\0"),
            (b'd', b"1\n"),
            (b'c', b""),
            (b'C', b"COPY 1\0"),
            ready,
        ],
        &[
            (b'1', b""),
            (b'2', b""),
            (b't', b"\0\x01\0\0\0\x17"),
            (b'n', b""),
            (b'C', DONE),
            (b'3', b""),
            ready,
        ],
        &[
            (b'N', b"SNOTICE\0Mhear\0\0"),
            (b'A', b"\0\0\0\x01x\0\0"),
            ready,
            ready,
        ],
    ];
    let query = messages(&[(b'Q', b"SELECT 1\0")]);
    let copy = messages(&[(b'Q', b"COPY t FROM STDIN\0"), (b'd', b"1\n"), (b'c', b"")]);
    let extended = messages(&[
        (b'P', b"\0S\0\0\0"),
        (b'B', b"\0\0\0\0\0\0\0\0"),
        (b'S', b""),
    ]);
    let twice = [query.clone(), query.clone()].concat();
    let seeds = Seeds::new(each.map(messages)).with_pieces(&[
        b"Z\0\0\0\x05I",
        b"E\0\0\0\x04",
        b"D\x40\0\0\0",
        b"D\xff\xff\xff\xff",
        b"G\0\0\0\x04",
    ]);
    let wire = Postgres::new(said::login());
    run(
        "replies::postgres",
        &wire,
        &[&query, &copy, &extended, &twice],
        &seeds,
    );
}

#[test]
fn sphinx_api() {
    let found = b"\0\0\0\0\0\0\0\x01\0\0\0\x04text\0\0\0\0\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0\x07";
    let warned = b"\0\0\0\x03\0\0\0\x04late\0\0\0\x01\0\0\0\x04text";
    let wrong = b"\0\0\0\x01\0\0\0\x1bunknown local index 'nope' ";
    let seeds = Seeds::new([
        sphinx(0, found),
        sphinx(0, warned),
        sphinx(0, wrong),
        sphinx(0, b""),
        sphinx(1, b"\0\0\0\x02no"),
        sphinx(2, b"\0\0\0\x23server maxed out, retry in a second"),
        sphinx(3, &[b"\0\0\0\x04late", &found[..]].concat()),
    ])
    .with_pieces(&[b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\x04"]);
    let exchanges: [&[u8]; 2] = [
        b"\0\0\x01\x1e\0\0\0\x08\0\0\0\0\0\0\0\x01",
        b"\0\x05\x01\0\0\0\0\x04\0\0\0\x01",
    ];
    run(
        "replies::sphinx_api",
        &Sphinx::default(),
        &exchanges,
        &seeds,
    );
}
