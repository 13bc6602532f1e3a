//! Scribe's format as text: lines of `key=value` in blocks of `<name>` and `</name>`.
//!
//! What scribed passes over in silence (a line that is neither, a block that is closed by another
//! name or never, a second block of a name) is a mistake here: each loses a store.

use super::Mistake;

#[derive(Debug)]
pub struct Entry {
    pub key: String,
    pub value: String,
    pub line: u32,
}

#[derive(Debug, Default)]
pub struct Block {
    pub name: String,
    pub line: u32,
    pub entries: Vec<Entry>,
    pub blocks: Vec<Block>,
}

impl Block {
    /// The last one counts, as in scribed.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().rev().find(|entry| entry.key == key)
    }

    pub fn block(&self, name: &str) -> Option<&Block> {
        self.blocks.iter().find(|block| block.name == name)
    }
}

/// Blocks that may be open at once. What reads them calls itself for each.
const DEEPEST: usize = 30;

/// The whole file as one block without a name.
pub fn parse(text: &str, mistakes: &mut Vec<Mistake>) -> Block {
    let mut open = vec![Block::default()];
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default();
        let line = line.trim_matches([' ', '\t', '\r']);
        if line.is_empty() {
            continue;
        }
        if let Some(name) = line.strip_prefix("</") {
            let name = name.trim_end_matches('>');
            close(&mut open, name, number, mistakes);
        } else if let Some(name) = line.strip_prefix('<') {
            let name = name.trim_end_matches('>').trim_matches([' ', '\t']);
            if open.len() > DEEPEST {
                let what = format!("<{name}> is in {DEEPEST} other blocks; no more is read");
                let hint = "close blocks where they end";
                mistakes.push(Mistake::new(number, name, what, hint));
                break;
            }
            open.push(Block {
                name: name.into(),
                line: number,
                ..Block::default()
            });
        } else if let Some((key, value)) = line.split_once('=') {
            let block = open.last_mut().expect("the outermost is never closed");
            let key = key.trim_matches([' ', '\t']);
            if let Some(earlier) = block.entry(key) {
                let also = format!(
                    "{key} is given in line {} too; the last one counts",
                    earlier.line
                );
                mistakes.push(Mistake::warning(number, key, also, "leave one of them out"));
            }
            let value = value.trim_matches([' ', '\t']);
            block.entries.push(Entry {
                key: key.into(),
                value: value.into(),
                line: number,
            });
        } else {
            let what =
                format!("{line:?} is neither key=value nor a <block>; scribed skips such lines");
            mistakes.push(Mistake::new(
                number,
                line,
                what,
                "put # before it if it is a comment",
            ));
        }
    }
    while open.len() > 1 {
        let block = &open[open.len() - 1];
        let what = format!("<{}> is never closed", block.name);
        let hint = format!(
            "write </{0}> where it ends, or leave the <{0}> out",
            block.name
        );
        mistakes.push(Mistake::new(block.line, &block.name, what, &hint));
        shut(&mut open, mistakes);
    }
    open.remove(0)
}

fn close(open: &mut Vec<Block>, name: &str, line: u32, mistakes: &mut Vec<Mistake>) {
    let Some(block) = open.get(1..).and_then(<[Block]>::last) else {
        let what = format!("</{name}> closes a block that is not open; scribed reads no further");
        mistakes.push(Mistake::new(line, name, what, "leave it out"));
        return;
    };
    if block.name != name {
        let what = format!("</{name}> closes <{}> of line {}", block.name, block.line);
        let hint = format!("write </{}>", block.name);
        mistakes.push(Mistake::new(line, name, what, &hint));
    }
    shut(open, mistakes);
}

/// Puts the innermost block into the one around it.
fn shut(open: &mut Vec<Block>, mistakes: &mut Vec<Mistake>) {
    let block = open.pop().expect("a block is open");
    let around = open.last_mut().expect("the outermost is never closed");
    let top = around.name.is_empty() && block.name == "store";
    if let (false, Some(earlier)) = (top, around.block(&block.name)) {
        let what = format!(
            "there is a <{}> in line {} already",
            block.name, earlier.line
        );
        let hint = "give it another name: scribed forgets the first of the two";
        mistakes.push(Mistake::new(block.line, &block.name, what, hint));
    }
    around.blocks.push(block);
}
