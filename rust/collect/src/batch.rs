//! Messages one after another, with their categories: what queues hold and stores are given.

use std::sync::Arc;

/// A category's name. Any bytes but those that would lead out of its folder.
pub type Name = Arc<[u8]>;

/// A name that is not among the last so many is written down again.
const LOOKED_AT: usize = 32;

#[derive(Clone, Copy)]
struct Mark {
    end: usize,
    name: u32,
}

/// Messages in the order in which they came. Their bytes lie together, so that a file that takes
/// nothing else is written without another copy.
#[derive(Clone, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    marks: Vec<Mark>,
    names: Vec<Name>,
}

impl Batch {
    pub fn push(&mut self, name: &Name, message: &[u8]) {
        let known = |(_, known): &(usize, &Name)| Arc::ptr_eq(known, name) || **known == *name;
        let index = match self.marks.last() {
            Some(last) if Arc::ptr_eq(&self.names[last.name as usize], name) => last.name,
            _ => match self
                .names
                .iter()
                .enumerate()
                .rev()
                .take(LOOKED_AT)
                .find(known)
            {
                Some((index, _)) => index as u32,
                None => {
                    self.names.push(name.clone());
                    self.names.len() as u32 - 1
                }
            },
        };
        self.bytes.extend_from_slice(message);
        self.marks.push(Mark {
            end: self.bytes.len(),
            name: index,
        });
    }

    /// How many messages.
    pub fn len(&self) -> usize {
        self.marks.len()
    }

    pub fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// Bytes of all messages.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where the message with this number ends, in [`Batch::bytes`].
    pub fn end(&self, index: usize) -> usize {
        self.marks[index].end
    }

    /// Category and message, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Name, &[u8])> + Clone {
        self.from(0)
    }

    /// As [`Batch::iter`], without the first so many.
    pub fn from(&self, first: usize) -> impl ExactSizeIterator<Item = (&Name, &[u8])> + Clone {
        (first..self.len()).map(|index| self.named(index))
    }

    fn named(&self, index: usize) -> (&Name, &[u8]) {
        let start = if index == 0 {
            0
        } else {
            self.marks[index - 1].end
        };
        let mark = self.marks[index];
        (
            &self.names[mark.name as usize],
            &self.bytes[start..mark.end],
        )
    }

    /// Category and message with this number.
    pub fn get(&self, index: usize) -> (&[u8], &[u8]) {
        let (name, message) = self.named(index);
        (name, message)
    }

    /// Forgets the first so many messages.
    pub fn drop_front(&mut self, count: usize) {
        if count >= self.len() {
            self.clear();
        } else if count > 0 {
            let cut = self.marks[count - 1].end;
            self.bytes.drain(..cut);
            self.marks.drain(..count);
            for mark in &mut self.marks {
                mark.end -= cut;
            }
        }
    }

    pub fn append(&mut self, other: &Batch) {
        for (name, message) in other.iter() {
            self.push(name, message);
        }
    }

    /// Empties it. Its memory stays for the next messages, but not what a burst needed.
    pub fn clear(&mut self) {
        const KEPT: usize = 1 << 20;
        self.bytes.clear();
        self.marks.clear();
        self.names.clear();
        self.bytes.shrink_to(KEPT);
        self.marks.shrink_to(KEPT / 16);
    }
}
