//! How fast one graph index takes edges and answers, and what an edge weighs at rest:
//! `cargo run --release -p sundew-graph --example graph_speed -- 1000000`

use std::sync::Arc;
use std::time::Instant;

use sundew_base::derived_index::DerivedIndex;
use sundew_base::frame::{FrameWriter, RowKind};
use sundew_base::part::edges::{Edge, EdgeOrigin, write_edges};
use sundew_base::part::{PartForm, part_head};
use sundew_graph::search::{GraphRequest, RemovedTargets, search};
use sundew_graph::{GraphIndex, GraphOptions};

const PART: u32 = 7;
const EDGES_PER_NODE: usize = 10;
const NODES_PER_COMMIT: usize = 10_000;
const SEARCHES: usize = 200;

fn main() {
    let edges: usize = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(1_000_000);
    let nodes = edges / EDGES_PER_NODE;
    let path = std::env::temp_dir().join(format!("sundew-graph-speed-{}", std::process::id()));
    let index = GraphIndex::open(&path, GraphOptions::named("g", PART)).expect("an empty directory");
    let mut seed = 7u64;
    let mut below = |end: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % end
    };
    let frames: Vec<(u64, Vec<u8>)> = (0..nodes)
        .step_by(NODES_PER_COMMIT)
        .map(|start| {
            let end = nodes.min(start + NODES_PER_COMMIT);
            let mut frame = FrameWriter::new(end - start, 1 << 20).expect("a small frame");
            for node in start..end {
                let targets: Vec<String> = (0..EDGES_PER_NODE).map(|_| key(below(nodes))).collect();
                let mut list: Vec<Edge<'_>> = targets.iter().map(|target| edge(target)).collect();
                list.sort_by_key(Edge::identity);
                list.dedup_by_key(|edge| edge.identity());
                let payload = write_edges(&list).expect("edges of one type");
                frame.push(RowKind::PartPut, 0, key(node).as_bytes(), &[&part_head(PART, PartForm::Edges), &payload]);
                frame.set_position(node - start, node as u32 + 1, node as u64 + 1, 0);
            }
            (end as u64, frame.finish())
        })
        .collect();
    let started = Instant::now();
    for (sequence, frame) in &frames {
        index.apply(frame).expect("rows of edges");
        index.commit(*sequence).expect("a commit");
    }
    index.rest().expect("merges");
    index.checkpoint().expect("a checkpoint");
    let seconds = started.elapsed().as_secs_f64();
    let stats = index.stats();
    let held = stats.term_count;
    println!("{held} edges in {seconds:.2} s, durable: {:.0} a second", held as f64 / seconds);
    println!("{:.1} bytes an edge at rest", stats.disk_bytes as f64 / held as f64);
    let starts: Vec<String> = (0..SEARCHES).map(|_| key(below(nodes))).collect();
    let traverse = r#"{"traverse":{"max_depth":3,"max_results":100,"deduplicate_nodes":true,"include_paths":false,"include_edges":false}}"#;
    timed("3 hops", &index, traverse, &starts, &[]);
    let targets: Vec<String> = (0..SEARCHES).map(|_| key(below(nodes))).collect();
    let paths = r#"{"paths":{"max_depth":10,"weight_mode":"min_hops","k":1}}"#;
    timed("shortest path", &index, paths, &starts, &targets);
    let _ = std::fs::remove_dir_all(&path);
}

fn key(node: usize) -> String {
    format!("document:{node:09}")
}

fn edge(target: &str) -> Edge<'_> {
    let (created_ms, updated_ms) = (1_700_000_000_000, 1_700_000_000_000);
    Edge {
        edge_type: "to",
        target,
        origin: EdgeOrigin::Declared,
        weight: 1.0,
        created_ms,
        updated_ms,
        since: 0,
        metadata: "",
    }
}

fn timed(what: &str, index: &Arc<GraphIndex>, of: &str, starts: &[String], targets: &[String]) {
    let started = Instant::now();
    let mut found = 0;
    for (at, start) in starts.iter().enumerate() {
        let targets = targets.get(at).map_or_else(String::new, |target| format!("{target:?}"));
        let request = format!(
            r#"{{"search":{of},"starts":[{start:?}],"targets":[{targets}],"direction":"out","range_starts":[""],"edges_max":100000000,"nodes_max":100000000,"millis_max":60000}}"#
        );
        let request: GraphRequest = serde_json::from_str(&request).expect("a request");
        let answer = search(&[Arc::clone(index)], &request, &RemovedTargets::default(), &|| false);
        found += answer.expect("an answer").total;
    }
    let each = started.elapsed().as_secs_f64() * 1e3 / starts.len() as f64;
    println!("{what}: {each:.3} ms each, {found} found");
}
