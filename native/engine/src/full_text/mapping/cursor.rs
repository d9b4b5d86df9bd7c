//! A position in a document schema while a document is walked.

use std::sync::Arc;

use serde_json::Value;

use super::property::{extension, lists_in_all, property_rule};
use super::rule::FieldRule;

/// `$ref` chains longer than this are taken for loops.
const REFERENCES_MAX: usize = 16;

#[derive(Debug, Clone)]
pub enum SchemaCursor {
    /// A property that the schema declares, and whether its parent opts it in to queries without a field.
    Declared { schema: Arc<Value>, root: Arc<Value>, in_all: bool },
    /// Undeclared: dynamic templates, then inference.
    Dynamic,
    /// Undeclared where the schema allows nothing else: not indexed.
    Closed,
}

impl SchemaCursor {
    pub fn root(schema: &Value) -> Self {
        Self::Declared {
            schema: Arc::new(with_references(schema, schema)),
            root: Arc::new(schema.clone()),
            in_all: false,
        }
    }

    /// `None`: no property is declared here, the dynamic rules apply.
    pub fn rule(&self) -> Option<FieldRule> {
        match self {
            Self::Declared { schema, in_all, .. } => Some(property_rule(schema, *in_all)),
            Self::Dynamic => None,
            Self::Closed => Some(FieldRule::none()),
        }
    }

    /// Whether the schema says of the values here that they are not indexed, by `x-service-index` or by their types. Of an
    /// object without types it says nothing: its members speak for themselves.
    pub fn is_left_out(&self) -> bool {
        let Self::Declared { schema, in_all, .. } = self else { return false };
        self.is_switched_off() || (extension(schema, "types").is_some() && !property_rule(schema, *in_all).is_indexed())
    }

    /// Nothing here, and nothing below, is indexed.
    pub fn is_switched_off(&self) -> bool {
        matches!(self, Self::Declared { schema, .. } if extension(schema, "index") == Some(&Value::Bool(false)))
    }

    /// Whether a property of this name is declared.
    pub fn declares(&self, name: &str) -> bool {
        match self {
            Self::Declared { schema, root, .. } => find_property(schema, root, name, 0).is_some(),
            Self::Dynamic | Self::Closed => false,
        }
    }

    /// Names of the properties that are declared here one by one.
    pub fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        if let Self::Declared { schema, root, .. } = self {
            add_names(schema, root, &mut names, 0);
        }
        names
    }

    pub fn child(&self, name: &str, enforced: bool) -> Self {
        match self {
            Self::Declared { schema, root, .. } => declared_child(schema, root, name, enforced),
            Self::Dynamic => Self::Dynamic,
            Self::Closed => Self::Closed,
        }
    }
}

fn declared_child(schema: &Value, root: &Arc<Value>, name: &str, enforced: bool) -> SchemaCursor {
    if extension(schema, "index") == Some(&Value::Bool(false)) {
        return SchemaCursor::Closed;
    }
    let in_all = lists_in_all(schema, name);
    if let Some(property) = find_property(schema, root, name, 0) {
        return SchemaCursor::Declared { schema: Arc::new(effective(property, root)), root: Arc::clone(root), in_all };
    }
    let infers = extension(schema, "dynamic-indexing").is_some_and(|mode| mode["mode"] == "infer_types");
    match &schema["additionalProperties"] {
        Value::Object(_) => {
            let additional = effective(&schema["additionalProperties"], root);
            SchemaCursor::Declared { schema: Arc::new(additional), root: Arc::clone(root), in_all }
        }
        Value::Bool(false) => SchemaCursor::Closed,
        Value::Null if enforced && !infers && schema.get("properties").is_some() => SchemaCursor::Closed,
        _ => SchemaCursor::Dynamic,
    }
}

/// The schema of `name` in `properties`, `patternProperties`, or in a schema that this one is combined with or refers to.
fn find_property<'a>(schema: &'a Value, root: &'a Value, name: &str, depth: usize) -> Option<&'a Value> {
    if depth > REFERENCES_MAX {
        return None;
    }
    if let Some(property) = schema.get("properties").and_then(|properties| properties.get(name)) {
        return Some(property);
    }
    let patterns = schema.get("patternProperties").and_then(Value::as_object);
    let by_pattern = patterns.and_then(|patterns| {
        let matches = |pattern: &str| regex::Regex::new(pattern).is_ok_and(|regex| regex.is_match(name));
        patterns.iter().find(|(pattern, _)| matches(pattern)).map(|(_, property)| property)
    });
    if by_pattern.is_some() {
        return by_pattern;
    }
    combined_with(schema, root).find_map(|part| find_property(part, root, name, depth + 1))
}

/// The schemas that apply to the same value as this one.
fn combined_with<'a>(schema: &'a Value, root: &'a Value) -> impl Iterator<Item = &'a Value> {
    let lists = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|keyword| schema.get(keyword)?.as_array());
    lists.flatten().chain(referenced(schema, root))
}

/// As `find_property` finds them.
fn add_names(schema: &Value, root: &Value, names: &mut Vec<String>, depth: usize) {
    if depth > REFERENCES_MAX {
        return;
    }
    for name in schema.get("properties").and_then(Value::as_object).into_iter().flat_map(|members| members.keys()) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    for part in combined_with(schema, root) {
        add_names(part, root, names, depth + 1);
    }
}

fn referenced<'a>(schema: &Value, root: &'a Value) -> Option<&'a Value> {
    root.pointer(schema.get("$ref")?.as_str()?.strip_prefix('#')?)
}

/// A schema with the keywords of those that it refers to; its own go first.
fn with_references(schema: &Value, root: &Value) -> Value {
    let (mut all, mut next) = (schema.clone(), referenced(schema, root));
    for _ in 0..REFERENCES_MAX {
        let (Some(target), Some(keywords)) = (next, all.as_object_mut()) else { break };
        for (keyword, value) in target.as_object().into_iter().flatten() {
            keywords.entry(keyword.clone()).or_insert_with(|| value.clone());
        }
        next = referenced(target, root);
    }
    all
}

/// A property as its values are seen: references followed, and an array's elements under the array's keywords.
fn effective(property: &Value, root: &Value) -> Value {
    let mut current = with_references(property, root);
    for _ in 0..REFERENCES_MAX {
        let Some(items) = current.get("items").filter(|items| items.is_object()) else { break };
        let mut element = with_references(items, root);
        if let (Some(of_element), Some(of_array)) = (element.as_object_mut(), current.as_object()) {
            let keywords = of_array.iter().filter(|(keyword, _)| keyword.starts_with("x-"));
            for (keyword, value) in keywords {
                of_element.entry(keyword.clone()).or_insert_with(|| value.clone());
            }
        }
        current = element;
    }
    current
}
