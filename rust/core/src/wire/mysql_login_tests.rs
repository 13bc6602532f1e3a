//! Logins against scripted servers: what arrives is checked as a server would check it.

use std::io::{Read, Write};
use std::net::TcpListener;

use super::*;
use crate::testing::{closed, counted, drive_these, options, requests, samples};
use crate::{Options, WireKind};

const NONCE: &[u8; 20] = b"abcdefgh01234567890!";
const NEW_NONCE: &[u8; 20] = b"ZYXWVUTSRQPONMLKJIHG";
const ALL_FLAGS: u32 = 0xffff_ffff;
const OK: &[u8] = b"\0\0\0\x02\0\0\0";
const DENIED: &[u8] = b"\xff\x15\x04#28000Access denied for user 'me'";

fn packet(sequence: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = (body.len() as u32).to_le_bytes().to_vec();
    bytes[3] = sequence;
    bytes.extend(body);
    bytes
}

fn greeting(flags: u32, method: &str) -> Vec<u8> {
    let mut body = b"\x0a11.4.2-Server\0\x01\0\0\0".to_vec();
    body.extend(&NONCE[..8]);
    body.push(0);
    body.extend((flags as u16).to_le_bytes());
    body.extend(b"\x2d\x02\0");
    body.extend(((flags >> 16) as u16).to_le_bytes());
    body.push(21);
    body.extend([0; 10]);
    body.extend(&NONCE[8..]);
    body.push(0);
    body.extend(method.as_bytes());
    body.push(0);
    packet(0, &body)
}

fn switch(sequence: u8, method: &str, nonce: &[u8]) -> Vec<u8> {
    packet(
        sequence,
        &[b"\xfe", method.as_bytes(), b"\0", nonce, b"\0"].concat(),
    )
}

fn me() -> MysqlLogin {
    MysqlLogin::new(Login::new("me".into(), "secret".into(), "db".into()).unwrap())
}

/// Hands over what the server says in pieces of `size`; the verdict and what was answered.
fn hear(login: &mut MysqlLogin, said: &[u8], size: usize) -> (Greeting, Vec<u8>) {
    let mut out = Vec::new();
    let mut verdict = Greeting::More;
    for piece in said.chunks(size) {
        assert_eq!(verdict, Greeting::More, "it was decided before the end");
        verdict = login.greet(piece, &mut out);
    }
    (verdict, out)
}

/// What a server takes from an answer to its greeting.
struct Answer {
    flags: u32,
    user: Vec<u8>,
    proof: Vec<u8>,
    rest: Vec<u8>,
}

fn answer(bytes: &[u8]) -> Answer {
    assert_eq!(bytes[3], 1, "the answer is packet 1");
    assert_eq!(length_of(bytes), bytes.len() - 4);
    let body = &bytes[4..];
    let flags = u32::from_le_bytes(body[..4].try_into().unwrap());
    assert_eq!(body[9..32], [0; 23]);
    let user: Vec<u8> = body[32..].split(|b| *b == 0).next().unwrap().to_vec();
    let at = 32 + user.len() + 1;
    let length = usize::from(body[at]);
    Answer {
        flags,
        user,
        proof: body[at + 1..at + 1 + length].to_vec(),
        rest: body[at + 1 + length..].to_vec(),
    }
}

/// As a server checks it, which knows only the twice hashed password.
fn is_native_proof(proof: &[u8], password: &[u8], nonce: &[u8]) -> bool {
    let known = Sha1::digest(Sha1::digest(password));
    let mask = Sha1::digest([nonce, &known].concat());
    let once: Vec<u8> = proof.iter().zip(mask).map(|(a, b)| a ^ b).collect();
    proof.len() == 20 && Sha1::digest(once) == known
}

fn is_caching_proof(proof: &[u8], password: &[u8], nonce: &[u8]) -> bool {
    let known = Sha256::digest(Sha256::digest(password));
    let mask = Sha256::digest([&known[..], nonce].concat());
    let once: Vec<u8> = proof.iter().zip(mask).map(|(a, b)| a ^ b).collect();
    proof.len() == 32 && Sha256::digest(once) == known
}

#[test]
fn the_native_method_wherever_the_greeting_is_cut() {
    let hello = greeting(ALL_FLAGS, NATIVE);
    for size in 1..=hello.len() {
        let mut login = me();
        assert_eq!(login.begin(false), Greeting::More);
        let (verdict, out) = hear(&mut login, &hello, size);
        assert_eq!(verdict, Greeting::More);
        let said = answer(&out);
        assert_eq!(said.user, b"me");
        assert!(is_native_proof(&said.proof, b"secret", NONCE));
        assert_eq!(said.rest, b"db\0mysql_native_password\0");
        let wanted = CONNECT_WITH_DB | PROTOCOL_41 | PLUGIN_AUTH | DEPRECATE_EOF | MULTI_STATEMENTS;
        assert_eq!(said.flags & wanted, wanted);
        assert!(login.rows_end_with_ok());
        let (verdict, out) = hear(&mut login, &packet(2, OK), size);
        assert_eq!((verdict, out.len()), (Greeting::Ready, 0));
    }
}

#[test]
fn nothing_is_claimed_that_the_server_does_not_offer() {
    let offered = PROTOCOL_41 | SECURE_CONNECTION | CONNECT_WITH_DB;
    let mut login = me();
    login.begin(false);
    let (_, out) = hear(&mut login, &greeting(offered, ""), 1000);
    let said = answer(&out);
    assert_eq!(said.flags & !offered, 0);
    assert_eq!(said.rest, b"db\0", "no method without PLUGIN_AUTH");
    assert!(!login.rows_end_with_ok());
}

#[test]
fn the_short_way_of_caching_sha2() {
    let mut login = me();
    login.begin(false);
    let (_, out) = hear(&mut login, &greeting(ALL_FLAGS, CACHING), 1000);
    let said = answer(&out);
    assert!(is_caching_proof(&said.proof, b"secret", NONCE));
    let remembered = [packet(2, b"\x01\x03"), packet(3, OK)].concat();
    for size in [1, 5, 100] {
        let mut login = login.clone();
        assert_eq!(hear(&mut login, &remembered, size).0, Greeting::Ready);
    }
    let (verdict, out) = hear(&mut login, &packet(2, b"\x01\x04"), 100);
    assert_eq!(verdict, Greeting::Failed(Outcome::Unsupported));
    assert!(out.is_empty());
    assert!(
        login
            .complaint()
            .unwrap()
            .contains("over TLS (mysql+tls://) or RSA")
    );
}

#[test]
fn proofs_are_those_of_other_clients() {
    // From the tests of the Go driver.
    let nonce = [
        10, 47, 74, 111, 75, 73, 34, 48, 88, 76, 114, 74, 37, 13, 3, 80, 82, 2, 23, 21,
    ];
    let hex = |bytes: Vec<u8>| -> String { bytes.iter().map(|b| format!("{b:02x}")).collect() };
    assert_eq!(
        hex(caching_proof(b"secret", &nonce)),
        "f490e76f66d9d86665ce54d98c78d0acfe2fb0b08b423da807144873d30b312c"
    );
}

#[test]
fn a_switch_of_method_is_followed_with_the_new_nonce() {
    for (named, asked) in [(NATIVE, CACHING), (CACHING, NATIVE), ("ed25519", NATIVE)] {
        for size in [1, 1000] {
            let mut login = me();
            login.begin(false);
            hear(&mut login, &greeting(ALL_FLAGS, named), size);
            let (verdict, out) = hear(&mut login, &switch(2, asked, NEW_NONCE), size);
            assert_eq!(verdict, Greeting::More);
            assert_eq!((out[3], length_of(&out)), (3, out.len() - 4));
            let check = if asked == NATIVE {
                is_native_proof
            } else {
                is_caching_proof
            };
            assert!(check(&out[4..], b"secret", NEW_NONCE), "{named} {asked}");
            let (verdict, _) = hear(&mut login, &packet(4, OK), size);
            assert_eq!(verdict, Greeting::Ready);
        }
    }
}

#[test]
fn an_empty_password_is_proven_by_nothing() {
    let mut login = MysqlLogin::new(Login::default());
    login.begin(false);
    let (_, out) = hear(&mut login, &greeting(ALL_FLAGS, NATIVE), 1000);
    let said = answer(&out);
    assert!(said.user.is_empty() && said.proof.is_empty());
    assert_eq!(said.flags & CONNECT_WITH_DB, 0);
    let (_, out) = hear(&mut login, &switch(2, CACHING, NEW_NONCE), 1000);
    assert_eq!(out, packet(3, b""));
}

/// The greeting of searchd 2.2.11, as it came.
const SPHINX: &[u8] = b"\x4b\0\0\0\x0a2.2.11-id64-release (95ae9a6)\0\x01\0\0\0\
    \x01\x02\x03\x04\x05\x06\x07\x08\0\x08\x82\x21\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
    \x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\0";
/// That of MariaDB 10.11.
const MARIADB: &[u8] = b"\x64\0\0\0\x0a5.5.5-10.11.19-MariaDB-0+deb12u1\0\x10\0\0\0/DI\"iptx\0\
    \xfe\xf7\x08\x02\0\xff\x81\x15\0\0\0\0\0\0\x1d\0\0\0{#7-x8JO-1Mn\0mysql_native_password\0";

#[test]
fn the_greetings_of_real_servers_are_understood() {
    for (said, nonce, new_style) in [
        (
            SPHINX,
            b"\x01\x02\x03\x04\x05\x06\x07\x08\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c",
            false,
        ),
        (MARIADB, b"/DI\"iptx{#7-x8JO-1Mn", true),
    ] {
        let mut login = me();
        login.begin(false);
        let (verdict, out) = hear(&mut login, said, said.len());
        assert_eq!(verdict, Greeting::More);
        assert!(is_native_proof(&answer(&out).proof, b"secret", nonce));
        assert_eq!(login.rows_end_with_ok(), new_style);
    }
}

#[test]
fn a_login_that_cannot_go_on_fails_with_a_reason() {
    let hello = greeting(ALL_FLAGS, NATIVE);
    let no_database = greeting(ALL_FLAGS & !CONNECT_WITH_DB, NATIVE);
    let old_password = greeting(PROTOCOL_41 | CONNECT_WITH_DB, "");
    let old_protocol = greeting(SECURE_CONNECTION | CONNECT_WITH_DB, "");
    let too_many = packet(0, b"\xff\x10\x04Too many connections");
    let after = |second: Vec<u8>| [hello.clone(), second].concat();
    let cases = [
        (too_many, Outcome::EngineError, "1040: Too many connections"),
        (
            after(packet(2, DENIED)),
            Outcome::EngineError,
            "1045: Access denied for user 'me'",
        ),
        (no_database, Outcome::Unsupported, "a database is given"),
        (old_password, Outcome::Unsupported, "before MySQL 4.1"),
        (old_protocol, Outcome::Unsupported, "protocol 4.1"),
        (
            after(switch(2, "client_ed25519", NEW_NONCE)),
            Outcome::Unsupported,
            "client_ed25519",
        ),
        (
            after(switch(2, "mysql_clear_password", b"")),
            Outcome::Unsupported,
            "mysql_clear_password",
        ),
        (
            after(packet(2, b"\xfe")),
            Outcome::Unsupported,
            "before MySQL 4.1",
        ),
        (
            after(switch(2, NATIVE, b"short")),
            Outcome::Malformed,
            "does not speak",
        ),
        (
            after(packet(2, b"\x01\x03")),
            Outcome::Malformed,
            "does not speak",
        ),
        (
            b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(),
            Outcome::Malformed,
            "does not speak",
        ),
        (packet(0, b"\x0a8.0"), Outcome::Malformed, "does not speak"),
        (
            after([packet(2, OK), packet(3, OK)].concat()),
            Outcome::Malformed,
            "does not speak",
        ),
    ];
    for (said, outcome, why) in cases {
        let mut login = me();
        login.begin(false);
        let (verdict, _) = hear(&mut login, &said, said.len());
        assert_eq!(verdict, Greeting::Failed(outcome), "{why}");
        let complaint = login.complaint().unwrap();
        assert!(complaint.contains(why), "{complaint}");
        assert!(!complaint.contains("secret"));
        // The next attempt is not judged by this one.
        assert_eq!(login.begin(false), Greeting::More);
        assert_eq!(login.complaint(), None);
        let whole = [hello.clone(), packet(2, OK)].concat();
        assert_eq!(hear(&mut login, &whole, 7).0, Greeting::Ready);
    }
}

/// A server that lets in whoever knows the password, and answers every command with OK.
fn guarded_server(password: &'static [u8]) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                let _ = socket.write_all(&greeting(ALL_FLAGS, CACHING));
                let _ = socket.read(&mut buffer);
                let _ = socket.write_all(&switch(2, NATIVE, NEW_NONCE));
                let count = socket.read(&mut buffer).unwrap_or(0);
                let known = count > 4 && is_native_proof(&buffer[4..count], password, NEW_NONCE);
                let _ = socket.write_all(&packet(4, if known { OK } else { DENIED }));
                while known && socket.read(&mut buffer).is_ok_and(|count| count > 0) {
                    let _ = socket.write_all(&packet(1, OK));
                }
            });
        }
    });
    address
}

#[test]
fn a_drive_logs_in_on_every_connection_and_a_wrong_password_is_said() {
    for (password, outcome) in [
        (b"secret".as_slice(), Outcome::Ok),
        (b"other", Outcome::EngineError),
    ] {
        let login = me().login;
        let trace = drive_these(
            requests(&[b"\x01\0\0\0\x0e"]),
            Options {
                wire: WireKind::Mysql(login),
                ..options(guarded_server(password), 3, closed(3, 4))
            },
        );
        assert_eq!(trace.len(), 12);
        for sample in samples(&trace) {
            assert_eq!(sample.outcome, outcome as u8, "{sample:?}");
        }
        assert_eq!(counted(&trace, "reconnects") == 0, outcome == Outcome::Ok);
        let account = trace.accounting();
        let reason = (outcome != Outcome::Ok).then_some("1045: Access denied for user 'me'");
        assert_eq!(account.greeting_failed.as_deref(), reason);
        let account = account.json();
        assert!(!account.contains("secret"), "{account}");
    }
}

#[test]
fn tls_comes_before_who_is_there_and_the_password_itself_goes_over_it_alone() {
    let mut login = me();
    assert_eq!(login.begin(true), Greeting::More);
    let (verdict, clear) = hear(&mut login, &greeting(ALL_FLAGS, CACHING), 1000);
    assert_eq!(verdict, Greeting::Secure);
    assert_eq!((clear.len(), clear[3]), (4 + 32, 1));
    let flags = u32::from_le_bytes(clear[4..8].try_into().unwrap());
    assert_eq!(flags & SSL, SSL);
    let mut sealed = Vec::new();
    assert_eq!(login.connected(&mut sealed), Greeting::More);
    assert_eq!(sealed[3], 2);
    assert!(sealed.windows(3).any(|three| three == b"me\0"));
    let (verdict, long) = hear(&mut login, &packet(3, b"\x01\x04"), 1000);
    assert_eq!((verdict, long), (Greeting::More, packet(4, b"secret\0")));
}

#[test]
fn a_server_without_tls_and_words_slipped_in_before_it_are_refused() {
    let mut login = me();
    login.begin(true);
    let (verdict, out) = hear(&mut login, &greeting(ALL_FLAGS & !SSL, NATIVE), 1000);
    assert_eq!(verdict, Greeting::Failed(Outcome::Unsupported));
    assert!(out.is_empty() && login.complaint().unwrap().contains("offers no TLS"));
    login.begin(true);
    let slipped = [greeting(ALL_FLAGS, NATIVE), packet(2, OK)].concat();
    let (verdict, _) = hear(&mut login, &slipped, 1000);
    assert_eq!(verdict, Greeting::Failed(Outcome::Malformed));
}
