//! A table's schema: the document types, how a document chooses one, and validation against it.

use jsonschema::{PatternOptions, Validator};
use serde_json::{Map, Value};

use super::schema_shape::{
    SCHEMA_KEYWORDS, SCHEMA_LIST_KEYWORDS, SCHEMA_MAP_KEYWORDS, check_table_schema, enforces_types, unusable,
};
use super::service_keyword::service_values;
use crate::error::EngineError;
use crate::json::{ScanLimits, scan_json, shorten};

/// Compiled size of one pattern of a schema.
const PATTERN_BYTES_MAX: usize = 1 << 20;
/// Longest reason in a message; the rest of a validator's text is cut.
const REASON_CHARS_MAX: usize = 200;

/// A usable table schema. Validation is that of JSON Schema (2020-12 unless `$schema` says otherwise) with these
/// rules on top: top-level members that begin with `_` are not validated; with `enforce_types` an object schema that
/// declares properties and says nothing about others admits no others.
pub struct TableSchema {
    json: Value,
    default_type: Option<String>,
    enforce_types: bool,
    types: Vec<DocumentType>,
}

struct DocumentType {
    name: String,
    validator: Validator,
}

impl TableSchema {
    /// Compiles the wire form of a TableSchema. Error: `invalid_schema` (or those of `scan_json`).
    pub fn compile(json: &[u8]) -> Result<Self, EngineError> {
        scan_json(json, &ScanLimits::default())?;
        let parsed: Value =
            serde_json::from_slice(json).map_err(|error| unusable(format!("the schema cannot be read: {error}")))?;
        let Value::Object(schema) = &parsed else {
            return Err(unusable("a table schema must be a JSON object"));
        };
        check_table_schema(schema)?;
        let enforce_types = enforces_types(schema);
        let declared = schema.get("document_schemas").and_then(Value::as_object);
        let types = declared
            .into_iter()
            .flatten()
            .map(|(name, declaration)| DocumentType::compile(name, declaration.get("schema"), enforce_types))
            .collect::<Result<Vec<_>, _>>()?;
        let default_type = schema.get("default_type").and_then(Value::as_str).map(str::to_owned);
        Ok(Self { default_type, enforce_types, types, json: parsed })
    }

    /// The schema as it was given.
    pub fn json(&self) -> &Value {
        &self.json
    }

    /// The type of a document: its `_type`, else the default type, else the sole type. A name that is not declared
    /// counts too; validation judges it.
    pub fn document_type<'a>(&'a self, document: &'a Map<String, Value>) -> Option<&'a str> {
        let named = document.get("_type").and_then(Value::as_str);
        named.or(self.default_type.as_deref()).or(match self.types.as_slice() {
            [sole] => Some(&sole.name),
            _ => None,
        })
    }

    /// Refuses a document that does not match, with `validation_failed`. Without `enforce_types` everything passes:
    /// such a document is stored and only its typed indexing suffers.
    pub fn validate(&self, key: &str, body: &[u8]) -> Result<(), EngineError> {
        if !self.enforce_types {
            return Ok(());
        }
        let parsed = serde_json::from_slice(body);
        let Ok(Value::Object(mut document)) = parsed else {
            return Err(EngineError::internal("a scanned document is not a JSON object"));
        };
        let Some(name) = self.document_type(&document) else {
            return Err(refused(key, "", "names no _type, and the table has no default_type"));
        };
        let Some(document_type) = self.types.iter().find(|candidate| candidate.name == name) else {
            return Err(refused(key, "/_type", &format!("{:?} is not a type of this table", shorten(name))));
        };
        document.retain(|member, _| !member.starts_with('_'));
        match document_type.validator.validate(&Value::Object(document)) {
            Ok(()) => Ok(()),
            Err(error) => {
                Err(refused(key, error.instance_path().as_str(), &format!("{}", error.masked_with("the value"))))
            }
        }
    }
}

impl DocumentType {
    fn compile(name: &str, schema: Option<&Value>, enforce_types: bool) -> Result<Self, EngineError> {
        let mut prepared =
            schema.filter(|value| !value.is_null()).cloned().unwrap_or_else(|| Value::Object(Map::new()));
        prepare(&mut prepared, enforce_types, true);
        if let Some(Value::Array(required)) = prepared.get_mut("required") {
            required.retain(|member| !member.as_str().is_some_and(|member| member.starts_with('_')));
        }
        let options = jsonschema::options()
            .with_pattern_options(PatternOptions::regex().size_limit(PATTERN_BYTES_MAX))
            .should_validate_formats(true)
            .offline();
        let validator = options.build(&prepared).map_err(|error| {
            let path = format!("document_schemas.{}.schema{}", shorten(name), error.instance_path());
            unusable(format!("{path}: {}", cut(&error.to_string())))
        })?;
        Ok(Self { name: name.to_owned(), validator })
    }
}

/// Turns `nullable` into JSON Schema, and closes objects that declare their properties. `is_closable` is false where
/// another schema applies to the same value, which may declare properties of its own.
fn prepare(schema: &mut Value, enforce_types: bool, is_closable: bool) {
    let Value::Object(members) = schema else { return };
    for (keyword, value) in members.iter_mut() {
        let keyword = keyword.as_str();
        let inner_is_closable = matches!(keyword, "properties" | "patternProperties" | "items" | "prefixItems");
        match value {
            Value::Object(map) if SCHEMA_MAP_KEYWORDS.contains(&keyword) => {
                map.values_mut().for_each(|child| prepare(child, enforce_types, inner_is_closable));
            }
            Value::Array(list) if SCHEMA_LIST_KEYWORDS.contains(&keyword) => {
                list.iter_mut().for_each(|child| prepare(child, enforce_types, inner_is_closable));
            }
            Value::Object(_) if SCHEMA_KEYWORDS.contains(&keyword) => {
                prepare(value, enforce_types, inner_is_closable);
            }
            _ => {}
        }
    }
    admit_null(members);
    if enforce_types && is_closable {
        close(members);
    }
}

fn admit_null(members: &mut Map<String, Value>) {
    if members.get("nullable") != Some(&Value::Bool(true)) {
        return;
    }
    match members.get_mut("type") {
        Some(Value::String(name)) if name != "null" => {
            let types = vec![Value::String(std::mem::take(name)), Value::String("null".to_owned())];
            members.insert("type".to_owned(), Value::Array(types));
        }
        Some(Value::Array(types)) if !types.iter().any(|name| name == "null") => {
            types.push(Value::String("null".to_owned()));
        }
        _ => {}
    }
    if let Some(Value::Array(values)) = members.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
}

fn close(members: &mut Map<String, Value>) {
    let declares = ["properties", "patternProperties", "$ref", "allOf"].iter().any(|name| members.contains_key(*name));
    let speaks_of_others =
        ["additionalProperties", "unevaluatedProperties"].iter().any(|name| members.contains_key(*name))
            || service_values(members, "dynamic-indexing").next().is_some();
    if !declares || speaks_of_others {
        return;
    }
    // Other schemas on the same value may declare properties too: only `unevaluatedProperties` sees those.
    let composes = ["$ref", "allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas"];
    let is_composed = composes.iter().any(|keyword| members.contains_key(*keyword));
    let keyword = if is_composed { "unevaluatedProperties" } else { "additionalProperties" };
    members.insert(keyword.to_owned(), Value::Bool(false));
}

fn refused(key: &str, path: &str, reason: &str) -> EngineError {
    let at = if path.is_empty() { String::new() } else { format!(" at {}", shorten(path)) };
    let message = format!("document {:?}{at}: {}", shorten(key), cut(reason));
    EngineError::new("validation_failed", message)
}

fn cut(reason: &str) -> String {
    reason.chars().take(REASON_CHARS_MAX).collect()
}
