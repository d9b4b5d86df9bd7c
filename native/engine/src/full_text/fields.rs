//! The Tantivy schema, the same for every index.
//!
//! A document's own fields do not appear in it: analysed text goes to numbered slots (a slot keeps the length norms
//! of the one path that took it), everything else to one JSON field.

use tantivy::Term;
use tantivy::schema::{
    Field, IndexRecordOption, JsonObjectOptions, NumericOptions, Schema, TextFieldIndexing, TextOptions,
};

/// Paths with analysed text that keep their own length norms; the paths beyond share one field.
pub const SLOT_COUNT: usize = 64;

pub const ORDINAL: &str = "_ord";
pub const SEQUENCE: &str = "_seq";
pub const TTL_BASE: &str = "_ttl";
/// Also the name of the key in queries.
pub const KEY: &str = "_id";
/// Reserved paths of terms. No document path begins so.
pub const RESERVED: char = '\u{2}';
pub const ORDINAL_PATH: &str = "\u{2}o";
pub const KEY_PATH: &str = "\u{2}k";
/// Paths of values that are in the document but have neither term nor column.
pub const PRESENT_PATH: &str = "\u{2}p";

/// The path of the terms of long strings.
pub const LONG_STRING_PATH: &str = "\u{2}h";

/// Longer strings have a number for a term, bytes. Tantivy's dictionary builder does work for every byte of a term that
/// no other one shares; with whole texts as terms it took as long as everything else in indexing.
const TERM_BYTES_MAX: usize = 12;

/// The term of a long string under `LONG_STRING_PATH`: 24 bits of a checksum of its path and text. Other strings may
/// have the same, so that what it finds has to be compared. `None` when the string is a term itself.
pub fn long_string_term(path: &str, text: &str) -> Option<i64> {
    if text.len() <= TERM_BYTES_MAX {
        return None;
    }
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(path.as_bytes());
    hasher.update(text.as_bytes());
    Some(i64::from(hasher.finalize() >> 8))
}

/// The tokenizer of the slots in Tantivy's schema. There is no such tokenizer: segments are written from our own tokens.
const OWN_TOKENS: &str = "analyzed";

/// Values of documents: numbers, booleans, dates, exact strings.
pub const VALUES: &str = "kw";

#[derive(Debug, Clone)]
pub struct Fields {
    /// Columns of every value: ranges, sorting, aggregations.
    pub values: Field,
    /// Terms of whole strings, booleans and integers: equality, and nothing else. Fractions and dates have none: they
    /// are nearly as many as documents, are asked for by range, and would cost a tenth of the time that indexing takes.
    /// The document's ordinal and key are terms of reserved paths: a field with terms of its own costs 0.3 ms in every
    /// segment of 128 documents or more, for Tantivy's dictionary builder clears a megabyte.
    pub terms: Field,
    /// Analysed text of the paths beyond the slots.
    pub overflow: Field,
    pub slots: Vec<Field>,
}

impl Fields {
    /// The term of a document, by its ordinal.
    pub fn ordinal_term(&self, ordinal: u32) -> Term {
        let mut term = Term::from_field_json_path(self.terms, ORDINAL_PATH, true);
        term.append_type_and_fast_value(i64::from(ordinal));
        term
    }

    /// Slots have consecutive field ids.
    pub fn slot_of(&self, field: Field) -> Option<usize> {
        let first = self.slots.first()?.field_id();
        let slot = field.field_id().checked_sub(first)? as usize;
        (slot < self.slots.len()).then_some(slot)
    }
}

pub fn build_schema() -> (Schema, Fields) {
    let mut schema = Schema::builder();
    let exact = || {
        TextFieldIndexing::default()
            .set_tokenizer("raw")
            .set_fieldnorms(false)
            .set_index_option(IndexRecordOption::Basic)
    };
    schema.add_u64_field(ORDINAL, NumericOptions::default().set_fast());
    schema.add_u64_field(SEQUENCE, NumericOptions::default().set_fast());
    schema.add_i64_field(TTL_BASE, NumericOptions::default().set_fast());
    schema.add_text_field(KEY, TextOptions::default().set_fast("raw"));
    let values = schema.add_json_field(VALUES, JsonObjectOptions::default().set_fast("raw").set_expand_dots_enabled());
    let terms = schema
        .add_json_field("terms", JsonObjectOptions::default().set_indexing_options(exact()).set_expand_dots_enabled());
    let positions = |tokenizer: &str, norms: bool| {
        TextOptions::default().set_indexing_options(
            TextFieldIndexing::default()
                .set_tokenizer(tokenizer)
                .set_fieldnorms(norms)
                .set_index_option(IndexRecordOption::WithFreqsAndPositions),
        )
    };
    let overflow = schema.add_text_field("over", positions("raw", false));
    let slots =
        (0..SLOT_COUNT).map(|slot| schema.add_text_field(&format!("s{slot}"), positions(OWN_TOKENS, true))).collect();
    let fields = Fields { values, terms, overflow, slots };
    (schema.build(), fields)
}
