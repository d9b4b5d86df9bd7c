//! Merges of text indexes, a few at a time over the whole process: each takes a core, and after a write to a thousand tables a
//! thousand of them are due in the same second. Those that take long have a queue of their own, so that no other waits for them.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;

const MERGES_AT_ONCE: usize = 2;

type Work = Box<dyn FnOnce() + Send>;

/// Merges that wait for one of a few threads.
struct MergeQueue {
    threads_max: usize,
    waiting: Mutex<Waiting>,
}

struct Waiting {
    works: VecDeque<Work>,
    threads: usize,
}

impl MergeQueue {
    const fn new(threads_max: usize) -> Self {
        Self { threads_max, waiting: Mutex::new(Waiting { works: VecDeque::new(), threads: 0 }) }
    }
}

static MERGES: MergeQueue = MergeQueue::new(MERGES_AT_ONCE);

static LARGE_MERGES: MergeQueue = MergeQueue::new(1);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A merge that waits for its turn or is under way.
#[derive(Default)]
struct Progress {
    /// It has found nothing more to merge.
    is_ending: AtomicBool,
    is_done: Mutex<bool>,
    done: Condvar,
}

/// Ends the wait for a merge, also for one that panics.
struct Done(Arc<Progress>);

impl Drop for Done {
    fn drop(&mut self) {
        *locked(&self.0.is_done) = true;
        self.0.done.notify_all();
    }
}

/// The merges of one index of which at most one is due at a time.
pub struct Merger {
    queue: &'static MergeQueue,
    progress: Option<Arc<Progress>>,
}

/// A handle that can be waited for without keeping the index from queueing.
pub struct MergeWait(Arc<Progress>);

impl MergeWait {
    pub fn wait(self) {
        let mut is_done = locked(&self.0.is_done);
        while !*is_done {
            is_done = self.0.done.wait(is_done).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Merger {
    pub const fn new() -> Self {
        Self { queue: &MERGES, progress: None }
    }

    /// For merges that take long.
    pub const fn of_large() -> Self {
        Self { queue: &LARGE_MERGES, progress: None }
    }

    /// Whether merges wait for their turn or are under way, and will find what has become due.
    pub fn is_at_work(&self) -> bool {
        let will_look =
            |progress: &Arc<Progress>| !progress.is_ending.load(Ordering::Relaxed) && !*locked(&progress.is_done);
        self.progress.as_ref().is_some_and(will_look)
    }

    /// Those who merge have found nothing due: for what becomes due from now on others are started.
    pub fn found_none(&self) {
        if let Some(progress) = &self.progress {
            progress.is_ending.store(true, Ordering::Relaxed);
        }
    }

    pub fn start(&mut self, work: impl FnOnce() + Send + 'static) {
        let progress = Arc::new(Progress::default());
        let done = Done(Arc::clone(&progress));
        self.progress = Some(progress);
        self.queue.push(Box::new(move || {
            let _done = done;
            work();
        }));
    }

    pub fn under_way(&self) -> Option<MergeWait> {
        self.progress.clone().filter(|progress| !*locked(&progress.is_done)).map(MergeWait)
    }
}

impl MergeQueue {
    fn push(&'static self, work: Work) {
        let mut waiting = locked(&self.waiting);
        waiting.works.push_back(work);
        if waiting.threads >= self.threads_max {
            return;
        }
        // Without a thread the work is dropped, which ends the waits for it; the next commit tries again.
        match Builder::new().name("merge".to_owned()).spawn(|| self.run()) {
            Ok(_) => waiting.threads += 1,
            Err(_) if waiting.threads == 0 => waiting.works.clear(),
            Err(_) => {}
        }
    }

    fn run(&self) {
        loop {
            let work = {
                let mut waiting = locked(&self.waiting);
                let Some(work) = waiting.works.pop_front() else {
                    waiting.threads -= 1;
                    return;
                };
                work
            };
            // The segments of a merge that panicked stay as they were.
            let _ = catch_unwind(AssertUnwindSafe(work));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn every_merge_runs_a_few_at_a_time_and_one_that_panics_ends_its_wait() {
        static AT_WORK: AtomicUsize = AtomicUsize::new(0);
        static MOST: AtomicUsize = AtomicUsize::new(0);
        let ran = Arc::new(AtomicUsize::new(0));
        let waits: Vec<MergeWait> = (0..40)
            .map(|at| {
                let mut merger = Merger::new();
                let ran = Arc::clone(&ran);
                merger.start(move || {
                    MOST.fetch_max(AT_WORK.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::yield_now();
                    AT_WORK.fetch_sub(1, Ordering::SeqCst);
                    ran.fetch_add(1, Ordering::SeqCst);
                    assert!(at % 10 != 0, "a merge that panics");
                });
                merger.under_way().expect("it was just started")
            })
            .collect();
        for wait in waits {
            wait.wait();
        }
        assert_eq!(ran.load(Ordering::SeqCst), 40);
        assert!(MOST.load(Ordering::SeqCst) <= MERGES_AT_ONCE);
    }
}
