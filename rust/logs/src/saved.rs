//! What a reader holds at the end of a reading, as bytes: the next reading goes on with it.
//!
//! Numbers are eight bytes; a text is its length and its bytes. The first byte is the version: of
//! another one nothing is taken over.

const VERSION: u8 = 1;

/// Writes.
pub struct Saving(Vec<u8>);

impl Default for Saving {
    fn default() -> Saving {
        Saving(vec![VERSION])
    }
}

impl Saving {
    pub fn number(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    pub fn text(&mut self, text: &[u8]) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text);
    }

    pub fn bytes(self) -> Vec<u8> {
        self.0
    }
}

/// Reads; None beyond the end, or where it is of another version.
pub struct Saved<'a>(&'a [u8]);

impl<'a> Saved<'a> {
    pub fn new(bytes: &'a [u8]) -> Saved<'a> {
        Saved(bytes.strip_prefix(&[VERSION]).unwrap_or(b""))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn number(&mut self) -> Option<u64> {
        let (eight, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*eight))
    }

    pub fn text(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_saved_is_read_and_nothing_beyond_it() {
        let mut saving = Saving::default();
        saving.number(u64::MAX);
        saving.text(b"a text");
        saving.text(b"");
        let bytes = saving.bytes();
        let mut saved = Saved::new(&bytes);
        assert_eq!(saved.number(), Some(u64::MAX));
        assert_eq!(saved.text(), Some(&b"a text"[..]));
        assert_eq!(saved.text(), Some(&b""[..]));
        assert!(saved.is_empty() && saved.number().is_none());
        for cut in 0..bytes.len() {
            let mut saved = Saved::new(&bytes[..cut]);
            let whole =
                saved.number().and_then(|_| saved.text()).is_some() && saved.text().is_some();
            assert!(!whole, "{cut}");
        }
        assert!(Saved::new(b"\x02abcdefgh").is_empty());
    }
}
