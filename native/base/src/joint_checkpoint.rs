//! Checkpoints of many indexes that share two syncs of their file system.

use std::io;
use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Instant;

use crate::derived_index::DerivedIndex;
use crate::disk::{Member, SharedSync, sync_file_system};
use crate::error::{EngineError, io_failed};
use crate::report::CheckpointReport;
use crate::written_checkpoint::WrittenCheckpoint;

/// The outcome of one of many checkpoints; none when there was no time to begin it.
type Outcome = Option<Result<CheckpointReport, EngineError>>;

/// Threads that write the checkpoints of many indexes.
const WRITERS_MAX: usize = 8;

/// Makes the newest commits of many indexes, which are closed after it, durable with two syncs of the whole file system,
/// whose descriptor `disk` was opened before any of this was written; everything else that was written there before is
/// durable too when it returns. Indexes whose checkpoint has not begun by `until` are left out: `None`.
pub fn checkpoint_together(
    indexes: &[&dyn DerivedIndex],
    disk: BorrowedFd<'_>,
    until: Instant,
) -> Result<Vec<Outcome>, EngineError> {
    checkpoint_with(indexes, until, thread::Builder::new, || sync_file_system(disk))
}

fn checkpoint_with(
    indexes: &[&dyn DerivedIndex],
    until: Instant,
    new_thread: impl Fn() -> thread::Builder,
    sync: impl Fn() -> io::Result<()> + Sync,
) -> Result<Vec<Outcome>, EngineError> {
    if indexes.is_empty() {
        return sync().map(|()| Vec::new()).map_err(io_failed("sync the file system"));
    }
    let writers = thread::available_parallelism().map_or(1, usize::from).clamp(1, WRITERS_MAX);
    let shares: Vec<_> = indexes.chunks(indexes.len().div_ceil(writers)).collect();
    let shared = SharedSync::new(shares.len(), sync);
    let mut members: Vec<_> = shares.iter().map(|_| shared.member()).collect();
    let own = members.pop();
    thread::scope(|scope| {
        let start = |(member, &share)| {
            let work = move || checkpoint_share(share, &member, until);
            new_thread().spawn_scoped(scope, work).ok()
        };
        let running: Vec<_> = members.into_iter().zip(&shares).map_while(start).collect();
        // The calling thread does what is left: the last share, and those for which the system had no thread.
        let left: Vec<_> = shares[running.len()..].concat();
        let last = own.map(|member| checkpoint_share(&left, &member, until));
        let mut outcomes = Vec::with_capacity(indexes.len());
        for thread in running {
            let share = thread.join().unwrap_or_else(|_| Err(EngineError::internal("a checkpoint panicked")));
            outcomes.extend(share?);
        }
        outcomes.extend(last.transpose()?.unwrap_or_default());
        Ok(outcomes)
    })
}

/// The share of one thread. An error is one of the syncs: then nothing is known to be durable.
fn checkpoint_share<SyncAll: Fn() -> io::Result<()>>(
    indexes: &[&dyn DerivedIndex],
    disk: &Member<'_, SyncAll>,
    until: Instant,
) -> Result<Vec<Outcome>, EngineError> {
    let failed = io_failed("sync the file system");
    let begin = |&index| (Instant::now() < until).then(|| guarded(|| DerivedIndex::write_checkpoint(index)));
    let written: Vec<_> = indexes.iter().map(begin).collect();
    disk.sync().map_err(&failed)?;
    let renamed: Vec<_> =
        written.into_iter().map(|one| one.map(|written| written.and_then(WrittenCheckpoint::rename))).collect();
    disk.sync().map_err(&failed)?;
    let finish = |renamed: WrittenCheckpoint<'_>| guarded(|| renamed.finish(true));
    Ok(renamed.into_iter().map(|one| one.map(|renamed| renamed.and_then(finish))).collect())
}

/// One index that panics must not keep the others from becoming durable.
fn guarded<T>(work: impl FnOnce() -> Result<T, EngineError>) -> Result<T, EngineError> {
    let outcome = catch_unwind(AssertUnwindSafe(work));
    outcome.unwrap_or_else(|_| Err(EngineError::internal("a checkpoint panicked")))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Mutex, PoisonError};
    use std::time::Duration;

    use super::*;
    use crate::checkpoint_files::CheckpointFiles;
    use crate::report::{ApplyReport, CommitReport, IndexStats};

    /// An index of which only the checkpoints are real: one file for each commit.
    struct Counter {
        sequence: u64,
        files: Mutex<CheckpointFiles<()>>,
    }

    impl Counter {
        fn open(path: &Path, sequence: u64) -> Self {
            Self { sequence, files: Mutex::new(CheckpointFiles::open(path, "counter".to_owned()).expect("it opens")) }
        }
    }

    impl DerivedIndex for Counter {
        fn write_checkpoint(&self) -> Result<WrittenCheckpoint<'_>, EngineError> {
            let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
            assert!(self.sequence != 99, "an index that panics");
            let file = files.write(&format!("{}.rows", self.sequence), &[b"rows"])?;
            let checkpoint = files.checkpoint(self.sequence, vec![file], ());
            let draft = files.draft(&checkpoint)?.expect("something is new");
            Ok(WrittenCheckpoint::new(self.sequence, Instant::now(), draft, move |is_last| {
                assert!(is_last);
                files.accept(checkpoint, &|_| false);
                Ok(())
            }))
        }
        fn apply(&self, _: &[u8]) -> Result<ApplyReport, EngineError> {
            unreachable!("nothing is applied")
        }
        fn commit(&self, _: u64) -> Result<CommitReport, EngineError> {
            unreachable!("nothing is committed")
        }
        fn left_out(&self) -> Vec<u32> {
            unreachable!("nobody asks")
        }
        fn leave_out(&self, _: Vec<u32>) {
            unreachable!("nothing is left out")
        }
        fn rest(&self) -> Result<(), EngineError> {
            Ok(())
        }
        fn stats(&self) -> IndexStats {
            unreachable!("nobody asks")
        }
        fn verify(&self) -> Result<(), EngineError> {
            Ok(())
        }
        fn close(&self) -> Result<(), EngineError> {
            Ok(())
        }
    }

    /// The directories of 20 indexes, removed in the end.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("sundew-joint-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            Self(path)
        }

        fn indexes(&self, sequences: impl Iterator<Item = u64>) -> Vec<Counter> {
            sequences.map(|at| Counter::open(&self.0.join(at.to_string()), at)).collect()
        }

        fn durable(&self, at: u64) -> Option<u64> {
            let files = CheckpointFiles::<()>::open(&self.0.join(at.to_string()), "counter".to_owned());
            files.expect("it opens").last().map(|last| last.sequence)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(600)
    }

    fn together(indexes: &[Counter], until: Instant, sync: impl Fn() -> io::Result<()> + Sync) -> Vec<Outcome> {
        let derived: Vec<&dyn DerivedIndex> = indexes.iter().map(|index| index as &dyn DerivedIndex).collect();
        checkpoint_with(&derived, until, thread::Builder::new, sync).expect("the syncs succeed")
    }

    #[test]
    fn any_number_of_indexes_takes_two_syncs() {
        let (scratch, syncs) = (Scratch::new("syncs"), AtomicUsize::new(0));
        let indexes = scratch.indexes(1..21);
        let outcomes = together(&indexes, soon(), || {
            // The checkpoint itself is renamed between the two.
            let is_second = syncs.fetch_add(1, Ordering::Relaxed) == 1;
            assert!((1..21).all(|at| scratch.0.join(format!("{at}/checkpoint.json")).exists() == is_second));
            Ok(())
        });
        assert_eq!(syncs.into_inner(), 2);
        let sequences: Vec<_> =
            outcomes.into_iter().map(|one| one.expect("begun").expect("durable").sequence).collect();
        assert_eq!(sequences, (1..21).collect::<Vec<_>>());
        drop(indexes);
        assert!((1..21).all(|at| scratch.durable(at) == Some(at)));
    }

    #[test]
    fn without_another_thread_the_calling_one_makes_all_durable() {
        let (scratch, syncs) = (Scratch::new("alone"), AtomicUsize::new(0));
        let indexes = scratch.indexes(1..21);
        let derived: Vec<&dyn DerivedIndex> = indexes.iter().map(|index| index as &dyn DerivedIndex).collect();
        // No system has room for such a stack.
        let impossible = || thread::Builder::new().stack_size(1 << 60);
        let count = || {
            syncs.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        let outcomes = checkpoint_with(&derived, soon(), impossible, count).expect("the syncs succeed");
        let sequences: Vec<_> =
            outcomes.into_iter().map(|one| one.expect("begun").expect("durable").sequence).collect();
        assert_eq!(sequences, (1..21).collect::<Vec<_>>());
        assert_eq!(syncs.into_inner(), 2);
        drop(indexes);
        assert!((1..21).all(|at| scratch.durable(at) == Some(at)));
    }

    #[test]
    fn one_that_panics_keeps_no_other_from_becoming_durable() {
        let scratch = Scratch::new("panic");
        let indexes = scratch.indexes(98..101);
        let outcomes = together(&indexes, soon(), || Ok(()));
        let failed: Vec<_> = outcomes.into_iter().map(|one| one.expect("begun").is_err()).collect();
        assert_eq!(failed, [false, true, false]);
    }

    #[test]
    fn without_time_none_is_begun_and_a_failed_sync_makes_none_durable() {
        let scratch = Scratch::new("late");
        let indexes = scratch.indexes(1..4);
        assert!(together(&indexes, Instant::now(), || Ok(())).iter().all(Option::is_none));

        let derived: Vec<&dyn DerivedIndex> = indexes.iter().map(|index| index as &dyn DerivedIndex).collect();
        let full = || Err(io::Error::from_raw_os_error(libc::ENOSPC));
        assert!(checkpoint_with(&derived, soon(), thread::Builder::new, full).is_err());
        drop(indexes);
        assert!((1..4).all(|at| scratch.durable(at).is_none()));
    }
}
