//! Our queries beside Tantivy's own, in one process, turn by turn, each over an index of the same documents.
//!
//! `text_speed DOCUMENTS.ndjson QUERIES.ndjson [--rounds N] [--merged] [--schema JSON]` prints a JSON line for the indexes
//! and one for each query; with `--merged` Tantivy's index is of one segment, as ours is once it rests. A query line is
//! `{"kind":"or|and|phrase|prefix","field":"body","text":"...","filter":[..],"sort":[..]}`; with `filter`, conditions of a
//! plan, our side is timed with it as well.
//!
//! With `--ours-only` it prints the line of our index, and then answers each line of its input, `{"rounds":N}`, when all
//! queries were asked as often, each as its line says: `{"us":[..]}`, medians in microseconds.

#[path = "shared/bare_index.rs"]
mod bare_index;
#[path = "shared/our_index.rs"]
mod our_index;

use std::fs;
use std::io::{BufRead, BufReader, stdin};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use sundew_engine::full_text::{CancelFlag, DerivedIndex, Hits, QueryPlan, TextIndex, query};
use tantivy::collector::TopDocs;
use tantivy::{Index, Searcher};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROUNDS: usize = 100;
const LIMIT: usize = 10;

/// What a caller does: the plan comes as text.
fn ask(index: &Arc<TextIndex>, plan: &str) -> Hits {
    ask_read(index, &read(plan))
}

fn read(plan: &str) -> QueryPlan {
    serde_json::from_str(plan).expect("a plan")
}

fn ask_read(index: &Arc<TextIndex>, plan: &QueryPlan) -> Hits {
    query(std::slice::from_ref(index), plan, &CancelFlag::default()).expect("hits")
}

fn micros(work: impl FnOnce()) -> f64 {
    let started = Instant::now();
    work();
    started.elapsed().as_secs_f64() * 1e6
}

fn p50(mut samples: Vec<f64>) -> f64 {
    samples.sort_unstable_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(0.0)
}

fn build_bare(directory: &Path, lines: &[&str], is_merged: bool) -> (Index, Searcher) {
    fs::create_dir_all(directory).expect("a directory");
    let (index, mut writer) = bare_index::build(directory, lines, None);
    if is_merged {
        let segments = index.searchable_segment_ids().expect("segments");
        writer.merge(&segments).wait().expect("a merge");
    }
    writer.wait_merging_threads().expect("merges end");
    let searcher = bare_index::reader(&index).searcher();
    (index, searcher)
}

fn build_ours(directory: &Path, documents: &Path, schema: Value) -> Arc<TextIndex> {
    let lines = BufReader::new(fs::File::open(documents).expect("documents")).lines();
    let index = our_index::build(directory, lines.map(|line| line.expect("a line")), schema);
    index.rest().expect("merges end");
    index.wait_for_merges();
    index.checkpoint().expect("a checkpoint");
    index
}

/// The plan of a query line, with its filter and order where it has them.
fn plan_of(line: &Value) -> Value {
    let mut plan = json!({"query": our_index::node_of(line), "limit": LIMIT, "expired_at_or_before_ms": 1});
    for member in ["filter", "sort"] {
        if let Some(value) = line.get(member) {
            plan[member] = value.clone();
        }
    }
    plan
}

/// What follows `name`.
fn value_of<'a>(arguments: &'a [String], name: &str) -> Option<&'a str> {
    let at = arguments.iter().position(|argument| argument == name)?;
    arguments.get(at + 1).map(String::as_str)
}

/// On disk: blocks of zeros take no room there.
fn bytes_of(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry"));
    entries
        .map(|entry| match entry.file_type().expect("a type").is_dir() {
            true => bytes_of(&entry.path()),
            false => entry.metadata().expect("metadata").blocks() * 512,
        })
        .sum()
}

/// Our index alone, warm after the first rounds, each of which goes over all queries. Plans are read before, as the program over
/// Lucene builds its queries before; the words of a plan are analysed each time, which that program does before, too.
fn serve_ours(directory: &Path, documents: &Path, schema: Value, queries: &str) {
    let ours = build_ours(directory, documents, schema);
    println!("{}", json!({"segments": ours.stats().segment_count, "bytes": bytes_of(directory)}));
    let queries = queries.lines().map(|line| serde_json::from_str(line).expect("a JSON query"));
    let plans: Vec<QueryPlan> = queries.map(|line: Value| read(&plan_of(&line).to_string())).collect();
    for line in stdin().lines() {
        let command: Value = serde_json::from_str(&line.expect("a line")).expect("a JSON command");
        let rounds = command["rounds"].as_u64().expect("a number of rounds");
        let mut times = vec![Vec::new(); plans.len()];
        for _ in 0..rounds {
            for (plan, times) in plans.iter().zip(&mut times) {
                times.push(micros(|| drop(ask_read(&ours, plan))));
            }
        }
        println!("{}", json!({"us": times.into_iter().map(p50).collect::<Vec<f64>>()}));
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rounds = value_of(&arguments, "--rounds").and_then(|rounds| rounds.parse().ok()).unwrap_or(ROUNDS);
    let schema = value_of(&arguments, "--schema").unwrap_or("null");
    let schema: Value = serde_json::from_str(schema).expect("a JSON schema");
    let ours_only = arguments.iter().any(|argument| argument == "--ours-only");
    let documents = Path::new(&arguments[0]);
    let queries = fs::read_to_string(&arguments[1]).expect("queries");
    let directory = std::env::temp_dir().join(format!("text-speed-{}", std::process::id()));
    if ours_only {
        serve_ours(&directory, documents, schema, &queries);
        let _ = fs::remove_dir_all(&directory);
        return;
    }
    let text = fs::read_to_string(documents).expect("documents");
    let lines: Vec<&str> = text.lines().collect();
    let is_merged = arguments.iter().any(|argument| argument == "--merged");
    let (bare, searcher) = build_bare(&directory.join("bare"), &lines, is_merged);
    let ours = build_ours(&directory.join("ours"), documents, schema);
    let segments = json!({"ours": ours.stats().segment_count, "bare": searcher.segment_readers().len()});
    println!("{}", json!({"docs": lines.len(), "segments": segments}));
    let (schema, mut analyzer) = (bare.schema(), bare_index::analyzer());
    for line in queries.lines() {
        let line: Value = serde_json::from_str(line).expect("a JSON query");
        let request = json!({"query": our_index::node_of(&line), "limit": LIMIT, "expired_at_or_before_ms": 1});
        let filtered = line.get("filter").map(|filter| {
            let mut request = request.clone();
            request["filter"] = filter.clone();
            request.to_string()
        });
        // What Tantivy's own collector does: it knows no total.
        let mut uncounted = request.clone();
        uncounted["total_exact_up_to"] = json!(0);
        let (request, uncounted) = (request.to_string(), uncounted.to_string());
        let (mut our_times, mut bare_times) = (Vec::new(), Vec::new());
        let (mut uncounted_times, mut filtered_times) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            our_times.push(micros(|| drop(ask(&ours, &request))));
            bare_times.push(micros(|| {
                let compiled = bare_index::compile(&line, &schema, &mut analyzer);
                let top = TopDocs::with_limit(LIMIT).order_by_score();
                drop(searcher.search(&*compiled, &top).expect("hits"));
            }));
            uncounted_times.push(micros(|| drop(ask(&ours, &uncounted))));
            if let Some(filtered) = &filtered {
                filtered_times.push(micros(|| drop(ask(&ours, filtered))));
            }
        }
        let found = ask(&ours, &request);
        let mut answer = json!({"class": line["class"], "query": line["text"], "ours_us": p50(our_times),
            "uncounted_us": p50(uncounted_times), "bare_us": p50(bare_times), "total": found.total, "total_is_exact": found.total_is_exact});
        if let Some(filtered) = &filtered {
            answer["filtered_us"] = json!(p50(filtered_times));
            answer["filtered_total"] = json!(ask(&ours, filtered).total);
        }
        println!("{answer}");
    }
    let _ = fs::remove_dir_all(&directory);
}
