//! A commit of few documents that needs no writer of Tantivy: such a writer has three threads and megabytes, and of a
//! thousand tables that are written in turn each would want one.
//!
//! It leaves what Tantivy's own commit leaves: the segment of the new documents, a file of deletes for each older segment
//! that lost some, and `meta.json`. Segments are not merged by it.

use std::io::Write;
use std::path::{Path, PathBuf};

use tantivy::directory::TerminatingWrite;
use tantivy::fastfield::write_alive_bitset;
use tantivy::index::SegmentComponent;
use tantivy::schema::IndexRecordOption;
use tantivy::{
    BitSet, Directory, DocSet, Index, IndexMeta, Searcher, Segment, SegmentMeta, SegmentReader, TERMINATED, Term,
};

use crate::full_text::storage::{META_FILE, files_of_commit};

/// The changes of a commit.
pub struct SmallCommit<'a> {
    pub index: &'a Index,
    /// Shows the last commit.
    pub searcher: &'a Searcher,
    /// Of documents that leave the segments of the last commit.
    pub deleted: &'a [Term],
    pub added: Vec<SegmentMeta>,
    pub payload: &'a str,
}

impl SmallCommit<'_> {
    pub fn write(&self) -> tantivy::Result<()> {
        let mut metas = self.index.load_metas()?;
        metas.opstamp += 1;
        let mut segments = Vec::with_capacity(metas.segments.len() + 1);
        for meta in metas.segments {
            segments.push(self.without_deleted(self.index.segment(meta), metas.opstamp)?);
        }
        segments.extend_from_slice(&self.added);
        segments.retain(|segment| segment.num_docs() > 0);
        segments.sort_by_key(|segment| std::cmp::Reverse(segment.max_doc()));
        metas.segments = segments;
        metas.payload = Some(self.payload.to_owned());
        let text = write_metas(self.index, &metas)?;
        if self.deleted.is_empty() { Ok(()) } else { self.remove_superseded(&text) }
    }

    /// Older files of deletes, and segments that have lost all documents. Readers keep what they have open.
    fn remove_superseded(&self, meta: &[u8]) -> tantivy::Result<()> {
        let living = || files_of_commit(meta).into_iter().chain([PathBuf::from(META_FILE)]).collect();
        self.index.clone().directory_mut().garbage_collect(living).map(|_| ())
    }

    fn without_deleted(&self, segment: Segment, opstamp: u64) -> tantivy::Result<SegmentMeta> {
        if self.deleted.is_empty() {
            return Ok(segment.meta().clone());
        }
        let known = self.searcher.segment_readers().iter().find(|reader| is_of(reader, segment.meta()));
        let opened = if known.is_none() { Some(SegmentReader::open(&segment)?) } else { None };
        let Some(reader) = known.or(opened.as_ref()) else { return Ok(segment.meta().clone()) };
        let leaving = living_documents(reader, self.deleted)?;
        if leaving.is_empty() {
            return Ok(segment.meta().clone());
        }
        let mut alive = BitSet::with_max_value_and_full(reader.max_doc());
        if let Some(before) = reader.alive_bitset() {
            alive.intersect_update(before.bitset());
        }
        for document in leaving {
            alive.remove(document);
        }
        let segment = segment.with_delete_meta(reader.max_doc() - alive.len() as u32, opstamp);
        let mut file = segment.open_write(SegmentComponent::Delete)?;
        write_alive_bitset(&alive, &mut file)?;
        file.terminate()?;
        Ok(segment.meta().clone())
    }
}

fn write_metas(index: &Index, metas: &IndexMeta) -> tantivy::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(metas)?;
    writeln!(&mut text)?;
    index.directory().atomic_write(Path::new(META_FILE), &text)?;
    Ok(text)
}

/// The first commit of an index that is to have this one segment.
pub fn commit_one_segment(index: &Index, segment: &Segment) -> tantivy::Result<()> {
    let mut metas = index.load_metas()?;
    metas.segments = vec![segment.meta().clone()];
    write_metas(index, &metas).map(|_| ())
}

fn is_of(reader: &SegmentReader, meta: &SegmentMeta) -> bool {
    reader.segment_id() == meta.id() && reader.num_deleted_docs() == meta.num_deleted_docs()
}

fn living_documents(reader: &SegmentReader, terms: &[Term]) -> tantivy::Result<Vec<u32>> {
    let mut found = Vec::new();
    for term in terms {
        let inverted = reader.inverted_index(term.field())?;
        let Some(mut postings) = inverted.read_postings(term, IndexRecordOption::Basic)? else { continue };
        while postings.doc() != TERMINATED {
            if !reader.is_deleted(postings.doc()) {
                found.push(postings.doc());
            }
            postings.advance();
        }
    }
    Ok(found)
}
