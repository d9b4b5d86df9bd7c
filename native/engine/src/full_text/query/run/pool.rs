//! The threads of queries.

use std::sync::OnceLock;

use rayon::{ThreadPool, ThreadPoolBuilder};

/// Below this many documents, several ranges are searched one after another.
const PARALLEL_DOCS_MIN: u64 = 20_000;

/// Threads for `tasks` tasks over `docs` documents together, when they are worth it.
pub fn query_pool(tasks: usize, docs: u64) -> Option<&'static ThreadPool> {
    if tasks > 1 && docs >= PARALLEL_DOCS_MIN { pool() } else { None }
}

fn pool() -> Option<&'static ThreadPool> {
    static POOL: OnceLock<Option<ThreadPool>> = OnceLock::new();
    let build = || {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        ThreadPoolBuilder::new().num_threads(threads).thread_name(|at| format!("query-{at}")).build().ok()
    };
    POOL.get_or_init(build).as_ref()
}

/// Runs `work` on one of the threads of queries, or here where there are none.
pub fn beside_queries(work: impl FnOnce() + Send + 'static) {
    match pool() {
        Some(pool) => pool.spawn(work),
        None => work(),
    }
}
