//! A plan's query over one range.

use tantivy::query::{EmptyQuery, Query};

use crate::error::EngineError;
use crate::full_text::plan::QueryPlan;
use crate::full_text::query::compile::compile_plan::compile_parts;
use crate::full_text::query::deadline::Deadline;
use crate::full_text::query::run::filter::filter_bits::{BitsQuery, known_filter_bits};
use crate::full_text::query::run::range_view::RangeView;

/// The plan's query over one range; conditions that were asked before are looked up in their bits.
pub fn filtered_query(view: &RangeView, plan: &QueryPlan, deadline: &Deadline) -> Result<Box<dyn Query>, EngineError> {
    let Some(compiled) = compile_parts(&view.compiling(plan), plan)? else { return Ok(Box::new(EmptyQuery)) };
    Ok(match known_filter_bits(view, plan, deadline)? {
        Some(bits) => compiled.with_condition(Box::new(BitsQuery::new(view, bits))).whole(),
        None => compiled.whole(),
    })
}
