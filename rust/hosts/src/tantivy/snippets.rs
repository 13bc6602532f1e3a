//! Pieces of the stored texts around found words, by tantivy's own generator.
//!
//! The generator is given its terms by us: left alone it takes those of excluded clauses too, none of
//! prefixes and similar terms, and counts the documents of one part only.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};
use tantivy::query::{Bm25StatisticsProvider, DfaWrapper, FuzzyTermQuery};
use tantivy::schema::{Field, Value as _};
use tantivy::snippet::SnippetGenerator;
use tantivy::tokenizer::TextAnalyzer;
use tantivy::{Score, TantivyDocument, Term};
use tantivy_fst::Automaton;

use super::fields::{Fields, analyzer};
use super::view::View;
use crate::query::{Checked, Mode};
use crate::schema::Schema;

/// A piece is about this long, in bytes; tantivy's own default.
const PIECE_BYTES: usize = 150;

/// What to show of every hit of one query.
pub struct Snippets<'s> {
    fields: Vec<OfField<'s>>,
}

/// What to mark in one field.
struct OfField<'s> {
    name: &'s str,
    field: Field,
    tokenizer: TextAnalyzer,
    /// Terms, and how much a piece with each is worth.
    terms: BTreeMap<String, Score>,
    /// Which terms besides; they are known only once there is a text.
    patterns: Vec<Pattern>,
    /// None where there are patterns: then each text has terms of its own.
    generator: Option<SnippetGenerator>,
}

enum Pattern {
    Beginning(String),
    Similar(DfaWrapper),
}

impl<'s> Snippets<'s> {
    /// Gathers what `query` looks for.
    pub fn new(
        query: &Checked,
        schema: &'s Schema,
        fields: &Fields,
        view: &View,
    ) -> tantivy::Result<Snippets<'s>> {
        let mut all = Vec::new();
        for &index in &query.snippets {
            let field = fields.own[index];
            let (mut terms, mut patterns) = (BTreeMap::new(), Vec::new());
            for sought in query.matching.sought(index) {
                for term in sought.terms {
                    match sought.mode {
                        Mode::Any | Mode::All | Mode::Phrase => {
                            if let Some(worth) = worth(field, term, view)? {
                                terms.insert(term.clone(), worth);
                            }
                        }
                        Mode::Prefix => patterns.push(Pattern::Beginning(term.clone())),
                        Mode::Fuzzy => {
                            let term = Term::from_field_text(field, term);
                            let similar = FuzzyTermQuery::new(term, sought.distance, true);
                            patterns.push(Pattern::Similar(similar.automaton()?));
                        }
                    }
                }
            }
            if terms.is_empty() && patterns.is_empty() {
                continue;
            }
            let mut of_field = OfField {
                name: &schema.fields[index].name,
                field,
                tokenizer: analyzer(),
                terms,
                patterns,
                generator: None,
            };
            if of_field.patterns.is_empty() {
                of_field.generator = Some(of_field.generator(of_field.terms.clone()));
            }
            all.push(of_field);
        }
        Ok(Snippets { fields: all })
    }

    /// The pieces of one document, by field; a field in which nothing is marked has none.
    pub fn of(&self, document: &TantivyDocument, view: &View) -> tantivy::Result<Json> {
        let mut out = Map::new();
        for of_field in &self.fields {
            let value = document.get_first(of_field.field);
            if let Some(text) = value.and_then(|value| value.as_str())
                && let Some(piece) = of_field.piece(text, view)?
            {
                out.insert(of_field.name.to_owned(), json!([piece]));
            }
        }
        Ok(Json::Object(out))
    }
}

impl OfField<'_> {
    fn generator(&self, terms: BTreeMap<String, Score>) -> SnippetGenerator {
        SnippetGenerator::new(terms, self.tokenizer.clone(), self.field, PIECE_BYTES)
    }

    /// The best piece of a text.
    fn piece(&self, text: &str, view: &View) -> tantivy::Result<Option<String>> {
        let snippet = match &self.generator {
            Some(generator) => generator.snippet(text),
            None => self.generator(self.terms_of(text, view)?).snippet(text),
        };
        Ok((!snippet.is_empty()).then(|| snippet.to_html()))
    }

    /// The terms, and those of this text that fit a pattern. The dictionary would give them too, but
    /// of a short prefix very many, few of which are in the text.
    fn terms_of(&self, text: &str, view: &View) -> tantivy::Result<BTreeMap<String, Score>> {
        let mut terms = self.terms.clone();
        let mut tokenizer = self.tokenizer.clone();
        let mut stream = tokenizer.token_stream(text);
        while let Some(token) = stream.next() {
            if !terms.contains_key(&token.text)
                && self
                    .patterns
                    .iter()
                    .any(|pattern| pattern.fits(&token.text))
                && let Some(worth) = worth(self.field, &token.text, view)?
            {
                terms.insert(token.text.clone(), worth);
            }
        }
        Ok(terms)
    }
}

impl Pattern {
    fn fits(&self, term: &str) -> bool {
        match self {
            Pattern::Beginning(start) => term.starts_with(start.as_str()),
            Pattern::Similar(automaton) => {
                let start = automaton.start();
                let end = term
                    .bytes()
                    .fold(start, |state, byte| automaton.accept(&state, byte));
                automaton.is_match(&end)
            }
        }
    }
}

/// As the generator itself values a term, but by the documents of all parts; None where none has
/// it: a word may be too long to be indexed.
fn worth(field: Field, term: &str, view: &View) -> tantivy::Result<Option<Score>> {
    let documents = view.doc_freq(&Term::from_field_text(field, term))?;
    Ok((documents > 0).then(|| 1.0 / (1.0 + documents as Score)))
}
