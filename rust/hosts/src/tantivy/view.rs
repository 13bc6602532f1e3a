//! What is searched: one snapshot of all parts, with the columns that every query needs open.

use std::sync::Arc;

use tantivy::columnar::{Column, ColumnValues, StrColumn};
use tantivy::query::Bm25StatisticsProvider;
use tantivy::schema::Field;
use tantivy::{Searcher, SegmentReader, Term};

use super::fields::{Fields, ID, SEQ, column_name};
use crate::schema::{FieldType, Schema};

/// A snapshot of all parts.
pub struct View {
    pub parts: Vec<PartView>,
    documents: u64,
    counted: u64,
    /// Tokens by number of tantivy's field, over all parts.
    tokens: Vec<u64>,
}

/// A snapshot of one part.
pub struct PartView {
    pub searcher: Searcher,
    pub segments: Vec<SegmentView>,
    documents: u64,
    /// With the deleted ones, which stay in the frequencies of terms until segments are merged.
    counted: u64,
    tokens: Vec<u64>,
}

/// The columns of one segment, opened once: opening them costs more than a small query.
pub struct SegmentView {
    pub seq: Arc<dyn ColumnValues<u64>>,
    pub id: Column<u64>,
    /// By index of our schema.
    pub columns: Vec<FastColumn>,
}

/// A column of values that are matched whole.
pub enum FastColumn {
    /// Text, or a field that no document of the segment has.
    Absent,
    /// Ordinals of a sorted dictionary.
    Str(StrColumn),
    /// Numbers mapped to u64 in their order.
    Num(Column<u64>),
}

impl View {
    /// Opens the columns of these searchers, one a part.
    pub fn new(
        searchers: Vec<Searcher>,
        fields: &Fields,
        schema: &Schema,
    ) -> tantivy::Result<View> {
        let parts = searchers
            .into_iter()
            .map(|searcher| PartView::new(searcher, fields, schema))
            .collect::<tantivy::Result<Vec<_>>>()?;
        let mut tokens = vec![0; fields.tantivy.num_fields()];
        for part in &parts {
            for (sum, count) in tokens.iter_mut().zip(&part.tokens) {
                *sum += count;
            }
        }
        Ok(View {
            documents: parts.iter().map(|part| part.documents).sum(),
            counted: parts.iter().map(|part| part.counted).sum(),
            parts,
            tokens,
        })
    }

    /// Documents over all parts.
    pub fn documents(&self) -> u64 {
        self.documents
    }
}

impl PartView {
    fn new(searcher: Searcher, fields: &Fields, schema: &Schema) -> tantivy::Result<PartView> {
        let mut tokens = vec![0; fields.tantivy.num_fields()];
        let mut segments = Vec::new();
        for reader in searcher.segment_readers() {
            segments.push(SegmentView::new(reader, schema)?);
            for (field, entry) in fields.tantivy.fields() {
                if entry.is_indexed() {
                    tokens[field.field_id() as usize] +=
                        reader.inverted_index(field)?.total_num_tokens();
                }
            }
        }
        Ok(PartView {
            documents: searcher.num_docs(),
            counted: searcher
                .segment_readers()
                .iter()
                .map(|reader| u64::from(reader.max_doc()))
                .sum(),
            searcher,
            segments,
            tokens,
        })
    }
}

impl SegmentView {
    fn new(reader: &SegmentReader, schema: &Schema) -> tantivy::Result<SegmentView> {
        let fast = reader.fast_fields();
        let mut columns = Vec::new();
        for (index, field) in schema.fields.iter().enumerate() {
            let name = column_name(index);
            let number = match field.kind {
                FieldType::Text => None,
                FieldType::Keyword | FieldType::Keywords => {
                    columns.push(fast.str(&name)?.map_or(FastColumn::Absent, FastColumn::Str));
                    continue;
                }
                FieldType::Integer | FieldType::Date => {
                    fast.column_opt::<i64>(&name)?.map(Column::to_u64_monotonic)
                }
                FieldType::Float => fast.column_opt::<f64>(&name)?.map(Column::to_u64_monotonic),
                FieldType::Boolean => fast
                    .column_opt::<bool>(&name)?
                    .map(Column::to_u64_monotonic),
            };
            columns.push(number.map_or(FastColumn::Absent, FastColumn::Num));
        }
        Ok(SegmentView {
            seq: fast.u64(SEQ)?.first_or_default_col(0),
            id: fast.u64(ID)?,
            columns,
        })
    }
}

/// Statistics over all parts: scores are those of one index that holds all documents.
impl Bm25StatisticsProvider for View {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        Ok(self.tokens[field.field_id() as usize])
    }
    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.counted)
    }
    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        let mut sum = 0;
        for part in &self.parts {
            sum += part.searcher.doc_freq(term)?;
        }
        Ok(sum)
    }
}

/// Statistics of one part alone.
impl Bm25StatisticsProvider for PartView {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        Ok(self.tokens[field.field_id() as usize])
    }
    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.counted)
    }
    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        self.searcher.doc_freq(term)
    }
}
