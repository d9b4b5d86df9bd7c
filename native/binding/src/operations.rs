//! Running queries that may be cancelled.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use sundew_engine::full_text::CancelFlag;

static RUNNING: LazyLock<Mutex<HashMap<u32, CancelFlag>>> = LazyLock::new(Mutex::default);

/// A query that `cancel` finds under its number for as long as this lives. Numbers are the caller's; 0 is nobody's.
pub struct Operation {
    number: u32,
    pub flag: CancelFlag,
}

impl Operation {
    pub fn start(number: u32) -> Self {
        let flag = CancelFlag::default();
        if number != 0 {
            running().insert(number, flag.clone());
        }
        Self { number, flag }
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        running().remove(&self.number);
    }
}

/// Tells the query to stop soon; one that has ended already is ignored.
pub fn cancel(number: u32) {
    if let Some(flag) = running().get(&number) {
        flag.cancel();
    }
}

fn running() -> MutexGuard<'static, HashMap<u32, CancelFlag>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}
