//! From the written files of an index to its durable checkpoint.

use std::time::Instant;

use crate::checkpoint_files::Draft;
use crate::disk::sync_each;
use crate::error::{EngineError, io_failed};
use crate::report::CheckpointReport;

/// The work of an index once its checkpoint is durable. Called with whether the index is closed after it, so that nothing
/// needs to be read again.
type Finish<'i> = Box<dyn FnOnce(bool) -> Result<(), EngineError> + 'i>;

/// A checkpoint of one index, as far as it can come without waiting for the disk. The index makes no other one meanwhile.
pub struct WrittenCheckpoint<'i> {
    sequence: u64,
    started: Instant,
    /// None when the commit is durable already, or nothing of the index ever is.
    written: Option<(Draft, Finish<'i>)>,
}

impl<'i> WrittenCheckpoint<'i> {
    /// `sequence`: of the commit that it makes durable. `started`: when its first file was begun.
    pub fn new(
        sequence: u64,
        started: Instant,
        draft: Draft,
        finish: impl FnOnce(bool) -> Result<(), EngineError> + 'i,
    ) -> Self {
        Self { sequence, started, written: Some((draft, Box::new(finish))) }
    }

    /// Everything up to `sequence` is durable.
    pub fn nothing(sequence: u64) -> Self {
        Self { sequence, started: Instant::now(), written: None }
    }

    /// Syncs what was written, file by file, and has the index open at it.
    pub fn make_durable(self) -> Result<CheckpointReport, EngineError> {
        if let Some((draft, _)) = &self.written {
            let failed = io_failed("sync a checkpoint");
            sync_each(draft.unsynced()).map_err(&failed)?;
            draft.rename()?;
            sync_each([draft.directory()].into_iter()).map_err(&failed)?;
        }
        self.finish(false)
    }

    /// Has the index open at it; to be called when the file system was synced after it was written.
    pub fn rename(self) -> Result<Self, EngineError> {
        self.written.as_ref().map_or(Ok(()), |(draft, _)| draft.rename())?;
        Ok(self)
    }

    /// To be called when the file system was synced after `rename`. `is_last`: the index is closed after it.
    pub fn finish(self, is_last: bool) -> Result<CheckpointReport, EngineError> {
        let mut report = CheckpointReport { sequence: self.sequence, ..CheckpointReport::default() };
        if let Some((draft, finish)) = self.written {
            finish(is_last)?;
            (report.files_written, report.bytes_written) = (draft.files, draft.bytes);
        }
        report.took_micros = self.started.elapsed().as_micros() as u64;
        Ok(report)
    }
}
