//! One index: open, apply, commit, checkpoint, close.

mod merges;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use tantivy::schema::Schema;
use tantivy::store::Compressor;
use tantivy::{Index, IndexReader, IndexSettings, ReloadPolicy, Searcher};

use super::aggregate::CounterCache;
use super::commit_count::{CommitCount, count_terms};
use super::documents::document_reader::DocumentReader;
use super::errors::{damaged, tantivy_failed};
use super::fields::{Fields, SLOT_COUNT, build_schema};
use super::mapping::TableMapping;
use super::options::IndexOptions;
use super::query::{DocsByString, FilterCache, IndexFields};
use super::segment_columns::ColumnCache;
use super::slots::{SlotTable, TakenSlots};
use super::storage::{IndexDirectory, TextFiles, accept_checkpoint, open_directory, write_checkpoint};
use super::writing::{CommitPayload, Merger, TextWriter};
use crate::error::EngineError;
use crate::frame::Frame;
use crate::retrieval::OrdinalCache;
use sundew_base::derived_index::DerivedIndex;
use sundew_base::report::{ApplyReport, CommitReport, IndexStats};
use sundew_base::written_checkpoint::WrittenCheckpoint;

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
    pub(super) counters: Arc<CounterCache>,
    pub(super) strings: Arc<DocsByString>,
    ordinals: Arc<OrdinalCache>,
    term_count: CommitCount,
    /// Documents with a text that is searched, of an index over artifacts.
    pub(super) text_count: CommitCount,
    writing: Mutex<TextWriter>,
    /// `None` for an index in memory.
    checkpoints: Option<Mutex<TextFiles>>,
    /// Locked before `writing` where both are, and never two of them.
    merger: Mutex<Merger>,
    large_merger: Mutex<Merger>,
    /// No row has come since the index was told to rest.
    is_resting: AtomicBool,
    closed: AtomicBool,
    this: Weak<Self>,
    applied_sequence: AtomicU64,
    checkpoint_sequence: AtomicU64,
    skipped_count: AtomicU64,
    uncommitted_rows: AtomicU64,
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
        let (directory, files) = open_directory(path, &options)?;
        let is_restored = files.as_ref().is_some_and(|files| files.last().is_some());
        // Tantivy asserts where it does not expect damage.
        match catch_unwind(AssertUnwindSafe(|| Self::open_in(directory, files, options))) {
            Ok(Err(error)) if is_restored && error.code == "internal" => Err(damaged(error.message)),
            Ok(result) => result,
            Err(_) => Err(damaged("the index files cannot be read".to_owned())),
        }
    }

    fn open_in(
        directory: IndexDirectory,
        files: Option<TextFiles>,
        options: IndexOptions,
    ) -> Result<Arc<Self>, EngineError> {
        let (schema, fields) = build_schema();
        let index = Index::builder()
            .schema(schema.clone())
            .settings(index_settings())
            .open_or_create(directory.clone())
            .map_err(tantivy_failed)?;
        let metas = index.load_metas().map_err(tantivy_failed)?;
        let payload = CommitPayload::read(metas.payload.as_deref())?;
        let fields = Arc::new(fields);
        let slots = Arc::new(SlotTable::new(TakenSlots { slots: payload.slots, overflow: payload.overflow }));
        let mapping = Arc::new(TableMapping::from_schema(&options.schema));
        let reader = index
            .reader_builder()
            .reload_policy(ReloadPolicy::Manual)
            .num_warming_threads(1)
            .try_into()
            .map_err(tantivy_failed)?;
        let documents = DocumentReader::new(Arc::clone(&mapping), Arc::clone(&fields), Arc::clone(&slots));
        let shared = (Arc::clone(&fields), Arc::clone(&slots));
        let writer = TextWriter::new((index.clone(), metas), &options, shared, documents, payload.next_ordinal);
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
            counters: Arc::default(),
            strings: Arc::default(),
            ordinals: Arc::default(),
            term_count: CommitCount::default(),
            text_count: CommitCount::default(),
            writing: Mutex::new(writer),
            checkpoints: files.map(Mutex::new),
            merger: Mutex::new(Merger::new()),
            large_merger: Mutex::new(Merger::of_large()),
            is_resting: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            this: this.clone(),
            applied_sequence: AtomicU64::new(payload.sequence),
            checkpoint_sequence: AtomicU64::new(payload.sequence),
            skipped_count: AtomicU64::new(payload.skipped_count),
            uncommitted_rows: AtomicU64::new(0),
        }))
    }

    pub fn options(&self) -> &IndexOptions {
        &self.options
    }

    /// The ordinals of documents that retrieval keeps between queries.
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
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None` for an index in memory.
    fn checkpoints(&self) -> Option<MutexGuard<'_, TextFiles>> {
        self.checkpoints.as_ref().map(|files| files.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Shows the newest commit. Called with the writer's lock held: of two at once the one with the older commit
    /// might come last.
    fn reload(&self, _: &TextWriter) -> Result<(), EngineError> {
        self.reader.reload().map_err(tantivy_failed)
    }

    /// Counters follow each commit. What fails here fails again for the query that needs it, which then says so.
    fn refresh_counters(&self) {
        if self.counters.is_in_use() {
            // The slots are read after the commit: they are only ever added to.
            let searcher = self.searcher();
            let (fields, mapping) = (Arc::clone(&self.fields), Arc::clone(&self.mapping));
            let _ = self.counters.refresh(&searcher, &IndexFields::new(fields, mapping, self.slots.snapshot()));
        }
    }

    fn term_count(&self, searcher: &Searcher) -> u64 {
        let used = self.slots.snapshot().slots.len();
        let fields = self.fields.slots[..used].iter().chain([&self.fields.terms, &self.fields.overflow]);
        self.term_count.of(searcher, || count_terms(searcher, fields))
    }

    /// Text slots that are taken, and how many there are.
    pub fn slots_used(&self) -> (usize, usize) {
        (self.slots.snapshot().slots.len(), SLOT_COUNT)
    }
}

impl DerivedIndex for TextIndex {
    fn apply(&self, frame: &[u8]) -> Result<ApplyReport, EngineError> {
        let frame = Frame::parse(frame)?;
        self.is_resting.store(false, Ordering::Relaxed);
        let report = self.writing().apply(&frame)?;
        self.uncommitted_rows.fetch_add(report.rows as u64, Ordering::Relaxed);
        self.skipped_count.fetch_add(report.skipped_count as u64, Ordering::Relaxed);
        Ok(report)
    }

    fn commit(&self, sequence: u64) -> Result<CommitReport, EngineError> {
        let started = Instant::now();
        let mut writing = self.writing();
        writing.commit(sequence, self.skipped_count.load(Ordering::Relaxed), &self.searcher())?;
        self.reload(&writing)?;
        self.uncommitted_rows.store(0, Ordering::Relaxed);
        self.applied_sequence.store(sequence, Ordering::Release);
        drop(writing);
        self.refresh_counters();
        self.start_merges();
        Ok(CommitReport {
            sequence,
            doc_count: self.searcher().num_docs(),
            took_micros: started.elapsed().as_micros() as u64,
        })
    }

    fn left_out(&self) -> Vec<u32> {
        self.checkpoints().map_or_else(Vec::new, |files| files.left_out().to_vec())
    }

    fn leave_out(&self, ordinals: Vec<u32>) {
        if let Some(mut files) = self.checkpoints() {
            files.leave_out(ordinals);
        }
    }

    fn write_checkpoint(&self) -> Result<WrittenCheckpoint<'_>, EngineError> {
        let started = Instant::now();
        let Some(mut files) = self.checkpoints() else { return Ok(WrittenCheckpoint::nothing(0)) };
        if self.closed.load(Ordering::Relaxed) {
            return Err(EngineError::internal("the index was closed"));
        }
        let Some((checkpoint, draft)) = write_checkpoint(&self.directory, &files)? else {
            return Ok(WrittenCheckpoint::nothing(0));
        };
        let sequence = checkpoint.sequence;
        let Some(draft) = draft else { return Ok(WrittenCheckpoint::nothing(sequence)) };
        Ok(WrittenCheckpoint::new(sequence, started, draft, move |is_last| {
            accept_checkpoint(&self.directory, &mut files, checkpoint);
            self.checkpoint_sequence.store(sequence, Ordering::Release);
            if !is_last {
                // Readers of files that were in memory now read the disk's.
                self.reload(&self.writing())?;
                self.columns.clear();
            }
            Ok(())
        }))
    }

    /// Merges that an index at rest is to have wait in a queue of the whole process.
    fn rest(&self) -> Result<(), EngineError> {
        if self.uncommitted_rows.load(Ordering::Relaxed) > 0 {
            return Ok(());
        }
        self.is_resting.store(true, Ordering::Relaxed);
        self.start_merges();
        Ok(())
    }

    fn stats(&self) -> IndexStats {
        let searcher = self.searcher();
        let (disk_bytes, memory_bytes) = self.directory.bytes();
        let uncommitted_rows = self.uncommitted_rows.load(Ordering::Relaxed);
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
            uncommitted_rows,
            writer_is_open: uncommitted_rows > 0,
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
        {
            // Nobody writes a checkpoint into the directory from now on: it may have a new owner.
            let _files = self.checkpoints();
            self.closed.store(true, Ordering::Relaxed);
        }
        self.writing().discard();
        self.uncommitted_rows.store(0, Ordering::Relaxed);
        Ok(())
    }
}
