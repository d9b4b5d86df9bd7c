//! The views of all ranges of a query.

use std::sync::Arc;

use crate::error::EngineError;
use crate::full_text::TextIndex;
use crate::full_text::plan::QueryPlan;
use crate::full_text::query::deadline::Deadline;
use crate::full_text::query::run::filter::filter_bits::permitted_bits;
use crate::full_text::query::run::range_view::RangeView;
use crate::full_text::query::terms::typo_terms::{RangeWords, Vocabulary, needs_vocabulary};

/// Errors: `invalid_query`, and `query_timeout`, where words may be misspelt and the plan has row filters.
pub fn open_views(
    indexes: &[Arc<TextIndex>],
    plan: &QueryPlan,
    deadline: &Deadline,
) -> Result<Vec<RangeView>, EngineError> {
    let open = |index: &Arc<TextIndex>| RangeView::of(index, deadline.cancel());
    let views: Vec<RangeView> = indexes.iter().map(open).collect::<Result<_, _>>()?;
    if !needs_vocabulary(plan) {
        return Ok(views);
    }
    let words = views.iter().map(|view| words_of(view, plan, deadline)).collect::<Result<_, _>>()?;
    let vocabulary = Arc::new(Vocabulary::new(words));
    Ok(views.into_iter().map(|view| view.with_vocabulary(&vocabulary)).collect())
}

/// The words that a search by `plan` may know of.
fn words_of(view: &RangeView, plan: &QueryPlan, deadline: &Deadline) -> Result<RangeWords, EngineError> {
    let permitted = permitted_bits(view, plan, deadline)?;
    Ok(RangeWords { searcher: view.searcher.clone(), index: view.index.clone(), permitted })
}
