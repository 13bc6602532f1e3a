//! SCRAM-SHA-256 (RFC 5802, RFC 7677) as PostgreSQL has it: no user name, no channel binding.
//!
//! Passwords are taken as they are, not normalised: PostgreSQL itself does so where normalising
//! fails, and text as keyboards give it is unchanged by it.

use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// More rounds than this would stall the loop for seconds; PostgreSQL's own number is 4096.
const MAX_ROUNDS: u32 = 1_000_000;
const NONCE_BYTES: usize = 18;
/// "n,,": we cannot bind to a channel.
const HEADER_BASE64: &str = "biws";

type Hash = [u8; 32];

/// The salt and the rounds, and what the password becomes with them.
type Stretched = (Vec<u8>, u32, Hash);

/// The password as last stretched, shared by all connections of one login.
#[derive(Clone, Default)]
pub struct Salted(Arc<Mutex<Option<Stretched>>>);

impl Salted {
    fn of(&self, password: &[u8], salt: &[u8], rounds: u32) -> Hash {
        // A thread that panicked cannot have left a half-written value: it is set whole.
        let mut known = self.0.lock().unwrap_or_else(|broken| broken.into_inner());
        if let Some((known_salt, known_rounds, hash)) = &*known
            && known_salt == salt
            && *known_rounds == rounds
        {
            return *hash;
        }
        let hash = pbkdf2::pbkdf2_hmac_array::<Sha256, 32>(password, salt, rounds);
        *known = Some((salt.to_vec(), rounds, hash));
        hash
    }
}

/// One login under way.
#[derive(Clone)]
pub struct Exchange {
    nonce: String,
    /// What the server must sign with, once the proof was made.
    signature: Option<Hash>,
    proven: bool,
}

impl Exchange {
    pub fn begin() -> Result<Exchange, String> {
        let mut random = [0; NONCE_BYTES];
        // SAFETY: the buffer is as long as is said.
        let got = unsafe { libc::getrandom(random.as_mut_ptr().cast(), random.len(), 0) };
        if got != NONCE_BYTES as isize {
            return Err("the machine has no random bytes for a login".into());
        }
        Ok(Exchange::with_nonce(BASE64.encode(random)))
    }

    fn with_nonce(nonce: String) -> Exchange {
        Exchange {
            nonce,
            signature: None,
            proven: false,
        }
    }

    /// The server showed that it knows the password.
    pub fn is_proven(&self) -> bool {
        self.proven
    }

    fn first_bare(&self) -> String {
        format!("n=,r={}", self.nonce)
    }

    pub fn first(&self) -> String {
        format!("n,,{}", self.first_bare())
    }

    /// Our proof, in answer to the server's first message.
    pub fn proof(
        &mut self,
        server_first: &[u8],
        password: &[u8],
        salted: &Salted,
    ) -> Result<String, String> {
        let wrong = "the server's SCRAM message makes no sense";
        let text = std::str::from_utf8(server_first).map_err(|_| wrong)?;
        let mut parts = text.split(',');
        let mut part = |name| parts.next().and_then(|part| part.strip_prefix(name));
        let (Some(nonce), Some(salt), Some(rounds)) = (part("r="), part("s="), part("i=")) else {
            return Err(wrong.into());
        };
        let salt = BASE64.decode(salt).map_err(|_| wrong)?;
        let rounds: u32 = rounds.parse().map_err(|_| wrong)?;
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() || rounds == 0 {
            return Err(wrong.into());
        }
        if rounds > MAX_ROUNDS {
            return Err(format!(
                "the server wants {rounds} rounds of SCRAM, and more than {MAX_ROUNDS} are not done"
            ));
        }
        let salted = salted.of(password, &salt, rounds);
        let without_proof = format!("c={HEADER_BASE64},r={nonce}");
        let signed = format!("{},{text},{without_proof}", self.first_bare());
        let client_key = hmac(&salted, b"Client Key");
        let client_signature = hmac(&Sha256::digest(client_key), signed.as_bytes());
        let proof: Vec<u8> = client_key
            .iter()
            .zip(client_signature)
            .map(|(a, b)| a ^ b)
            .collect();
        let server_key = hmac(&salted, b"Server Key");
        self.signature = Some(hmac(&server_key, signed.as_bytes()));
        Ok(format!("{without_proof},p={}", BASE64.encode(proof)))
    }

    /// Whether the server's last message shows that it knows the password.
    pub fn check(&mut self, server_final: &[u8]) -> bool {
        let said = server_final
            .strip_prefix(b"v=")
            .and_then(|text| BASE64.decode(text).ok());
        self.proven = match (&self.signature, said) {
            (Some(wanted), Some(said)) => said == wanted,
            _ => false,
        };
        self.proven
    }
}

fn hmac(key: &[u8], text: &[u8]) -> Hash {
    // Any key length will do for HMAC, so this cannot fail.
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length is a key");
    mac.update(text);
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7677, but for the user name, which PostgreSQL leaves out of it.
    const SERVER_FIRST: &[u8] =
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";

    fn exchange() -> Exchange {
        Exchange::with_nonce("rOprNGfwEbeRWgbNEkqO".into())
    }

    #[test]
    fn the_stretched_password_is_that_of_the_rfc() {
        let salt = BASE64.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let salted = Salted::default().of(b"pencil", &salt, 4096);
        // The keys that RFC 7677's proof and signature follow from.
        let signed = [
            "n=user,r=rOprNGfwEbeRWgbNEkqO",
            std::str::from_utf8(SERVER_FIRST).unwrap(),
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
        ]
        .join(",");
        let server_key = hmac(&salted, b"Server Key");
        assert_eq!(
            BASE64.encode(hmac(&server_key, signed.as_bytes())),
            "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
        );
    }

    #[test]
    fn a_proof_is_made_and_only_the_right_signature_is_believed() {
        let mut exchange = exchange();
        let salted = Salted::default();
        let proof = exchange.proof(SERVER_FIRST, b"pencil", &salted).unwrap();
        assert!(
            proof.starts_with("c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=")
        );
        let signature = exchange.signature.unwrap();
        for wrong in [b"v=AAAA".as_slice(), b"e=other-error", b"v=!", b""] {
            assert!(!exchange.check(wrong));
        }
        let right = format!("v={}", BASE64.encode(signature));
        assert!(exchange.check(right.as_bytes()) && exchange.is_proven());
        // Stretched once, whoever asks next.
        assert_eq!(salted.0.lock().unwrap().as_ref().unwrap().1, 4096);
    }

    #[test]
    fn a_server_that_makes_no_sense_is_not_answered() {
        for wrong in [
            "r=another,s=W22ZaJ0S,i=4096",
            "r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0S,i=4096",
            "r=rOprNGfwEbeRWgbNEkqOx,s=!,i=4096",
            "r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0S,i=0",
            "r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0S,i=4000000000",
            "r=rOprNGfwEbeRWgbNEkqOx,i=4096",
            "",
        ] {
            let answer = exchange().proof(wrong.as_bytes(), b"x", &Salted::default());
            assert!(answer.is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_login_has_a_nonce_of_its_own() {
        let (one, other) = (Exchange::begin().unwrap(), Exchange::begin().unwrap());
        assert_ne!(one.nonce, other.nonce);
        assert_eq!(one.first(), format!("n,,n=,r={}", one.nonce));
    }
}
