//! Logins and what opens a connection, spoiled. Of each: the same verdict whole or in pieces, and
//! nobody is believed who did not prove who he is.

use searchbench_core::Outcome;
use searchbench_core::wire::{Greeting, Mysql, Postgres, Prelude, Sphinx, Wire};
use searchbench_fuzz::{Random, Seeds, Target};

use crate::said::{self, MYSQL_FLAGS, NATIVE, OK, OLD_FLAGS, messages, mysql_greeting, packets};

const INPUTS: u64 = 10_000;
/// A packet of a login has at most 64 KiB.
const MOST_BYTES: usize = 512 << 10;

const CACHING: &str = "caching_sha2_password";

/// What came of some bytes, and how many of them were taken by then.
fn heard(
    wire: &mut impl Wire,
    bytes: &[u8],
    cuts: &[usize],
    out: &mut Vec<u8>,
) -> (Greeting, usize) {
    let mut at = 0;
    for &cut in cuts.iter().chain([&bytes.len()]) {
        if cut <= at {
            continue;
        }
        let said = wire.greet(&bytes[at..cut], out);
        at = cut;
        if said != Greeting::More {
            return (said, at);
        }
    }
    (Greeting::More, at)
}

/// Whether the bytes decide the same in pieces. What decides in two bytes or four (ready, TLS or not)
/// may do so before their end: then what follows in a later piece is not heard here, and in the same
/// piece it is refused, or awaited where it may be words that send us away.
fn assert_heard_alike<W: Wire>(
    (at_once, in_pieces): (&mut W, &mut W),
    bytes: &[u8],
    cuts: &[usize],
) -> Greeting {
    let (mut out, mut again) = (Vec::new(), Vec::new());
    let (said, _) = heard(at_once, bytes, &[], &mut out);
    let (then, taken) = heard(in_pieces, bytes, cuts, &mut again);
    let decided = matches!(
        then,
        Greeting::Ready | Greeting::Secure | Greeting::Failed(Outcome::Unsupported)
    );
    if decided && taken < bytes.len() {
        let good = matches!(said, Greeting::Ready | Greeting::Secure);
        assert!(!good, "{said:?} with bytes left over: {bytes:?}");
    } else {
        assert_eq!((said, &out), (then, &again), "{bytes:?} cut at {cuts:?}");
        assert_eq!(at_once.complaint(), in_pieces.complaint());
    }
    assert_eq!(
        at_once.complaint().is_some(),
        matches!(said, Greeting::Failed(_)),
        "a failure says why, and nothing else does: {bytes:?}"
    );
    said
}

fn target(name: &'static str) -> Target {
    Target {
        name,
        inputs: INPUTS,
        most_bytes: MOST_BYTES,
    }
}

/// Gives the wire spoiled logins, sometimes asked for over TLS.
fn run<W: Wire>(name: &'static str, wire: &W, secured: bool, seeds: &Seeds) {
    let (mut bytes, mut cuts) = (Vec::new(), Vec::new());
    target(name).run(|random: &mut Random| {
        let (mut at_once, mut in_pieces) = (wire.clone(), wire.clone());
        let secure = secured && random.once_in(2);
        for wire in [&mut at_once, &mut in_pieces] {
            let mut out = Vec::new();
            if secure {
                wire.securing(&mut out);
            } else {
                wire.connected(&mut out);
            }
        }
        let mut said = Greeting::More;
        for _ in 0..2 {
            seeds.spoiled(random, &mut bytes);
            random.cuts(bytes.len(), &mut cuts);
            said = assert_heard_alike((&mut at_once, &mut in_pieces), &bytes, &cuts);
            if said != Greeting::Secure {
                break;
            }
            // TLS stands, and the rest of the login goes on within it.
            let then = at_once.connected(&mut Vec::new());
            if then != Greeting::More {
                assert!(matches!(then, Greeting::Failed(_)), "{then:?}");
                break;
            }
            // In pieces TLS may stand already where what is all in one piece is refused, not the reverse.
            assert_eq!(in_pieces.connected(&mut Vec::new()), Greeting::More);
        }
        matches!(said, Greeting::Ready | Greeting::Secure)
    });
}

#[test]
fn mysql() {
    let switch =
        |method: &str, nonce: &[u8]| [b"\xfe", method.as_bytes(), b"\0", nonce, b"\0"].concat();
    let nonce = b"ZYXWVUTSRQPONMLKJIHG";
    let login = |method: &str, rest: &[&[u8]]| {
        [mysql_greeting(MYSQL_FLAGS, method), packets(2, rest)].concat()
    };
    // Older servers and Sphinx end their greeting after the first half.
    let short = packets(0, &[b"\x0a5.0\0\x01\0\0\0abcdefgh\0\x08\x82"]);
    let seeds = Seeds::new([
        mysql_greeting(MYSQL_FLAGS, NATIVE),
        packets(2, &[OK]),
        login(NATIVE, &[OK]),
        login(CACHING, &[b"\x01\x03", OK]),
        login(CACHING, &[b"\x01\x04", OK]),
        login(NATIVE, &[&switch(CACHING, nonce), b"\x01\x03", OK]),
        login(CACHING, &[&switch(NATIVE, nonce), OK]),
        login(NATIVE, &[b"\xff\x15\x04#28000Access denied for user 'me'"]),
        login("dialog", &[&switch("dialog", nonce)]),
        [short, packets(2, &[OK])].concat(),
        [mysql_greeting(OLD_FLAGS, ""), packets(2, &[OK])].concat(),
        packets(0, &[b"\xff\x10\x04Too many connections"]),
    ])
    .with_pieces(&[
        b"\xff\xff\x3f\0",
        b"\x01\0\0\x02",
        b"\xfe",
        b"\0",
        NATIVE.as_bytes(),
    ]);
    run("logins::mysql", &Mysql::new(said::login()), true, &seeds);
}

/// A request for authentication.
fn ask(code: u32, body: &[u8]) -> Vec<u8> {
    messages(&[(b'R', &[&code.to_be_bytes(), body].concat())])
}

/// Everything from "you are let in" to "ready".
fn welcome() -> Vec<u8> {
    let rest = messages(&[
        (b'S', b"server_version\0fifteen\0"),
        (b'N', b"SNOTICE\0Mhear\0\0"),
        (b'K', b"\0\0\0\x01\0\0\0\x02"),
        (b'Z', b"I"),
    ]);
    [ask(0, b""), rest].concat()
}

#[test]
fn postgres() {
    let denied = messages(&[(b'E', b"SFATAL\0C28P01\0Mpassword authentication failed\0\0")]);
    let seeds = Seeds::new([
        welcome(),
        [ask(3, b""), welcome()].concat(),
        [ask(5, b"\x01\x02\x03\x04"), welcome()].concat(),
        [ask(3, b""), denied.clone()].concat(),
        denied,
        ask(7, b""),
        messages(&[(b'v', b"\0\0\0\0\0\0\0\0")]),
        b"S".to_vec(),
        b"N".to_vec(),
    ])
    .with_pieces(&[
        b"R\0\0\0\x08\0\0\0\0",
        b"Z\0\0\0\x05I",
        b"N\0\x01\0\0",
        b"E\0\0\0\x04",
    ]);
    run(
        "logins::postgres",
        &Postgres::new(said::login()),
        true,
        &seeds,
    );
}

#[test]
fn scram() {
    let started = ask(10, b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0");
    let firsts = Seeds::new([
        &b"r=NONCEserver,s=MDEyMzQ1Njc4OWFiY2RlZg==,i=1"[..],
        b"r=NONCEs%r,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=2",
    ]);
    let finals = Seeds::new([
        ask(12, b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="),
        [ask(12, b"v="), welcome()].concat(),
        welcome(),
        started.clone(),
    ]);
    let (mut first, mut last, mut cuts) = (Vec::new(), Vec::new(), Vec::new());
    let mut begun = Postgres::new(said::login());
    let mut out = Vec::new();
    begun.connected(&mut out);
    out.clear();
    assert_eq!(begun.greet(&started, &mut out), Greeting::More);
    // p, length, method, length, "n,,n=,r=" and the nonce.
    let nonce = out[1 + 4 + 14 + 4 + 8..].to_vec();
    target("logins::scram").run(|random: &mut Random| {
        let mut wire = begun.clone();
        firsts.spoiled(random, &mut first);
        if let Some(at) = first.windows(5).position(|five| five == b"NONCE") {
            first.splice(at..at + 5, nonce.iter().copied());
        }
        out.clear();
        let said = wire.greet(&ask(11, &first), &mut out);
        let understood = said == Greeting::More;
        assert_eq!(understood, !out.is_empty());
        if understood {
            finals.spoiled(random, &mut last);
            random.cuts(last.len(), &mut cuts);
            let (said, _) = heard(&mut wire, &last, &cuts, &mut out);
            assert_ne!(
                said,
                Greeting::Ready,
                "a server was believed that knows no password"
            );
        }
        understood
    });
}

#[test]
fn sphinx_api() {
    let seeds = Seeds::new([
        b"\0\0\0\x01".to_vec(),
        [
            b"\0\0\0\x01".to_vec(),
            said::sphinx(2, b"\0\0\0\x23server maxed out, retry in a second"),
        ]
        .concat(),
        [b"\0\0\0\x01".to_vec(), said::sphinx(1, b"\0\0\0\x02no")].concat(),
    ]);
    run("logins::sphinx_api", &Sphinx::default(), false, &seeds);
}

/// What is said once on every connection comes after its login.
#[test]
fn preludes() {
    let statement = packets(0, &[b"\x03SET NAMES utf8"]);
    let mut wire = Prelude::new(
        Mysql::new(said::login()),
        vec![statement.clone(), statement],
    );
    let mut out = Vec::new();
    wire.connected(&mut out);
    wire.greet(&mysql_greeting(MYSQL_FLAGS, NATIVE), &mut out);
    let said = wire.greet(&packets(2, &[OK]), &mut out);
    assert_eq!(said, Greeting::More, "the prelude comes first");
    let column: &[u8] = b"\x03def\0\0\0\x011\0\x0c\x3f\0\x01\0\0\0\x03\x81\0\0\0\0";
    let seeds = Seeds::new([
        packets(1, &[OK]),
        packets(1, &[b"\x01", column, b"\xfe\0\0\x02\0\0\0"]),
        packets(1, &[b"\xff\x28\x04#42000You have an error"]),
        packets(1, &[b"\xfb/etc/file"]),
    ])
    .with_changes(3);
    let (mut bytes, mut cuts) = (Vec::new(), Vec::new());
    target("logins::preludes").run(|random: &mut Random| {
        let (at_once, in_pieces) = (&mut wire.clone(), &mut wire.clone());
        let mut said = Greeting::More;
        for _ in 0..2 {
            if said != Greeting::More {
                break;
            }
            seeds.spoiled(random, &mut bytes);
            random.cuts(bytes.len(), &mut cuts);
            // A reply that is whole before the end of its piece is no good; in pieces the rest of it
            // is taken for the next.
            let (mut out, mut again) = (Vec::new(), Vec::new());
            said = heard(at_once, &bytes, &[], &mut out).0;
            let (then, taken) = heard(in_pieces, &bytes, &cuts, &mut again);
            if said != Greeting::Failed(Outcome::Malformed) {
                assert_eq!((said, &out), (then, &again), "{bytes:?} cut at {cuts:?}");
                assert!(taken == bytes.len() || matches!(then, Greeting::Failed(_)));
            }
        }
        said != Greeting::Failed(Outcome::Malformed)
    });
}
