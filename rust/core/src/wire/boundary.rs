//! What a wire is: the state of one connection, and what it says of the bytes it is handed.

use crate::sample::{NO_HOST_NS, Outcome};

/// What a wire says of a piece of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// All of the piece belongs to the reply, and more must come.
    More,
    /// The reply is whole after the first `used` bytes of the piece.
    Whole { used: usize, reply: Reply },
    /// These bytes are not of this protocol.
    Malformed,
}

/// A whole reply, as far as framing sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    pub outcome: Outcome,
    /// Nanoseconds of processing that the engine itself reported, below 2^40 - 1; else `NO_HOST_NS`.
    pub host_ns: u64,
    /// The connection cannot be used again.
    pub close: bool,
}

impl Reply {
    pub fn ok() -> Reply {
        Reply {
            outcome: Outcome::Ok,
            host_ns: NO_HOST_NS,
            close: false,
        }
    }
}

/// What a wire says while a connection is being opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Greeting {
    /// The connection can carry requests.
    Ready,
    /// What was put into `out` is sent, and more must come from the other side.
    More,
    /// What was put into `out` is sent, and then TLS begins; once it stands comes `connected`.
    Secure,
    /// The other side will not have us, or does not speak this protocol.
    Failed(Outcome),
}

/// The protocol state of one connection. Clone gives a fresh one its settings (a login, say).
pub trait Wire: Clone + Send + 'static {
    /// The socket has just connected and is to be secured: what is said in the clear before that.
    fn securing(&mut self, out: &mut Vec<u8>) -> Greeting {
        let _ = out;
        Greeting::Secure
    }

    /// The socket has just connected (and is secured, where it is to be), perhaps not for the first
    /// time; bytes put into `out` are sent.
    fn connected(&mut self, out: &mut Vec<u8>) -> Greeting {
        let _ = out;
        Greeting::Ready
    }

    /// Bytes arrived while the last greeting was `More`, before TLS or within it.
    fn greet(&mut self, piece: &[u8], out: &mut Vec<u8>) -> Greeting {
        let _ = (piece, out);
        Greeting::Failed(Outcome::Malformed)
    }

    /// Why the last greeting failed, in words for the accounting; nothing secret.
    fn complaint(&self) -> Option<&str> {
        None
    }

    /// Puts into `out`, which is empty, what is sent on this connection in place of `exchange`; false
    /// where that is the exchange as it is.
    #[inline]
    fn adapt(&self, exchange: &[u8], out: &mut Vec<u8>) -> bool {
        let _ = (exchange, out);
        false
    }

    /// An exchange is about to be sent; its reply is fed next.
    fn begin(&mut self, exchange: &[u8]);

    /// The next piece of the reply, never empty.
    fn feed(&mut self, piece: &[u8]) -> Step;

    /// The status of the last whole reply, 100 to 999; 0 where the protocol has none.
    fn status(&self) -> u16 {
        0
    }

    /// What the server says in a reply that is an error, from its beginning.
    fn words(&self, reply: &[u8]) -> String {
        String::from_utf8_lossy(reply).into_owned()
    }

    /// The other side ended the connection: the reply, if this is how it ends.
    fn ended(&mut self) -> Option<Reply> {
        None
    }
}
