//! Tantivy's directory locks within one process, without files. (Tantivy's default waits 100 ms between two tries.)

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};

use tantivy::directory::error::LockError;
use tantivy::directory::{DirectoryLock, Lock};

#[derive(Default)]
pub struct LockTable {
    held: Mutex<HashSet<PathBuf>>,
    released: Condvar,
}

impl LockTable {
    pub fn acquire(self: &Arc<Self>, lock: &Lock) -> Result<DirectoryLock, LockError> {
        let mut held = self.held.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        while held.contains(&lock.filepath) {
            if !lock.is_blocking {
                return Err(LockError::LockBusy);
            }
            held = self.released.wait(held).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        held.insert(lock.filepath.clone());
        Ok(DirectoryLock::from(Box::new(HeldLock { table: Arc::clone(self), path: lock.filepath.clone() })))
    }
}

struct HeldLock {
    table: Arc<LockTable>,
    path: PathBuf,
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        let mut held = self.table.held.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        held.remove(&self.path);
        self.table.released.notify_all();
    }
}
