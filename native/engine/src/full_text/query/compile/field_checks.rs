//! The fields that nothing can be said about: those that a schema leaves out of its indexes.

use crate::error::EngineError;
use crate::full_text::plan::{Node, QueryPlan};
use crate::full_text::query::compile::clauses::invalid;
use crate::full_text::query::compile::index_fields::IndexFields;

/// Errors: `invalid_query` when the request asks about a field that is declared not to be indexed, since no document would be
/// found by it. Under a row filter by such a field nothing is seen, which hides enough.
pub fn check_fields(index: &IndexFields, plan: &QueryPlan) -> Result<(), EngineError> {
    plan.query.iter().chain(&plan.filter).chain(&plan.exclusion).try_for_each(|node| check_node(index, node))
}

/// Errors: `invalid_query` when `field` is declared not to be indexed.
pub fn check_field(index: &IndexFields, field: &str) -> Result<(), EngineError> {
    if !index.mapping.facts_of(field).is_left_out {
        return Ok(());
    }
    Err(invalid(format!(
        "\"{field}\" is not indexed, as the schema of the table says: nothing can be found or ordered by it"
    )))
}

fn check_node(index: &IndexFields, node: &Node) -> Result<(), EngineError> {
    match node {
        Node::MatchAll { .. } | Node::MatchNone {} | Node::Ids { .. } => Ok(()),
        Node::Match { field, .. }
        | Node::Phrase { field, .. }
        | Node::Term { field, .. }
        | Node::Prefix { field, .. }
        | Node::Fuzzy { field, .. }
        | Node::Wildcard { field, .. }
        | Node::Regexp { field, .. }
        | Node::TermsPhrase { field, .. } => field.iter().try_for_each(|field| check_field(index, field)),
        Node::IpRange { field, .. }
        | Node::GeoBox { field, .. }
        | Node::GeoDistance { field, .. }
        | Node::GeoPolygon { field, .. }
        | Node::GeoShape { field, .. }
        | Node::Range { field, .. }
        | Node::BoolField { field, .. }
        | Node::Exists { field, .. } => check_field(index, field),
        Node::BoolPrefix { fields, .. } => fields.iter().try_for_each(|each| check_field(index, &each.field)),
        Node::Bool { must, should, must_not, filter, .. } => {
            must.iter().chain(should).chain(must_not).chain(filter).try_for_each(|clause| check_node(index, clause))
        }
    }
}
