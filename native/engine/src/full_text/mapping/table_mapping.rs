//! The mapping of one table: its document types and dynamic templates.

use serde_json::Value;

use super::cursor::Cursor;
use super::property::any_in_all;
use super::rule::FieldRule;
use super::templates::{DetectedType, Template};
use crate::full_text::analysis::Analyzer;

#[derive(Debug)]
struct DocumentType {
    name: String,
    root: Cursor,
}

#[derive(Debug)]
pub struct TableMapping {
    types: Vec<DocumentType>,
    default_type: Option<usize>,
    templates: Vec<Template>,
    enforced: bool,
    /// Some field is opted in, so a query without a field searches only such.
    pub any_in_all: bool,
}

impl TableMapping {
    /// From the wire form of a table's schema; anything but an object means no schema.
    pub fn from_schema(schema: &Value) -> Self {
        let types: Vec<DocumentType> = schema["document_schemas"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, entry)| DocumentType { name: name.clone(), root: Cursor::root(&entry["schema"]) })
            .collect();
        let templates = Template::list(&schema["dynamic_templates"]);
        let named_default = schema["default_type"].as_str();
        let default_type = match named_default {
            Some(name) => types.iter().position(|document_type| document_type.name == name),
            None if types.len() == 1 => Some(0),
            None => None,
        };
        Self {
            any_in_all: any_in_all(&schema["document_schemas"]) || templates.iter().any(Template::in_all),
            types,
            default_type,
            templates,
            enforced: schema["enforce_types"] == Value::Bool(true),
        }
    }

    /// Number of document types; documents of none of them are counted as one more.
    pub fn type_count(&self) -> usize {
        self.types.len()
    }

    /// The type of a document by its `_type` member: a position, `type_count` for none.
    pub fn type_of(&self, named: Option<&str>) -> usize {
        let chosen = match named {
            Some(name) => self.types.iter().position(|document_type| document_type.name == name),
            None => self.default_type,
        };
        chosen.unwrap_or(self.types.len())
    }

    pub fn root_of(&self, document_type: usize) -> Cursor {
        self.types.get(document_type).map_or(Cursor::Dynamic, |document_type| document_type.root.clone())
    }

    pub fn child_of(&self, parent: &Cursor, is_root: bool, name: &str) -> Cursor {
        if is_root && name.starts_with('_') {
            return if matches!(name, "_timestamp" | "_type") { Cursor::Dynamic } else { Cursor::Closed };
        }
        parent.child(name, self.enforced)
    }

    pub fn rule_of(&self, cursor: &Cursor, path: &str, detected: DetectedType) -> FieldRule {
        match path {
            "_timestamp" => return FieldRule { date: true, ..FieldRule::none() },
            "_type" => return FieldRule { exact: true, ..FieldRule::none() },
            _ => {}
        }
        cursor.rule().unwrap_or_else(|| {
            let template = self.templates.iter().find(|template| template.applies(path, detected));
            template.map_or_else(FieldRule::inferred, |template| template.rule().clone())
        })
    }

    /// The rules of strings at `path`, one for each document type: what a query on the path has to expect.
    pub fn string_rules(&self, path: &str) -> Vec<FieldRule> {
        // Documents of no declared type exist only where types are not enforced.
        let with_untyped = if self.enforced && !self.types.is_empty() { 0 } else { 1 };
        (0..self.types.len() + with_untyped)
            .map(|document_type| {
                let mut cursor = self.root_of(document_type);
                for (depth, name) in path.split('.').enumerate() {
                    cursor = self.child_of(&cursor, depth == 0, name);
                }
                self.rule_of(&cursor, path, DetectedType::String)
            })
            .collect()
    }

    /// The analyzers that strings at `path` may have been given; `path` may name a derived field.
    pub fn analyzers_of(&self, path: &str) -> Vec<Analyzer> {
        let mut analyzers = Vec::new();
        let mut collect = |base: &str, suffix: &str| {
            for rule in self.string_rules(base) {
                for form in rule.texts.iter().filter(|form| form.suffix == suffix) {
                    if !analyzers.contains(&form.analyzer) {
                        analyzers.push(form.analyzer);
                    }
                }
            }
        };
        collect(path, "");
        for suffix in super::rule::DERIVED_SUFFIXES {
            if let Some(base) = path.strip_suffix(suffix) {
                collect(base, suffix);
            }
        }
        analyzers
    }
}
