//! Our schema in tantivy's words, documents turned into tantivy's, and the tokenizer.

use serde_json::{Map, Value as Json};
use tantivy::columnar::Column;
use tantivy::schema::{
    Field, IndexRecordOption, NumericOptions, STRING, Schema as TantivySchema, TextFieldIndexing,
    TextOptions, Value as _,
};
use tantivy::tokenizer::{TextAnalyzer, Token, TokenStream, Tokenizer};
use tantivy::{Index, TantivyDocument};

use crate::analysis::Terms;
use crate::schema::{Document, FieldType, Schema, Value};

/// The longest term that tantivy indexes; a longer word of a text is dropped by it, its position
/// kept, and a longer keyword is refused by us.
pub const MAX_TERM_BYTES: usize = 65_530;

/// Where in tantivy's schema ours went. Names are ours alone, so that no field name of a corpus
/// can mean something to tantivy.
#[derive(Debug, Clone)]
pub struct Fields {
    pub tantivy: TantivySchema,
    /// By index of our schema.
    pub own: Vec<Field>,
    /// Order of ingest over all parts.
    pub seq: Field,
    /// The id, as words: see `id_words`.
    pub id: Field,
    /// The id as a term, if ids are indexed.
    pub key: Option<Field>,
}

/// Name of the fast column of the `index`-th field.
pub fn column_name(index: usize) -> String {
    format!("f{index}")
}

/// Name of the fast column of the order of ingest.
pub const SEQ: &str = "seq";
/// Name of the index of ids, by which a document is replaced or deleted.
pub const KEY: &str = "key";
/// Name of the fast column of the id's words.
pub const ID: &str = "id";

impl Fields {
    /// The tantivy schema for ours; `keys`: ids are indexed.
    pub fn new(schema: &Schema, keys: bool) -> Fields {
        let mut builder = TantivySchema::builder();
        let mut own = Vec::new();
        for (index, field) in schema.fields.iter().enumerate() {
            let name = column_name(index);
            let mut numeric = NumericOptions::default().set_indexed().set_fast();
            if field.stored {
                numeric = numeric.set_stored();
            }
            own.push(match field.kind {
                FieldType::Text => {
                    let indexing = TextFieldIndexing::default()
                        .set_tokenizer("declared")
                        .set_index_option(IndexRecordOption::WithFreqsAndPositions);
                    builder.add_text_field(&name, text(indexing, field.stored))
                }
                FieldType::Keyword | FieldType::Keywords => {
                    let indexing = TextFieldIndexing::default()
                        .set_tokenizer("raw")
                        .set_fieldnorms(false)
                        .set_index_option(IndexRecordOption::Basic);
                    builder.add_text_field(&name, text(indexing, field.stored).set_fast("raw"))
                }
                FieldType::Integer | FieldType::Date => builder.add_i64_field(&name, numeric),
                FieldType::Float => builder.add_f64_field(&name, numeric),
                FieldType::Boolean => builder.add_bool_field(&name, numeric),
            });
        }
        let fast = NumericOptions::default().set_fast();
        let seq = builder.add_u64_field(SEQ, fast.clone());
        let id = builder.add_u64_field(ID, fast);
        let key = keys.then(|| builder.add_text_field(KEY, STRING));
        Fields {
            tantivy: builder.build(),
            own,
            seq,
            id,
            key,
        }
    }

    /// Tells an index what "declared" means.
    pub fn register(index: &Index) {
        index.tokenizers().register("declared", Declared::default());
    }

    /// The document as tantivy takes it, still without its place in the order of ingest; or why
    /// it cannot be.
    pub fn document(&self, document: &Document, bytes: usize) -> Result<TantivyDocument, String> {
        let mut out = TantivyDocument::with_capacity(bytes + 32);
        for word in id_words(document.id.as_bytes()) {
            out.add_u64(self.id, word);
        }
        if let Some(key) = self.key {
            if document.id.len() > MAX_TERM_BYTES {
                let bytes = document.id.len();
                return Err(format!(
                    "an id of {bytes} bytes is longer than tantivy's {MAX_TERM_BYTES}"
                ));
            }
            out.add_text(key, &document.id);
        }
        for (index, value) in &document.values {
            let field = self.own[*index];
            match value {
                Value::Str(text) => {
                    if text.len() > MAX_TERM_BYTES {
                        self.fits(field, text)?;
                    }
                    out.add_text(field, text);
                }
                Value::Strs(texts) => {
                    for text in texts {
                        self.fits(field, text)?;
                        out.add_text(field, text);
                    }
                }
                Value::Int(number) => out.add_i64(field, *number),
                Value::Float(number) => out.add_f64(field, *number),
                Value::Bool(flag) => out.add_bool(field, *flag),
            }
        }
        Ok(out)
    }

    fn fits(&self, field: Field, text: &str) -> Result<(), String> {
        let whole = self.tantivy.get_field_entry(field).is_fast();
        if whole && text.len() > MAX_TERM_BYTES {
            return Err(format!(
                "a keyword of {} bytes is longer than tantivy's {MAX_TERM_BYTES}",
                text.len()
            ));
        }
        Ok(())
    }

    /// The stored values of the asked fields, by name, as in the corpus.
    pub fn stored(&self, document: &TantivyDocument, schema: &Schema, asked: &[usize]) -> Json {
        let mut out = Map::new();
        for &index in asked {
            let field = &schema.fields[index];
            let mut values = document.get_all(self.own[index]);
            let value = match field.kind {
                FieldType::Keywords => {
                    let list: Vec<Json> =
                        values.filter_map(|v| v.as_str().map(Json::from)).collect();
                    if list.is_empty() {
                        None
                    } else {
                        Some(Json::from(list))
                    }
                }
                kind => values.next().and_then(|value| match kind {
                    FieldType::Integer | FieldType::Date => value.as_i64().map(Json::from),
                    FieldType::Float => value.as_f64().map(Json::from),
                    FieldType::Boolean => value.as_bool().map(Json::from),
                    _ => value.as_str().map(Json::from),
                }),
            };
            if let Some(value) = value {
                out.insert(field.name.clone(), value);
            }
        }
        Json::Object(out)
    }
}

fn text(indexing: TextFieldIndexing, stored: bool) -> TextOptions {
    let options = TextOptions::default().set_indexing_options(indexing);
    if stored {
        options.set_stored()
    } else {
        options
    }
}

/// An id as 64-bit words: seven bytes, and in the lowest byte how many of them count.
///
/// As numbers in a fast column an id is read back by two array look-ups a word; as a string in
/// a fast column, or stored, each read would decompress a block.
pub fn id_words(id: &[u8]) -> impl Iterator<Item = u64> + '_ {
    let empty = id.is_empty().then_some(0);
    empty.into_iter().chain(id.chunks(7).map(|chunk| {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        bytes[7] = chunk.len() as u8;
        u64::from_be_bytes(bytes)
    }))
}

/// The id that `id_words` put into a column.
pub fn read_id(column: &Column<u64>, doc: u32) -> String {
    let mut id = Vec::with_capacity(16);
    for word in column.values_for_doc(doc) {
        let bytes = word.to_be_bytes();
        id.extend_from_slice(&bytes[..usize::from(bytes[7]).min(7)]);
    }
    String::from_utf8_lossy(&id).into_owned()
}

/// The declared analysis for those of tantivy's tools that take it by hand.
pub fn analyzer() -> TextAnalyzer {
    TextAnalyzer::from(Declared::default())
}

/// The terms of `text` as this tokenizer gives them to tantivy.
pub fn analyse(text: &str) -> Vec<String> {
    let mut tokenizer = Declared::default();
    let mut stream = tokenizer.token_stream(text);
    let mut terms = Vec::new();
    while stream.advance() {
        terms.push(stream.token().text.clone());
    }
    terms
}

/// The declared analysis as a tantivy tokenizer.
#[derive(Clone, Default)]
struct Declared {
    token: Token,
}

struct DeclaredStream<'a> {
    terms: Terms<'a>,
    token: &'a mut Token,
}

impl Tokenizer for Declared {
    type TokenStream<'a> = DeclaredStream<'a>;
    fn token_stream<'a>(&'a mut self, text: &'a str) -> DeclaredStream<'a> {
        self.token.reset();
        DeclaredStream {
            terms: Terms::new(text),
            token: &mut self.token,
        }
    }
}

impl TokenStream for DeclaredStream<'_> {
    fn advance(&mut self) -> bool {
        // `reset` sets the position to the largest number, so the first is 0.
        self.token.position = self.token.position.wrapping_add(1);
        match self.terms.next_into(&mut self.token.text) {
            Some((from, to)) => {
                (self.token.offset_from, self.token.offset_to) = (from, to);
                true
            }
            None => false,
        }
    }
    fn token(&self) -> &Token {
        self.token
    }
    fn token_mut(&mut self) -> &mut Token {
        self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_id_comes_back_from_its_words() {
        for id in [
            "",
            "1",
            "seven77",
            "eight888",
            "fourteen141414",
            "naïve-日本語/0000000000000000",
        ] {
            let mut back = Vec::new();
            for word in id_words(id.as_bytes()) {
                let bytes = word.to_be_bytes();
                back.extend_from_slice(&bytes[..usize::from(bytes[7])]);
            }
            assert_eq!(String::from_utf8(back).unwrap(), id);
        }
    }

    #[test]
    fn positions_count_terms_from_zero() {
        let mut tokenizer = Declared::default();
        let mut stream = tokenizer.token_stream("One, two -- THREE");
        let mut seen = Vec::new();
        while stream.advance() {
            seen.push((stream.token().position, stream.token().text.clone()));
        }
        assert_eq!(
            seen,
            [(0, "one".into()), (1, "two".into()), (2, "three".into())]
        );
    }
}
