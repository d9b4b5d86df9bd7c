//! The peer of our ingest and queries: Tantivy by itself.
//!
//! `bare_tantivy DOCUMENTS.ndjson [QUERIES.ndjson] [--commit-every N]` prints JSON lines.

#[path = "shared/bare_index.rs"]
mod bare_index;

use std::fs;
use std::time::Instant;

use bare_index::{analyzer, build, compile, reader};
use serde_json::{Value, json};
use tantivy::collector::TopDocs;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const QUERY_ROUNDS: usize = 200;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let commit_every = arguments.iter().position(|argument| argument == "--commit-every");
    let commit_every = commit_every.and_then(|at| arguments.get(at + 1)?.parse::<usize>().ok());
    let lines = fs::read_to_string(&arguments[0]).expect("documents");
    let lines: Vec<&str> = lines.lines().collect();
    let directory = std::env::temp_dir().join(format!("bare-tantivy-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("a directory");
    let started = Instant::now();
    let (index, writer) = build(&directory, &lines, commit_every);
    let seconds = started.elapsed().as_secs_f64();
    writer.wait_merging_threads().expect("merges end");
    let files = fs::read_dir(&directory).expect("the directory");
    let bytes: u64 = files.filter_map(|entry| entry.ok()?.metadata().ok()).map(|metadata| metadata.len()).sum();
    let ingest =
        json!({"docs": lines.len(), "seconds": seconds, "docs_per_s": lines.len() as f64 / seconds, "bytes": bytes});
    println!("{ingest}");
    let reader = reader(&index);
    let queries = arguments.get(1).filter(|argument| !argument.starts_with("--"));
    let queries = queries.map(|path| fs::read_to_string(path).expect("queries")).unwrap_or_default();
    for line in queries.lines() {
        let query: Value = serde_json::from_str(line).expect("a JSON query");
        let compiled = compile(&query, &index.schema(), &mut analyzer());
        let searcher = reader.searcher();
        let mut micros: Vec<u128> = (0..QUERY_ROUNDS)
            .map(|_| {
                let started = Instant::now();
                searcher.search(&*compiled, &TopDocs::with_limit(10).order_by_score()).expect("hits");
                started.elapsed().as_micros()
            })
            .collect();
        micros.sort_unstable();
        println!("{}", json!({"query": query, "p50_micros": micros[micros.len() / 2] as u64}));
    }
    let _ = fs::remove_dir_all(&directory);
}
