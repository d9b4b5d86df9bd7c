//! Calls of full text besides searching: matching and highlighting stored documents, and what a filter lets through.

use std::sync::Arc;

use napi::Env;
use napi::bindgen_prelude::Uint8Array;
use napi_derive::napi;
use sundew_engine::error::EngineError;
use sundew_engine::full_text::{self, HighlightPlan, IndexOptions, PageHit, QueryPlan, TextIndex};

use crate::guard::{EngineTask, Started, call};
use crate::indexes::text_index;
use crate::json::{from_json, to_json};
use crate::operations::Operation;
use crate::owned_array::OwnedArray;

/// One byte a row of the frame: 1 where the document matches the plan under the mapping of these options.
#[napi(ts_return_type = "Promise<Uint8Array>")]
pub fn match_documents(
    options_json: String,
    plan_json: String,
    frame: Uint8Array,
) -> Started<(String, String, Uint8Array), OwnedArray<u8>> {
    EngineTask::start((options_json, plan_json, frame), |(options, plan, frame)| {
        let options: IndexOptions = from_json(options, "index options")?;
        let plan: QueryPlan = from_json(plan, "query plan")?;
        full_text::match_documents(&options, &plan, frame).map(OwnedArray)
    })
}

/// Which documents of the index's newest commit the plan's filters let through, expired ones too: a bit for each
/// ordinal, the first in the lowest bit of the first byte. `cancel` stops it under the number `operation`, 0 never.
#[napi(ts_return_type = "Promise<Uint8Array>")]
pub fn matching_ordinals(
    env: Env,
    handle: u32,
    plan_json: String,
    operation: u32,
) -> napi::Result<Started<MatchingInput, OwnedArray<u8>>> {
    let index = call(&env, || text_index(handle))?;
    let input = MatchingInput { index: Some(index), plan_json, operation: Operation::start(operation) };
    Ok(EngineTask::start(input, |MatchingInput { index, plan_json, operation }| {
        let plan: QueryPlan = from_json(plan_json, "query plan")?;
        // Given back here: the last reference to an index waits for its threads.
        let index = index.take().ok_or_else(|| EngineError::internal("the task ran twice"))?;
        full_text::matching_ordinals(&index, &plan, &operation.flag).map(OwnedArray)
    }))
}

pub struct MatchingInput {
    index: Option<Arc<TextIndex>>,
    plan_json: String,
    operation: Operation,
}

/// For each row of the frame an object of path -> marked fragments, as a JSON array; by the mapping of these options.
#[napi(ts_return_type = "Promise<string>")]
pub fn highlight_documents(
    options_json: String,
    plan_json: String,
    highlight_json: String,
    frame: Uint8Array,
) -> Started<HighlightInput, String> {
    let input = HighlightInput { options_json, plan_json, highlight_json, frame };
    EngineTask::start(input, |HighlightInput { options_json, plan_json, highlight_json, frame }| {
        let options: IndexOptions = from_json(options_json, "index options")?;
        let plan: QueryPlan = from_json(plan_json, "query plan")?;
        let wanted: HighlightPlan = from_json(highlight_json, "highlights")?;
        full_text::highlight_documents(&options, &plan, &wanted, frame)
    })
}

/// The hits of a sorted page in the order of their stored documents: a JSON array of `{hit, sort}`, the index among the
/// given hits and the values that `_sort` shows. `hits_json`: an array of `{key, position, row}`, where `row` is that of
/// the frame for a document that has changed since it was indexed, else null; by the mapping of these options.
#[napi(ts_return_type = "Promise<string>")]
pub fn order_page(
    options_json: String,
    plan_json: String,
    hits_json: String,
    frame: Uint8Array,
) -> Started<(String, String, String, Uint8Array), String> {
    EngineTask::start((options_json, plan_json, hits_json, frame), |(options, plan, hits, frame)| {
        let options: IndexOptions = from_json(options, "index options")?;
        let plan: QueryPlan = from_json(plan, "query plan")?;
        let hits: Vec<PageHit> = from_json(hits, "hits")?;
        to_json(&full_text::order_page(&options, &plan, &hits, frame)?)
    })
}

pub struct HighlightInput {
    options_json: String,
    plan_json: String,
    highlight_json: String,
    frame: Uint8Array,
}
