//! One index: open, apply, commit, checkpoint, close.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use tantivy::indexer::{IndexWriterOptions, LogMergePolicy};
use tantivy::schema::Schema;
use tantivy::store::Compressor;
use tantivy::{FutureResult, Index, IndexReader, IndexSettings, IndexWriter, ReloadPolicy, Searcher, SegmentMeta};

use super::analyzed_text::{ANALYZED_TOKENIZER, AnalyzedTokenizer};
use super::document::QueuedDocument;
use super::document_reader::DocumentReader;
use super::errors::{damaged, tantivy_failed};
use super::fields::{Fields, SLOT_COUNT, build_schema};
use super::idle_merge::{IdleMerger, segments_to_merge};
use super::mapping::TableMapping;
use super::options::IndexOptions;
use super::pending_documents::PendingDocuments;
use super::query::FilterCache;
use super::segment_columns::ColumnCache;
use super::slots::{Slot, SlotTable};
use super::storage::{IndexDirectory, open_directory, write_checkpoint};
use crate::error::EngineError;
use crate::failpoint;
use crate::frame::{Frame, Row, RowKind};
use crate::retrieval::OrdinalCache;
use sundew_base::derived_index::DerivedIndex;
use sundew_base::disk::Disk;
use sundew_base::report::{ApplyReport, CheckpointReport, CommitReport, IndexStats, SkippedRow};

/// Skipped rows that a report names.
const SKIPPED_NAMED_MAX: usize = 100;

/// So many segments of like size are merged into one.
const MERGED_SEGMENTS_MIN: usize = 12;

/// Segments up to this size count as of like size. Tantivy's own 10,000 merges the segments of single writes with much
/// larger ones again and again; with this they are merged among themselves first.
const SMALLEST_LAYER_DOCUMENTS: u32 = 100;

/// A segment with more deleted documents than this share is merged.
const DELETED_SHARE_MAX: f32 = 0.3;

/// What an index writes with every commit: atomic with the segments that it speaks of.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct CommitPayload {
    sequence: u64,
    /// Ordinals at or above this one are in no document of the index.
    next_ordinal: u64,
    skipped_count: u64,
    slots: Vec<Slot>,
}

pub struct TextIndex {
    options: IndexOptions,
    directory: IndexDirectory,
    index: Index,
    schema: Schema,
    pub(super) fields: Arc<Fields>,
    pub(super) mapping: Arc<TableMapping>,
    pub(super) slots: Arc<SlotTable>,
    reader: IndexReader,
    pub(super) columns: ColumnCache,
    pub(super) filters: Arc<FilterCache>,
    ordinals: Arc<OrdinalCache>,
    /// Of which generation of the searcher, and how many.
    term_count: Mutex<Option<(u64, u64)>>,
    writing: Mutex<TextWriter>,
    /// Files of the last durable checkpoint.
    durable: Mutex<HashSet<PathBuf>>,
    merger: Mutex<IdleMerger>,
    closed: AtomicBool,
    this: Weak<Self>,
    applied_sequence: AtomicU64,
    checkpoint_sequence: AtomicU64,
    skipped_count: AtomicU64,
    uncommitted_rows: AtomicU64,
    /// Known without waiting for who writes.
    writer_is_open: AtomicBool,
}

struct TextWriter {
    /// Open from the first row until `release_writer`.
    writer: Option<IndexWriter<QueuedDocument>>,
    /// Documents of a commit that is small so far.
    pending: PendingDocuments,
    documents: DocumentReader,
    next_ordinal: u64,
}

/// The index that Tantivy sees: schema, tokenizers, no stored fields.
pub(super) fn index_settings() -> IndexSettings {
    IndexSettings {
        docstore_compression: Compressor::None,
        docstore_compress_dedicated_thread: false,
        ..IndexSettings::default()
    }
}

impl TextIndex {
    /// Opens the index at its last checkpoint; creates it when the directory is missing or holds no checkpoint.
    ///
    /// Errors: `index_damaged` (delete the directory and build again), `index_incompatible` (made by other options or
    /// an older format; the same remedy).
    pub fn open(path: &Path, options: IndexOptions) -> Result<Arc<Self>, EngineError> {
        let opened = open_directory(path, &options)?;
        let directory = opened.directory;
        // Tantivy asserts where it does not expect damage.
        let outcome = catch_unwind(AssertUnwindSafe(|| Self::open_in(directory, options)));
        match outcome {
            Ok(Err(error)) if opened.is_restored && error.code == "internal" => Err(damaged(error.message)),
            Ok(result) => result,
            Err(_) => Err(damaged("the index files cannot be read".to_owned())),
        }
    }

    fn open_in(directory: IndexDirectory, options: IndexOptions) -> Result<Arc<Self>, EngineError> {
        let (schema, fields) = build_schema();
        let index = Index::builder()
            .schema(schema.clone())
            .settings(index_settings())
            .open_or_create(directory.clone())
            .map_err(tantivy_failed)?;
        let payload = index.load_metas().map_err(tantivy_failed)?.payload;
        let payload: CommitPayload = match payload {
            Some(text) => serde_json::from_str(&text).map_err(|error| damaged(format!("commit payload: {error}")))?,
            None => CommitPayload::default(),
        };
        let fields = Arc::new(fields);
        let slots = Arc::new(SlotTable::new(payload.slots));
        index.tokenizers().register(ANALYZED_TOKENIZER, AnalyzedTokenizer);
        let mapping = Arc::new(TableMapping::from_schema(&options.schema));
        let reader = index
            .reader_builder()
            .reload_policy(ReloadPolicy::Manual)
            .num_warming_threads(1)
            .try_into()
            .map_err(tantivy_failed)?;
        let documents = DocumentReader::new(Arc::clone(&mapping), Arc::clone(&fields), Arc::clone(&slots));
        let durable = directory.files_on_disk();
        Ok(Arc::new_cyclic(|this| Self {
            options,
            directory,
            index,
            schema,
            fields,
            mapping,
            slots,
            reader,
            columns: ColumnCache::default(),
            filters: Arc::default(),
            ordinals: Arc::default(),
            term_count: Mutex::default(),
            writing: Mutex::new(TextWriter {
                writer: None,
                pending: PendingDocuments::default(),
                documents,
                next_ordinal: payload.next_ordinal,
            }),
            durable: Mutex::new(durable),
            merger: Mutex::default(),
            closed: AtomicBool::new(false),
            this: this.clone(),
            applied_sequence: AtomicU64::new(payload.sequence),
            checkpoint_sequence: AtomicU64::new(payload.sequence),
            skipped_count: AtomicU64::new(payload.skipped_count),
            uncommitted_rows: AtomicU64::new(0),
            writer_is_open: AtomicBool::new(false),
        }))
    }

    pub fn options(&self) -> &IndexOptions {
        &self.options
    }

    /// What retrieval keeps between queries.
    pub(crate) fn ordinals(&self) -> Arc<OrdinalCache> {
        Arc::clone(&self.ordinals)
    }

    pub(crate) fn document_count(&self) -> u64 {
        self.searcher().num_docs()
    }

    /// Documents whose ordinals a search by vectors would have to read first.
    pub(crate) fn unread_ordinals(&self) -> u64 {
        self.ordinals.unread(&self.searcher())
    }

    pub(super) fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The newest commit, as it stays for the caller.
    pub(super) fn searcher(&self) -> Searcher {
        self.reader.searcher()
    }

    fn writing(&self) -> MutexGuard<'_, TextWriter> {
        self.writing.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn open_writer(&self, writing: &mut TextWriter) -> Result<(), EngineError> {
        if writing.writer.is_some() {
            return Ok(());
        }
        let options = IndexWriterOptions::builder()
            .num_worker_threads(self.options.writer_threads.max(1))
            .memory_budget_per_thread(self.options.writer_budget_bytes())
            .num_merge_threads(1)
            .build();
        let writer = self.index.writer_with_options(options).map_err(tantivy_failed)?;
        let mut merge_policy = LogMergePolicy::default();
        merge_policy.set_min_num_segments(MERGED_SEGMENTS_MIN);
        merge_policy.set_min_layer_size(SMALLEST_LAYER_DOCUMENTS);
        merge_policy.set_del_docs_ratio_before_merge(DELETED_SHARE_MAX);
        writer.set_merge_policy(Box::new(merge_policy));
        // A new writer gives its first operation the opstamp of the last commit. A merge of that commit would take such a
        // delete for one of the commit's own, and lose it for the segments that have deletes by then.
        writer.run([]).map_err(tantivy_failed)?;
        writing.writer = Some(writer);
        self.writer_is_open.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn segments(&self) -> Result<Vec<SegmentMeta>, EngineError> {
        self.index.searchable_segment_metas().map_err(tantivy_failed)
    }

    /// Shows the newest commit. Called with the writer's lock held: of two at once the one with the older commit
    /// might come last.
    fn reload(&self, _: &TextWriter) -> Result<(), EngineError> {
        self.reader.reload().map_err(tantivy_failed)
    }

    fn drop_writer(&self, writing: &mut TextWriter) -> Result<(), EngineError> {
        if let Some(writer) = writing.writer.take() {
            self.writer_is_open.store(false, Ordering::Relaxed);
            writer.wait_merging_threads().map_err(tantivy_failed)?;
            self.reload(writing)?;
        }
        Ok(())
    }

    /// Merges until rows come or all is well, and releases the writer; rows are taken all the while. What fails is tried
    /// again the next time that the index rests: its segments stay as they were.
    fn merge_at_rest(&self) {
        while let Ok(Some(merge)) = self.start_merge() {
            let outcome = merge.wait();
            if self.reload(&self.writing()).is_err() || outcome.is_err() {
                break;
            }
        }
        let mut writing = self.writing();
        if self.uncommitted_rows.load(Ordering::Relaxed) == 0 {
            let _ = self.drop_writer(&mut writing);
        }
        drop(writing);
        let durable = self.checkpoint_sequence.load(Ordering::Acquire);
        if durable == self.applied_sequence.load(Ordering::Acquire) {
            // The same commit in fewer segments; otherwise a checkpoint is due anyway. A closed index makes none.
            let _ = self.checkpoint();
        }
    }

    /// The next merge of an index at rest.
    fn start_merge(&self) -> Result<Option<FutureResult<Option<SegmentMeta>>>, EngineError> {
        let mut writing = self.writing();
        let is_busy = self.uncommitted_rows.load(Ordering::Relaxed) > 0;
        let segments = segments_to_merge(&self.segments()?);
        if is_busy || segments.is_empty() || self.closed.load(Ordering::Relaxed) {
            return Ok(None);
        }
        self.open_writer(&mut writing)?;
        Ok(writing.writer.as_mut().map(|writer| writer.merge(&segments)))
    }

    /// Waits for the merges that `release_writer` has begun.
    pub fn wait_for_merges(&self) {
        let merging = self.merger.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
        if let Some(thread) = merging {
            // A thread that panicked has merged nothing.
            let _ = thread.join();
        }
    }

    /// Terms of analysed text and of values, counted once for each segment, and once for each commit.
    fn term_count(&self, searcher: &Searcher) -> u64 {
        let mut counted = self.term_count.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let generation = searcher.generation().generation_id();
        match *counted {
            Some((known, count)) if known == generation => count,
            _ => counted.insert((generation, self.count_terms(searcher))).1,
        }
    }

    fn count_terms(&self, searcher: &Searcher) -> u64 {
        let used = self.slots.snapshot().len();
        let fields = self.fields.slots[..used].iter().chain([&self.fields.terms, &self.fields.overflow]);
        let terms = |field: &tantivy::schema::Field| -> u64 {
            let segments = searcher.segment_readers().iter();
            segments
                .filter_map(|segment| segment.inverted_index(*field).ok())
                .map(|terms| terms.terms().num_terms() as u64)
                .sum()
        };
        fields.map(terms).sum()
    }

    /// Text slots that are taken, and how many there are.
    pub fn slots_used(&self) -> (usize, usize) {
        (self.slots.snapshot().len(), SLOT_COUNT)
    }
}

impl DerivedIndex for TextIndex {
    /// A document that cannot be indexed is left out and named in the report; its older version leaves the index all the
    /// same.
    fn apply(&self, frame: &[u8]) -> Result<ApplyReport, EngineError> {
        let frame = Frame::parse(frame)?;
        let mut writing = self.writing();
        self.open_writer(&mut writing)?;
        let TextWriter { writer: Some(writer), pending, documents, next_ordinal } = &mut *writing else {
            return Err(EngineError::internal("the writer was just opened"));
        };
        let mut report = ApplyReport::default();
        for row in frame.rows() {
            let row = row?;
            report.rows += 1;
            if matches!(row.kind, RowKind::PartPut | RowKind::PartDelete | RowKind::State) {
                continue;
            }
            let ordinal = u64::from(row.ordinal);
            if ordinal < *next_ordinal {
                pending.delete(writer, &self.fields, row.ordinal).map_err(tantivy_failed)?;
            }
            if let Err(reason) = add_row(writer, pending, &self.fields, documents, &row)? {
                report.skipped_count += 1;
                if report.skipped.len() < SKIPPED_NAMED_MAX {
                    report.skipped.push(SkippedRow { key: row.key.to_owned(), reason });
                }
            }
            *next_ordinal = (*next_ordinal).max(ordinal + 1);
        }
        self.uncommitted_rows.fetch_add(report.rows as u64, Ordering::Relaxed);
        self.skipped_count.fetch_add(report.skipped_count as u64, Ordering::Relaxed);
        Ok(report)
    }

    fn commit(&self, sequence: u64) -> Result<CommitReport, EngineError> {
        let started = Instant::now();
        let mut writing = self.writing();
        self.open_writer(&mut writing)?;
        let payload = CommitPayload {
            sequence,
            next_ordinal: writing.next_ordinal,
            skipped_count: self.skipped_count.load(Ordering::Relaxed),
            slots: self.slots.snapshot().as_ref().clone(),
        };
        let payload = serde_json::to_string(&payload).map_err(|error| EngineError::internal(error.to_string()))?;
        let TextWriter { writer: Some(writer), pending, .. } = &mut *writing else {
            return Err(EngineError::internal("the writer was just opened"));
        };
        pending.write_segment(writer, &self.fields).map_err(tantivy_failed)?;
        let mut prepared = writer.prepare_commit().map_err(tantivy_failed)?;
        failpoint::hit("index.commit.prepared");
        prepared.set_payload(&payload);
        prepared.commit().map_err(tantivy_failed)?;
        self.reload(&writing)?;
        self.uncommitted_rows.store(0, Ordering::Relaxed);
        self.applied_sequence.store(sequence, Ordering::Release);
        Ok(CommitReport {
            sequence,
            doc_count: self.searcher().num_docs(),
            took_micros: started.elapsed().as_micros() as u64,
        })
    }

    fn checkpoint_on(&self, disk: &dyn Disk, is_last: bool) -> Result<CheckpointReport, EngineError> {
        let started = Instant::now();
        let mut durable = self.durable.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if self.closed.load(Ordering::Relaxed) {
            return Err(EngineError::internal("the index was closed"));
        }
        let Some(work) = write_checkpoint(&self.directory, &self.options, &mut durable, disk)? else {
            return Ok(CheckpointReport::default());
        };
        let sequence = sequence_of(&work.meta)?;
        self.checkpoint_sequence.store(sequence, Ordering::Release);
        if !is_last {
            // Readers of files that were in memory now read the disk's.
            self.reload(&self.writing())?;
            self.columns.clear();
        }
        Ok(CheckpointReport {
            sequence,
            files_written: work.files,
            bytes_written: work.bytes,
            took_micros: started.elapsed().as_micros() as u64,
        })
    }

    /// Merges that an index at rest is to have are made by a thread of their own, which releases the writer in the end.
    fn release_writer(&self) -> Result<(), EngineError> {
        let mut merger = self.merger.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut writing = self.writing();
        if self.uncommitted_rows.load(Ordering::Relaxed) > 0 || merger.is_at_work() {
            return Ok(());
        }
        self.drop_writer(&mut writing)?;
        if segments_to_merge(&self.segments()?).is_empty() {
            return Ok(());
        }
        if let Some(this) = self.this.upgrade() {
            merger.start(move || this.merge_at_rest());
        }
        Ok(())
    }

    fn stats(&self) -> IndexStats {
        let searcher = self.searcher();
        let (disk_bytes, memory_bytes) = self.directory.bytes();
        IndexStats {
            applied_sequence: self.applied_sequence.load(Ordering::Acquire),
            checkpoint_sequence: self.checkpoint_sequence.load(Ordering::Acquire),
            doc_count: searcher.num_docs(),
            vector_count: 0,
            term_count: self.term_count(&searcher),
            segment_count: searcher.segment_readers().len(),
            disk_bytes,
            memory_bytes,
            skipped_count: self.skipped_count.load(Ordering::Relaxed),
            uncommitted_rows: self.uncommitted_rows.load(Ordering::Relaxed),
            writer_is_open: self.writer_is_open.load(Ordering::Relaxed),
        }
    }

    fn memory_bytes(&self) -> u64 {
        self.directory.bytes().1
    }

    fn verify(&self) -> Result<(), EngineError> {
        let outcome = catch_unwind(AssertUnwindSafe(|| self.index.validate_checksum()));
        let failed =
            outcome.map_err(|_| damaged("the index files cannot be read".to_owned()))?.map_err(tantivy_failed)?;
        if failed.is_empty() {
            return Ok(());
        }
        let mut names: Vec<String> = failed.iter().map(|path| path.display().to_string()).collect();
        names.sort();
        Err(damaged(format!("the checksum does not match: {}", names.join(", "))))
    }

    fn close(&self) -> Result<(), EngineError> {
        // Nobody writes a checkpoint into the directory from now on: it may have a new owner.
        let durable = self.durable.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        self.closed.store(true, Ordering::Relaxed);
        drop(durable);
        let mut writing = self.writing();
        writing.pending = PendingDocuments::default();
        drop(writing.writer.take());
        self.writer_is_open.store(false, Ordering::Relaxed);
        self.uncommitted_rows.store(0, Ordering::Relaxed);
        Ok(())
    }
}

/// The inner error is the reason for which the row is left out.
fn add_row(
    writer: &IndexWriter<QueuedDocument>,
    pending: &mut PendingDocuments,
    fields: &Fields,
    documents: &mut DocumentReader,
    row: &Row<'_>,
) -> Result<Result<(), String>, EngineError> {
    match row.kind {
        RowKind::Delete => Ok(Ok(())),
        RowKind::Transform | RowKind::PartPut | RowKind::PartDelete | RowKind::State => {
            Err(EngineError::internal("a row that holds no document reached the index"))
        }
        RowKind::Put => match documents.read(row) {
            Ok(document) => pending.add(writer, fields, document).map(Ok).map_err(tantivy_failed),
            Err(reason) => Ok(Err(reason)),
        },
    }
}

#[derive(Deserialize)]
struct MetaPayload {
    payload: Option<String>,
}

fn sequence_of(meta: &[u8]) -> Result<u64, EngineError> {
    let broken = |error: serde_json::Error| EngineError::internal(format!("commit payload: {error}"));
    let meta: MetaPayload = serde_json::from_slice(meta).map_err(broken)?;
    match meta.payload {
        Some(payload) => Ok(serde_json::from_str::<CommitPayload>(&payload).map_err(broken)?.sequence),
        None => Ok(0),
    }
}

#[cfg(test)]
mod tests {
    use sundew_base::frame::FrameWriter;

    use super::*;

    fn frame(kind: RowKind, ordinals: std::ops::Range<u32>) -> Vec<u8> {
        let mut writer = FrameWriter::new(ordinals.len(), 64 * ordinals.len()).expect("a small frame");
        let body: &[u8] = if kind == RowKind::Put { br#"{"text":"soup"}"# } else { b"" };
        for (at, ordinal) in ordinals.enumerate() {
            writer.push(kind, 0, format!("k{ordinal}").as_bytes(), &[body]);
            writer.set_position(at, ordinal, u64::from(ordinal) + 1, 0);
        }
        writer.finish()
    }

    #[test]
    fn a_delete_that_comes_to_a_new_writer_is_kept_by_a_merge_of_the_last_commit() {
        let options = IndexOptions { mem_only: true, ..IndexOptions::named("test") };
        let index = TextIndex::open(Path::new("unused"), options).expect("an index in memory");
        let step = |sequence: u64, kind: RowKind, ordinals: std::ops::Range<u32>| {
            index.apply(&frame(kind, ordinals)).expect("rows are applied");
            index.commit(sequence).expect("a commit");
        };
        step(1, RowKind::Put, 0..30);
        let first = index.segments().expect("segments")[0].id();
        step(2, RowKind::Put, 30..33);
        step(3, RowKind::Delete, 0..1);
        index.drop_writer(&mut index.writing()).expect("the writer is released");

        index.apply(&frame(RowKind::Delete, 1..2)).expect("rows are applied");
        let merge = {
            let mut writing = index.writing();
            let TextWriter { writer: Some(writer), pending, .. } = &mut *writing else { panic!("a writer") };
            pending.write_segment(writer, &index.fields).expect("the delete is queued");
            let mut ids: Vec<_> = index.segments().expect("segments").iter().map(SegmentMeta::id).collect();
            ids.sort_by_key(|id| *id == first);
            writer.merge(&ids)
        };
        merge.wait().expect("a merge");
        index.commit(4).expect("a commit");
        assert_eq!(index.document_count(), 31);
    }
}
