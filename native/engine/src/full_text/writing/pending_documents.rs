//! The changes of the next commit: new segments, and documents that leave older ones.

use std::collections::HashMap;
use std::sync::Arc;

use tantivy::directory::TerminatingWrite;
use tantivy::fastfield::write_alive_bitset;
use tantivy::index::{SegmentComponent, SegmentId};
use tantivy::{BitSet, DocId, Index, Opstamp, Segment, SegmentMeta, Term};

use crate::frame::Row;
use crate::full_text::documents::document_reader::DocumentReader;
use crate::full_text::fields::Fields;
use crate::full_text::segments::SegmentBuilder;

/// In the name of the file that says which documents of a new segment have left it again. Those of commits are larger.
const FIRST_OPSTAMP: Opstamp = 0;

/// A segment of this commit, which is being built or is written.
struct NewSegment<S> {
    segment: S,
    /// By ordinal; the newest versions only.
    documents: HashMap<u32, DocId>,
    /// Documents that a newer version or a delete has followed.
    left: Vec<DocId>,
}

impl<S> NewSegment<S> {
    fn remove(&mut self, ordinal: u32) {
        self.left.extend(self.documents.remove(&ordinal));
    }
}

#[derive(Default)]
pub struct PendingDocuments {
    building: Option<NewSegment<SegmentBuilder>>,
    written: Vec<NewSegment<Segment>>,
    /// Documents that leave the segments of earlier commits.
    deleted_ordinals: Vec<u32>,
}

impl PendingDocuments {
    /// Segments whose files are written.
    pub fn written(&self) -> impl Iterator<Item = SegmentId> {
        self.written.iter().map(|written| written.segment.id())
    }

    /// The inner error is the reason for which the document is left out. Of a segment with `budget_bytes` the files are
    /// written.
    pub fn add(
        &mut self,
        row: &Row<'_>,
        documents: &mut DocumentReader,
        index: &Index,
        (fields, budget_bytes): (&Arc<Fields>, usize),
    ) -> tantivy::Result<Result<(), String>> {
        let building = self.building.get_or_insert_with(|| NewSegment {
            segment: SegmentBuilder::new(fields),
            documents: HashMap::new(),
            left: Vec::new(),
        });
        let number = building.segment.document_count();
        if let Err(reason) = documents.read(row, &mut building.segment) {
            return Ok(Err(reason));
        }
        building.documents.insert(row.ordinal, number);
        if building.segment.is_full(budget_bytes) {
            self.write_segment(index)?;
        }
        Ok(Ok(()))
    }

    /// A newer version of the document comes, or it is deleted.
    pub fn delete(&mut self, ordinal: u32) {
        self.written.iter_mut().for_each(|segment| segment.remove(ordinal));
        if let Some(building) = &mut self.building {
            building.remove(ordinal);
        }
        self.deleted_ordinals.push(ordinal);
    }

    fn write_segment(&mut self, index: &Index) -> tantivy::Result<()> {
        let Some(NewSegment { segment, documents, left }) = self.building.take() else { return Ok(()) };
        if segment.document_count() > 0 {
            let segment = segment.finish(index.new_segment())?;
            self.written.push(NewSegment { segment, documents, left });
        }
        Ok(())
    }

    /// The terms of the documents that leave older segments, and the new segments, whose files are written.
    pub fn take(&mut self, index: &Index, fields: &Fields) -> tantivy::Result<(Vec<Term>, Vec<SegmentMeta>)> {
        self.write_segment(index)?;
        let mut added = Vec::new();
        for NewSegment { segment, left, .. } in self.written.drain(..) {
            let segment = if left.is_empty() { segment } else { without(segment, &left)? };
            added.extend((segment.meta().num_docs() > 0).then(|| segment.meta().clone()));
        }
        let deleted = self.deleted_ordinals.drain(..).map(|ordinal| fields.ordinal_term(ordinal)).collect();
        Ok((deleted, added))
    }
}

/// The segment without some of its documents.
pub fn without(segment: Segment, left: &[DocId]) -> tantivy::Result<Segment> {
    let mut alive = BitSet::with_max_value_and_full(segment.meta().max_doc());
    left.iter().for_each(|document| alive.remove(*document));
    let segment = segment.with_delete_meta(left.len() as u32, FIRST_OPSTAMP);
    let mut file = segment.open_write(SegmentComponent::Delete)?;
    write_alive_bitset(&alive, &mut file)?;
    file.terminate()?;
    Ok(segment)
}
