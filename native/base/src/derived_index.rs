//! What every index of a range promises, whatever it holds.

use std::os::fd::BorrowedFd;
use std::time::Instant;

use crate::disk::{Disk, EachFile, SharedSync, sync_file_system};
use crate::error::EngineError;
use crate::report::{ApplyReport, CheckpointReport, CommitReport, IndexStats};

/// An index that follows the rows of one range. It can be thrown away at any time: what it holds is derived, and it
/// catches up from the sequence that its last durable checkpoint names.
///
/// `apply`, `commit`, `checkpoint` and `release_writer` come one at a time; searches run beside them and see one commit.
pub trait DerivedIndex: Send + Sync {
    /// Takes the rows of a frame, in order; they are seen after the next commit. Rows of kinds that are none of the
    /// index's business are stepped over. Rows may come again after a restart; applying them twice changes nothing.
    fn apply(&self, frame: &[u8]) -> Result<ApplyReport, EngineError>;

    /// Makes all applied rows visible, together with `sequence`, the last one of them. Nothing is synced.
    fn commit(&self, sequence: u64) -> Result<CommitReport, EngineError>;

    /// Makes the newest commit durable; after a crash the index opens at it. Nothing to do for an index in memory.
    fn checkpoint(&self) -> Result<CheckpointReport, EngineError> {
        self.checkpoint_on(&EachFile, false)
    }

    /// The same with the syncs of `disk`. `is_last`: the index is closed after it, so that nothing needs to be read again.
    fn checkpoint_on(&self, disk: &dyn Disk, is_last: bool) -> Result<CheckpointReport, EngineError>;

    /// Frees memory and threads that only writing needs, when nothing waits for a commit, and begins the work that was
    /// put off until the index rests. That work goes on beside everything else.
    fn release_writer(&self) -> Result<(), EngineError>;

    fn stats(&self) -> IndexStats;

    /// `memory_bytes` of `stats`, without the rest.
    fn memory_bytes(&self) -> u64 {
        self.stats().memory_bytes
    }

    /// Reads every file of the newest commit and compares its checksum. Error: `index_damaged`.
    fn verify(&self) -> Result<(), EngineError>;

    /// Stops background work; rows that were applied and not committed are lost. Searches on the last commit still work.
    fn close(&self) -> Result<(), EngineError>;
}

/// Checkpoints that are written side by side and share their syncs.
const CHECKPOINTS_TOGETHER: usize = 256;

/// Makes the newest commits of many indexes, which are closed after it, durable with few syncs of the whole file system, whose descriptor `disk` was
/// opened before any of this was written; everything else that was written there before is durable too when it returns.
/// Indexes whose checkpoint has not begun by `until` are left out: `None`.
pub fn checkpoint_together(
    indexes: &[&dyn DerivedIndex],
    disk: BorrowedFd<'_>,
    until: Instant,
) -> Result<Vec<Option<Result<CheckpointReport, EngineError>>>, EngineError> {
    let mut reports = Vec::with_capacity(indexes.len());
    for group in indexes.chunks(CHECKPOINTS_TOGETHER) {
        if Instant::now() >= until {
            reports.resize_with(indexes.len(), || None);
            break;
        }
        let shared = SharedSync::new(group.len(), || sync_file_system(disk));
        std::thread::scope(|scope| {
            let start = |&index| {
                let member = shared.member();
                scope.spawn(move || DerivedIndex::checkpoint_on(index, &member, true))
            };
            let running: Vec<_> = group.iter().map(start).collect();
            let report = |thread: std::thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|_| Err(EngineError::internal("a checkpoint panicked")))
            };
            reports.extend(running.into_iter().map(report).map(Some));
        });
    }
    sync_file_system(disk).map_err(|error| EngineError::internal(format!("sync the file system: {error}")))?;
    Ok(reports)
}
