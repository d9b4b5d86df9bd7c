//! Where the values of a document path lie in one index.

use std::sync::Arc;

use tantivy::Term;
use tantivy::query::{Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption};

use crate::full_text::analysis::Analyzer;
use crate::full_text::documents::document_reader::{overflow_all_prefix, overflow_prefix};
use crate::full_text::fields::{Fields, KEY, KEY_PATH, LONG_STRING_PATH, VALUES, long_string_term};
use crate::full_text::mapping::{ExactPath, ExactTypes, TableMapping};
use crate::full_text::query::compile::clauses::term_query;
use crate::full_text::query::terms::docs_by_string::DocsByString;
use crate::full_text::query::terms::long_strings::LongStringQuery;
use crate::full_text::segment_columns::SegmentColumns;
use crate::full_text::slots::{Slot, TakenSlots};

/// One analysed form of a path's text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TextField {
    pub field: Field,
    pub analyzer: Analyzer,
    /// The beginning of the field's tokens; empty in a slot.
    pub token_prefix: String,
    /// Whether words may be misspelt here, where a query allows for slips.
    pub typo: bool,
}

impl TextField {
    pub fn term(&self, token: &str) -> Term {
        if self.token_prefix.is_empty() {
            return Term::from_field_text(self.field, token);
        }
        Term::from_field_text(self.field, &format!("{}{token}", self.token_prefix))
    }
}

/// Whole strings: terms for equality, a column for everything else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExactField {
    /// The path of their terms.
    pub path: String,
    pub column: String,
    /// Whose strings are whole; none where those of all documents are.
    pub types: Option<Arc<ExactTypes>>,
}

impl ExactField {
    fn of(exact: &ExactPath) -> Self {
        Self { path: exact.path.clone(), column: column_name(&exact.path), types: exact.types.clone() }
    }
}

/// Where the paths of documents lie in one index.
#[derive(Clone)]
pub struct IndexFields {
    pub fields: Arc<Fields>,
    pub mapping: Arc<TableMapping>,
    pub slots: Arc<TakenSlots>,
    /// Kept between queries; `None` where the index is of this query alone.
    pub strings: Option<Arc<DocsByString>>,
    /// Those of the view; none where the index is of this query alone.
    pub segments: Arc<[Arc<SegmentColumns>]>,
}

impl IndexFields {
    pub fn new(fields: Arc<Fields>, mapping: Arc<TableMapping>, slots: Arc<TakenSlots>) -> Self {
        Self { fields, mapping, slots, strings: None, segments: Arc::default() }
    }

    pub fn keeping(self, strings: &Arc<DocsByString>) -> Self {
        Self { strings: Some(Arc::clone(strings)), ..self }
    }

    pub fn reading(self, segments: &Arc<[Arc<SegmentColumns>]>) -> Self {
        Self { segments: Arc::clone(segments), ..self }
    }

    /// The analysed forms of `path`'s text in this index; empty where no document has such a text.
    pub fn texts_of(&self, path: &str) -> Vec<TextField> {
        let mut texts = Vec::new();
        let facts = self.mapping.facts_of(path);
        let typo = facts.allows_typo;
        for &analyzer in &facts.analyzers {
            if let Some(slot) = self.slots.find(path, analyzer) {
                texts.push(TextField { field: self.fields.slots[slot], analyzer, token_prefix: String::new(), typo });
            } else if self.slots.are_full() {
                let token_prefix = overflow_prefix(path, analyzer);
                texts.push(TextField { field: self.fields.overflow, analyzer, token_prefix, typo });
            }
        }
        texts
    }

    /// The fields that a query without a field searches.
    pub fn default_texts(&self) -> Vec<TextField> {
        // Which document took the slot does not matter where types differ.
        let is_opted_in = |slot: &Slot| slot.in_all || self.mapping.facts_of(&slot.path).is_searched;
        let is_searched = |slot: &Slot| if self.mapping.any_in_all { is_opted_in(slot) } else { slot.primary };
        let mut texts: Vec<TextField> = Vec::new();
        // By path: ranges took their slots in different orders, and are to add up scores in the same one.
        let mut slots: Vec<(&Slot, &Field)> = self.slots.slots.iter().zip(&self.fields.slots).collect();
        slots.sort_by(|(a, _), (b, _)| a.path.cmp(&b.path));
        for (slot, field) in slots {
            if is_searched(slot) {
                let typo = self.mapping.facts_of(&slot.path).allows_typo;
                texts.push(TextField { field: *field, analyzer: slot.analyzer, token_prefix: String::new(), typo });
            }
        }
        for &analyzer in &self.slots.overflow {
            let token_prefix = overflow_all_prefix(analyzer);
            texts.push(TextField { field: self.fields.overflow, analyzer, token_prefix, typo: true });
        }
        texts
    }

    /// Where whole strings of `path` lie, keys included.
    pub fn exact_fields(&self, path: &str) -> Vec<ExactField> {
        if path == KEY {
            return vec![ExactField { path: KEY_PATH.to_owned(), column: KEY.to_owned(), types: None }];
        }
        self.mapping.facts_of(path).exact_paths.iter().map(ExactField::of).collect()
    }

    /// Where strings of `path` that are dates lie as strings.
    pub fn fields_of_date_texts(&self, path: &str) -> Vec<ExactField> {
        self.mapping.facts_of(path).date_texts.iter().map(ExactField::of).collect()
    }

    /// The beginning of `path`'s terms: a string, boolean or integer is to be appended.
    pub fn value_term(&self, path: &str) -> Term {
        Term::from_field_json_path(self.fields.terms, &escaped(path), true)
    }

    /// The name of `path`'s columns, as a term to which a bound is to be appended.
    pub fn column_term(&self, path: &str) -> Term {
        // A range finds its column by the term's path, read once more as a path with escapes.
        Term::from_field_json_path(self.fields.values, &escaped(&escaped(path)), true)
    }

    /// The term of `text` itself.
    pub fn string_term(&self, path: &str, text: &str) -> Term {
        let mut term = self.value_term(path);
        term.append_type_and_str(text);
        term
    }

    /// Documents that hold the whole string.
    pub fn string_query(&self, field: &ExactField, text: &str) -> Box<dyn Query> {
        let Some(number) = long_string_term(&field.path, text) else {
            return term_query(self.string_term(&field.path, text));
        };
        let mut term = self.value_term(LONG_STRING_PATH);
        term.append_type_and_fast_value(number);
        let term = TermQuery::new(term, IndexRecordOption::WithFreqs);
        Box::new(LongStringQuery { term, column: field.column.clone(), text: text.to_owned() })
    }
}

/// The name of `path`'s columns.
pub fn column_name(path: &str) -> String {
    format!("{VALUES}.{}", escaped(path))
}

/// Tantivy reads a backslash in a path as an escape.
fn escaped(path: &str) -> String {
    path.replace('\\', "\\\\")
}
