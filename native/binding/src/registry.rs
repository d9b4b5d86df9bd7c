//! Native things that JavaScript holds by number.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use sundew_engine::error::EngineError;

/// Handles are never 0 and never used twice. The values are shared references: what is closed while a call still works
/// with it ends with that call.
pub struct Registry<T> {
    what: &'static str,
    open: LazyLock<Mutex<Open<T>>>,
}

struct Open<T> {
    last_handle: u32,
    values: HashMap<u32, T>,
}

impl<T: Clone> Registry<T> {
    pub const fn new(what: &'static str) -> Self {
        Self { what, open: LazyLock::new(|| Mutex::new(Open { last_handle: 0, values: HashMap::new() })) }
    }

    pub fn insert(&self, value: T) -> u32 {
        let mut open = self.lock();
        open.last_handle = open.last_handle.checked_add(1).expect("four billion handles were opened");
        let handle = open.last_handle;
        open.values.insert(handle, value);
        handle
    }

    pub fn get(&self, handle: u32) -> Result<T, EngineError> {
        self.lock().values.get(&handle).cloned().ok_or_else(|| self.unknown(handle))
    }

    pub fn remove(&self, handle: u32) -> Result<T, EngineError> {
        self.lock().values.remove(&handle).ok_or_else(|| self.unknown(handle))
    }

    fn lock(&self) -> MutexGuard<'_, Open<T>> {
        // A map is whole after a panic elsewhere: nothing in here panics half-way.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unknown(&self, handle: u32) -> EngineError {
        EngineError::internal(format!("{} handle {handle} is not open", self.what))
    }
}
