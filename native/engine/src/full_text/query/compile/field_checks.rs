//! Fields and values that nothing can be said about: those that are not in an index.

use crate::error::EngineError;
use crate::full_text::fields::KEY;
use crate::full_text::mapping::WHOLE_BYTES_MAX;
use crate::full_text::plan::{Node, QueryPlan, TermValue};
use crate::full_text::query::compile::clauses::invalid;
use crate::full_text::query::compile::index_fields::IndexFields;

/// Errors: `invalid_query` when the request asks about a field that is declared not to be indexed, or a string longer than those that
/// are indexed whole, since no document would be found by it. Under a row filter by such a one nothing is seen, which hides enough.
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

fn check_whole(index: &IndexFields, field: Option<&str>, value: &str) -> Result<(), EngineError> {
    let most = match field {
        Some(KEY) => return Ok(()),
        Some(field) => index.mapping.facts_of(field).whole_bytes_max,
        None => WHOLE_BYTES_MAX,
    };
    if value.len() <= most {
        return Ok(());
    }
    let field = field.map_or_else(String::new, |field| format!(" of \"{field}\""));
    Err(invalid(format!(
        "strings{field} above {most} bytes are not indexed whole: look for their words, with \"match_phrase\""
    )))
}

fn check_node(index: &IndexFields, node: &Node) -> Result<(), EngineError> {
    match node {
        Node::MatchAll { .. } | Node::MatchNone {} | Node::Ids { .. } => Ok(()),
        Node::Term { field, value: TermValue::Text(value), .. } | Node::Prefix { field, value, .. } => {
            field.iter().try_for_each(|field| check_field(index, field))?;
            check_whole(index, field.as_deref(), value)
        }
        Node::Match { field, .. }
        | Node::Phrase { field, .. }
        | Node::Term { field, .. }
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
