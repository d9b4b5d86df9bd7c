//! Fields and values that nothing can be said about: those that are not in an index.

use crate::error::EngineError;
use crate::full_text::fields::KEY;
use crate::full_text::mapping::WHOLE_BYTES_MAX;
use crate::full_text::plan::{ALL_FIELDS, Node, QueryPlan, RangeKind, TermValue};
use crate::full_text::query::compile::clauses::invalid;
use crate::full_text::query::compile::index_fields::IndexFields;

/// A field that is declared not to be indexed finds nothing, as declared. To leave out documents by it would let all through.
///
/// Errors: `invalid_query` where that is asked for, by the request or the row filter of its caller, and where the
/// request has a field that is never indexed, or a string longer than those that are indexed whole. A row filter that
/// asks for either shows nothing, which hides enough.
pub fn check_fields(index: &IndexFields, plan: &QueryPlan) -> Result<(), EngineError> {
    let asked = plan.query.iter().chain(&plan.filter).map(|node| (node, false));
    let left_out = plan.exclusion.iter().map(|node| (node, true));
    asked.chain(left_out).try_for_each(|(node, leaves_out)| check_node(index, node, leaves_out, true))?;
    let row_filter = plan.row_filter.iter().try_for_each(|node| check_node(index, node, false, false));
    row_filter.map_err(|_| {
        invalid(
            "the row filter of the caller leaves out documents by what is not indexed: an administrator has to change it",
        )
    })
}

/// Errors: `invalid_query` when `field` is never indexed, or declared not to be.
pub fn check_field(index: &IndexFields, field: &str) -> Result<(), EngineError> {
    check_name(index, field)?;
    if !index.mapping.facts_of(field).is_left_out {
        return Ok(());
    }
    Err(invalid(format!(
        "\"{field}\" is not indexed, as the schema of the table says: nothing can be found or ordered by it"
    )))
}

/// Errors: `invalid_query` when `field` is never indexed.
fn check_name(index: &IndexFields, field: &str) -> Result<(), EngineError> {
    if !index.mapping.facts_of(field).is_never_indexed {
        return Ok(());
    }
    let message = if field.starts_with('_') {
        format!("\"{field}\" is not indexed: members of a document that begin with \"_\" are left to the server")
    } else {
        "a field is not indexed: its name has more than 1024 bytes, or a control character".to_owned()
    };
    Err(invalid(message))
}

/// Errors: `invalid_query` when `field` has no value that lies between bounds of this kind.
fn check_has_values(index: &IndexFields, field: &str, of: RangeKind) -> Result<(), EngineError> {
    let facts = index.mapping.facts_of(field);
    let how = match of {
        _ if facts.has_only_text => "by its words alone",
        RangeKind::Number if !facts.holds.numbers => "without numbers",
        RangeKind::Date if !facts.holds.dates => "without dates",
        _ => return Ok(()),
    };
    Err(invalid(format!(
        "\"{field}\" is indexed {how}, as the schema of the table says: no range can leave out documents by it"
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

/// `leaves_out`: documents that match are not wanted. `is_asked`: by the request, not by a row filter.
fn check_node(index: &IndexFields, node: &Node, leaves_out: bool, is_asked: bool) -> Result<(), EngineError> {
    let check_field = |field: &str| match (leaves_out, is_asked) {
        (true, _) => check_field(index, field),
        (false, true) => check_name(index, field),
        (false, false) => Ok(()),
    };
    match node {
        Node::MatchAll { .. } | Node::MatchNone {} | Node::Ids { .. } => Ok(()),
        Node::Term { field, value: TermValue::Text(value), .. } | Node::Prefix { field, value, .. } => {
            field.iter().try_for_each(|field| check_field(field))?;
            if leaves_out || is_asked { check_whole(index, field.as_deref(), value) } else { Ok(()) }
        }
        Node::Match { field, .. }
        | Node::Phrase { field, .. }
        | Node::Term { field, .. }
        | Node::Fuzzy { field, .. }
        | Node::Wildcard { field, .. }
        | Node::Regexp { field, .. }
        | Node::TermsPhrase { field, .. } => field.iter().try_for_each(|field| check_field(field)),
        Node::IpRange { field, .. }
        | Node::GeoBox { field, .. }
        | Node::GeoDistance { field, .. }
        | Node::GeoPolygon { field, .. }
        | Node::GeoShape { field, .. }
        | Node::BoolField { field, .. }
        | Node::Exists { field, .. } => check_field(field),
        Node::Range { field, of, .. } => {
            check_field(field)?;
            if leaves_out { check_has_values(index, field, *of) } else { Ok(()) }
        }
        Node::BoolPrefix { fields, .. } => {
            let mut named = fields.iter().filter(|each| each.field != ALL_FIELDS);
            named.try_for_each(|each| check_field(&each.field))
        }
        Node::Bool { must, should, must_not, filter, .. } => {
            let mut wanted = must.iter().chain(should).chain(filter);
            wanted.try_for_each(|clause| check_node(index, clause, leaves_out, is_asked))?;
            must_not.iter().try_for_each(|clause| check_node(index, clause, true, is_asked))
        }
    }
}
