//! The columns that every query reads, opened once for each segment.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

use tantivy::columnar::{Column, DynamicColumn, DynamicColumnHandle, StrColumn};
use tantivy::fieldnorm::FieldNormReader;
use tantivy::index::SegmentId;
use tantivy::schema::Field;
use tantivy::{DocId, Searcher, SegmentReader};

use super::errors::{damaged, io_failed, tantivy_failed};
use super::field_files::FieldFiles;
use super::fields::{KEY, ORDINAL, SEQUENCE, TTL_BASE};
use super::first_docs::FirstDocs;
use super::key_fences::KeyFences;
use super::plan::SortField;
use super::query::FrequencyCache;
use crate::error::EngineError;

/// Documents whose least key is kept.
pub const BLOCK_DOCS: usize = 128;

/// Names whose columns are kept open, and orders that are known.
const NAMED_MAX: usize = 16;

/// How long the texts of a field are.
#[derive(Clone)]
pub struct FieldNorms {
    pub all: FieldNormReader,
    /// Of the shortest text. Documents without the field have none.
    pub least: u8,
    /// Of the longest.
    pub greatest: u8,
}

pub struct SegmentColumns {
    pub segment: SegmentId,
    pub ordinal: Column<u64>,
    pub sequence: Column<u64>,
    pub ttl_base: Column<i64>,
    /// Some documents may expire.
    pub expires: bool,
    pub keys: StrColumn,
    fences: OnceLock<KeyFences>,
    least_key_ranks: OnceLock<Vec<u64>>,
    blocks_by_key: OnceLock<Vec<u32>>,
    norms: Mutex<Vec<(Field, FieldNorms)>>,
    field_files: Mutex<Vec<(Field, FieldFiles)>>,
    /// By the name of the column: those of the paths that orders have named.
    named: Mutex<Vec<(String, Vec<DynamicColumn>)>>,
    /// By the order's field and whether it descends.
    first_docs: Mutex<Vec<(SortField, Arc<FirstDocs>)>>,
    pub frequencies: FrequencyCache,
}

impl fmt::Debug for SegmentColumns {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("SegmentColumns").field("segment", &self.segment).finish_non_exhaustive()
    }
}

impl SegmentColumns {
    pub fn open(reader: &SegmentReader) -> Result<Self, EngineError> {
        let columns = reader.fast_fields();
        let keys = columns.str(KEY).map_err(tantivy_failed)?;
        let ttl_base = columns.i64(TTL_BASE).map_err(tantivy_failed)?;
        Ok(Self {
            segment: reader.segment_id(),
            ordinal: columns.u64(ORDINAL).map_err(tantivy_failed)?,
            sequence: columns.u64(SEQUENCE).map_err(tantivy_failed)?,
            expires: ttl_base.max_value() > 0,
            ttl_base,
            keys: keys.ok_or_else(|| damaged("a segment has no key column".to_owned()))?,
            fences: OnceLock::new(),
            least_key_ranks: OnceLock::new(),
            blocks_by_key: OnceLock::new(),
            norms: Mutex::default(),
            field_files: Mutex::default(),
            named: Mutex::default(),
            first_docs: Mutex::default(),
            frequencies: FrequencyCache::default(),
        })
    }

    /// No document near `doc` has a key of a lesser rank.
    pub fn least_key_rank(&self, doc: DocId) -> u64 {
        self.least_key_ranks().get(doc as usize / BLOCK_DOCS).copied().unwrap_or(0)
    }

    /// All documents in blocks, each with the least rank of its keys, in the order of those.
    pub fn blocks_by_key(&self) -> impl Iterator<Item = (Range<DocId>, u64)> + '_ {
        let least = self.least_key_ranks();
        let order = self.blocks_by_key.get_or_init(|| {
            let mut order: Vec<u32> = (0..least.len() as u32).collect();
            order.sort_unstable_by_key(|block| least[*block as usize]);
            order
        });
        let count = self.keys.ords().num_docs();
        let docs = move |block: u32| block * BLOCK_DOCS as DocId..((block + 1) * BLOCK_DOCS as DocId).min(count);
        order.iter().map(move |block| (docs(*block), least[*block as usize]))
    }

    fn least_key_ranks(&self) -> &[u64] {
        self.least_key_ranks.get_or_init(|| {
            let docs: Vec<DocId> = (0..self.keys.ords().num_docs()).collect();
            let mut ranks = [None; BLOCK_DOCS];
            let least = |block: &[DocId]| {
                self.keys.ords().first_vals(block, &mut ranks[..block.len()]);
                ranks[..block.len()].iter().flatten().copied().min().unwrap_or(0)
            };
            docs.chunks(BLOCK_DOCS).map(least).collect()
        })
    }

    /// The norms of a field. `reader` is the segment's.
    pub fn norms(&self, reader: &SegmentReader, field: Field) -> tantivy::Result<FieldNorms> {
        let mut known = self.norms.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some((_, norms)) = known.iter().find(|(of, _)| *of == field) {
            return Ok(norms.clone());
        }
        let all = reader.fieldnorms_readers().get_field(field)?;
        let all = all.unwrap_or_else(|| FieldNormReader::constant(reader.max_doc(), 1));
        let norms = (0..all.num_docs()).map(|doc| all.fieldnorm_id(doc)).filter(|norm| *norm > 0);
        let (least, greatest) = (norms.clone().min().unwrap_or(0), norms.max().unwrap_or(0));
        let norms = FieldNorms { all, least, greatest };
        known.push((field, norms.clone()));
        Ok(norms)
    }

    /// The files of a field's postings, which `reader` is of; `None` where they are gone.
    pub fn field_files(&self, reader: &SegmentReader, field: Field) -> Option<FieldFiles> {
        let mut known = self.field_files.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some((_, files)) = known.iter().find(|(of, _)| *of == field) {
            return Some(files.clone());
        }
        let files = FieldFiles::open(reader, field)?;
        known.push((field, files.clone()));
        Some(files)
    }

    /// The columns of a name, one for each type that the segment has met under it. `reader` is the segment's.
    pub fn named(&self, reader: &SegmentReader, name: &str) -> Result<Vec<DynamicColumn>, EngineError> {
        let mut known = self.named.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some((_, columns)) = known.iter().find(|(of, _)| of == name) {
            return Ok(columns.clone());
        }
        let handles = reader.fast_fields().dynamic_column_handles(name).map_err(tantivy_failed)?;
        let open = |handle: DynamicColumnHandle| handle.open().map_err(io_failed("open a column"));
        let columns = handles.into_iter().map(open).collect::<Result<Vec<_>, _>>()?;
        if known.len() == NAMED_MAX {
            known.remove(0);
        }
        known.push((name.to_owned(), columns.clone()));
        Ok(columns)
    }

    /// The segment's first documents by a field, which `make` finds where they are not known.
    pub fn first_docs(
        &self,
        field: &SortField,
        make: impl FnOnce() -> Result<FirstDocs, EngineError>,
    ) -> Result<Arc<FirstDocs>, EngineError> {
        let mut known = self.first_docs.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some((_, docs)) = known.iter().find(|(of, _)| of == field) {
            return Ok(Arc::clone(docs));
        }
        let docs = Arc::new(make()?);
        if known.len() == NAMED_MAX {
            known.remove(0);
        }
        known.push((field.clone(), Arc::clone(&docs)));
        Ok(docs)
    }

    pub fn fences(&self) -> &KeyFences {
        self.fences.get_or_init(|| KeyFences::of(&self.keys))
    }
}

/// The opened columns of the newest commit's segments.
#[derive(Default)]
pub struct ColumnCache(Mutex<HashMap<SegmentId, Arc<SegmentColumns>>>);

impl ColumnCache {
    /// In the order of the searcher's segments.
    pub fn of(&self, searcher: &Searcher) -> Result<Arc<[Arc<SegmentColumns>]>, EngineError> {
        let mut known = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let segments = searcher.segment_readers();
        if known.len() > 2 * segments.len() {
            known.retain(|id, _| segments.iter().any(|segment| segment.segment_id() == *id));
        }
        let mut columns = Vec::with_capacity(segments.len());
        for segment in segments {
            let opened = match known.get(&segment.segment_id()) {
                Some(opened) => Arc::clone(opened),
                None => {
                    let opened = Arc::new(SegmentColumns::open(segment)?);
                    known.insert(segment.segment_id(), Arc::clone(&opened));
                    opened
                }
            };
            columns.push(opened);
        }
        Ok(Arc::from(columns))
    }

    /// The files have moved: what is open would keep the old ones.
    pub fn clear(&self) {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clear();
    }
}
