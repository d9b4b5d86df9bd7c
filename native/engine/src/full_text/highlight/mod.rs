//! Which parts of a page's documents the query found.

mod conditions;
mod fragments;
mod matchers;
mod near_test;
mod plan;
mod sequences;
mod spans;
mod wanted;

use serde_json::{Map, Value};

use self::fragments::fragments_of;
pub use self::plan::HighlightPlan;
use self::spans::texts_of_document;
use self::wanted::Wanted;
use super::mapping::TableMapping;
use super::options::IndexOptions;
use super::plan::QueryPlan;
use super::query::{mapping_of, permitted_rows};
use crate::error::EngineError;
use crate::frame::Frame;

/// For each row of the frame an object of path -> fragments: a JSON array. What the query asks is found by the
/// analyzers of the fields, as the index does it; conditions that only filter count when nothing scores. What the plan's row
/// filter hides has no fragments. Errors: `invalid_query` for a pattern that cannot be read.
pub fn highlight_documents(
    options: &IndexOptions,
    plan: &QueryPlan,
    wanted: &HighlightPlan,
    frame: &[u8],
) -> Result<String, EngineError> {
    let mapping = mapping_of(options);
    let mut asked = Wanted::of(&mapping, plan)?;
    let frame = Frame::parse(frame)?;
    let permitted = permitted_rows(options, plan, &frame)?;
    let mut rows: Vec<Value> = Vec::with_capacity(frame.row_count());
    for (at, row) in frame.rows().enumerate() {
        let is_shown = permitted.as_ref().is_none_or(|permitted| permitted[at]);
        let body = row?.body;
        let marked = if is_shown { highlight_body(&mapping, &mut asked, wanted, body) } else { Map::new() };
        rows.push(Value::Object(marked));
    }
    serde_json::to_string(&rows).map_err(|error| EngineError::internal(format!("highlights: {error}")))
}

fn highlight_body(
    mapping: &TableMapping,
    asked: &mut Wanted<'_>,
    wanted: &HighlightPlan,
    body: &[u8],
) -> Map<String, Value> {
    let mut found: Map<String, Value> = Map::new();
    let Ok(document) = serde_json::from_slice::<Value>(body) else { return found };
    for text in texts_of_document(mapping, &document) {
        if !wanted.fields.is_empty() && !wanted.fields.contains(&text.path) {
            continue;
        }
        let spans = asked.spans_of(&text);
        if spans.is_empty() {
            continue;
        }
        let entry = found.entry(text.path.clone()).or_insert_with(|| Value::Array(Vec::new()));
        let Value::Array(list) = entry else { continue };
        let room = wanted.fragments.saturating_sub(list.len());
        list.extend(fragments_of(&text.shown(), &spans, wanted, room).into_iter().map(Value::String));
    }
    found
}
