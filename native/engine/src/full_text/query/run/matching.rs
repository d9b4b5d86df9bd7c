//! Whether documents match a plan: stored ones without an index (the page re-check, rows of a scan that have changed),
//! and those of an index all at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tantivy::query::EnableScoring;
use tantivy::schema::Schema;
use tantivy::{DocId, Index, IndexReader, ReloadPolicy, Searcher};

use crate::error::EngineError;
use crate::frame::{Frame, RowKind};
use crate::full_text::TextIndex;
use crate::full_text::documents::document_reader::DocumentReader;
use crate::full_text::errors::tantivy_failed;
use crate::full_text::fields::build_schema;
use crate::full_text::mapping::TableMapping;
use crate::full_text::options::IndexOptions;
use crate::full_text::plan::QueryPlan;
use crate::full_text::query::compile::compile_plan::{compile_parts, compile_permitted, compile_plan};
use crate::full_text::query::compile::context::CompileContext;
use crate::full_text::query::compile::index_fields::IndexFields;
use crate::full_text::query::deadline::{CancelFlag, Deadline};
use crate::full_text::query::run::collect::visit_all;
use crate::full_text::query::run::filter::filter_bits::filter_bits;
use crate::full_text::query::run::range_view::RangeView;
use crate::full_text::segments::SegmentBuilder;
use crate::full_text::slots::{SlotTable, TakenSlots};
use crate::full_text::storage::IndexDirectory;
use crate::full_text::text_index::index_settings;
use crate::full_text::writing::commit_one_segment;

/// Mappings of the schemas that were asked last.
const MAPPINGS_MAX: usize = 64;

static MAPPINGS: Mutex<Option<HashMap<String, Arc<TableMapping>>>> = Mutex::new(None);

pub fn mapping_of(options: &IndexOptions) -> Arc<TableMapping> {
    let schema = options.schema.to_string();
    let mut guard = MAPPINGS.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let mappings = guard.get_or_insert_with(HashMap::new);
    if let Some(mapping) = mappings.get(&schema) {
        return Arc::clone(mapping);
    }
    if mappings.len() >= MAPPINGS_MAX {
        mappings.clear();
    }
    let mapping = Arc::new(TableMapping::from_schema(&options.schema));
    mappings.insert(schema, Arc::clone(&mapping));
    mapping
}

/// Stored documents, indexed as they would be in an index of some options; in memory, in one segment.
pub struct StoredRows {
    pub searcher: Searcher,
    pub index: IndexFields,
    pub schema: Schema,
    /// For each document of the segment its row in the frame.
    pub rows: Vec<usize>,
}

/// The puts of `frame` that have not expired at `expired_at_or_before_ms` and that an index would not skip.
pub fn index_rows(
    options: &IndexOptions,
    frame: &Frame<'_>,
    expired_at_or_before_ms: Option<i64>,
) -> Result<StoredRows, EngineError> {
    let mapping = mapping_of(options);
    let (schema, fields) = build_schema();
    let (fields, slots) = (Arc::new(fields), Arc::new(SlotTable::new(TakenSlots::default())));
    let mut documents = DocumentReader::new(Arc::clone(&mapping), Arc::clone(&fields), Arc::clone(&slots));
    let stored = Index::builder()
        .schema(schema.clone())
        .settings(index_settings())
        .open_or_create(IndexDirectory::in_memory())
        .map_err(tantivy_failed)?;
    let mut segment = SegmentBuilder::new(&fields);
    let mut rows = Vec::new();
    for (at, row) in frame.rows().enumerate() {
        let row = row?;
        let is_expired = expired_at_or_before_ms.is_some_and(|bound| row.ttl_base_ms > 0 && row.ttl_base_ms <= bound);
        if row.kind != RowKind::Put || is_expired {
            continue;
        }
        if documents.read(&row, &mut segment).is_ok() {
            rows.push(at);
        }
    }
    if !rows.is_empty() {
        let segment = segment.finish(stored.new_segment()).map_err(tantivy_failed)?;
        commit_one_segment(&stored, &segment).map_err(tantivy_failed)?;
    }
    let reader: IndexReader =
        stored.reader_builder().reload_policy(ReloadPolicy::Manual).try_into().map_err(tantivy_failed)?;
    let index = IndexFields::new(fields, mapping, slots.snapshot());
    Ok(StoredRows { searcher: reader.searcher(), index, schema, rows })
}

/// One byte for each row of `frame`: 1 when it is a put whose document matches `plan` (query, filters, exclusions, key
/// prefix, TTL), else 0. The rows are indexed as they would be in an index of these options, and the same compiled
/// query runs over them, so that a filter means one thing. A document that an index would skip matches nothing.
pub fn match_documents(options: &IndexOptions, plan: &QueryPlan, frame: &[u8]) -> Result<Vec<u8>, EngineError> {
    let frame = Frame::parse(frame)?;
    let mut matched = vec![0u8; frame.row_count()];
    let StoredRows { searcher, index, schema, rows } = index_rows(options, &frame, plan.expired_at_or_before_ms)?;
    if rows.is_empty() {
        return Ok(matched);
    }
    let deadline = Deadline::new(&CancelFlag::default(), plan.timeout_ms);
    let query = compile_plan(&CompileContext::new(&index, None, deadline.clone()), plan)?;
    let weight = query.weight(EnableScoring::disabled_from_schema(&schema)).map_err(tantivy_failed)?;
    for reader in searcher.segment_readers() {
        // One segment, in the order in which the rows were added.
        visit_all(reader, &*weight, &deadline, |doc, _| matched[rows[doc as usize]] = 1)?;
    }
    Ok(matched)
}

/// For each row of `frame` whether the row filter of `plan` permits its document; `None` without a row filter.
pub fn permitted_rows(
    options: &IndexOptions,
    plan: &QueryPlan,
    frame: &Frame<'_>,
) -> Result<Option<Vec<bool>>, EngineError> {
    if plan.row_filter.is_empty() {
        return Ok(None);
    }
    let StoredRows { searcher, index, schema, rows } = index_rows(options, frame, None)?;
    let mut permitted = vec![false; frame.row_count()];
    let deadline = Deadline::new(&CancelFlag::default(), plan.timeout_ms);
    let query = compile_permitted(&CompileContext::new(&index, None, deadline.clone()), plan)?;
    let weight = query.weight(EnableScoring::disabled_from_schema(&schema)).map_err(tantivy_failed)?;
    for reader in searcher.segment_readers() {
        visit_all(reader, &*weight, &deadline, |doc, _| permitted[rows[doc as usize]] = true)?;
    }
    Ok(Some(permitted))
}

/// Which documents of the newest commit the filters, exclusions and key prefix of `plan` let through, expired ones too:
/// a bit for each ordinal, the first in the lowest bit of the first byte. Ordinals behind the last byte are let through
/// by nothing.
///
/// Errors: `invalid_query`; `query_timeout` after `plan.timeout_ms` or when `cancel` is set.
pub fn matching_ordinals(index: &TextIndex, plan: &QueryPlan, cancel: &CancelFlag) -> Result<Vec<u8>, EngineError> {
    let view = RangeView::of(index, cancel)?;
    if compile_parts(&view.compiling(plan), plan)?.is_none() {
        return Ok(Vec::new());
    }
    let allowed = filter_bits(&view, plan, &Deadline::new(cancel, plan.timeout_ms))?;
    let mut ordinals = Vec::new();
    for (segment, reader, columns) in view.segments().iter() {
        let mut take = |doc: DocId| {
            let Some(ordinal) = columns.ordinal.first(doc).filter(|_| !reader.is_deleted(doc)) else { return };
            let byte = ordinal as usize / 8;
            if byte >= ordinals.len() {
                ordinals.resize(byte + 1, 0u8);
            }
            ordinals[byte] |= 1 << (ordinal % 8);
        };
        match &allowed {
            Some(allowed) => allowed[segment as usize].iter().for_each(&mut take),
            None => (0..reader.max_doc()).for_each(&mut take),
        }
    }
    Ok(ordinals)
}
