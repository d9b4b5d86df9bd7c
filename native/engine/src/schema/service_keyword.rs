//! The service's own keywords of JSON Schema: `x-service-NAME`, or `x-antfly-NAME`, an older spelling of the same.

use serde_json::{Map, Value};

const PREFIX: &str = "x-service-";
const OLDER_PREFIX: &str = "x-antfly-";

/// A keyword of the service, as a schema spells it.
pub struct ServiceKeyword<'a> {
    pub name: &'a str,
    pub is_older_spelling: bool,
}

impl<'a> ServiceKeyword<'a> {
    pub fn parse(keyword: &'a str) -> Option<Self> {
        match keyword.strip_prefix(PREFIX) {
            Some(name) => Some(Self { name, is_older_spelling: false }),
            None => keyword.strip_prefix(OLDER_PREFIX).map(|name| Self { name, is_older_spelling: true }),
        }
    }
}

/// The values of the keyword `name`, in either spelling; the newer one comes first.
pub fn service_values<'a>(members: &'a Map<String, Value>, name: &str) -> impl Iterator<Item = &'a Value> {
    [PREFIX, OLDER_PREFIX].map(|prefix| members.get(&format!("{prefix}{name}"))).into_iter().flatten()
}
