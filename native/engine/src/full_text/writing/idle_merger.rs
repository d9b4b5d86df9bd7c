//! The one thread that merges while an index rests.

use std::thread::{Builder, JoinHandle};

#[derive(Default)]
pub struct IdleMerger(Option<JoinHandle<()>>);

impl IdleMerger {
    pub fn is_at_work(&self) -> bool {
        self.0.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// When the thread cannot be started, the next commit tries again.
    pub fn start(&mut self, work: impl FnOnce() + Send + 'static) {
        self.0 = Builder::new().name("idle-merge".to_owned()).spawn(work).ok();
    }

    pub fn take(&mut self) -> Option<JoinHandle<()>> {
        self.0.take()
    }
}
