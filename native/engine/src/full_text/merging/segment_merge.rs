//! The merge of some segments of a commit: begun and ended under the lock of the one who writes, written without it.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use tantivy::columnar::{ColumnarReader, MergeRowOrder, RowAddr, ShuffleMergeOrder, StackMergeOrder, merge_columnar};
use tantivy::directory::TerminatingWrite;
use tantivy::index::{SegmentComponent, SegmentId};
use tantivy::{DocId, Index, Segment, SegmentMeta, SegmentReader};

use super::inverted_index::MergedIndex;
use super::source_segment::SourceSegment;
use crate::full_text::segments::{fixed_columns, write_empty_store};

pub struct SegmentMerge {
    sources: Vec<SourceSegment>,
    segment: Segment,
}

/// A merged segment whose files are written. Of its documents some may have left their old segments meanwhile.
pub struct MergedSegment {
    pub segment: Segment,
    sources: Vec<SourceSegment>,
}

impl SegmentMerge {
    /// Of `segments`, which are of the newest commit.
    pub fn begin(index: &Index, segments: &[SegmentMeta]) -> tantivy::Result<Self> {
        let mut documents = 0;
        let mut sources = Vec::with_capacity(segments.len());
        for meta in segments {
            sources.push(SourceSegment::open(&index.segment(meta.clone()), documents)?);
            documents += meta.num_docs();
        }
        Ok(Self { sources, segment: index.new_segment().with_max_doc(documents) })
    }

    /// Of the segment that is made, whose files belong to no commit yet.
    pub fn id(&self) -> SegmentId {
        self.segment.id()
    }

    /// Writes the files. Error when `is_stopped` becomes true before they are.
    pub fn write(self, is_stopped: &AtomicBool) -> tantivy::Result<MergedSegment> {
        let Self { sources, segment } = self;
        MergedIndex { sources: &sources, segment: &segment, is_stopped }.write()?;
        write_columns(&sources, &segment)?;
        write_empty_store(&segment)?;
        segment.meta().untrack_temp_docstore();
        Ok(MergedSegment { segment, sources })
    }
}

impl MergedSegment {
    /// The segments that it takes the place of.
    pub fn replaced(&self) -> Vec<SegmentId> {
        self.sources.iter().map(|source| source.reader.segment_id()).collect()
    }

    /// Its documents that left their old segments since the merge began. `committed`: the segments of the newest commit.
    pub fn left(&self, index: &Index, committed: &[SegmentMeta]) -> tantivy::Result<Vec<DocId>> {
        let committed: HashMap<SegmentId, &SegmentMeta> = committed.iter().map(|meta| (meta.id(), meta)).collect();
        let mut left = Vec::new();
        for source in &self.sources {
            let now = match committed.get(&source.reader.segment_id()) {
                Some(meta) if meta.num_deleted_docs() == source.reader.num_deleted_docs() => continue,
                Some(meta) => Some(SegmentReader::open(&index.segment((*meta).clone()))?),
                // All of its documents have left.
                None => None,
            };
            let has_left = |document: &DocId| now.as_ref().is_none_or(|now| now.is_deleted(*document));
            left.extend(source.documents().filter(has_left).filter_map(|document| source.merged(document)));
        }
        Ok(left)
    }
}

fn write_columns(sources: &[SourceSegment], segment: &Segment) -> tantivy::Result<()> {
    let columns: Vec<&ColumnarReader> = sources.iter().map(|source| &source.columns).collect();
    let order = if sources.iter().any(SourceSegment::has_left) {
        let rows = sources
            .iter()
            .zip(0..)
            .flat_map(|(source, segment_ord)| source.documents().map(move |row_id| RowAddr { segment_ord, row_id }));
        MergeRowOrder::Shuffled(ShuffleMergeOrder {
            new_row_id_to_old_row_id: rows.collect(),
            alive_bitsets: sources
                .iter()
                .map(|source| source.reader.alive_bitset().map(|alive| alive.bitset().clone()))
                .collect(),
        })
    } else {
        MergeRowOrder::Stack(StackMergeOrder::stack(&columns))
    };
    let required = fixed_columns().map(|(name, kind)| (name.to_owned(), kind));
    let mut file = segment.open_write(SegmentComponent::FastFields)?;
    merge_columnar(&columns, &required, order, &mut file)?;
    Ok(file.terminate()?)
}
