//! A block with those around it: finds a key's value as scribed does, and reads it as what it is.
//!
//! A key K that is missing in a block of type T is sought as `T::K` there, then in the blocks
//! around it. A value that scribed would read as something other than what it says (`08`, `10MB`,
//! `true`) is a mistake, with what scribed makes of it.

use std::cell::RefCell;

use super::Mistake;
use super::keys::nearest;
use super::text::{Block, Entry};

pub struct Scope<'a> {
    /// From the file to the block itself.
    chain: Vec<&'a Block>,
    kind: &'a str,
    mistakes: &'a RefCell<Vec<Mistake>>,
}

impl<'a> Scope<'a> {
    pub fn new(file: &'a Block, mistakes: &'a RefCell<Vec<Mistake>>) -> Scope<'a> {
        Scope {
            chain: vec![file],
            kind: "",
            mistakes,
        }
    }

    /// A block inside this one. `kind` is the type of its store.
    pub fn inner(&self, block: &'a Block, kind: &'a str) -> Scope<'a> {
        let mut chain = self.chain.clone();
        chain.push(block);
        Scope {
            chain,
            kind,
            mistakes: self.mistakes,
        }
    }

    pub fn block(&self) -> &'a Block {
        self.chain[self.chain.len() - 1]
    }

    pub fn wrong(&self, line: u32, key: &str, what: String, hint: &str) {
        self.mistakes
            .borrow_mut()
            .push(Mistake::new(line, key, what, hint));
    }

    pub fn warn(&self, line: u32, key: &str, what: String, hint: &str) {
        self.mistakes
            .borrow_mut()
            .push(Mistake::warning(line, key, what, hint));
    }

    pub fn find(&self, key: &str) -> Option<&'a Entry> {
        let plain = self.block().entry(key);
        plain.or_else(|| {
            let long = format!("{}::{key}", self.kind);
            self.chain.iter().rev().find_map(|block| block.entry(&long))
        })
    }

    pub fn text(&self, key: &str) -> Option<&'a str> {
        self.find(key).map(|entry| entry.value.as_str())
    }

    /// A text that must be there; `hint` says what to write.
    pub fn needed(&self, key: &str, hint: &str) -> &'a str {
        match self.text(key) {
            Some(text) if !text.is_empty() => text,
            _ => {
                let line = self.find(key).map_or(self.block().line, |entry| entry.line);
                self.wrong(
                    line,
                    key,
                    format!("this {} store has no {key}", self.kind),
                    hint,
                );
                ""
            }
        }
    }

    pub fn yes(&self, key: &str, default: bool) -> bool {
        let Some(entry) = self.find(key) else {
            return default;
        };
        match entry.value.as_str() {
            "yes" => true,
            "no" => false,
            other => {
                // Only of these scribed asks whether it is `no`, of all others whether it is `yes`.
                let taken = match key {
                    "must_succeed" | "new_thread_per_category" => "yes",
                    _ => "no",
                };
                let what =
                    format!("{key} is yes or no, not {other:?}; scribed reads this as {taken}");
                self.wrong(
                    entry.line,
                    key,
                    what,
                    &format!("write {key}=yes or {key}=no"),
                );
                default
            }
        }
    }

    pub fn number(&self, key: &str, default: u64) -> u64 {
        let Some(entry) = self.find(key) else {
            return default;
        };
        self.value(entry, key).unwrap_or(default)
    }

    /// The number, within its limits.
    pub fn within(&self, key: &str, default: u64, least: u64, most: u64) -> u64 {
        let number = self.number(key, default);
        if (least..=most).contains(&number) {
            return number;
        }
        if let Some(entry) = self.find(key) {
            let what = format!("{key} is {number}, and must be from {least} to {most}");
            self.wrong(
                entry.line,
                key,
                what,
                &format!("without it, it is {default}"),
            );
        }
        default
    }

    fn value(&self, entry: &Entry, key: &str) -> Option<u64> {
        let given = entry.value.as_str();
        let digits = given.len() - given.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, rest) = given.split_at(digits);
        if let Some(hex) = given.strip_prefix("0x").or(given.strip_prefix("0X"))
            && let Ok(number) = u64::from_str_radix(hex, 16)
        {
            return Some(number);
        }
        if digits > 1 && number.starts_with('0') {
            let plain = number.trim_start_matches('0');
            let plain = if plain.is_empty() { "0" } else { plain };
            let what = format!("{key}={given}: scribed reads a number that begins with 0 as octal");
            self.wrong(entry.line, key, what, &format!("write {key}={plain}"));
            return None;
        }
        match number.parse() {
            Ok(number) if rest.is_empty() => Some(number),
            Ok(number) => {
                let what = format!("{key}={given}: a number has no unit; scribed reads {number}");
                self.wrong(
                    entry.line,
                    key,
                    what,
                    &format!("write {key}={number} if that is meant"),
                );
                None
            }
            Err(_) => {
                let what = format!("{key} is a whole number, not {given:?}");
                self.wrong(entry.line, key, what, "write digits only");
                None
            }
        }
    }

    /// A share above 0 and up to 1, as buffer_bypass_max_ratio is.
    pub fn ratio(&self, key: &str, default: f64) -> f64 {
        let Some(entry) = self.find(key) else {
            return default;
        };
        match entry.value.parse::<f64>() {
            Ok(ratio) if ratio > 0.0 && ratio <= 1.0 => ratio,
            _ => {
                let what = format!(
                    "{key} is a number above 0 and up to 1, not {:?}; scribed takes {default}",
                    entry.value
                );
                self.wrong(entry.line, key, what, "write digits and one decimal point");
                default
            }
        }
    }

    /// Which of these words it is.
    pub fn word<'w>(&self, key: &str, default: &'w str, words: &[&'w str]) -> &'w str {
        let Some(entry) = self.find(key) else {
            return default;
        };
        if let Some(word) = words.iter().find(|word| **word == entry.value) {
            return word;
        }
        let what = format!("{key}={}: it is one of {}", entry.value, words.join(", "));
        let near = nearest(&entry.value, words.iter().copied()).unwrap_or(default);
        self.wrong(entry.line, key, what, &format!("did you mean {near}?"));
        default
    }
}
