//! Our ingest, commits and queries over the same files as `bare_tantivy`.
//!
//! `full_text_ingest DOCUMENTS.ndjson [QUERIES.ndjson] [--commit-every N]` prints JSON lines.

#[path = "shared/our_index.rs"]
mod our_index;

use std::fs;
use std::sync::Arc;
use std::time::Instant;

use our_index::{FRAME_ROWS, frame, node_of};
use serde_json::{Value, json};
use sundew_engine::full_text::{CancelFlag, DerivedIndex, IndexOptions, QueryPlan, TextIndex, match_documents, query};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const QUERY_ROUNDS: usize = 200;
const SINGLE_COMMITS: usize = 200;

fn p50(mut samples: Vec<u128>) -> u64 {
    samples.sort_unstable();
    samples[samples.len() / 2] as u64
}

fn time_query(index: &Arc<TextIndex>, plan: &QueryPlan) -> (u64, u64) {
    let mut total = 0;
    let samples = (0..QUERY_ROUNDS).map(|_| {
        let started = Instant::now();
        total = query(std::slice::from_ref(index), plan, &CancelFlag::default()).expect("hits").total;
        started.elapsed().as_micros()
    });
    (p50(samples.collect()), total)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let commit_every = arguments.iter().position(|argument| argument == "--commit-every");
    let commit_every = commit_every.and_then(|at| arguments.get(at + 1)?.parse::<usize>().ok());
    let text = fs::read_to_string(&arguments[0]).expect("documents");
    let lines: Vec<&str> = text.lines().collect();
    let frames: Vec<Vec<u8>> =
        lines.chunks(FRAME_ROWS).enumerate().map(|(at, chunk)| frame(chunk, at * FRAME_ROWS)).collect();
    let directory = std::env::temp_dir().join(format!("full-text-ingest-{}", std::process::id()));
    let index = TextIndex::open(&directory, IndexOptions::named("bench")).expect("an index");
    let started = Instant::now();
    for (at, frame) in frames.iter().enumerate() {
        index.apply(frame).expect("applied");
        let sequence = ((at + 1) * FRAME_ROWS) as u64;
        if commit_every.is_some_and(|every| sequence.is_multiple_of(every as u64)) {
            index.commit(sequence).expect("a commit");
            index.checkpoint().expect("a checkpoint");
        }
    }
    index.commit(lines.len() as u64).expect("a commit");
    let seconds = started.elapsed().as_secs_f64();
    index.checkpoint().expect("a checkpoint");
    let with_checkpoint = started.elapsed().as_secs_f64();
    index.rest().expect("merges end");
    let loaded = started.elapsed().as_secs_f64();
    index.wait_for_merges();
    let merging = started.elapsed().as_secs_f64() - loaded;
    index.checkpoint().expect("a checkpoint");
    let stats = index.stats();
    println!(
        "{}",
        json!({"docs": lines.len(), "seconds": seconds, "docs_per_s": lines.len() as f64 / seconds,
            "seconds_with_checkpoint": with_checkpoint, "seconds_of_merging_at_rest": merging, "bytes": stats.disk_bytes, "segments": stats.segment_count})
    );
    let queries = arguments.get(1).filter(|argument| !argument.starts_with("--"));
    let queries = queries.map(|path| fs::read_to_string(path).expect("queries")).unwrap_or_default();
    for line in queries.lines() {
        let query: Value = serde_json::from_str(line).expect("a JSON query");
        let plan: QueryPlan = serde_json::from_value(json!({"query": node_of(&query), "limit": 10})).expect("a plan");
        let (micros, total) = time_query(&index, &plan);
        let filter = json!([{"kind": "range", "field": "n", "gte": 0, "lt": lines.len() / 100}]);
        let filtered: QueryPlan =
            serde_json::from_value(json!({"query": node_of(&query), "filter": filter, "limit": 10})).expect("a plan");
        let (filtered_micros, filtered_total) = time_query(&index, &filtered);
        println!(
            "{}",
            json!({"query": query, "p50_micros": micros, "total": total,
                "filtered_1_percent_p50_micros": filtered_micros, "filtered_total": filtered_total})
        );
    }
    if !queries.is_empty() {
        time_small_work(&index, &lines);
    }
    let _ = fs::remove_dir_all(&directory);
}

/// Commits of one document, and matching without an index.
fn time_small_work(index: &Arc<TextIndex>, lines: &[&str]) {
    let mut commits = Vec::new();
    let mut updates = Vec::new();
    for at in 0..SINGLE_COMMITS {
        let started = Instant::now();
        index.apply(&frame(&lines[at..at + 1], at)).expect("applied");
        index.commit((lines.len() + at) as u64 + 1).expect("a commit");
        updates.push(started.elapsed().as_micros());
        let started = Instant::now();
        index.apply(&frame(&lines[at..at + 1], lines.len() + at)).expect("applied");
        index.commit((lines.len() + at) as u64 + 1).expect("a commit");
        commits.push(started.elapsed().as_micros());
    }
    println!(
        "{}",
        json!({"one_new_document_commit_p50_micros": p50(commits), "one_update_commit_p50_micros": p50(updates)})
    );
    let options = IndexOptions::named("bench");
    let plan: QueryPlan = serde_json::from_value(
        json!({"query": {"kind": "match", "text": "a"}, "filter": [{"kind": "range", "field": "n", "gte": 5}], "limit": 1}),
    )
    .expect("a plan");
    for rows in [1usize, 16, 256] {
        let frame = frame(&lines[..rows.min(lines.len())], 0);
        let samples = (0..QUERY_ROUNDS).map(|_| {
            let started = Instant::now();
            match_documents(&options, &plan, &frame).expect("matched");
            started.elapsed().as_micros()
        });
        println!("{}", json!({"match_documents_rows": rows, "p50_micros": p50(samples.collect())}));
    }
}
