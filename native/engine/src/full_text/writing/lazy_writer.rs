//! Tantivy's writer of an index, open from the first commit that needs it until it is given back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tantivy::indexer::{IndexWriterOptions, LogMergePolicy};
use tantivy::schema::{Field, OwnedValue};
use tantivy::{Index, IndexWriter};

use crate::full_text::options::IndexOptions;

/// Segments of like size that are merged into one.
pub const MERGED_SEGMENTS_MIN: usize = 12;

/// Segments up to this size count as of like size. Tantivy's own 10,000 merges the segments of single writes with much
/// larger ones again and again; with this they are merged among themselves first.
const SMALLEST_LAYER_DOCUMENTS: u32 = 100;

/// A segment with more deleted documents than this share is merged.
const DELETED_SHARE_MAX: f32 = 0.3;

/// The least that Tantivy takes for an indexing thread. Ours never has a document.
const BUDGET_BYTES_MIN: usize = 15_000_000;

/// Tantivy's writer is given segments alone; its queue of documents has room for 40,000 in place.
pub enum NoDocument {}

impl tantivy::Document for NoDocument {
    type Value<'a> = &'a OwnedValue;
    type FieldsValuesIter<'a> = std::iter::Empty<(Field, &'a OwnedValue)>;

    fn iter_fields_and_values(&self) -> Self::FieldsValuesIter<'_> {
        std::iter::empty()
    }
}

pub type SegmentsWriter = IndexWriter<NoDocument>;

pub struct LazyWriter {
    pub index: Index,
    /// Of a segment that is being built.
    pub budget_bytes: usize,
    writer: Option<SegmentsWriter>,
    /// Whether it is, for those who do not wait for the one who writes.
    is_open: Arc<AtomicBool>,
}

impl LazyWriter {
    pub fn new(index: Index, options: &IndexOptions) -> Self {
        Self { index, budget_bytes: options.writer_budget_bytes, writer: None, is_open: Arc::default() }
    }

    /// Tells at any time whether the writer is open.
    pub fn open_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_open)
    }

    pub fn is_open(&self) -> bool {
        self.writer.is_some()
    }

    /// The writer, which is opened if it is not.
    pub fn opened(&mut self) -> tantivy::Result<&mut SegmentsWriter> {
        let writer = match self.writer.take() {
            Some(writer) => writer,
            None => self.open()?,
        };
        self.is_open.store(true, Ordering::Relaxed);
        Ok(self.writer.insert(writer))
    }

    fn open(&self) -> tantivy::Result<SegmentsWriter> {
        let options = IndexWriterOptions::builder()
            .num_worker_threads(1)
            .memory_budget_per_thread(BUDGET_BYTES_MIN)
            .num_merge_threads(1)
            .build();
        let writer = self.index.writer_with_options(options)?;
        let mut merge_policy = LogMergePolicy::default();
        merge_policy.set_min_num_segments(MERGED_SEGMENTS_MIN);
        merge_policy.set_min_layer_size(SMALLEST_LAYER_DOCUMENTS);
        merge_policy.set_del_docs_ratio_before_merge(DELETED_SHARE_MAX);
        writer.set_merge_policy(Box::new(merge_policy));
        // A new writer gives its first operation the opstamp of the last commit. A merge of that commit would take such a
        // delete for one of the commit's own, and lose it for the segments that have deletes by then.
        writer.run([])?;
        Ok(writer)
    }

    /// The writer, which is no longer open.
    pub fn take(&mut self) -> Option<SegmentsWriter> {
        self.is_open.store(false, Ordering::Relaxed);
        self.writer.take()
    }
}
