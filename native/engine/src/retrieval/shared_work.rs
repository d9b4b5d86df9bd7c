//! Pieces of work that the calling thread shares with those of a pool.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;

use rayon::ThreadPool;

struct Shared<T, W> {
    work: W,
    tasks: usize,
    next: AtomicUsize,
    done: Mutex<Done<T>>,
    all_done: Condvar,
}

struct Done<T> {
    answers: Vec<Option<thread::Result<T>>>,
    left: usize,
}

impl<T, W: Fn(usize) -> T> Shared<T, W> {
    fn done(&self) -> MutexGuard<'_, Done<T>> {
        self.done.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Works until every task has somebody.
    fn take_part(&self) {
        loop {
            let task = self.next.fetch_add(1, Ordering::Relaxed);
            if task >= self.tasks {
                return;
            }
            // A panic on a thread of the pool belongs to the caller.
            let answer = catch_unwind(AssertUnwindSafe(|| (self.work)(task)));
            let mut done = self.done();
            done.answers[task] = Some(answer);
            done.left -= 1;
            if done.left == 0 {
                self.all_done.notify_one();
            }
        }
    }
}

/// Calls of `share` that are at work.
static CALLS: AtomicUsize = AtomicUsize::new(0);

struct Call {
    others: usize,
}

impl Call {
    fn begin() -> Self {
        Self { others: CALLS.fetch_add(1, Ordering::Relaxed) }
    }

    /// Where as many calls are at work as there are threads, a thread that is woken for one only takes the core of another.
    fn leaves_threads_idle(&self, pool: &ThreadPool) -> bool {
        self.others + 1 < pool.current_num_threads()
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        CALLS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The answers of `work` to 0..`tasks`, begun in this order. The caller waits for nobody who has not begun: threads of a busy
/// machine may take milliseconds to wake up, and then find everything done.
pub fn share<T, W>(pool: Option<&'static ThreadPool>, tasks: usize, work: W) -> Vec<T>
where
    T: Send + 'static,
    W: Fn(usize) -> T + Send + Sync + 'static,
{
    let call = Call::begin();
    let pool = pool.filter(|pool| tasks > 1 && call.leaves_threads_idle(pool));
    let Some(pool) = pool else { return (0..tasks).map(work).collect() };
    let done = Mutex::new(Done { answers: (0..tasks).map(|_| None).collect(), left: tasks });
    let shared = Arc::new(Shared { work, tasks, next: AtomicUsize::new(0), done, all_done: Condvar::new() });
    for _ in 0..pool.current_num_threads().min(tasks - 1) {
        let shared = Arc::clone(&shared);
        pool.spawn(move || shared.take_part());
    }
    shared.take_part();
    let mut done = shared.done();
    while done.left > 0 {
        done = shared.all_done.wait(done).unwrap_or_else(|poisoned| poisoned.into_inner());
    }
    let answers = std::mem::take(&mut done.answers);
    drop(done);
    answers.into_iter().flatten().map(|answer| answer.unwrap_or_else(|panic| resume_unwind(panic))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool() -> Option<&'static ThreadPool> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("a pool");
        Some(Box::leak(Box::new(pool)))
    }

    #[test]
    fn answers_come_in_the_order_of_the_tasks() {
        for pool in [None, pool()] {
            for tasks in [0, 1, 2, 50] {
                assert_eq!(share(pool, tasks, |task| task * 3), (0..tasks).map(|task| task * 3).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_pool_that_is_busy_keeps_nobody_waiting() {
        let pool = pool();
        let (release, held) = std::sync::mpsc::channel::<()>();
        let held = Arc::new(Mutex::new(held));
        for _ in 0..2 {
            let held = Arc::clone(&held);
            pool.expect("a pool").spawn(move || {
                let _ = held.lock().map(|held| held.recv());
            });
        }
        assert_eq!(share(pool, 3, |task| task), [0, 1, 2]);
        drop(release);
    }

    #[test]
    fn beside_as_many_calls_as_there_are_threads_a_caller_does_everything() {
        let (release, held) = std::sync::mpsc::channel::<()>();
        let (begun, other_call) = std::sync::mpsc::channel();
        let (held, begun) = (Mutex::new(held), Mutex::new(begun));
        let other = thread::spawn(move || {
            share(None, 1, move |_| {
                let _ = begun.lock().map(|begun| begun.send(()));
                let _ = held.lock().map(|held| held.recv());
            })
        });
        other_call.recv().expect("the other call has begun");
        let task = |_| {
            (0..1_000).for_each(|_| thread::yield_now());
            thread::current().id()
        };
        assert_eq!(share(pool(), 20, task), vec![thread::current().id(); 20]);
        drop(release);
        other.join().expect("the other call ends");
    }

    #[test]
    fn a_panic_reaches_the_caller() {
        let pool = pool();
        let provoke = || share(pool, 4, |task| assert!(task != 3, "provoked by a test"));
        let outcome = catch_unwind(AssertUnwindSafe(provoke));
        assert!(outcome.is_err());
        assert_eq!(share(pool, 2, |task| task), [0, 1]);
    }
}
