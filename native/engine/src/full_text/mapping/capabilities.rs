//! What queries can do with the fields that a table's schema declares.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::cursor::SchemaCursor;
use super::rule::{FieldRule, GeoForm, INDEX_PREFIX};
use super::table_mapping::TableMapping;
use crate::full_text::analysis::Analyzer;

/// Schemas may refer to themselves: what lies deeper is not told.
const LEVELS_MAX: usize = 16;
const FIELDS_MAX: usize = 4_096;

/// What queries can do with one field, in documents of whichever type.
#[derive(Debug, Default, Serialize)]
pub struct FieldCapabilities {
    /// How it is indexed, in the words of `x-service-types`.
    pub types: BTreeSet<&'static str>,
    /// By its words.
    pub searchable: bool,
    /// By whole values and ranges.
    pub filterable: bool,
    pub sortable: bool,
    pub aggregatable: bool,
    /// By queries that name no field.
    pub in_all: bool,
}

impl TableMapping {
    /// By dotted path. Objects are told of by their members alone.
    pub fn capabilities(&self) -> BTreeMap<String, FieldCapabilities> {
        let mut fields = BTreeMap::new();
        for document_type in 0..self.type_count() {
            self.add_members(&self.root_of(document_type), "", &mut fields, LEVELS_MAX);
        }
        fields
    }

    fn add_members(
        &self,
        parent: &SchemaCursor,
        parent_path: &str,
        fields: &mut BTreeMap<String, FieldCapabilities>,
        levels: usize,
    ) {
        for name in parent.names() {
            if fields.len() == FIELDS_MAX {
                return;
            }
            let is_root = parent_path.is_empty();
            let cursor = self.child_of(parent, is_root, &name);
            let path = if is_root { name } else { format!("{parent_path}.{name}") };
            let has_members = !cursor.names().is_empty();
            if let Some(rule) = cursor.rule()
                && !(has_members && rule == FieldRule { in_all: rule.in_all, ..FieldRule::none() })
            {
                let capabilities = fields.entry(path.clone()).or_default();
                self.add_rule(capabilities, &path, &rule);
            }
            if levels > 1 {
                self.add_members(&cursor, &path, fields, levels - 1);
            }
        }
    }

    fn add_rule(&self, field: &mut FieldCapabilities, path: &str, rule: &FieldRule) {
        let has_words = rule.texts.iter().any(|form| form.suffix.is_empty());
        let is_html = rule.texts.iter().any(|form| form.suffix.is_empty() && form.analyzer == Analyzer::Html);
        let has_values = rule.number || rule.boolean || rule.date;
        let types = [
            ("text", has_words && !is_html),
            ("html", is_html),
            ("search_as_you_type", rule.texts.iter().any(|form| form.suffix == INDEX_PREFIX)),
            ("keyword", rule.exact),
            ("numeric", rule.number),
            ("boolean", rule.boolean),
            ("datetime", rule.date),
            ("geopoint", rule.geo == GeoForm::Points),
            ("geoshape", rule.geo == GeoForm::Shapes),
        ];
        field.types.extend(types.into_iter().filter(|(_, is_so)| *is_so).map(|(name, _)| name));
        let facts = self.facts_of(path);
        field.searchable |= !rule.texts.is_empty();
        field.filterable |= rule.exact || has_values || rule.geo != GeoForm::None;
        field.sortable |= (has_words || rule.exact || has_values) && !facts.may_lack_values;
        field.aggregatable |= (rule.exact || has_values || rule.geo == GeoForm::Points) && !facts.has_only_text;
        field.in_all |= rule.in_all;
    }
}
