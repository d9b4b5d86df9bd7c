//! Waiting for the disk: every file by itself, or everything together.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard};

/// Returns when the contents of these files, and the names in these directories, survive a loss of power.
pub fn sync_each<'p>(mut paths: impl Iterator<Item = &'p Path>) -> io::Result<()> {
    paths.try_for_each(|path| File::open(path)?.sync_all())
}

/// The directories whose names have to be durable for the files of an index to be found: its own and, with its first
/// checkpoint, the two above it, which were made for it.
pub fn directories_of_checkpoint(root: &Path, is_first: bool) -> Vec<&Path> {
    root.ancestors().take(if is_first { 3 } else { 1 }).filter(|path| !path.as_os_str().is_empty()).collect()
}

/// Syncs of threads that work side by side, done by one sync of all: it begins when each of them waits for one.
pub struct SharedSync<SyncAll> {
    sync_all: SyncAll,
    round: Mutex<Round>,
    is_over: Condvar,
}

struct Round {
    number: u64,
    members: usize,
    waiting: usize,
    /// Of the last round: the error code of the system, if it failed.
    failure: Option<i32>,
}

/// One thread of a `SharedSync`; the others do not wait for it any more when it is dropped.
pub struct Member<'s, SyncAll: Fn() -> io::Result<()>>(&'s SharedSync<SyncAll>);

impl<SyncAll: Fn() -> io::Result<()>> SharedSync<SyncAll> {
    /// `members` must be taken once for each thread, before the first of them syncs.
    pub fn new(members: usize, sync_all: SyncAll) -> Self {
        let round = Round { number: 0, members, waiting: 0, failure: None };
        Self { sync_all, round: Mutex::new(round), is_over: Condvar::new() }
    }

    pub fn member(&self) -> Member<'_, SyncAll> {
        Member(self)
    }

    fn round(&self) -> MutexGuard<'_, Round> {
        self.round.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn run_when_all_wait(&self, round: &mut Round) {
        if round.waiting < round.members {
            return;
        }
        if round.waiting > 0 {
            let outcome = (self.sync_all)();
            round.failure = outcome.err().map(|error| error.raw_os_error().unwrap_or(libc::EIO));
        }
        round.waiting = 0;
        round.number += 1;
        self.is_over.notify_all();
    }
}

impl<SyncAll: Fn() -> io::Result<()>> Member<'_, SyncAll> {
    /// Waits until all other members wait or are gone, and syncs once for all of them.
    pub fn sync(&self) -> io::Result<()> {
        let shared = self.0;
        let mut round = shared.round();
        let number = round.number;
        round.waiting += 1;
        shared.run_when_all_wait(&mut round);
        while round.number == number {
            round = shared.is_over.wait(round).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        // No later round ends before this thread waits again.
        round.failure.map_or(Ok(()), |code| Err(io::Error::from_raw_os_error(code)))
    }
}

impl<SyncAll: Fn() -> io::Result<()>> Drop for Member<'_, SyncAll> {
    fn drop(&mut self) {
        let mut round = self.0.round();
        round.members -= 1;
        self.0.run_when_all_wait(&mut round);
    }
}

/// Bytes that a process without privileges may still write to the file system that `path` is on.
#[cfg(unix)]
pub fn available_bytes(path: &Path) -> io::Result<u64> {
    use std::os::unix::ffi::OsStrExt;
    let path = std::ffi::CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: zeros are a value of the type, all of whose members are numbers.
    let mut found: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends with a zero, and both are there until the call returns.
    match unsafe { libc::statvfs(path.as_ptr(), &raw mut found) } {
        0 => Ok(found.f_bavail as u64 * found.f_frsize as u64),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(not(unix))]
pub fn available_bytes(_: &Path) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Makes everything durable that was written to a file system before the call. Reports what failed to be written since
/// `file`, any of its files, was opened.
#[cfg(target_os = "linux")]
pub fn sync_file_system(file: BorrowedFd<'_>) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    // SAFETY: the call takes a descriptor that is open, and no memory.
    match unsafe { libc::syncfs(file.as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(not(target_os = "linux"))]
pub fn sync_file_system(_: BorrowedFd<'_>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn threads_that_wait_at_the_same_time_share_a_sync() {
        let syncs = AtomicUsize::new(0);
        let shared = SharedSync::new(4, || {
            syncs.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        std::thread::scope(|scope| {
            // One ends without a sync, one after its first.
            for count in [0, 1, 2, 2] {
                let member = shared.member();
                scope.spawn(move || (0..count).for_each(|_| member.sync().expect("a sync")));
            }
        });
        assert_eq!(syncs.into_inner(), 2);
    }

    #[test]
    fn all_that_share_a_sync_hear_that_it_failed() {
        let rounds = AtomicUsize::new(0);
        let shared = SharedSync::new(3, || match rounds.fetch_add(1, Ordering::Relaxed) {
            0 => Err(io::Error::from_raw_os_error(libc::ENOSPC)),
            _ => Ok(()),
        });
        std::thread::scope(|scope| {
            for _ in 0..3 {
                let member = shared.member();
                scope.spawn(move || {
                    let full = member.sync().expect_err("the first sync fails");
                    assert_eq!(full.raw_os_error(), Some(libc::ENOSPC));
                    member.sync().expect("the second one does not");
                });
            }
        });
    }

    #[test]
    fn the_first_checkpoint_needs_the_names_of_its_directories_too() {
        let root = Path::new("/data/ranges/1/1/indexes/words@1");
        assert_eq!(directories_of_checkpoint(root, false), [root]);
        let named = ["/data/ranges/1/1/indexes/words@1", "/data/ranges/1/1/indexes", "/data/ranges/1/1"];
        assert_eq!(directories_of_checkpoint(root, true), named.map(Path::new));
        assert_eq!(directories_of_checkpoint(Path::new("words"), true), [Path::new("words")]);
    }
}
