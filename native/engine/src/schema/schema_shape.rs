//! Checks that a table schema is usable before anything is built from it, and answers precisely what is not.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::service_keyword::{ServiceKeyword, service_values};
use crate::error::EngineError;
use crate::json::shorten;

/// The field types that `x-service-types` and a dynamic template's `mapping.type` may name.
pub const FIELD_TYPES: [&str; 12] = [
    "text",
    "html",
    "keyword",
    "link",
    "search_as_you_type",
    "numeric",
    "boolean",
    "datetime",
    "geopoint",
    "geoshape",
    "embedding",
    "blob",
];

/// The analyzers that `x-service-analyzer` and a dynamic template's `mapping.analyzer` may name.
pub const ANALYZER_NAMES: [&str; 20] = [
    "standard",
    "default",
    "simple",
    "keyword",
    "html",
    "html_analyzer",
    "search_as_you_type",
    "search_as_you_type_2gram",
    "search_as_you_type_3gram",
    "search_as_you_type_index_prefix",
    "german",
    "french",
    "spanish",
    "italian",
    "portuguese",
    "dutch",
    "swedish",
    "norwegian",
    "danish",
    "finnish",
];

const MAPPING_TYPES: [&str; 5] = ["string", "number", "boolean", "date", "object"];

/// Keywords whose value is a schema.
pub(crate) const SCHEMA_KEYWORDS: [&str; 10] = [
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keywords whose value is an array of schemas.
pub(crate) const SCHEMA_LIST_KEYWORDS: [&str; 5] = ["allOf", "anyOf", "oneOf", "prefixItems", "items"];
/// Keywords whose value is an object of schemas.
pub(crate) const SCHEMA_MAP_KEYWORDS: [&str; 5] =
    ["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];
/// Keywords that apply a schema to the same value, so that a loop through them would never end.
const IN_PLACE_KEYWORDS: [&str; 8] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"];

/// A validator recurses along references; these bounds keep it far from the end of the stack.
const REFERENCES_MAX: usize = 256;
const IN_PLACE_DEPTH_MAX: usize = 32;
/// Schemas that apply to one value, counted once for every way that leads to them: what one value may cost.
const IN_PLACE_COUNT_MAX: usize = 1_024;

pub(crate) fn unusable(message: impl Into<String>) -> EngineError {
    EngineError::new("invalid_schema", message)
}

/// Checks the members of a TableSchema, those of its document schemas included.
pub(crate) fn check_table_schema(schema: &Map<String, Value>) -> Result<(), EngineError> {
    expect(schema, "", "version", Value::is_u64, "an integer of 0 or more")?;
    expect(schema, "", "default_type", Value::is_string, "a string")?;
    expect(schema, "", "enforce_types", Value::is_boolean, "a boolean")?;
    expect(schema, "", "document_schemas", Value::is_object, "an object of type names and schemas")?;
    expect(schema, "", "ttl_field", Value::is_string, "a string")?;
    expect(schema, "", "ttl_duration", Value::is_string, "a string")?;
    expect(schema, "", "ttl", Value::is_object, "an object")?;
    if let Some(Value::Object(ttl)) = schema.get("ttl") {
        for member in ["field", "duration", "ttl_duration"] {
            expect(ttl, "ttl.", member, Value::is_string, "a string")?;
        }
    }
    expect(schema, "", "storage_mode", Value::is_string, "a string")?;
    match schema.get("storage_mode").and_then(Value::as_str) {
        None | Some("document" | "relational") => {}
        Some(other) => {
            let message = format!("storage_mode {:?} is not \"document\" or \"relational\"", shorten(other));
            return Err(unusable(message));
        }
    }
    check_templates(schema.get("dynamic_templates"))?;
    check_document_schemas(schema)
}

/// Whether documents that do not match are refused: rows of relational tables always are.
pub(crate) fn enforces_types(schema: &Map<String, Value>) -> bool {
    let is_relational = schema.get("storage_mode").and_then(Value::as_str) == Some("relational");
    is_relational || schema.get("enforce_types") == Some(&Value::Bool(true))
}

fn check_document_schemas(schema: &Map<String, Value>) -> Result<(), EngineError> {
    let no_types = Map::new();
    let types = schema.get("document_schemas").and_then(Value::as_object).unwrap_or(&no_types);
    for (name, document_type) in types {
        let path = format!("document_schemas.{}", shorten(name));
        if name.is_empty() {
            return Err(unusable("document_schemas has a type without a name"));
        }
        let Value::Object(document_type) = document_type else {
            return Err(unusable(format!("{path} must be an object with a \"schema\"")));
        };
        expect(document_type, &format!("{path}."), "description", Value::is_string, "a string")?;
        expect(document_type, &format!("{path}."), "schema", Value::is_object, "a JSON Schema object")?;
        if let Some(document_schema) = document_type.get("schema").filter(|value| !value.is_null()) {
            check_document_schema(document_schema, &format!("{path}.schema"))?;
        }
    }
    match schema.get("default_type").and_then(Value::as_str) {
        Some(default_type) if !types.contains_key(default_type) => {
            let message = format!("default_type {:?} is not an entry of document_schemas", shorten(default_type));
            Err(unusable(message))
        }
        _ if enforces_types(schema) && types.is_empty() => {
            Err(unusable("enforce_types needs at least one entry in document_schemas"))
        }
        _ => Ok(()),
    }
}

fn check_document_schema(schema: &Value, path: &str) -> Result<(), EngineError> {
    let is_object_type = match schema.get("type") {
        None => true,
        Some(Value::String(name)) => name == "object",
        Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
        Some(_) => false,
    };
    if !is_object_type {
        return Err(unusable(format!("{path}.type must be \"object\": documents are objects")));
    }
    let mut walk = SchemaWalk { root: schema, targets: BTreeSet::new(), in_place: BTreeMap::new() };
    walk.check(schema, path, true)?;
    for target in walk.targets.clone() {
        walk.target_in_place(&target, path, 0)?;
    }
    walk.in_place(schema, path, 0).map(drop)
}

struct SchemaWalk<'a> {
    root: &'a Value,
    /// JSON pointers that `$ref`s lead to.
    targets: BTreeSet<String>,
    in_place: BTreeMap<String, InPlace>,
}

/// The schemas that apply to the same value as a given one, itself included.
#[derive(Clone, Copy)]
struct InPlace {
    depth: usize,
    count: usize,
}

impl SchemaWalk<'_> {
    fn check(&mut self, schema: &Value, path: &str, is_root: bool) -> Result<(), EngineError> {
        let Value::Object(members) = schema else {
            // `true` and `false` are schemas; anything else is reported by the compiler of the schema.
            return Ok(());
        };
        for (name, value) in members {
            match name.as_str() {
                "$ref" => self.note_reference(value, path)?,
                "$dynamicRef" | "$recursiveRef" | "$dynamicAnchor" | "$recursiveAnchor" => {
                    return Err(unusable(format!("{path}: {name} is not supported; use $ref")));
                }
                "$id" if !is_root && value.is_string() => {
                    return Err(unusable(format!("{path}: $id is supported at the top of a schema only")));
                }
                _ => check_extension(members, name, value, path)?,
            }
        }
        for (child_path, child) in children(members, path) {
            self.check(child, &child_path, false)?;
        }
        Ok(())
    }

    fn note_reference(&mut self, value: &Value, path: &str) -> Result<(), EngineError> {
        let pointer = value.as_str().and_then(|reference| reference.strip_prefix('#'));
        let Some(pointer) = pointer.filter(|pointer| pointer.is_empty() || pointer.starts_with('/')) else {
            return Err(unusable(format!("{path}.$ref must point inside the schema, such as \"#/$defs/name\"")));
        };
        if self.root.pointer(pointer).is_none() {
            return Err(unusable(format!("{path}.$ref: there is no {:?} in the schema", shorten(pointer))));
        }
        self.targets.insert(pointer.to_owned());
        if self.targets.len() > REFERENCES_MAX {
            return Err(unusable(format!("a schema may refer to at most {REFERENCES_MAX} targets")));
        }
        Ok(())
    }

    fn target_in_place(&mut self, pointer: &str, path: &str, above: usize) -> Result<InPlace, EngineError> {
        if let Some(known) = self.in_place.get(pointer) {
            return Ok(*known);
        }
        let Some(target) = self.root.pointer(pointer) else { return Ok(InPlace { depth: 0, count: 0 }) };
        let found = self.in_place(target, path, above)?;
        self.in_place.insert(pointer.to_owned(), found);
        Ok(found)
    }

    fn in_place(&mut self, schema: &Value, path: &str, above: usize) -> Result<InPlace, EngineError> {
        // A loop of references has no end, so it meets this bound too.
        if above > IN_PLACE_DEPTH_MAX {
            let message =
                format!("{path}: schemas that apply to one value refer to each other in a loop or over too many steps");
            return Err(unusable(message));
        }
        let mut deepest = 0;
        let mut count = 1;
        let Value::Object(members) = schema else { return Ok(InPlace { depth: 1, count }) };
        if let Some(pointer) = members.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#')) {
            let target = self.target_in_place(pointer, path, above + 1)?;
            deepest = target.depth;
            count += target.count;
        }
        for keyword in IN_PLACE_KEYWORDS {
            let inner: Vec<&Value> = match members.get(keyword) {
                Some(Value::Array(list)) => list.iter().collect(),
                Some(Value::Object(map)) if keyword == "dependentSchemas" => map.values().collect(),
                Some(single) => vec![single],
                None => Vec::new(),
            };
            for schema in inner {
                let found = self.in_place(schema, path, above + 1)?;
                deepest = deepest.max(found.depth);
                count += found.count;
            }
        }
        if above + deepest > IN_PLACE_DEPTH_MAX || count > IN_PLACE_COUNT_MAX {
            let message = format!(
                "{path}: more than {IN_PLACE_COUNT_MAX} schemas, or more than {IN_PLACE_DEPTH_MAX} one within the \
                 other, apply to one value"
            );
            return Err(unusable(message));
        }
        Ok(InPlace { depth: deepest + 1, count })
    }
}

/// The schemas directly inside a schema, with the paths to them.
fn children<'a>(members: &'a Map<String, Value>, path: &str) -> Vec<(String, &'a Value)> {
    let mut found = Vec::new();
    for (keyword, value) in members {
        let at = format!("{path}.{keyword}");
        match value {
            Value::Object(map) if SCHEMA_MAP_KEYWORDS.contains(&keyword.as_str()) => {
                found.extend(map.iter().map(|(name, child)| (format!("{at}.{}", shorten(name)), child)));
            }
            Value::Array(list) if SCHEMA_LIST_KEYWORDS.contains(&keyword.as_str()) => {
                found.extend(list.iter().enumerate().map(|(index, child)| (format!("{at}[{index}]"), child)));
            }
            Value::Object(_) if SCHEMA_KEYWORDS.contains(&keyword.as_str()) => found.push((at, value)),
            _ => {}
        }
    }
    found
}

/// Whether a schema describes strings of which nothing but words has to be kept.
fn holds_words_only(members: &Map<String, Value>) -> bool {
    let mut types = service_values(members, "types").filter_map(Value::as_array).flatten().filter_map(Value::as_str);
    let is_date = matches!(members.get("format").and_then(Value::as_str), Some("date" | "date-time"));
    let is_string = members.get("type").is_none_or(|json_type| json_type == "string");
    is_string && !is_date && types.all(|name| matches!(name, "text" | "html" | "search_as_you_type"))
}

/// Checks one keyword of `members` if it is of the service.
fn check_extension(members: &Map<String, Value>, name: &str, value: &Value, path: &str) -> Result<(), EngineError> {
    let Some(keyword) = ServiceKeyword::parse(name) else { return Ok(()) };
    let refuse = |what: String| Err(unusable(format!("{path}.{name} {what}")));
    match keyword.name {
        "types" => {
            let Value::Array(types) = value else { return refuse("must be an array of field types".to_owned()) };
            match types.iter().find(|name| !name.as_str().is_some_and(|name| FIELD_TYPES.contains(&name))) {
                Some(unknown) => {
                    let unknown = unknown.to_string();
                    refuse(format!("has {}, which is not one of {}", shorten(&unknown), FIELD_TYPES.join(", ")))
                }
                None => Ok(()),
            }
        }
        "include-in-all" => match value {
            Value::Bool(_) => Ok(()),
            Value::Array(names) if names.iter().all(Value::is_string) => Ok(()),
            _ => refuse("must be a boolean, or an array of property names".to_owned()),
        },
        "index" | "typo" | "doc-values" if !value.is_boolean() => refuse("must be a boolean".to_owned()),
        "analyzer" => match value.as_str() {
            Some(analyzer) if ANALYZER_NAMES.contains(&analyzer) => Ok(()),
            _ => refuse(format!("must be one of {}", ANALYZER_NAMES.join(", "))),
        },
        "dynamic-indexing" if value.get("mode").and_then(Value::as_str) != Some("infer_types") => {
            refuse("must be {\"mode\": \"infer_types\"}".to_owned())
        }
        "doc-values" if *value == Value::Bool(false) && !holds_words_only(members) => refuse(
            "can be false for strings that are indexed by their words only: of type \"string\", and of no other \
                    x-service-types than \"text\", \"html\" and \"search_as_you_type\""
                .to_owned(),
        ),
        "index" | "typo" | "doc-values" | "dynamic-indexing" => Ok(()),
        // An unknown keyword of ours is a misspelling; one of the older prefix may be newer than we are.
        _ if !keyword.is_older_spelling => refuse("is not known".to_owned()),
        _ => Ok(()),
    }
}

fn check_templates(templates: Option<&Value>) -> Result<(), EngineError> {
    match templates {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Array(list)) => list
            .iter()
            .enumerate()
            .try_for_each(|(index, template)| check_template(template, &format!("dynamic_templates[{index}]"))),
        Some(Value::Object(map)) => map
            .iter()
            .try_for_each(|(name, template)| check_template(template, &format!("dynamic_templates.{}", shorten(name)))),
        Some(_) => Err(unusable("dynamic_templates must be an array, or an object of names and templates")),
    }
}

fn check_template(template: &Value, path: &str) -> Result<(), EngineError> {
    let Value::Object(members) = template else {
        return Err(unusable(format!("{path} must be an object")));
    };
    let prefix = format!("{path}.");
    for member in ["name", "match", "unmatch", "path_match", "path_unmatch"] {
        expect(members, &prefix, member, Value::is_string, "a string")?;
    }
    let is_mapping_type = |value: &Value| value.as_str().is_some_and(|name| MAPPING_TYPES.contains(&name));
    let mapping_types = format!("one of {}", MAPPING_TYPES.join(", "));
    expect(members, &prefix, "match_mapping_type", is_mapping_type, &mapping_types)?;
    let Some(Value::Object(mapping)) = members.get("mapping") else {
        return Err(unusable(format!("{path}.mapping must be an object")));
    };
    let prefix = format!("{path}.mapping.");
    let is_field_type = |value: &Value| value.as_str().is_some_and(|name| FIELD_TYPES.contains(&name));
    expect(mapping, &prefix, "type", is_field_type, &format!("one of {}", FIELD_TYPES.join(", ")))?;
    let is_analyzer = |value: &Value| value.as_str().is_some_and(|name| ANALYZER_NAMES.contains(&name));
    expect(mapping, &prefix, "analyzer", is_analyzer, &format!("one of {}", ANALYZER_NAMES.join(", ")))?;
    for member in ["index", "store", "include_in_all", "doc_values"] {
        expect(mapping, &prefix, member, Value::is_boolean, "a boolean")?;
    }
    Ok(())
}

/// Refuses a member of another kind than expected; absent and `null` are fine.
fn expect(
    object: &Map<String, Value>,
    prefix: &str,
    member: &str,
    is_right: impl Fn(&Value) -> bool,
    kind: &str,
) -> Result<(), EngineError> {
    match object.get(member) {
        None | Some(Value::Null) => Ok(()),
        Some(value) if is_right(value) => Ok(()),
        Some(_) => Err(unusable(format!("{prefix}{member} must be {kind}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::ANALYZER_NAMES;
    use crate::full_text::Analyzer;

    #[test]
    fn every_analyzer_that_a_schema_may_name_exists() {
        for name in ANALYZER_NAMES {
            assert!(Analyzer::named(name).is_some(), "{name}");
        }
    }
}
