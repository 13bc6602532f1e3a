//! Logins against scripted servers: what arrives is checked as a server would check it.

use std::io::{Read, Write};
use std::net::TcpListener;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::*;
use crate::testing::{closed, counted, drive_these, options, requests, samples};
use crate::{Options, WireKind};

const SALT: &[u8] = b"0123456789abcdef";
const QUERY: &[u8] = b"Q\0\0\0\x05\0";

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[kind], length.as_slice(), body].concat()
}

fn ask(code: u32, body: &[u8]) -> Vec<u8> {
    message(b'R', &[&code.to_be_bytes(), body].concat())
}

/// Everything from "you are let in" to ReadyForQuery.
fn welcome() -> Vec<u8> {
    [
        ask(AUTH_OK, b""),
        message(b'S', b"server_version\0fifteen\0"),
        message(b'N', b"SNOTICE\0Mhear\0\0"),
        message(b'K', b"\0\0\0\x01\0\0\0\x02"),
        message(b'Z', b"I"),
    ]
    .concat()
}

fn denied() -> Vec<u8> {
    message(
        b'E',
        b"SFATAL\0C28P01\0Mpassword authentication failed for user \"me\"\0\0",
    )
}

fn me() -> PostgresLogin {
    PostgresLogin::new(Login::new("me".into(), "secret".into(), "db".into()).unwrap())
}

fn begun() -> PostgresLogin {
    let mut login = me();
    login.begin(&mut Vec::new());
    login
}

/// Hands over what the server says in pieces of `size`; the verdict and what was answered.
fn hear(login: &mut PostgresLogin, said: &[u8], size: usize) -> (Greeting, Vec<u8>) {
    let mut out = Vec::new();
    let mut verdict = Greeting::More;
    for piece in said.chunks(size) {
        assert_eq!(verdict, Greeting::More, "it was decided before the end");
        verdict = login.greet(piece, &mut out);
    }
    (verdict, out)
}

#[test]
fn we_say_who_we_are_first() {
    let mut out = Vec::new();
    assert_eq!(me().begin(&mut out), Greeting::More);
    let wanted = b"\0\x03\0\0user\0me\0database\0db\0application_name\0searchbench\0\
                   client_encoding\0UTF8\0\0";
    assert_eq!(out[4..], wanted[..]);
    assert_eq!(out[..4], (out.len() as u32).to_be_bytes());
    let mut out = Vec::new();
    let nameless = Login::new("me".into(), String::new(), String::new()).unwrap();
    PostgresLogin::new(nameless).begin(&mut out);
    assert!(!out.windows(8).any(|part| part == b"database"));
}

#[test]
fn a_server_that_trusts_us_wherever_it_is_cut() {
    let said = welcome();
    for size in 1..=said.len() {
        let (verdict, out) = hear(&mut begun(), &said, size);
        assert_eq!((verdict, out.len()), (Greeting::Ready, 0));
    }
}

#[test]
fn cleartext_and_md5_as_they_are_asked_for() {
    let mut login = begun();
    let (verdict, out) = hear(&mut login, &ask(AUTH_CLEARTEXT, b""), 3);
    assert_eq!(verdict, Greeting::More);
    assert_eq!(out, message(b'p', b"secret\0"));
    assert_eq!(hear(&mut login, &welcome(), 7).0, Greeting::Ready);

    let mut login = begun();
    let (_, out) = hear(&mut login, &ask(AUTH_MD5, b"\x01\x02\x03\x04"), 3);
    // md5sum's own word on it, in two steps.
    assert_eq!(out, message(b'p', b"md58322d584bf59f0253d58346307bb6ba3\0"));
    assert_eq!(hear(&mut login, &welcome(), 7).0, Greeting::Ready);
}

fn hmac_of(key: &[u8], text: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(text);
    mac.finalize().into_bytes().into()
}

/// A server's part in SCRAM; it keeps only what PostgreSQL keeps.
struct Keeper {
    stored: Vec<u8>,
    server_key: [u8; 32],
    first_bare: String,
    server_first: String,
}

impl Keeper {
    fn knowing(password: &[u8]) -> Keeper {
        let salted = pbkdf2::pbkdf2_hmac_array::<Sha256, 32>(password, SALT, 4096);
        Keeper {
            stored: Sha256::digest(hmac_of(&salted, b"Client Key")).to_vec(),
            server_key: hmac_of(&salted, b"Server Key"),
            first_bare: String::new(),
            server_first: String::new(),
        }
    }

    fn first(&mut self, answer: &[u8]) -> Vec<u8> {
        let body = answer[5..].strip_prefix(b"SCRAM-SHA-256\0").unwrap();
        let length = u32::from_be_bytes(body[..4].try_into().unwrap()) as usize;
        assert_eq!(length, body.len() - 4);
        let text = std::str::from_utf8(&body[4..]).unwrap();
        self.first_bare = text.strip_prefix("n,,").unwrap().into();
        let nonce = self.first_bare.strip_prefix("n=,r=").unwrap();
        self.server_first = format!("r={nonce}server,s={},i=4096", BASE64.encode(SALT));
        ask(AUTH_SASL_CONTINUE, self.server_first.as_bytes())
    }

    /// The last message, if the proof is one.
    fn last(&self, answer: &[u8]) -> Option<Vec<u8>> {
        let text = std::str::from_utf8(&answer[5..]).unwrap();
        let (without_proof, proof) = text.split_once(",p=").unwrap();
        let signed = [&self.first_bare, &self.server_first, without_proof].join(",");
        let mask = hmac_of(&self.stored, signed.as_bytes());
        let key: Vec<u8> = BASE64
            .decode(proof)
            .unwrap()
            .iter()
            .zip(mask)
            .map(|(a, b)| a ^ b)
            .collect();
        let signature = BASE64.encode(hmac_of(&self.server_key, signed.as_bytes()));
        let last = ask(AUTH_SASL_FINAL, format!("v={signature}").as_bytes());
        (Sha256::digest(key).to_vec() == self.stored).then_some(last)
    }
}

const OFFER: &[u8] = b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0";

#[test]
fn scram_is_proven_to_a_server_and_by_it() {
    for size in [1, 1000] {
        let mut login = begun();
        let mut keeper = Keeper::knowing(b"secret");
        let (_, out) = hear(&mut login, &ask(AUTH_SASL, OFFER), size);
        let (_, out) = hear(&mut login, &keeper.first(&out), size);
        let last = keeper.last(&out).expect("the proof is right");
        let (verdict, out) = hear(&mut login, &last, size);
        assert_eq!((verdict, out.len()), (Greeting::More, 0));
        assert_eq!(hear(&mut login, &welcome(), size).0, Greeting::Ready);
    }
}

#[test]
fn a_server_that_does_not_know_the_password_is_not_believed() {
    let begun_with = |keeper: &mut Keeper| {
        let mut login = begun();
        let (_, out) = hear(&mut login, &ask(AUTH_SASL, OFFER), 1000);
        let first = keeper.first(&out);
        hear(&mut login, &first, 1000);
        login
    };
    let mut keeper = Keeper::knowing(b"secret");
    for said in [
        ask(AUTH_SASL_FINAL, b"v=AAAA"),
        // Let in without the last message.
        ask(AUTH_OK, b""),
    ] {
        let mut login = begun_with(&mut keeper);
        let (verdict, _) = hear(&mut login, &said, 1000);
        assert_eq!(verdict, Greeting::Failed(Outcome::Malformed));
        assert!(login.complaint().unwrap().contains("did not prove"));
    }
}

#[test]
fn a_login_that_cannot_go_on_fails_with_a_reason() {
    let trusted = ask(AUTH_OK, b"");
    let cases = [
        (
            denied(),
            Outcome::EngineError,
            "28P01: password authentication failed for user \"me\"",
        ),
        (
            [trusted.clone(), message(b'E', b"C53300\0Mtoo many\0\0")].concat(),
            Outcome::EngineError,
            "53300: too many",
        ),
        (ask(7, b""), Outcome::Unsupported, "method 7"),
        (
            ask(AUTH_SASL, b"SCRAM-SHA-256-PLUS\0\0"),
            Outcome::Unsupported,
            "SCRAM-SHA-256",
        ),
        (
            b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(),
            Outcome::Malformed,
            "does not speak",
        ),
        (message(b'Z', b"I"), Outcome::Malformed, "does not speak"),
        (ask(AUTH_MD5, b"abc"), Outcome::Malformed, "does not speak"),
        (
            ask(AUTH_SASL_CONTINUE, b"r=a"),
            Outcome::Malformed,
            "does not speak",
        ),
        (
            [welcome(), message(b'Z', b"I")].concat(),
            Outcome::Malformed,
            "does not speak",
        ),
    ];
    for (said, outcome, why) in cases {
        let mut login = begun();
        let (verdict, out) = hear(&mut login, &said, said.len());
        assert_eq!(verdict, Greeting::Failed(outcome), "{why}");
        assert!(out.is_empty());
        let complaint = login.complaint().unwrap();
        assert!(complaint.contains(why), "{complaint}");
        assert!(!complaint.contains("secret"));
        // The next attempt is not judged by this one.
        login.begin(&mut Vec::new());
        assert_eq!(hear(&mut login, &welcome(), 7).0, Greeting::Ready);
    }
}

/// A server that lets in whoever knows the password, and answers every query with nothing.
fn guarded_server(password: &'static [u8]) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut keeper = Keeper::knowing(password);
                let mut buffer = [0; 4096];
                let _ = socket.read(&mut buffer);
                let _ = socket.write_all(&ask(AUTH_SASL, OFFER));
                let count = socket.read(&mut buffer).unwrap_or(0);
                let _ = socket.write_all(&keeper.first(&buffer[..count]));
                let count = socket.read(&mut buffer).unwrap_or(0);
                let Some(last) = keeper.last(&buffer[..count]) else {
                    let _ = socket.write_all(&denied());
                    return;
                };
                let _ = socket.write_all(&[last, welcome()].concat());
                while socket.read(&mut buffer).is_ok_and(|count| count > 0) {
                    let empty = [message(b'I', b""), message(b'Z', b"I")].concat();
                    let _ = socket.write_all(&empty);
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
        let trace = drive_these(
            requests(&[QUERY]),
            Options {
                wire: WireKind::Postgres(me().login),
                ..options(guarded_server(password), 3, closed(3, 4))
            },
        );
        assert_eq!(trace.len(), 12);
        for sample in samples(&trace) {
            assert_eq!(sample.outcome, outcome as u8, "{sample:?}");
        }
        assert_eq!(counted(&trace, "reconnects") == 0, outcome == Outcome::Ok);
        let account = trace.accounting();
        let reason = (outcome != Outcome::Ok)
            .then_some(r#"28P01: password authentication failed for user "me""#);
        assert_eq!(account.greeting_failed.as_deref(), reason);
        let account = account.json();
        assert!(!account.contains("secret"), "{account}");
    }
}

#[test]
fn tls_is_asked_for_first_and_nothing_may_come_with_the_answer() {
    for (said, verdict) in [
        (&b"S"[..], Greeting::Secure),
        (b"N", Greeting::Failed(Outcome::Unsupported)),
        (b"SR", Greeting::Failed(Outcome::Malformed)),
        (b"E", Greeting::Failed(Outcome::Malformed)),
    ] {
        let (mut login, mut out) = (me(), Vec::new());
        assert_eq!(login.ask_for_tls(&mut out), Greeting::More);
        assert_eq!(out, SSL_REQUEST);
        assert_eq!(login.greet(said, &mut out), verdict, "{said:?}");
    }
}
