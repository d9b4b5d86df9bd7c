//! Running queries that may be cancelled.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use sundew_engine::full_text::CancelFlag;
use sundew_graph::search::Watch;

static RUNNING: LazyLock<Mutex<HashMap<u32, Running>>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct Running {
    flag: CancelFlag,
    iterations: Arc<AtomicU32>,
}

/// A query that `cancel` finds under its number for as long as this lives. Numbers are the caller's; 0 is nobody's.
pub struct Operation {
    number: u32,
    pub flag: CancelFlag,
    iterations: Arc<AtomicU32>,
}

impl Operation {
    pub fn start(number: u32) -> Self {
        let Running { flag, iterations } = Running::default();
        if number != 0 {
            running().insert(number, Running { flag: flag.clone(), iterations: Arc::clone(&iterations) });
        }
        Self { number, flag, iterations }
    }
}

impl Watch for Operation {
    fn is_cancelled(&self) -> bool {
        self.flag.is_cancelled()
    }

    fn iterated(&self, iterations: u32) {
        self.iterations.store(iterations, Ordering::Relaxed);
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        running().remove(&self.number);
    }
}

/// Tells the query to stop soon; one that has ended already is ignored.
pub fn cancel(number: u32) {
    if let Some(running) = running().get(&number) {
        running.flag.cancel();
    }
}

/// How often the algorithm has gone through its graph; 0 where none runs under the number.
pub fn iterations(number: u32) -> u32 {
    running().get(&number).map_or(0, |running| running.iterations.load(Ordering::Relaxed))
}

fn running() -> MutexGuard<'static, HashMap<u32, Running>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}
