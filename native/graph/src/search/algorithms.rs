//! Algorithms over all nodes of a graph. Nodes are numbered by their keys and edges are summed up in one order, so that the
//! answer is the same to the last bit however the documents are spread over ranges.

use std::cmp::Reverse;

use super::request::{
    Algorithm, AlgorithmOptions, AlgorithmReport, FoundComponent, FoundScore, GraphAnswer, NodeValue,
};
use super::view::GraphView;

const VALUES_PER_PAGE: usize = 1_000;

/// All edges, by the ranks of their ends among the keys.
struct WholeGraph<'a> {
    /// Sorted.
    keys: Vec<&'a str>,
    /// Source and target, sorted by target and then source. Edges of several types between two nodes are several.
    edges: Vec<(u32, u32)>,
}

impl<'a> WholeGraph<'a> {
    fn read(view: &mut GraphView<'a>) -> Self {
        let mut edges: Vec<(u32, u32)> = Vec::new();
        view.each_edge(false, |_, source, target, is_gone| {
            if !is_gone {
                edges.push((source, target));
            }
        });
        edges.retain(|(source, target)| !view.is_hidden(*source) && !view.is_hidden(*target));
        let mut nodes: Vec<u32> = edges.iter().flat_map(|(source, target)| [*source, *target]).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.sort_unstable_by(|left, right| view.compare(*left, *right));
        let mut ranks = vec![0u32; view.node_end()];
        for (rank, node) in nodes.iter().enumerate() {
            ranks[*node as usize] = rank as u32;
        }
        for (source, target) in &mut edges {
            (*source, *target) = (ranks[*source as usize], ranks[*target as usize]);
        }
        edges.sort_unstable_by_key(|(source, target)| (*target, *source));
        Self { keys: nodes.into_iter().map(|node| view.key(node)).collect(), edges }
    }

    fn degrees(&self, counts: impl Fn(&(u32, u32)) -> [Option<u32>; 2]) -> Vec<u64> {
        let mut degrees = vec![0; self.keys.len()];
        for node in self.edges.iter().flat_map(counts).flatten() {
            degrees[node as usize] += 1;
        }
        degrees
    }
}

/// Runs an algorithm. The answer is empty where a bound or the caller has ended it.
pub fn run(view: &mut GraphView<'_>, options: &AlgorithmOptions) -> GraphAnswer {
    let graph = WholeGraph::read(view);
    let mut report = AlgorithmReport { iterations: 0, has_converged: true, component_count: 0 };
    let (edge_count, node_count) = (graph.edges.len() as u64, graph.keys.len() as u64);
    let mut answer = GraphAnswer { edge_count, node_count, total: node_count, ..GraphAnswer::default() };
    if view.bounds().must_stop() {
        return answer;
    }
    match options.algorithm {
        Algorithm::Pagerank { damping, max_iterations, tolerance } => {
            let ranks = pagerank(view, &graph, damping, max_iterations, tolerance, &mut report);
            take_scores(&graph, options, &ranks, NodeValue::Number, &mut answer);
        }
        Algorithm::Degree { outgoing, incoming } => {
            let degrees = graph.degrees(|(source, target)| [outgoing.then_some(*source), incoming.then_some(*target)]);
            let numbers: Vec<f64> = degrees.into_iter().map(|degree| degree as f64).collect();
            take_scores(&graph, options, &numbers, |number| NodeValue::Count(number as u64), &mut answer);
        }
        Algorithm::ConnectedComponents => {
            let firsts = components(&graph);
            take_components(&graph, options, &firsts, &mut report, &mut answer);
        }
    }
    answer.algorithm = Some(report);
    answer
}

/// PageRank by power iteration (Page, Brin, Motwani and Winograd, 1999). The rank of nodes that no edge leaves goes to all
/// nodes alike; ranks add up to 1. It ends when all of them together change by less than `tolerance`.
fn pagerank(
    view: &mut GraphView<'_>,
    graph: &WholeGraph<'_>,
    damping: f64,
    max_iterations: u32,
    tolerance: f64,
    report: &mut AlgorithmReport,
) -> Vec<f64> {
    let count = graph.keys.len() as f64;
    let leaving = graph.degrees(|(source, _)| [Some(*source), None]);
    let mut ranks = vec![1.0 / count; graph.keys.len()];
    report.has_converged = ranks.is_empty();
    while !report.has_converged && report.iterations < max_iterations {
        let ends: f64 = ranks.iter().zip(&leaving).filter(|(_, leaving)| **leaving == 0).map(|(rank, _)| rank).sum();
        let mut next = vec![0.0; ranks.len()];
        for (source, target) in &graph.edges {
            next[*target as usize] += ranks[*source as usize] / leaving[*source as usize] as f64;
        }
        let mut change = 0.0;
        for (rank, sum) in ranks.iter_mut().zip(next) {
            let new = (1.0 - damping) / count + damping * (sum + ends / count);
            change += (new - *rank).abs();
            *rank = new;
        }
        report.iterations += 1;
        report.has_converged = change < tolerance;
        view.bounds().iterated(report.iterations);
        if !view.bounds_mut().goes_on() {
            break;
        }
    }
    ranks
}

/// The first node of the component of each node, whichever way edges lead: sets joined by their first nodes.
fn components(graph: &WholeGraph<'_>) -> Vec<u32> {
    fn first_of(firsts: &mut [u32], mut node: u32) -> u32 {
        while firsts[node as usize] != node {
            let above = firsts[firsts[node as usize] as usize];
            firsts[node as usize] = above;
            node = above;
        }
        node
    }
    let mut firsts: Vec<u32> = (0..graph.keys.len() as u32).collect();
    for (source, target) in &graph.edges {
        let (left, right) = (first_of(&mut firsts, *source), first_of(&mut firsts, *target));
        firsts[left.max(right) as usize] = left.min(right);
    }
    (0..graph.keys.len() as u32).map(|node| first_of(&mut firsts, node)).collect()
}

/// The greatest scores, ties by key; the values of all nodes where they are asked for.
fn take_scores(
    graph: &WholeGraph<'_>,
    options: &AlgorithmOptions,
    scores: &[f64],
    value: impl Fn(f64) -> NodeValue,
    answer: &mut GraphAnswer,
) {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|left, right| scores[*right].total_cmp(&scores[*left]));
    let found = |at: &usize| FoundScore { key: graph.keys[*at].to_owned(), score: scores[*at] };
    answer.scores = order.iter().take(options.limit).map(found).collect();
    if options.takes_all {
        answer.value_pages = pages(graph.keys.iter().zip(scores).map(|(key, score)| (*key, value(*score))));
    }
}

/// The largest components, ties by the first key of each; the component of each node where they are asked for.
fn take_components<'a>(
    graph: &WholeGraph<'a>,
    options: &AlgorithmOptions,
    firsts: &[u32],
    report: &mut AlgorithmReport,
    answer: &mut GraphAnswer,
) {
    let mut sizes = vec![0u64; firsts.len()];
    for first in firsts {
        sizes[*first as usize] += 1;
    }
    let mut order: Vec<usize> = (0..sizes.len()).filter(|at| sizes[*at] > 0).collect();
    report.component_count = order.len() as u64;
    order.sort_by_key(|at| Reverse(sizes[*at]));
    let found = |at: &usize| FoundComponent { key: graph.keys[*at].to_owned(), nodes: sizes[*at] };
    answer.components = order.iter().take(options.limit).map(found).collect();
    if options.takes_all {
        let value = |(key, first): (&&'a str, &u32)| (*key, NodeValue::Key(graph.keys[*first as usize].to_owned()));
        answer.value_pages = pages(graph.keys.iter().zip(firsts).map(value));
    }
}

fn pages<'a>(values: impl Iterator<Item = (&'a str, NodeValue)>) -> Vec<String> {
    let values: Vec<_> = values.collect();
    // Keys and numbers: there is nothing that JSON cannot hold.
    values.chunks(VALUES_PER_PAGE).map(|page| serde_json::to_string(page).unwrap_or_default()).collect()
}
