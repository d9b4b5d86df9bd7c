//! A document on its way into the index: what Tantivy asks of it, without building Tantivy's own document first.

use std::sync::Arc;

use tantivy::DateTime;
use tantivy::schema::document::{ReferenceValue, ReferenceValueLeaf};
use tantivy::schema::{Field, Value};
use tantivy::tokenizer::PreTokenizedString;

use crate::full_text::analysis::Analyzer;
use crate::full_text::documents::analyzed_text::write_tokens;
use crate::full_text::fields::{Fields, KEY_PATH, LONG_STRING_PATH, ORDINAL_PATH, PRESENT_PATH, long_string_term};

/// Terms that every document has: its ordinal and its key.
const RESERVED_TERMS: usize = 2;

/// A span of the document's text buffer.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

#[derive(Debug, Clone, Copy)]
pub enum Scalar {
    Text(Span),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Date(DateTime),
    /// A column, but no term: shapes as JSON, and strings that are analysed only, which are sorted by it.
    ColumnOnly(Span),
}

#[derive(Debug)]
pub struct IndexedDocument {
    pub fields: Arc<Fields>,
    pub ordinal: u32,
    pub sequence: u64,
    pub ttl_base_ms: i64,
    /// The key, the strings and the tokens of the document.
    pub text: String,
    pub key: Span,
    /// Slot and tokens, as `write_tokens` writes them.
    pub slot_texts: Vec<(Field, Span)>,
    /// Path and value for the JSON field.
    pub values: Vec<(Arc<str>, Scalar)>,
    /// Paths whose value is not among `values`.
    pub present: Vec<Arc<str>>,
    pub overflow: Option<Box<PreTokenizedString>>,
}

impl IndexedDocument {
    pub fn new(fields: &Arc<Fields>, key: &str, text_bytes: usize) -> Self {
        let mut document = Self {
            fields: Arc::clone(fields),
            ordinal: 0,
            sequence: 0,
            ttl_base_ms: 0,
            text: String::with_capacity(text_bytes),
            key: Span { start: 0, end: 0 },
            slot_texts: Vec::with_capacity(16),
            values: Vec::with_capacity(16),
            present: Vec::new(),
            overflow: None,
        };
        document.key = document.keep(key);
        document
    }

    /// Copies a string into the buffer.
    pub fn keep(&mut self, text: &str) -> Span {
        let start = self.text.len() as u32;
        self.text.push_str(text);
        Span { start, end: self.text.len() as u32 }
    }

    /// Analyses a slot's text, and keeps the tokens.
    pub fn keep_tokens(&mut self, slot: Field, analyzer: Analyzer, text: &str) {
        let start = self.text.len() as u32;
        write_tokens(analyzer, text, &mut self.text);
        self.slot_texts.push((slot, Span { start, end: self.text.len() as u32 }));
    }

    pub fn text_of(&self, span: Span) -> &str {
        &self.text[span.start as usize..span.end as usize]
    }

    /// The document's ordinal, its key, then the paths that are only present.
    fn reserved_term(&self, at: usize) -> (&str, FieldValue<'_>) {
        let (path, leaf) = match at {
            0 => (ORDINAL_PATH, ReferenceValueLeaf::I64(i64::from(self.ordinal))),
            1 => self.string_term(KEY_PATH, self.key),
            _ => (PRESENT_PATH, ReferenceValueLeaf::Str(&self.present[at - RESERVED_TERMS])),
        };
        (path, FieldValue::Leaf(leaf))
    }

    fn string_term<'a>(&'a self, path: &'a str, span: Span) -> (&'a str, ReferenceValueLeaf<'a>) {
        let text = self.text_of(span);
        match long_string_term(path, text) {
            Some(number) => (LONG_STRING_PATH, ReferenceValueLeaf::I64(number)),
            None => (path, ReferenceValueLeaf::Str(text)),
        }
    }

    /// What equality is asked of; integers are the same however they were written.
    fn term<'a>(&'a self, path: &'a str, scalar: Scalar) -> Option<(&'a str, ReferenceValueLeaf<'a>)> {
        match scalar {
            Scalar::Text(span) => Some(self.string_term(path, span)),
            Scalar::Float(number) => as_integer(number).map(|integer| (path, ReferenceValueLeaf::I64(integer))),
            Scalar::Date(_) | Scalar::ColumnOnly(_) => None,
            Scalar::Integer(_) | Scalar::Boolean(_) => Some((path, self.leaf(scalar))),
        }
    }

    fn leaf(&self, scalar: Scalar) -> ReferenceValueLeaf<'_> {
        match scalar {
            Scalar::Text(span) | Scalar::ColumnOnly(span) => ReferenceValueLeaf::Str(self.text_of(span)),
            Scalar::Integer(number) => ReferenceValueLeaf::I64(number),
            Scalar::Float(number) => ReferenceValueLeaf::F64(number),
            Scalar::Boolean(boolean) => ReferenceValueLeaf::Bool(boolean),
            Scalar::Date(date) => ReferenceValueLeaf::Date(date),
        }
    }
}

/// A field's value, seen by Tantivy.
#[derive(Debug, Clone)]
pub enum FieldValue<'a> {
    Leaf(ReferenceValueLeaf<'a>),
    /// The value of every path, or only what has a term.
    Values {
        document: &'a IndexedDocument,
        only_terms: bool,
    },
}

impl<'a> Value<'a> for FieldValue<'a> {
    type ArrayIter = std::iter::Empty<Self>;
    type ObjectIter = ValueMembers<'a>;

    fn as_value(&self) -> ReferenceValue<'a, Self> {
        match self {
            Self::Leaf(leaf) => ReferenceValue::Leaf(leaf.clone()),
            Self::Values { document, only_terms } => {
                ReferenceValue::Object(ValueMembers { document, only_terms: *only_terms, next: 0 })
            }
        }
    }
}

pub struct ValueMembers<'a> {
    document: &'a IndexedDocument,
    only_terms: bool,
    next: usize,
}

/// The number as an integer, when it is one that 64 bits hold.
pub fn as_integer(number: f64) -> Option<i64> {
    let integer = number as i64;
    (integer as f64 == number && integer != i64::MAX).then_some(integer)
}

impl<'a> Iterator for ValueMembers<'a> {
    type Item = (&'a str, FieldValue<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let document = self.document;
        let reserved = if self.only_terms { RESERVED_TERMS + document.present.len() } else { 0 };
        loop {
            let at = self.next;
            self.next += 1;
            if at < reserved {
                return Some(document.reserved_term(at));
            }
            let (path, scalar) = document.values.get(at - reserved)?;
            let found =
                if self.only_terms { document.term(path, *scalar) } else { Some((&**path, document.leaf(*scalar))) };
            if let Some((path, leaf)) = found {
                return Some((path, FieldValue::Leaf(leaf)));
            }
        }
    }
}

/// The fixed fields in the order of their ids, then the slots.
pub struct FieldValues<'a> {
    document: &'a IndexedDocument,
    next: usize,
}

const FIXED_FIELDS: usize = 7;

impl<'a> Iterator for FieldValues<'a> {
    type Item = (Field, FieldValue<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let document = self.document;
        let fields = &*document.fields;
        let at = self.next;
        self.next += 1;
        let leaf = |field: Field, leaf: ReferenceValueLeaf<'a>| Some((field, FieldValue::Leaf(leaf)));
        match at {
            0 => leaf(fields.ordinal, ReferenceValueLeaf::U64(u64::from(document.ordinal))),
            1 => leaf(fields.sequence, ReferenceValueLeaf::U64(document.sequence)),
            2 => leaf(fields.ttl_base, ReferenceValueLeaf::I64(document.ttl_base_ms)),
            3 => leaf(fields.key, ReferenceValueLeaf::Str(document.text_of(document.key))),
            4 => Some((fields.values, FieldValue::Values { document, only_terms: false })),
            5 => Some((fields.terms, FieldValue::Values { document, only_terms: true })),
            6 => match &document.overflow {
                Some(tokens) => leaf(fields.overflow, ReferenceValueLeaf::PreTokStr(tokens.clone())),
                None => self.next(),
            },
            _ => {
                let (field, span) = document.slot_texts.get(at - FIXED_FIELDS)?;
                leaf(*field, ReferenceValueLeaf::Str(document.text_of(*span)))
            }
        }
    }
}

impl tantivy::Document for IndexedDocument {
    type Value<'a> = FieldValue<'a>;
    type FieldsValuesIter<'a> = FieldValues<'a>;

    fn iter_fields_and_values(&self) -> FieldValues<'_> {
        FieldValues { document: self, next: 0 }
    }
}

/// A document on its way to an indexing thread. Boxed, because Tantivy's queue has room for 40,000 documents in place from
/// the opening of a writer on: 6 MB an index otherwise.
pub struct QueuedDocument(pub Box<IndexedDocument>);

impl From<IndexedDocument> for QueuedDocument {
    fn from(document: IndexedDocument) -> Self {
        Self(Box::new(document))
    }
}

impl tantivy::Document for QueuedDocument {
    type Value<'a> = FieldValue<'a>;
    type FieldsValuesIter<'a> = FieldValues<'a>;

    fn iter_fields_and_values(&self) -> FieldValues<'_> {
        self.0.iter_fields_and_values()
    }
}
