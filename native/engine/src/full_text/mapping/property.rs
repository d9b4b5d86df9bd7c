//! One property of a document schema: the service's own keywords, in both spellings.

use serde_json::{Map, Value};

use super::rule::FieldRule;
use crate::full_text::analysis::Analyzer;
use crate::schema::service_values;

/// The value of the service's keyword `name`.
pub fn extension<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    service_values(schema.as_object()?, name).next()
}

fn names(value: Option<&Value>) -> Option<Vec<&str>> {
    Some(value?.as_array()?.iter().filter_map(Value::as_str).collect())
}

fn json_types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(name) => vec![name.as_str()],
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

/// The rule of a declared property. `in_all` is what its parent says of it.
pub fn property_rule(schema: &Value, in_all: bool) -> FieldRule {
    if extension(schema, "index") == Some(&Value::Bool(false)) {
        return FieldRule::none();
    }
    let analyzer = extension(schema, "analyzer").and_then(Value::as_str).and_then(Analyzer::named);
    let rule = match names(extension(schema, "types")) {
        Some(types) => FieldRule::typed(types.into_iter(), analyzer),
        None => unannotated_rule(schema, analyzer),
    };
    let keeps_values = extension(schema, "doc-values") != Some(&Value::Bool(false));
    let rule = if keeps_values { rule } else { rule.without_values() };
    let rule = FieldRule { typo_off: extension(schema, "typo") == Some(&Value::Bool(false)), ..rule };
    rule.opted_in_to_all(in_all || extension(schema, "include-in-all") == Some(&Value::Bool(true)))
}

fn unannotated_rule(schema: &Value, analyzer: Option<Analyzer>) -> FieldRule {
    let mut rule = FieldRule::inferred();
    if let (Some(analyzer), Some(text)) = (analyzer, rule.texts.first_mut()) {
        text.analyzer = analyzer;
    }
    let types = json_types(schema);
    // Of the elements of an array nothing is said here: where their schema is known it stands in place of the array's.
    if types.is_empty() || types.contains(&"array") {
        return rule;
    }
    let is_date = matches!(schema["format"].as_str(), Some("date-time" | "date"));
    let is_string = types.contains(&"string");
    if !is_string || is_date {
        rule.texts.clear();
        rule.exact = false;
    }
    rule.date = is_string && is_date;
    rule.number = types.contains(&"number") || types.contains(&"integer");
    rule.boolean = types.contains(&"boolean");
    rule
}

/// Whether the object schema's list of opted-in properties names `name`.
pub fn lists_in_all(object_schema: &Value, name: &str) -> bool {
    names(extension(object_schema, "include-in-all")).is_some_and(|list| list.contains(&name))
}

/// Whether any property below opts in.
pub fn any_in_all(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => opts_in(members) || members.values().any(any_in_all),
        Value::Array(list) => list.iter().any(any_in_all),
        _ => false,
    }
}

fn opts_in(members: &Map<String, Value>) -> bool {
    service_values(members, "include-in-all").any(|value| match value {
        Value::Bool(opted) => *opted,
        Value::Array(list) => !list.is_empty(),
        _ => false,
    })
}
