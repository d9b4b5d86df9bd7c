//! The order of a sorted page some of whose documents have changed since they were indexed.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::EngineError;
use crate::frame::Frame;
use crate::full_text::options::IndexOptions;
use crate::full_text::plan::{PageCursor, QueryPlan};
use crate::full_text::query::run::matching::{StoredRows, index_rows};
use crate::full_text::query::run::ordered::sort_column::{SCORE_FIELD, SortColumn};
use crate::full_text::query::run::ordered::sort_position::Position;
use crate::full_text::query::run::ordered::sort_values::SortValue;
use crate::full_text::segment_columns::SegmentColumns;

/// A hit of a sorted page, in the order of the index.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageHit {
    pub key: String,
    /// As `Hit::position` gave it.
    pub position: String,
    /// The row of the frame that holds the document as it is stored now; `None` when that is what the index holds.
    #[serde(default)]
    pub row: Option<usize>,
}

/// A hit in the order of what is stored.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OrderedHit {
    /// Its index among the hits that were given.
    pub hit: usize,
    /// Its sort values as `_sort` shows them.
    pub sort: Vec<Value>,
}

/// The hits of one page of `plan` in the order of their stored documents. Rows of the frame take their sort values from
/// their bodies, by the mapping of `options`; scores are those of the index, and so is everything of hits without a row.
///
/// Errors: `invalid_query` for a position that is none.
pub fn order_page(
    options: &IndexOptions,
    plan: &QueryPlan,
    hits: &[PageHit],
    frame: &[u8],
) -> Result<Vec<OrderedHit>, EngineError> {
    let stored = index_rows(options, &Frame::parse(frame)?, None)?;
    let mut placed = Vec::with_capacity(hits.len());
    for (at, hit) in hits.iter().enumerate() {
        let cursor = PageCursor { position: hit.position.clone(), key: hit.key.clone(), before: false };
        let mut values = Position::parse(&cursor, plan.sort.len())?.values;
        if let Some(doc) = hit.row.and_then(|row| stored.rows.iter().position(|indexed| *indexed == row)) {
            take_stored_values(&stored, plan, doc as u32, &mut values)?;
        }
        placed.push((values, at));
    }
    placed.sort_by(|(a, at_a), (b, at_b)| {
        let fields = plan.sort.iter().zip(a.iter().zip(b));
        let order = fields.map(|(field, (a, b))| a.compare(b, field.desc)).find(|order| order.is_ne());
        order.unwrap_or(Ordering::Equal).then_with(|| hits[*at_a].key.cmp(&hits[*at_b].key))
    });
    let shown = |(values, hit): (Vec<SortValue>, usize)| OrderedHit {
        hit,
        sort: values.iter().map(SortValue::to_json).collect(),
    };
    Ok(placed.into_iter().map(shown).collect())
}

fn take_stored_values(
    stored: &StoredRows,
    plan: &QueryPlan,
    doc: u32,
    values: &mut [SortValue],
) -> Result<(), EngineError> {
    let [reader] = stored.searcher.segment_readers() else {
        return Err(EngineError::internal("stored rows of several segments"));
    };
    let fixed = SegmentColumns::open(reader)?;
    for (field, value) in plan.sort.iter().zip(values).filter(|(field, _)| field.field != SCORE_FIELD) {
        let column = SortColumn::open(reader, &fixed, &stored.index, &field.field)?;
        *value = column.sort_value(column.value(doc, field.desc, 0.0))?;
    }
    Ok(())
}
