//! The terms of values: what equality is asked of, ordinals and keys, as Tantivy writes the terms of a JSON field.

use tantivy::i64_to_u64;
use tantivy::schema::Type;

use super::token_log::TokenLog;
use super::value_log::{Scalar, Span, ValueLog};
use super::vocabulary::Vocabulary;
use crate::full_text::fields::{KEY_PATH, LONG_STRING_PATH, ORDINAL_PATH, PRESENT_PATH, long_string_term};

const END_OF_PATH: u8 = 0;

/// The number as an integer, when it is one that 64 bits hold.
pub fn as_integer(number: f64) -> Option<i64> {
    let integer = number as i64;
    (integer as f64 == number && integer != i64::MAX).then_some(integer)
}

/// Tantivy keeps paths with this in place of dots.
pub fn path_bytes(path: &str) -> impl Iterator<Item = u8> {
    path.bytes().map(|byte| if byte == b'.' { 1 } else { byte })
}

/// The terms of all documents. Integers are the same however they were written.
pub fn terms_of(values: &ValueLog) -> (Vocabulary, TokenLog) {
    let mut terms = TermWriter { values, texts: Vocabulary::default(), log: TokenLog::default(), term: Vec::new() };
    for (number, document) in values.documents().enumerate() {
        terms.log.begin_document(number as u32);
        terms.integer(ORDINAL_PATH, i64::from(document.head.ordinal));
        terms.string(KEY_PATH, document.key);
        for (path, scalar) in document.values {
            terms.scalar(path, *scalar);
        }
    }
    (terms.texts, terms.log)
}

struct TermWriter<'v> {
    values: &'v ValueLog,
    texts: Vocabulary,
    log: TokenLog,
    term: Vec<u8>,
}

impl TermWriter<'_> {
    fn scalar(&mut self, path: &str, scalar: Scalar) {
        match scalar {
            Scalar::Text(span) => self.text(path, span),
            Scalar::Integer(number) => self.integer(path, number),
            Scalar::Float(number) => {
                if let Some(integer) = as_integer(number) {
                    self.integer(path, integer);
                }
            }
            Scalar::Boolean(boolean) => self.push(path, Type::Bool, &u64::from(boolean).to_be_bytes()),
            Scalar::Present => self.push(PRESENT_PATH, Type::Str, path.as_bytes()),
            Scalar::Date(_) | Scalar::ColumnOnly(_) => {}
        }
    }

    fn text(&mut self, path: &str, span: Span) {
        let values = self.values;
        self.string(path, values.text_of(span));
    }

    fn string(&mut self, path: &str, text: &str) {
        match long_string_term(path, text) {
            Some(number) => self.integer(LONG_STRING_PATH, number),
            None => self.push(path, Type::Str, text.as_bytes()),
        }
    }

    fn integer(&mut self, path: &str, number: i64) {
        self.push(path, Type::I64, &i64_to_u64(number).to_be_bytes());
    }

    fn push(&mut self, path: &str, kind: Type, value: &[u8]) {
        self.term.clear();
        self.term.extend(path_bytes(path));
        self.term.extend([END_OF_PATH, kind.to_code()]);
        self.term.extend_from_slice(value);
        self.log.push_at(self.texts.number_of(&self.term), 0);
    }
}
