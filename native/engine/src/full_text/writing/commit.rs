//! A commit leaves what Tantivy's own writer leaves, without its threads and megabytes, of which each of a thousand tables
//! would want its own: new segments, a file of deletes for each older segment that lost documents, and `meta.json`.

use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use tantivy::directory::TerminatingWrite;
use tantivy::fastfield::write_alive_bitset;
use tantivy::index::{SegmentComponent, SegmentId};
use tantivy::schema::IndexRecordOption;
use tantivy::{
    BitSet, Directory, DocSet, Index, IndexMeta, Searcher, Segment, SegmentMeta, SegmentReader, TERMINATED, Term,
};

use crate::full_text::storage::{META_FILE, files_of_commit, files_of_segment};

/// The changes of a commit.
pub struct Commit<'a> {
    pub index: &'a Index,
    /// Shows the last commit.
    pub searcher: &'a Searcher,
    /// Of documents that leave the segments of the last commit.
    pub deleted: &'a [Term],
    pub added: Vec<SegmentMeta>,
    /// Segments that a merged one among the added takes the place of.
    pub replaced: &'a [SegmentId],
    /// Segments with files that belong to no commit yet.
    pub unfinished: &'a [SegmentId],
    /// That of the last commit where there is none.
    pub payload: Option<String>,
}

impl Commit<'_> {
    /// What the newest commit is from now on. `metas`: what it was.
    pub fn write(&self, metas: &mut IndexMeta) -> tantivy::Result<()> {
        let next = self.next(metas)?;
        let text = write_metas(self.index, &next)?;
        *metas = next;
        // Older files of deletes, segments that have lost all documents, and those that were merged.
        if self.deleted.is_empty() && self.replaced.is_empty() {
            Ok(())
        } else {
            remove_others(self.index, &text, self.unfinished)
        }
    }

    fn next(&self, metas: &IndexMeta) -> tantivy::Result<IndexMeta> {
        let mut next = metas.clone();
        next.opstamp += 1;
        let mut segments = Vec::with_capacity(next.segments.len() + 1);
        for meta in next.segments.into_iter().filter(|meta| !self.replaced.contains(&meta.id())) {
            segments.push(self.without_deleted(self.index.segment(meta), next.opstamp)?);
        }
        segments.extend_from_slice(&self.added);
        segments.retain(|segment| segment.num_docs() > 0);
        segments.sort_by_key(|segment| std::cmp::Reverse(segment.max_doc()));
        next.segments = segments;
        if let Some(payload) = &self.payload {
            next.payload = Some(payload.clone());
        }
        Ok(next)
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

/// Removes the files that neither the last commit nor the `unfinished` segments have.
pub fn remove_leftovers(index: &Index, unfinished: &[SegmentId]) -> tantivy::Result<()> {
    let meta = index.directory().atomic_read(Path::new(META_FILE))?;
    remove_others(index, &meta, unfinished)
}

/// Readers keep what they have open.
fn remove_others(index: &Index, meta: &[u8], unfinished: &[SegmentId]) -> tantivy::Result<()> {
    let living = || {
        let mut living: HashSet<PathBuf> = files_of_commit(meta);
        living.insert(PathBuf::from(META_FILE));
        living.extend(unfinished.iter().flat_map(|segment| files_of_segment(&segment.uuid_string())));
        living
    };
    index.clone().directory_mut().garbage_collect(living).map(|_| ())
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
