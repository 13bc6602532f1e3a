//! Store `bucket`: messages to one of several stores, by a key at their beginning.

use super::{Purpose, Store, build};
use crate::batch::Batch;
use crate::conf::{Buckets, Hash};

pub struct Bucketed {
    hash: Hash,
    delimiter: u8,
    remove_key: bool,
    stores: Vec<Box<dyn Store>>,
    /// What each store is given, or has not taken.
    parts: Vec<Batch>,
    /// With `remove_key`, the same as they came.
    whole: Vec<Batch>,
    /// The parts are what was not taken the last time.
    again: bool,
}

impl Bucketed {
    pub fn new(conf: &Buckets, purpose: &Purpose) -> Bucketed {
        Bucketed {
            hash: conf.hash,
            delimiter: conf.delimiter,
            remove_key: conf.remove_key,
            stores: conf
                .stores
                .iter()
                .map(|kind| build(kind, purpose))
                .collect(),
            parts: conf.stores.iter().map(|_| Batch::default()).collect(),
            whole: conf.stores.iter().map(|_| Batch::default()).collect(),
            again: false,
        }
    }

    fn share(&mut self, batch: &Batch) {
        let count = self.stores.len() as u64 - 1;
        for (name, message) in batch.iter() {
            let bucket = bucket(self.hash, self.delimiter, count, message) as usize;
            if !self.remove_key {
                self.parts[bucket].push(name, message);
                continue;
            }
            let key = message.iter().position(|byte| *byte == self.delimiter);
            self.whole[bucket].push(name, message);
            self.parts[bucket].push(name, &message[key.map_or(0, |at| at + 1)..]);
        }
    }
}

impl Store for Bucketed {
    fn keep(&mut self, batch: &mut Batch) -> Result<(), String> {
        if !self.again {
            self.share(batch);
        }
        let mut done = Ok(());
        for (index, store) in self.stores.iter_mut().enumerate() {
            let part = &mut self.parts[index];
            if part.is_empty() {
                continue;
            }
            match store.keep(part) {
                Ok(()) => part.clear(),
                Err(why) => done = Err(why),
            }
            // What is left of a part are its last.
            let whole = &mut self.whole[index];
            whole.drop_front(whole.len().saturating_sub(part.len()));
        }
        self.again = done.is_err();
        if self.again {
            batch.clear();
            let left = if self.remove_key {
                &self.whole
            } else {
                &self.parts
            };
            left.iter().for_each(|part| batch.append(part));
        }
        done
    }

    fn forget(&mut self) {
        self.again = false;
        for (store, part) in self.stores.iter_mut().zip(&mut self.parts) {
            if !part.is_empty() {
                store.forget();
                part.clear();
            }
        }
        self.whole.iter_mut().for_each(Batch::clear);
    }

    fn ready(&mut self) -> Result<(), String> {
        self.stores.iter_mut().try_for_each(|store| store.ready())
    }

    fn check(&mut self, full: f64) {
        self.stores.iter_mut().for_each(|store| store.check(full));
    }

    fn close(&mut self) {
        self.stores.iter_mut().for_each(|store| store.close());
    }

    fn trouble(&self) -> Option<String> {
        self.stores.iter().find_map(|store| store.trouble())
    }
}

/// The bucket of a message, 1 to `count`; 0 where it has no key.
fn bucket(hash: Hash, delimiter: u8, count: u64, message: &[u8]) -> u64 {
    match hash {
        Hash::Random => return fastrand::u64(1..=count),
        Hash::ContextLog => return context_log(count, message),
        _ => {}
    }
    let Some(end) = message.iter().position(|byte| *byte == delimiter) else {
        return 0;
    };
    let key = message[..end]
        .split(|byte| *byte == 0)
        .next()
        .unwrap_or_default();
    if key.is_empty() {
        return 0;
    }
    match hash {
        Hash::Modulo => number(key) % count + 1,
        Hash::Range(range) => {
            let share = (number(key) % range) as f64 / range as f64;
            (share * count as f64) as u64 + 1
        }
        _ => u64::from(djb2(key)) % count + 1,
    }
}

/// Bernstein's hash; a byte above 127 is negative, as scribed has it on x86.
fn djb2(key: &[u8]) -> u32 {
    let add = |hash: u32, byte: &u8| {
        let signed = i32::from(byte.cast_signed()).cast_unsigned();
        hash.wrapping_mul(33).wrapping_add(signed)
    };
    key.iter().fold(5381, add)
}

/// As C's `strtoul` reads it: the number at the beginning; one below zero from 2⁶⁴ down.
fn number(key: &[u8]) -> u64 {
    let key = key.trim_ascii_start();
    let (negative, digits) = match key.first() {
        Some(b'-') => (true, &key[1..]),
        Some(b'+') => (false, &key[1..]),
        _ => (false, key),
    };
    let mut number: u64 = 0;
    for digit in digits.iter().take_while(|byte| byte.is_ascii_digit()) {
        let next = number
            .checked_mul(10)
            .and_then(|ten| ten.checked_add(u64::from(digit - b'0')));
        let Some(next) = next else {
            return u64::MAX;
        };
        number = next;
    }
    if negative {
        number.wrapping_neg()
    } else {
        number
    }
}

/// The decimal id after the third byte of 1.
fn context_log(count: u64, message: &[u8]) -> u64 {
    let mut ones = message.iter().enumerate().filter(|(_, byte)| **byte == 1);
    let Some((at, _)) = ones.nth(2) else {
        return 0;
    };
    match number(&message[at + 1..]) {
        0 => 0,
        id => id % count + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_key(key: &str) -> u64 {
        bucket(Hash::Key, b':', 5, format!("{key}:rest").as_bytes())
    }

    #[test]
    fn hashes_are_those_of_scribe() {
        assert_eq!(djb2(b"a"), 177_670);
        assert_eq!(djb2(b"123"), 193_432_059);
        assert_eq!(djb2(b"user42"), 556_066_410);
        assert_eq!(djb2("é".as_bytes()), 5_857_809);
        assert_eq!(["a", "123", "user42", "é"].map(by_key), [1, 5, 1, 5]);
    }

    #[test]
    fn a_message_without_a_key_goes_to_bucket_0() {
        for message in [
            &b"no delimiter"[..],
            b":",
            b":empty",
            b"\0a:cut at NUL",
            b"",
        ] {
            assert_eq!(bucket(Hash::Key, b':', 5, message), 0, "{message:?}");
        }
    }

    #[test]
    fn numbers_are_those_of_strtoul() {
        let by_number = |text: &[u8]| bucket(Hash::Modulo, b':', 5, text);
        assert_eq!(by_number(b"7:x"), 3);
        assert_eq!(by_number(b"text:x"), 1);
        assert_eq!(by_number(b"-7:x"), 5);
        assert_eq!(bucket(Hash::Range(100), b':', 5, b"199:x"), 5);
        assert_eq!(bucket(Hash::Range(100), b':', 5, b"100:x"), 1);
    }

    #[test]
    fn the_id_of_a_context_log_is_after_the_third_1() {
        let of = |text: &[u8]| bucket(Hash::ContextLog, b':', 5, text);
        assert_eq!(of(b"a\x01b\x01c\x0112 rest"), 3);
        assert_eq!(of(b"a\x01b\x01c\x010"), 0);
        assert_eq!(of(b"a\x01b"), 0);
    }
}
