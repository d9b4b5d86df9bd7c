//! A position in a document schema while a document is walked.

use std::sync::Arc;

use serde_json::{Value, json};

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
            Self::Declared { schema, root, .. } => {
                let mut parts = Vec::new();
                add_property(schema, root, name, &mut parts, 0);
                !parts.is_empty()
            }
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
    let mut parts = Vec::new();
    add_property(schema, root, name, &mut parts, 0);
    if !parts.is_empty() {
        let property = if let [only] = parts[..] { only.clone() } else { json!({ "allOf": parts }) };
        return SchemaCursor::Declared { schema: Arc::new(effective(&property, root)), root: Arc::clone(root), in_all };
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

/// The schemas of `name` in `properties` or `patternProperties`, and in those that hold beside this one. Of alternatives the
/// first that declares it counts, where nothing else does.
fn add_property<'a>(schema: &'a Value, root: &'a Value, name: &str, parts: &mut Vec<&'a Value>, depth: usize) {
    if depth > REFERENCES_MAX {
        return;
    }
    let patterns = schema.get("patternProperties").and_then(Value::as_object);
    let by_pattern = || {
        let matches = |pattern: &str| regex::Regex::new(pattern).is_ok_and(|regex| regex.is_match(name));
        patterns?.iter().find(|(pattern, _)| matches(pattern)).map(|(_, property)| property)
    };
    let known = parts.len();
    parts.extend(schema.get("properties").and_then(|properties| properties.get(name)).or_else(by_pattern));
    for part in held_beside(schema, root) {
        add_property(part, root, name, parts, depth + 1);
    }
    for part in alternatives(schema) {
        if parts.len() > known {
            return;
        }
        add_property(part, root, name, parts, depth + 1);
    }
}

/// The schemas that hold for the same value as this one.
fn held_beside<'a>(schema: &'a Value, root: &'a Value) -> impl Iterator<Item = &'a Value> {
    let parts = schema.get("allOf").and_then(Value::as_array);
    parts.into_iter().flatten().chain(referenced(schema, root))
}

fn alternatives(schema: &Value) -> impl Iterator<Item = &Value> {
    ["anyOf", "oneOf"].into_iter().filter_map(|keyword| schema.get(keyword)?.as_array()).flatten()
}

/// As `add_property` finds them.
fn add_names(schema: &Value, root: &Value, names: &mut Vec<String>, depth: usize) {
    if depth > REFERENCES_MAX {
        return;
    }
    for name in schema.get("properties").and_then(Value::as_object).into_iter().flat_map(|members| members.keys()) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    for part in held_beside(schema, root).chain(alternatives(schema)) {
        add_names(part, root, names, depth + 1);
    }
}

fn referenced<'a>(schema: &Value, root: &'a Value) -> Option<&'a Value> {
    root.pointer(schema.get("$ref")?.as_str()?.strip_prefix('#')?)
}

/// A schema with the keywords of those that hold beside it; its own go first.
fn with_references(schema: &Value, root: &Value) -> Value {
    let mut all = schema.clone();
    add_keywords(&mut all, schema, root, 0);
    all
}

fn add_keywords(all: &mut Value, schema: &Value, root: &Value, depth: usize) {
    if depth > REFERENCES_MAX {
        return;
    }
    for part in held_beside(schema, root) {
        let Some(keywords) = all.as_object_mut() else { return };
        for (keyword, value) in part.as_object().into_iter().flatten() {
            keywords.entry(keyword.clone()).or_insert_with(|| value.clone());
        }
        add_keywords(all, part, root, depth + 1);
    }
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
