//! The questions that a table answers whose text index was dropped: conditions on values, but nothing about words.

use crate::error::EngineError;
use crate::full_text::fields::KEY;
use crate::full_text::plan::{Node, QueryPlan};
use crate::full_text::query::compile::clauses::invalid;
use crate::full_text::query::compile::field_checks::check_field;
use crate::full_text::query::compile::index_fields::IndexFields;
use crate::full_text::query::run::ordered::sort_column::SCORE_FIELD;

/// Errors: `invalid_query` when the table has no text index and `plan` needs one: what scores by words, and conditions on
/// words without a field or of fields that have no whole values. Other conditions compare whole values. `unavailable` while
/// a text index is being built, also for those, which it is to compare by words.
pub fn check_text(index: &IndexFields, plan: &QueryPlan) -> Result<(), EngineError> {
    if plan.has_text_index {
        return Ok(());
    }
    let comes = plan.text_index_comes;
    let scored = plan.query.iter().map(|node| needs_words(index, node, true, comes));
    let conditions = plan.filter.iter().chain(&plan.exclusion).chain(&plan.row_filter);
    if !scored.chain(conditions.map(|node| needs_words(index, node, comes, comes))).any(|needed| needed) {
        return Ok(());
    }
    if comes {
        return Err(EngineError::new(
            "unavailable",
            "the full-text index is being built; try again shortly, or wait for it by \"wait_for_index_ms\"",
        ));
    }
    Err(invalid(
        "the table has no full-text index, since it was dropped: ask for whole values by \"term\", or create the index again",
    ))
}

/// Errors: `invalid_query` when `plan` orders by a path whose values are not kept, or which has places alone.
pub fn check_order(index: &IndexFields, plan: &QueryPlan) -> Result<(), EngineError> {
    for field in plan.sort.iter().map(|sort| &sort.field).filter(|field| *field != KEY && *field != SCORE_FIELD) {
        check_field(index, field)?;
        let facts = index.mapping.facts_of(field);
        if facts.may_lack_values {
            return Err(invalid(format!(
                "\"{field}\" has no values to order by: its schema sets \"x-service-doc-values\" to false"
            )));
        }
        if !facts.holds.has_values() && !facts.may_have_words {
            return Err(invalid(format!("\"{field}\" is declared without values to order by")));
        }
    }
    Ok(())
}

/// `by_words`: a condition on words may not compare whole values in their place; `beside`: the same of clauses that do not score.
fn needs_words(index: &IndexFields, node: &Node, by_words: bool, beside: bool) -> bool {
    let has_words = |path: &str| path != KEY && index.mapping.facts_of(path).may_have_words;
    let has_only_text = |path: &str| index.mapping.facts_of(path).has_only_text;
    match node {
        Node::Match { field, .. } | Node::Phrase { field, .. } => match field {
            Some(path) => has_only_text(path) || (by_words && has_words(path)),
            None => true,
        },
        Node::TermsPhrase { field, .. } => field.as_deref().is_none_or(has_words),
        Node::BoolPrefix { fields, .. } => fields.iter().any(|weighted| has_words(&weighted.field)),
        Node::Term { field, .. } => field.as_deref().is_none_or(has_only_text),
        // Each word is compared, and the whole value.
        Node::Prefix { field, .. }
        | Node::Fuzzy { field, .. }
        | Node::Wildcard { field, .. }
        | Node::Regexp { field, .. } => {
            field.as_deref().is_none_or(|path| has_only_text(path) || (beside && has_words(path)))
        }
        Node::Bool { must, should, must_not, filter, .. } => {
            must.iter().chain(should).any(|clause| needs_words(index, clause, by_words, beside))
                || must_not.iter().chain(filter).any(|clause| needs_words(index, clause, beside, beside))
        }
        _ => false,
    }
}
