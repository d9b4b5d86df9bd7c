//! Options, plans and reports cross as JSON.

use serde::Serialize;
use serde::de::DeserializeOwned;
use sundew_engine::error::EngineError;

pub fn from_json<T: DeserializeOwned>(json: &str, what: &str) -> Result<T, EngineError> {
    serde_json::from_str(json).map_err(|error| EngineError::internal(format!("{what}: {error}")))
}

pub fn to_json(value: &impl Serialize) -> Result<String, EngineError> {
    serde_json::to_string(value).map_err(|error| EngineError::internal(format!("report: {error}")))
}
