//! The texts of a document, with what the mapping makes of them.

use std::borrow::Cow;

use serde_json::Value;
use tantivy::DateTime;

use crate::full_text::analysis::{Analyzer, strip_html};
use crate::full_text::dates::parse_date;
use crate::full_text::mapping::{DetectedType, FieldRule, TableMapping};

/// Bytes of one string that are looked at.
pub const TEXT_BYTES_MAX: usize = 256 * 1024;

/// Strings of one document that are looked at.
const TEXTS_MAX: usize = 4_096;

/// Bytes of a text, from and to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    pub from: usize,
    pub to: usize,
}

pub struct DocumentText<'a> {
    pub path: String,
    pub text: Cow<'a, str>,
    pub rule: FieldRule,
    /// The string is a date, and nothing else.
    pub date: Option<DateTime>,
}

impl DocumentText<'_> {
    /// The analyzer of the path's own text, if it is analysed.
    pub fn analyzer(&self) -> Option<Analyzer> {
        self.rule.texts.iter().find(|form| form.suffix.is_empty()).map(|form| form.analyzer)
    }

    /// The text that fragments are cut from and in which spans count: without its tags where they are not indexed.
    pub fn shown(&self) -> Cow<'_, str> {
        let mut end = self.text.len().min(TEXT_BYTES_MAX);
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        let text = &self.text[..end];
        if self.analyzer() == Some(Analyzer::Html) { strip_html(text) } else { Cow::Borrowed(text) }
    }
}

/// In the order of the members by their names; elements of arrays have the path of the array.
pub fn texts_of_document<'a>(mapping: &TableMapping, document: &'a Value) -> Vec<DocumentText<'a>> {
    let document_type = mapping.type_of(document["_type"].as_str());
    let mut texts = Vec::new();
    let root = mapping.root_of(document_type);
    walk(mapping, &root, true, "", document, &mut texts);
    texts
}

fn walk<'a>(
    mapping: &TableMapping,
    cursor: &crate::full_text::mapping::SchemaCursor,
    is_root: bool,
    path: &str,
    value: &'a Value,
    texts: &mut Vec<DocumentText<'a>>,
) {
    if texts.len() >= TEXTS_MAX {
        return;
    }
    match value {
        Value::String(text) => {
            let rule = mapping.rule_of(cursor, path, DetectedType::String);
            let is_date = || mapping.rule_of(cursor, path, DetectedType::Date).date;
            let date = parse_date(text).filter(|_| is_date());
            texts.push(DocumentText { path: path.to_owned(), text: Cow::Borrowed(text), rule, date });
        }
        // Their literals, where those are indexed as texts.
        Value::Number(_) | Value::Bool(_) => {
            let detected = if value.is_number() { DetectedType::Number } else { DetectedType::Boolean };
            let found = mapping.rule_of(cursor, path, detected);
            let is_value = if value.is_number() { found.number } else { found.boolean };
            if is_value || !found.holds_text() {
                return;
            }
            let rule = mapping.rule_of(cursor, path, DetectedType::String);
            texts.push(DocumentText { path: path.to_owned(), text: Cow::Owned(value.to_string()), rule, date: None });
        }
        Value::Array(elements) => {
            for element in elements {
                walk(mapping, cursor, is_root, path, element, texts);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                let child = mapping.child_of(cursor, is_root, name);
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                walk(mapping, &child, false, &path, member, texts);
            }
        }
        Value::Null => {}
    }
}
