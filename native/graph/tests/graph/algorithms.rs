//! Algorithms over whole graphs beside the simplest code there is, over one range and over three.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use sundew_base::derived_index::DerivedIndex;
use sundew_base::frame::{FrameWriter, RowKind};
use sundew_base::part::edges::{Edge, EdgeOrigin, write_edges};
use sundew_base::part::{PartForm, part_head};
use sundew_graph::search::{
    Algorithm, AlgorithmOptions, Direction, GraphAnswer, GraphRequest, RemovedTargets, Search, search,
};
use sundew_graph::{GraphIndex, GraphOptions};

const PART: u32 = 7;
const NODES: usize = 60;

/// Source, type and target.
type Edges = BTreeSet<(String, &'static str, String)>;

/// Indexes of ranges that begin at these keys.
struct Ranges {
    directory: PathBuf,
    starts: Vec<String>,
    indexes: Vec<Arc<GraphIndex>>,
}

impl Ranges {
    fn of(name: &str, starts: &[&str], edges: &Edges) -> Self {
        let directory = std::env::temp_dir().join(format!("sundew-algorithms-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&directory);
        let open =
            |at: usize| GraphIndex::open(&directory.join(at.to_string()), GraphOptions::named("g", PART)).unwrap();
        let indexes: Vec<_> = (0..starts.len()).map(open).collect();
        let mut lists: BTreeMap<&str, Vec<Edge<'_>>> = BTreeMap::new();
        for (source, edge_type, target) in edges {
            let edge = Edge {
                edge_type,
                target,
                origin: EdgeOrigin::Declared,
                weight: 1.0,
                created_ms: 5,
                updated_ms: 5,
                since: 0,
                metadata: "",
            };
            lists.entry(source).or_default().push(edge);
        }
        for (at, (key, list)) in (1u32..).zip(lists) {
            let range = starts.partition_point(|start| *start <= key) - 1;
            let mut frame = FrameWriter::new(1, 1 << 16).unwrap();
            let payload = write_edges(&list).unwrap();
            frame.push(RowKind::PartPut, 0, key.as_bytes(), &[&part_head(PART, PartForm::Edges), &payload]);
            frame.set_position(0, at, u64::from(at), 0);
            indexes[range].apply(&frame.finish()).unwrap();
            indexes[range].commit(u64::from(at)).unwrap();
        }
        Self { directory, starts: starts.iter().map(|start| (*start).to_owned()).collect(), indexes }
    }

    fn run(&self, algorithm: Algorithm, limit: usize, hidden: &[&str]) -> GraphAnswer {
        let request = GraphRequest {
            search: Search::Algorithm(AlgorithmOptions { algorithm, limit, takes_all: true }),
            starts: Vec::new(),
            targets: Vec::new(),
            edge_types: Vec::new(),
            direction: Direction::Out,
            min_weight: None,
            max_weight: None,
            expired_at_or_before_ms: None,
            hidden: hidden.iter().map(|key| (*key).to_owned()).collect(),
            range_starts: self.starts.clone(),
            edges_max: u64::MAX,
            nodes_max: u64::MAX,
            millis_max: 60_000,
            reports_nodes: false,
        };
        search(&self.indexes, &request, &RemovedTargets::default(), &|| false).unwrap()
    }
}

impl Drop for Ranges {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn random_edges() -> Edges {
    let mut state = 17u64;
    let mut below = |end: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % end as u64) as usize
    };
    (0..NODES)
        .map(|_| (format!("k{:02}", below(NODES)), ["a", "b"][below(2)], format!("k{:02}", below(NODES))))
        .collect()
}

fn nodes_of(edges: &Edges) -> BTreeSet<&str> {
    edges.iter().flat_map(|(source, _, target)| [source.as_str(), target.as_str()]).collect()
}

fn values<T: serde::de::DeserializeOwned>(answer: &GraphAnswer) -> Vec<(String, T)> {
    answer.value_pages.iter().flat_map(|page| serde_json::from_str::<Vec<(String, T)>>(page).unwrap()).collect()
}

/// Both layouts of the same edges.
fn layouts(name: &str, edges: &Edges) -> [Ranges; 2] {
    [Ranges::of(&format!("{name}-1"), &[""], edges), Ranges::of(&format!("{name}-3"), &["", "k20", "k40"], edges)]
}

#[test]
fn ranks_are_those_of_a_dense_matrix_and_the_same_over_ranges() {
    let edges = random_edges();
    let nodes: Vec<&str> = nodes_of(&edges).into_iter().collect();
    let place = |key: &str| nodes.binary_search(&key).unwrap();
    let count = nodes.len();
    let mut leads = vec![vec![0.0; count]; count];
    for (source, _, target) in &edges {
        leads[place(source)][place(target)] += 1.0;
    }
    for row in &mut leads {
        let sum: f64 = row.iter().sum();
        row.iter_mut().for_each(|cell| *cell = if sum == 0.0 { 1.0 / count as f64 } else { *cell / sum });
    }
    let mut expected = vec![1.0 / count as f64; count];
    for _ in 0..300 {
        let spread = |to: usize| (0..count).map(|from| expected[from] * leads[from][to]).sum::<f64>();
        expected = (0..count).map(|to| 0.15 / count as f64 + 0.85 * spread(to)).collect();
    }
    let algorithm = Algorithm::Pagerank { damping: 0.85, max_iterations: 300, tolerance: 1e-12 };
    let [one, three] = layouts("ranks", &edges).map(|ranges| ranges.run(algorithm, 5, &[]));
    assert_eq!(values::<f64>(&one), values::<f64>(&three));
    assert!(one.algorithm.as_ref().is_some_and(|report| report.has_converged && report.iterations > 1));
    let found = values::<f64>(&one);
    assert_eq!(found.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), nodes);
    for ((key, rank), expected) in found.iter().zip(&expected) {
        assert!((rank - expected).abs() < 1e-9, "{key}: {rank}, not {expected}");
    }
    assert!((found.iter().map(|(_, rank)| rank).sum::<f64>() - 1.0).abs() < 1e-9);
    let mut best = found;
    best.sort_by(|left, right| right.1.total_cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
    let scores: Vec<_> = one.scores.into_iter().map(|found| (found.key, found.score)).collect();
    assert_eq!(scores, best[..5]);
}

#[test]
fn ranks_say_when_they_have_not_converged() {
    let ranges = Ranges::of("bounded", &[""], &random_edges());
    let answer = ranges.run(Algorithm::Pagerank { damping: 0.85, max_iterations: 2, tolerance: 1e-12 }, 1, &[]);
    assert!(answer.algorithm.is_some_and(|report| !report.has_converged && report.iterations == 2));
}

#[test]
fn components_are_those_of_a_search_from_each_node() {
    let edges = random_edges();
    let mut expected: BTreeMap<String, String> = BTreeMap::new();
    for first in nodes_of(&edges) {
        let mut waiting = vec![first];
        while let Some(node) = waiting.pop() {
            if expected.contains_key(node) {
                continue;
            }
            expected.insert(node.to_owned(), first.to_owned());
            for (source, _, target) in &edges {
                if source == node {
                    waiting.push(target);
                } else if target == node {
                    waiting.push(source);
                }
            }
        }
    }
    let [one, three] = layouts("components", &edges).map(|ranges| ranges.run(Algorithm::ConnectedComponents, 100, &[]));
    assert_eq!(values::<String>(&one), expected.clone().into_iter().collect::<Vec<_>>());
    assert_eq!(values::<String>(&one), values::<String>(&three));
    let mut sizes: BTreeMap<&str, u64> = BTreeMap::new();
    for first in expected.values() {
        *sizes.entry(first).or_default() += 1;
    }
    let mut largest: Vec<(String, u64)> = sizes.into_iter().map(|(key, nodes)| (key.to_owned(), nodes)).collect();
    largest.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| left.0.cmp(&right.0)));
    assert_eq!(one.algorithm.map(|report| report.component_count), Some(largest.len() as u64));
    assert_eq!(one.components.into_iter().map(|found| (found.key, found.nodes)).collect::<Vec<_>>(), largest);
}

#[test]
fn degrees_count_the_edges_of_each_node_without_those_of_hidden_ones() {
    let edges = random_edges();
    let hidden = edges.iter().next().map(|(source, ..)| source.clone()).unwrap();
    for (outgoing, incoming) in [(true, false), (false, true), (true, true)] {
        let shown = edges.iter().filter(|(source, _, target)| *source != hidden && *target != hidden);
        let mut expected: BTreeMap<String, u64> = BTreeMap::new();
        for (source, _, target) in shown {
            *expected.entry(source.clone()).or_default() += u64::from(outgoing);
            *expected.entry(target.clone()).or_default() += u64::from(incoming);
        }
        for ranges in layouts("degrees", &edges) {
            let answer = ranges.run(Algorithm::Degree { outgoing, incoming }, 3, &[&hidden]);
            assert_eq!(values::<u64>(&answer), expected.clone().into_iter().collect::<Vec<_>>());
            assert_eq!(answer.node_count, expected.len() as u64);
        }
    }
}
