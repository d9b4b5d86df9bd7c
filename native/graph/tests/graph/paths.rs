//! Paths of the fewest edges, searched for from both ends, beside Dijkstra's algorithm over edges that all weigh 1, and
//! beside every path of a small graph: the same path of several equal ones, over 1 and 3 ranges and several segments.

use std::collections::BTreeSet;
use std::sync::Arc;

use sundew_base::derived_index::DerivedIndex;
use sundew_base::frame::{FrameWriter, RowKind};
use sundew_base::part::edges::{Edge, EdgeOrigin, write_edges};
use sundew_base::part::{PartForm, part_head};
use sundew_graph::search::{GraphAnswer, GraphRequest, RemovedTargets, search};
use sundew_graph::{GraphIndex, GraphOptions};

const PART: u32 = 7;
const NODES: u64 = 24;

/// Numbers that only look random.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

fn key(node: u64) -> String {
    // Not in the order of the numbers.
    format!("k{:02}", node * 7 % NODES)
}

/// The source, the type and the target of each edge.
type Arrows = BTreeSet<(String, String, String)>;

fn random_arrows(random: &mut Random) -> Arrows {
    let edges = NODES + random.below(3 * NODES);
    let arrow = |random: &mut Random| {
        (key(random.below(NODES)), ["a", "b"][random.below(2) as usize].to_owned(), key(random.below(NODES)))
    };
    (0..edges).map(|_| arrow(random)).collect()
}

/// The first key of each range, and an index in memory for each; a commit for every few documents, so that there are several
/// segments.
fn indexes_of(arrows: &Arrows, range_starts: &[&str]) -> Vec<Arc<GraphIndex>> {
    let index = |range: usize| {
        let options = GraphOptions { mem_only: true, ..GraphOptions::named("g", PART) };
        let index = GraphIndex::open(std::path::Path::new("nowhere"), options).unwrap();
        let is_ours = |source: &str| {
            source >= range_starts[range] && range_starts.get(range + 1).is_none_or(|next| source < *next)
        };
        let sources: BTreeSet<&String> = arrows.iter().map(|arrow| &arrow.0).filter(|source| is_ours(source)).collect();
        for (at, source) in sources.into_iter().enumerate() {
            let list: Vec<Edge<'_>> =
                arrows.iter().filter(|arrow| arrow.0 == *source).map(|arrow| edge(&arrow.1, &arrow.2)).collect();
            let mut frame = FrameWriter::new(1, 1 << 12).unwrap();
            let payload = write_edges(&list).unwrap();
            frame.push(RowKind::PartPut, 0, source.as_bytes(), &[&part_head(PART, PartForm::Edges), &payload]);
            frame.set_position(0, at as u32 + 1, at as u64 + 1, 0);
            index.apply(&frame.finish()).unwrap();
            if at % 5 == 4 {
                index.commit(at as u64 + 1).unwrap();
            }
        }
        index.commit(NODES + 1).unwrap();
        index
    };
    (0..range_starts.len()).map(index).collect()
}

fn edge<'a>(edge_type: &'a str, target: &'a str) -> Edge<'a> {
    let (created_ms, updated_ms) = (5, 5);
    let weight = if edge_type == "heavy" { 7.0 } else { 1.0 };
    Edge { edge_type, target, origin: EdgeOrigin::Declared, weight, created_ms, updated_ms, since: 0, metadata: "" }
}

struct PathRequest<'a> {
    direction: &'a str,
    mode: &'a str,
    k: u64,
    max_depth: u64,
    starts: &'a [String],
    targets: &'a [String],
    hidden: &'a [String],
}

fn answer(indexes: &[Arc<GraphIndex>], range_starts: &[&str], asked: &PathRequest<'_>) -> GraphAnswer {
    let PathRequest { direction, mode, k, max_depth, starts, targets, hidden } = asked;
    let request = serde_json::json!({
        "search": {"paths": {"max_depth": max_depth, "weight_mode": mode, "k": k}},
        "starts": starts, "targets": targets, "hidden": hidden, "direction": direction, "range_starts": range_starts,
        "edges_max": 10_000_000, "nodes_max": 10_000_000, "millis_max": 60_000,
    });
    let request: GraphRequest = serde_json::from_value(request).unwrap();
    search(indexes, &request, &RemovedTargets::default(), &|| false).unwrap()
}

fn shown(answer: &GraphAnswer) -> Vec<(Vec<String>, Vec<String>, f64)> {
    let types = |path: &sundew_graph::search::FoundPath| path.edges.iter().map(|edge| edge.edge_type.clone()).collect();
    answer.paths.iter().map(|path| (path.nodes.clone(), types(path), path.total_weight)).collect()
}

/// Hops of every path of the fewest edges by plain breadth-first search.
fn plain_hops(arrows: &Arrows, asked: &PathRequest<'_>, target: &str) -> Option<usize> {
    let seen = |key: &str| !asked.hidden.iter().any(|hidden| hidden == key);
    let mut level: BTreeSet<&str> = asked.starts.iter().map(String::as_str).filter(|key| seen(key)).collect();
    let mut known = level.clone();
    for depth in 0..=asked.max_depth as usize {
        if level.contains(target) {
            return Some(depth);
        }
        let ends = arrows.iter().flat_map(|(source, _, target)| [(source, target, "out"), (target, source, "in")]);
        let followed =
            ends.filter(|(from, _, way)| level.contains(from.as_str()) && [way, "both"].contains(&asked.direction));
        level = followed.map(|(_, to, _)| to.as_str()).filter(|to| seen(to) && !known.contains(to)).collect();
        known.extend(&level);
    }
    None
}

#[test]
fn both_ends_find_the_path_that_one_end_finds() {
    let mut random = Random(29);
    for round in 0..120 {
        let arrows = random_arrows(&mut random);
        let range_starts: &[&[&str]] = &[&[""], &["", "k08", "k16"]];
        let range_starts = range_starts[round % 2];
        let indexes = indexes_of(&arrows, range_starts);
        let some = |random: &mut Random, most: u64| -> Vec<String> {
            (0..1 + random.below(most)).map(|_| key(random.below(NODES))).collect()
        };
        for direction in ["out", "in", "both"] {
            let (starts, targets) = (some(&mut random, 3), some(&mut random, 3));
            let hidden = if random.below(2) == 0 { Vec::new() } else { some(&mut random, 4) };
            let (k, max_depth) = (random.below(6), 1 + random.below(8));
            let asked = PathRequest {
                direction,
                mode: "min_hops",
                k,
                max_depth,
                starts: &starts,
                targets: &targets,
                hidden: &hidden,
            };
            let found = answer(&indexes, range_starts, &asked);
            let beside = answer(&indexes, range_starts, &PathRequest { mode: "min_weight", ..asked });
            assert_eq!(shown(&found), shown(&beside), "round {round}: {direction} {starts:?} {targets:?} k {k}");
            let whole = &indexes_of(&arrows, &[""]);
            assert_eq!(shown(&found), shown(&answer(whole, &[""], &asked)), "one range and several");
            if k == 0 {
                for target in targets.iter().filter(|target| !hidden.contains(target)) {
                    let path = found.paths.iter().find(|path| path.nodes.last() == Some(target));
                    assert_eq!(path.map(|path| path.length), plain_hops(&arrows, &asked, target), "round {round}");
                }
            }
        }
    }
}

#[test]
fn a_search_that_reports_nodes_goes_on_without_edges_that_it_refuses_and_keeps_the_first_reason() {
    let arrow =
        |(source, edge_type, target): (&str, &str, &str)| (source.to_owned(), edge_type.to_owned(), target.to_owned());
    let all = [("k00", "a", "k01"), ("k00", "heavy", "k08"), ("k01", "a", "k02"), ("k01", "heavy", "k09")];
    let indexes = indexes_of(&all.map(arrow).into_iter().collect(), &[""]);
    for k in [0, 2] {
        let asked = |reports_nodes: bool| -> GraphRequest {
            serde_json::from_value(serde_json::json!({
                "search": {"paths": {"max_depth": 5, "weight_mode": "max_weight", "k": k}},
                "starts": ["k00"], "targets": ["k02"], "direction": "out", "range_starts": [""],
                "edges_max": 1_000, "nodes_max": 1_000, "millis_max": 60_000, "reports_nodes": reports_nodes,
            }))
            .unwrap()
        };
        let run = |request| search(&indexes, &request, &RemovedTargets::default(), &|| false);
        let refused = run(asked(false)).unwrap_err();
        assert_eq!(refused.code, "invalid_query");
        assert!(refused.message.contains(r#"from "k00" to "k08" has the weight 7"#), "{}", refused.message);
        let found = run(asked(true)).unwrap();
        assert_eq!(found.refused, Some(refused.message), "k {k}");
        assert_eq!(found.paths.iter().map(|path| path.nodes.join(" ")).collect::<Vec<_>>(), ["k00 k01 k02"]);
        let touched: BTreeSet<String> = found.touched.into_iter().collect();
        assert_eq!(touched.into_iter().collect::<Vec<_>>(), ["k00", "k01", "k02", "k08", "k09"]);
    }
}
