//! Dynamic templates: rules for fields that no property declares. The first match wins.

use serde_json::Value;

use super::glob::{matches_name, matches_path};
use super::rule::FieldRule;
use crate::full_text::analysis::Analyzer;

/// The JSON type that a template may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DetectedType {
    String,
    Number,
    Boolean,
    Date,
}

#[derive(Debug, Clone)]
pub struct Template {
    matches: Vec<String>,
    unmatches: Vec<String>,
    path_matches: Vec<String>,
    path_unmatches: Vec<String>,
    mapping_type: Option<String>,
    rule: FieldRule,
}

impl Template {
    /// An ordered array of templates, or a map from name to template.
    pub fn list(templates: &Value) -> Vec<Template> {
        match templates {
            Value::Array(list) => list.iter().map(Self::parse).collect(),
            Value::Object(map) => map.values().map(Self::parse).collect(),
            _ => Vec::new(),
        }
    }

    fn parse(template: &Value) -> Template {
        let mapping = &template["mapping"];
        let analyzer = mapping["analyzer"].as_str().and_then(Analyzer::named);
        let rule = if mapping["index"] == Value::Bool(false) {
            FieldRule::none()
        } else {
            match mapping["type"].as_str() {
                Some(name) => FieldRule::typed(std::iter::once(name), analyzer),
                None => FieldRule::inferred(),
            }
        };
        Template {
            matches: patterns(&template["match"]),
            unmatches: patterns(&template["unmatch"]),
            path_matches: patterns(&template["path_match"]),
            path_unmatches: patterns(&template["path_unmatch"]),
            mapping_type: template["match_mapping_type"].as_str().map(str::to_owned),
            rule: rule.opted_in_to_all(mapping["include_in_all"] == Value::Bool(true)),
        }
    }

    pub fn in_all(&self) -> bool {
        self.rule.in_all
    }

    pub fn rule(&self) -> &FieldRule {
        &self.rule
    }

    pub fn applies(&self, path: &str, detected: DetectedType) -> bool {
        let name = path.rsplit_once('.').map_or(path, |(_, last)| last);
        let included = |patterns: &[String], matches: &dyn Fn(&str) -> bool| {
            patterns.is_empty() || patterns.iter().any(|pattern| matches(pattern))
        };
        let by_name = |pattern: &str| matches_name(pattern, name);
        let by_path = |pattern: &str| matches_path(pattern, path);
        self.type_applies(detected)
            && included(&self.matches, &by_name)
            && included(&self.path_matches, &by_path)
            && !self.unmatches.iter().any(|pattern| by_name(pattern))
            && !self.path_unmatches.iter().any(|pattern| by_path(pattern))
    }

    fn type_applies(&self, detected: DetectedType) -> bool {
        match self.mapping_type.as_deref() {
            None => true,
            Some("string") => detected == DetectedType::String,
            Some("number") => detected == DetectedType::Number,
            Some("boolean") => detected == DetectedType::Boolean,
            Some("date") => detected == DetectedType::Date,
            Some(_) => false,
        }
    }
}

fn patterns(value: &Value) -> Vec<String> {
    match value {
        Value::String(pattern) => vec![pattern.clone()],
        Value::Array(list) => list.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}
