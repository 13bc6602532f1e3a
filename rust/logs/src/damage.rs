//! Packed logs that are damaged, as one is that is still written: they are read up to there. Where bytes
//! within were changed, it is not known from where on what was unpacked is not what was packed.

use std::io::{self, Read};
use std::sync::{Arc, OnceLock};

/// Why what is packed could not be unpacked to its end; known once its stream has ended.
#[derive(Clone, Default)]
pub struct Damage(Arc<OnceLock<String>>);

impl Damage {
    pub fn why(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }

    /// What is noted of the source.
    pub fn note(&self) -> Option<&'static str> {
        let why = self.why()?.to_lowercase();
        let changed = ["corrupt", "checksum"]
            .iter()
            .any(|word| why.contains(word));
        Some(if changed { CORRUPT } else { DAMAGED })
    }

    /// What holds of another stream, which this one reads.
    pub fn take_over(&self, other: &Damage) {
        if let Some(why) = other.why() {
            let _ = self.0.set(why.to_owned());
        }
    }
}

/// What is noted of such a source.
pub const DAMAGED: &str = "packed bytes that are damaged, up to which was read";

pub const CORRUPT: &str = "packed bytes that were changed, so what was read may be none of the log";

/// A packed stream that ends where it is damaged.
pub struct UpToDamage {
    packed: Box<dyn Read + Send>,
    damage: Damage,
}

impl UpToDamage {
    pub fn new(packed: Box<dyn Read + Send>, damage: Damage) -> UpToDamage {
        UpToDamage { packed, damage }
    }
}

impl Read for UpToDamage {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.damage.why().is_some() {
            return Ok(0);
        }
        match self.packed.read(into) {
            Err(e) if e.kind() != io::ErrorKind::Interrupted => {
                let _ = self.damage.0.set(e.to_string());
                Ok(0)
            }
            read => read,
        }
    }
}
