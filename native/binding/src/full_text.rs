//! What full text does with stored documents alone: match and highlight them.

use napi::bindgen_prelude::Uint8Array;
use napi_derive::napi;
use sundew_engine::full_text::{self, HighlightPlan, IndexOptions, QueryPlan};

use crate::guard::{EngineTask, Started};
use crate::json::from_json;
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

pub struct HighlightInput {
    options_json: String,
    plan_json: String,
    highlight_json: String,
    frame: Uint8Array,
}
