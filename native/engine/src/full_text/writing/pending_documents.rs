//! The changes of the next commit: new segments, and documents that leave older ones.

use std::collections::HashMap;
use std::sync::Arc;

use tantivy::directory::TerminatingWrite;
use tantivy::fastfield::write_alive_bitset;
use tantivy::index::{SegmentComponent, SegmentId};
use tantivy::query::{EmptyScorer, EnableScoring, Explanation, Query, Scorer, TermQuery, Weight};
use tantivy::schema::IndexRecordOption;
use tantivy::{BitSet, DocId, Index, Opstamp, Score, Segment, SegmentMeta, SegmentReader, Term};

use super::lazy_writer::SegmentsWriter;
use crate::frame::Row;
use crate::full_text::documents::document_reader::DocumentReader;
use crate::full_text::fields::Fields;
use crate::full_text::segments::SegmentBuilder;

/// A commit of more documents, or more bytes of bodies, goes through Tantivy's writer, which merges.
const SMALL_DOCUMENTS_MAX: u32 = 128;
const SMALL_BODY_BYTES_MAX: usize = 256 * 1024;

/// In the name of the file that says which documents of a new segment have left it again. Tantivy's own are larger.
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
    body_bytes: usize,
}

impl PendingDocuments {
    /// Few documents, in one segment.
    pub fn is_small(&self) -> bool {
        let documents = self.building.as_ref().map_or(0, |building| building.segment.document_count());
        self.written.is_empty() && documents <= SMALL_DOCUMENTS_MAX && self.body_bytes <= SMALL_BODY_BYTES_MAX
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
        self.body_bytes += row.body.len();
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
        self.body_bytes = 0;
        let deleted = self.deleted_ordinals.drain(..).map(|ordinal| fields.ordinal_term(ordinal)).collect();
        Ok((deleted, added))
    }

    /// Gives what is held back to the writer, for the commit that follows.
    pub fn hand_to(&mut self, writer: &SegmentsWriter, fields: &Fields) -> tantivy::Result<()> {
        let (deleted, added) = self.take(writer.index(), fields)?;
        let except: Arc<[SegmentId]> = added.iter().map(SegmentMeta::id).collect();
        for term in deleted {
            writer.delete_query(Box::new(OlderVersions { term, except: Arc::clone(&except) }))?;
        }
        added.into_iter().try_for_each(|segment| writer.add_segment(segment))
    }
}

fn without(segment: Segment, left: &[DocId]) -> tantivy::Result<Segment> {
    let mut alive = BitSet::with_max_value_and_full(segment.meta().max_doc());
    left.iter().for_each(|document| alive.remove(*document));
    let segment = segment.with_delete_meta(left.len() as u32, FIRST_OPSTAMP);
    let mut file = segment.open_write(SegmentComponent::Delete)?;
    write_alive_bitset(&alive, &mut file)?;
    file.terminate()?;
    Ok(segment)
}

/// The documents of one ordinal but for those in the segments of the commit. Tantivy applies the deletes of a commit to
/// the whole of an added segment, also those that came before it.
#[derive(Debug, Clone)]
struct OlderVersions {
    term: Term,
    except: Arc<[SegmentId]>,
}

impl Query for OlderVersions {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let of_ordinal = TermQuery::new(self.term.clone(), IndexRecordOption::Basic).weight(scoring)?;
        Ok(Box::new(OlderVersionsWeight { of_ordinal, except: Arc::clone(&self.except) }))
    }
}

struct OlderVersionsWeight {
    of_ordinal: Box<dyn Weight>,
    except: Arc<[SegmentId]>,
}

impl Weight for OlderVersionsWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        if self.except.contains(&reader.segment_id()) {
            return Ok(Box::new(EmptyScorer));
        }
        self.of_ordinal.scorer(reader, boost)
    }

    fn explain(&self, reader: &SegmentReader, document: DocId) -> tantivy::Result<Explanation> {
        self.of_ordinal.explain(reader, document)
    }
}
