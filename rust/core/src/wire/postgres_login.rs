//! How a connection to PostgreSQL is opened: who we are, the password as it is asked for, and
//! everything up to the first ReadyForQuery.

use md5::{Digest, Md5};

use super::boundary::Greeting;
use super::login::Login;
use super::login::words;
use super::postgres_message::{HEADER_BYTES, length_of};
use super::scram::{Exchange, Salted};
use crate::sample::Outcome;

/// A message beyond this is no part of a login.
const MAX_MESSAGE_BYTES: usize = 64 << 10;
const PROTOCOL_3_0: u32 = 3 << 16;
/// A message of eight bytes that asks whether the server speaks TLS: `S` it does, `N` it does not.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// What AuthenticationRequest asks for.
const AUTH_OK: u32 = 0;
const AUTH_CLEARTEXT: u32 = 3;
const AUTH_MD5: u32 = 5;
const AUTH_SASL: u32 = 10;
const AUTH_SASL_CONTINUE: u32 = 11;
const AUTH_SASL_FINAL: u32 = 12;

#[derive(Clone)]
pub struct PostgresLogin {
    login: Login,
    /// Bytes of a message that is not whole.
    inbox: Vec<u8>,
    /// Whether it speaks TLS was asked, and not answered yet.
    asks_for_tls: bool,
    /// The server said that we are who we say.
    let_in: bool,
    exchange: Option<Exchange>,
    /// What the password was stretched to; shared, for it takes milliseconds.
    salted: Salted,
    complaint: Option<String>,
}

impl PostgresLogin {
    pub fn new(login: Login) -> PostgresLogin {
        PostgresLogin {
            login,
            inbox: Vec::new(),
            asks_for_tls: false,
            let_in: false,
            exchange: None,
            salted: Salted::default(),
            complaint: None,
        }
    }

    pub fn complaint(&self) -> Option<&str> {
        self.complaint.as_deref()
    }

    pub fn ask_for_tls(&mut self, out: &mut Vec<u8>) -> Greeting {
        self.asks_for_tls = true;
        self.complaint = None;
        out.extend(SSL_REQUEST);
        Greeting::More
    }

    /// Anything behind the one byte was said in the clear, and is not to be taken for what is said
    /// over TLS.
    fn answered(&mut self, said: &[u8]) -> Greeting {
        match said {
            b"S" => Greeting::Secure,
            b"N" => self.failed(
                Outcome::Unsupported,
                "the server offers no TLS: set ssl = on there, or ask in plain text (postgres://)",
            ),
            _ => self.stranger(),
        }
    }

    pub fn begin(&mut self, out: &mut Vec<u8>) -> Greeting {
        self.inbox.clear();
        self.let_in = false;
        self.exchange = None;
        self.complaint = None;
        let mut body = PROTOCOL_3_0.to_be_bytes().to_vec();
        for (name, value) in [
            ("user", self.login.user.as_str()),
            ("database", &self.login.database),
            ("application_name", "searchbench"),
            ("client_encoding", "UTF8"),
        ] {
            if !value.is_empty() {
                body.extend(name.as_bytes());
                body.push(0);
                body.extend(value.as_bytes());
                body.push(0);
            }
        }
        body.push(0);
        out.extend((body.len() as u32 + 4).to_be_bytes());
        out.extend(body);
        Greeting::More
    }

    pub fn greet(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Greeting {
        if std::mem::take(&mut self.asks_for_tls) {
            return self.answered(piece);
        }
        self.inbox.extend_from_slice(piece);
        while self.inbox.len() >= HEADER_BYTES {
            let length = match length_of(&self.inbox) {
                Some(length) if length <= MAX_MESSAGE_BYTES => length,
                _ => return self.stranger(),
            };
            if self.inbox.len() < HEADER_BYTES + length {
                break;
            }
            let message: Vec<u8> = self.inbox.drain(..HEADER_BYTES + length).collect();
            match self.message(message[0], &message[HEADER_BYTES..], out) {
                Greeting::More => {}
                // Nobody asked anything yet, so nothing can follow.
                Greeting::Ready if !self.inbox.is_empty() => return self.stranger(),
                said => return said,
            }
        }
        Greeting::More
    }

    fn failed(&mut self, outcome: Outcome, why: impl Into<String>) -> Greeting {
        self.complaint = Some(why.into());
        Greeting::Failed(outcome)
    }

    fn stranger(&mut self) -> Greeting {
        self.failed(
            Outcome::Malformed,
            "what answers does not speak the PostgreSQL protocol",
        )
    }

    fn message(&mut self, kind: u8, body: &[u8], out: &mut Vec<u8>) -> Greeting {
        match kind {
            b'E' => self.failed(Outcome::EngineError, error(body)),
            b'R' if !self.let_in => self.asked(body, out),
            // Notices, NegotiateProtocolVersion.
            b'N' | b'v' => Greeting::More,
            // Settings, the key for cancelling.
            b'S' | b'K' if self.let_in => Greeting::More,
            b'Z' if self.let_in => Greeting::Ready,
            _ => self.stranger(),
        }
    }

    fn asked(&mut self, body: &[u8], out: &mut Vec<u8>) -> Greeting {
        let Some((code, rest)) = body.split_at_checked(4) else {
            return self.stranger();
        };
        let code = u32::from_be_bytes([code[0], code[1], code[2], code[3]]);
        let password = self.login.password.as_bytes();
        match code {
            AUTH_OK if self.exchange.as_ref().is_none_or(Exchange::is_proven) => {
                self.let_in = true;
                Greeting::More
            }
            AUTH_OK => self.unproven(),
            AUTH_CLEARTEXT => {
                say(&[password, b"\0"].concat(), out);
                Greeting::More
            }
            AUTH_MD5 if rest.len() == 4 => {
                let inner = hex(&Md5::digest(
                    [password, self.login.user.as_bytes()].concat(),
                ));
                let outer = hex(&Md5::digest([inner.as_bytes(), rest].concat()));
                say(format!("md5{outer}\0").as_bytes(), out);
                Greeting::More
            }
            AUTH_SASL => {
                let offered = rest.split(|&byte| byte == 0);
                if !offered.into_iter().any(|name| name == b"SCRAM-SHA-256") {
                    return self.failed(
                        Outcome::Unsupported,
                        "the server does not offer SCRAM-SHA-256",
                    );
                }
                let exchange = match Exchange::begin() {
                    Ok(exchange) => exchange,
                    Err(why) => return self.failed(Outcome::Unsupported, why),
                };
                let first = exchange.first();
                let mut body = b"SCRAM-SHA-256\0".to_vec();
                body.extend((first.len() as u32).to_be_bytes());
                body.extend(first.as_bytes());
                say(&body, out);
                self.exchange = Some(exchange);
                Greeting::More
            }
            AUTH_SASL_CONTINUE => {
                let Some(exchange) = &mut self.exchange else {
                    return self.stranger();
                };
                match exchange.proof(rest, password, &self.salted) {
                    Ok(proof) => {
                        say(proof.as_bytes(), out);
                        Greeting::More
                    }
                    Err(why) => self.failed(Outcome::Malformed, why),
                }
            }
            AUTH_SASL_FINAL => match self.exchange.as_mut().map(|known| known.check(rest)) {
                Some(true) => Greeting::More,
                Some(false) => self.unproven(),
                None => self.stranger(),
            },
            1 | 2 | 4 | 6..=9 => {
                let why = format!(
                    "the server wants the login by method {code} (Kerberos, GSSAPI, SSPI or the \
                     like), and only cleartext, MD5 and SCRAM-SHA-256 are spoken here"
                );
                self.failed(Outcome::Unsupported, why)
            }
            _ => self.stranger(),
        }
    }

    fn unproven(&mut self) -> Greeting {
        self.failed(
            Outcome::Malformed,
            "the server did not prove that it knows the password",
        )
    }
}

/// A password message, or one of SASL: they are alike.
fn say(body: &[u8], out: &mut Vec<u8>) {
    out.push(b'p');
    out.extend((body.len() as u32 + 4).to_be_bytes());
    out.extend(body);
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An ErrorResponse in words: its SQLSTATE and what the server says.
pub(super) fn error(body: &[u8]) -> String {
    let field = |kind: u8| {
        body.split(|&byte| byte == 0)
            .find(|field| field.first() == Some(&kind))
            .map_or(String::new(), |field| words(&field[1..]))
    };
    format!("{}: {}", field(b'C'), field(b'M'))
}

#[cfg(test)]
#[path = "postgres_login_tests.rs"]
mod tests;
