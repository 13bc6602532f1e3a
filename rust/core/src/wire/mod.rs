//! The wire boundary: where a reply ends, and no more.
//!
//! A wire is the state of one connection of one protocol. It is handed bytes as they arrive, in
//! pieces of any size, and says when the reply to the exchange that was begun is whole. It looks
//! at lengths and status only; what a reply says is decoded after the clock has stopped.
//!
//! A protocol that must speak before it can be asked (a greeting, a login) does so in `connected`
//! and `greet`; the connection counts as free only after these said `Ready`. A protocol that
//! needs several exchanges a request needs nothing here: each exchange is begun in its turn.
//! An exchange may hold several commands that are sent at once; its reply is whole after the last.

mod boundary;
mod frames;
mod http;
mod login;
mod marks;
mod mysql;
mod mysql_login;
mod mysql_packet;
mod postgres;
mod postgres_login;
mod postgres_message;
mod prelude;
#[cfg(all(test, feature = "real-servers"))]
mod real_tests;
mod scram;
mod sphinx;

pub use boundary::{Greeting, Reply, Step, Wire};
pub use frames::Frames;
pub use http::Http;
pub use login::Login;
pub use marks::Marks;
pub use mysql::Mysql;
pub use postgres::Postgres;
pub use prelude::Prelude;
pub use sphinx::Sphinx;

/// The wires a drive can be asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireKind {
    Frames,
    Http(Marks),
    Mysql(Login),
    /// The MySQL protocol of searchd: a reply that counts warnings is partial.
    Sphinxql(Login),
    Sphinx,
    Postgres(Login),
}

impl WireKind {
    /// The wire of this name; what does not fit together is said in words. `whole`: the marks of
    /// every whole answer, for `http`.
    pub fn named(
        name: &str,
        login: Option<Login>,
        whole: Vec<Vec<u8>>,
    ) -> Result<WireKind, String> {
        let marks = Marks::new(whole)?;
        if !marks.is_empty() && name != "http" {
            return Err(format!(
                "whole is given, and wire {name:?} has no bodies to look at"
            ));
        }
        match (name, login) {
            ("frames", None) => Ok(WireKind::Frames),
            ("http", None) => Ok(WireKind::Http(marks)),
            ("mysql", login) => Ok(WireKind::Mysql(login.unwrap_or_default())),
            ("sphinxql", login) => Ok(WireKind::Sphinxql(login.unwrap_or_default())),
            ("sphinx", None) => Ok(WireKind::Sphinx),
            ("postgres", Some(login)) if !login.user.is_empty() => Ok(WireKind::Postgres(login)),
            ("postgres", _) => Err("wire 'postgres' needs a login with a user".into()),
            ("frames" | "http" | "sphinx", Some(_)) => {
                Err(format!("login is given, and wire '{name}' has none"))
            }
            _ => Err(format!(
                "wire is {name:?}, not 'frames', 'http', 'mysql', 'sphinxql', 'sphinx' or \
                 'postgres'"
            )),
        }
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// Feeds `bytes` in pieces that end at `cuts`; the last step, and how many bytes were used.
    pub fn feed_in_pieces(wire: &mut impl Wire, bytes: &[u8], cuts: &[usize]) -> (Step, usize) {
        let mut at = 0;
        for &cut in cuts.iter().chain([&bytes.len()]) {
            if cut <= at {
                continue;
            }
            match wire.feed(&bytes[at..cut]) {
                Step::More => at = cut,
                Step::Whole { used, reply } => return (Step::Whole { used, reply }, at + used),
                Step::Malformed => return (Step::Malformed, at),
            }
        }
        (Step::More, at)
    }

    /// A small generator, so that tests need no dependency and always see the same cuts.
    pub struct Cuts(pub u64);

    impl Cuts {
        pub fn below(&mut self, bound: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 % bound as u64) as usize
        }
    }

    /// Asserts that bytes damaged at random are taken alike however they are cut, and that
    /// nothing panics.
    pub fn assert_damage_is_seen_alike(wire: &impl Wire, exchange: &[u8], bytes: &[u8]) {
        let mut random = Cuts(0x2545_f491_4f6c_dd1d);
        for _ in 0..5_000 {
            let mut damaged = bytes.to_vec();
            for _ in 0..1 + random.below(3) {
                let at = random.below(damaged.len());
                damaged[at] = match random.below(4) {
                    0 => 0,
                    1 => 0xff,
                    2 => 0xfe,
                    _ => random.below(256) as u8,
                };
            }
            damaged.truncate(damaged.len() - random.below(bytes.len() / 4));
            let mut cuts: Vec<usize> = (0..random.below(5))
                .map(|_| random.below(damaged.len()))
                .collect();
            cuts.sort_unstable();
            let seen = |cuts: &[usize]| {
                let mut wire = wire.clone();
                wire.begin(exchange);
                match feed_in_pieces(&mut wire, &damaged, cuts) {
                    (Step::Whole { reply, .. }, used) => (Some(reply), used),
                    (Step::More, used) => (None, used),
                    (Step::Malformed, _) => (None, usize::MAX),
                }
            };
            assert_eq!(seen(&[]), seen(&cuts), "{damaged:?} cut at {cuts:?}");
        }
    }

    /// Asserts that however the bytes are cut, the reply is the same and ends at the same byte.
    pub fn assert_cut_anywhere(
        wire: &impl Wire,
        exchange: &[u8],
        bytes: &[u8],
        reply: Option<Reply>,
        ends_at: usize,
    ) {
        let check = |cuts: &[usize]| {
            let mut wire = wire.clone();
            wire.begin(exchange);
            let (step, used) = feed_in_pieces(&mut wire, bytes, cuts);
            match (step, reply) {
                (Step::Whole { reply: got, .. }, Some(wanted)) => {
                    assert_eq!((got, used), (wanted, ends_at), "cut at {cuts:?}");
                }
                (Step::Malformed, None) => {}
                (got, wanted) => panic!("{got:?}, wanted {wanted:?}, cut at {cuts:?}"),
            }
        };
        check(&[]);
        for cut in 1..bytes.len() {
            check(&[cut]);
        }
        check(&(1..bytes.len()).collect::<Vec<_>>());
        let mut random = Cuts(0x9e37_79b9_7f4a_7c15);
        for _ in 0..200 {
            let mut cuts: Vec<usize> = (0..1 + random.below(6))
                .map(|_| random.below(bytes.len()))
                .collect();
            cuts.sort_unstable();
            check(&cuts);
        }
    }
}
