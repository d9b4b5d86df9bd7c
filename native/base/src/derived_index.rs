//! The contract of an index of a range, whatever it holds.

use crate::error::{EngineError, unwritten};
use crate::report::{ApplyReport, CheckpointReport, CommitReport, IndexStats};
use crate::written_checkpoint::WrittenCheckpoint;

/// An index that follows the rows of one range. It can be thrown away at any time: what it holds is derived, and it
/// catches up from the sequence that its last durable checkpoint names.
///
/// `apply`, `commit`, `checkpoint` and `rest` come one at a time; searches run beside them and see one commit.
pub trait DerivedIndex: Send + Sync {
    /// Takes the rows of a frame, in order; they are seen after the next commit. Rows of kinds that are none of the
    /// index's business are stepped over. Rows may come again after a restart; applying them twice changes nothing.
    fn apply(&self, frame: &[u8]) -> Result<ApplyReport, EngineError>;

    /// Makes all applied rows visible, together with `sequence`, the last one of them. Nothing is synced.
    fn commit(&self, sequence: u64) -> Result<CommitReport, EngineError>;

    /// Ordinals of documents that the index lacks because what is stored of them was damaged: as the checkpoint at which it
    /// opened has them, or as `leave_out` was told since. None of an index in memory.
    fn left_out(&self) -> Vec<u32>;

    /// The next commit lacks these documents, and no others. Its checkpoint says so, and so may one before it: that index
    /// opens with rows to be applied, among them those that tell of each difference.
    fn leave_out(&self, ordinals: Vec<u32>);

    /// Makes the newest commit durable; after a crash the index opens at it. Nothing to do for an index in memory.
    ///
    /// Errors: `checkpoint_unwritten` where the machine lacks what it takes: nothing has been synced, the index is as before, and
    /// another attempt may work. After any other error the index has to be opened again.
    fn checkpoint(&self) -> Result<CheckpointReport, EngineError> {
        self.write_checkpoint().map_err(unwritten)?.make_durable()
    }

    /// Writes what makes the newest commit durable, and waits for no disk. Where it fails, nothing of it is left.
    fn write_checkpoint(&self) -> Result<WrittenCheckpoint<'_>, EngineError>;

    /// Begins the work that was put off until the index rests, when nothing waits for a commit. That work goes on beside
    /// everything else.
    fn rest(&self) -> Result<(), EngineError>;

    fn stats(&self) -> IndexStats;

    /// `memory_bytes` of `stats`, without the rest.
    fn memory_bytes(&self) -> u64 {
        self.stats().memory_bytes
    }

    /// Reads every file of the newest commit and compares its checksum. Error: `index_damaged`.
    fn verify(&self) -> Result<(), EngineError>;

    /// `close` follows soon: from now on no call waits for background work, which may end unfinished. It waits for no lock.
    fn close_soon(&self) {}

    /// Stops background work; rows that were applied and not committed are lost. Searches on the last commit still work.
    fn close(&self) -> Result<(), EngineError>;
}
