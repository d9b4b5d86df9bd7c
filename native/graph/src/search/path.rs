//! A path on its way into an answer.

use std::cmp::Ordering;
use std::collections::HashSet;

use super::request::{FoundEdge, FoundPath, WeightMode};
use super::shown_values::decimal;
use super::view::{GraphView, Step};

/// A path as nodes and the steps between them.
#[derive(Clone)]
pub struct Path {
    pub cost: f64,
    pub nodes: Vec<u32>,
    pub steps: Vec<Step>,
}

/// Edges and nodes that a search for a path must not use.
#[derive(Default)]
pub struct Blocked {
    pub nodes: HashSet<u32>,
    /// From a node to the next.
    pub hops: HashSet<(u32, u32)>,
}

impl Blocked {
    pub fn has(&self, from: u32, to: u32) -> bool {
        self.nodes.contains(&to) || self.hops.contains(&(from, to))
    }
}

impl Path {
    pub fn at(node: u32) -> Self {
        Self { cost: 0.0, nodes: vec![node], steps: Vec::new() }
    }

    pub fn end(&self) -> u32 {
        self.nodes[self.nodes.len() - 1]
    }

    pub fn render(&self, view: &GraphView<'_>, mode: WeightMode) -> FoundPath {
        let edges: Vec<FoundEdge> =
            self.nodes.iter().zip(&self.steps).map(|(node, step)| view.edge_of(*node, step)).collect();
        let weights = self.steps.iter().map(|step| decimal(step.weight));
        let total_weight = if mode == WeightMode::MaxWeight {
            weights.product()
        } else {
            weights.fold(0.0, |sum, weight| sum + weight)
        };
        let nodes = self.nodes.iter().map(|node| view.key(*node).to_owned()).collect();
        FoundPath { nodes, length: edges.len(), edges, total_weight }
    }

    /// By cost, then hops, then the keys on the way.
    pub fn compare(&self, other: &Self, view: &GraphView<'_>) -> Ordering {
        let costs = self.cost.total_cmp(&other.cost).then(self.nodes.len().cmp(&other.nodes.len()));
        let keys = || self.nodes.iter().zip(&other.nodes).map(|(left, right)| view.compare(*left, *right));
        costs.then_with(|| keys().find(|order| order.is_ne()).unwrap_or(Ordering::Equal))
    }
}

/// The cost that an edge adds to a path. Error: which weights the mode needs.
pub fn cost_of(step: &Step, mode: WeightMode) -> Result<f64, &'static str> {
    let weight = decimal(step.weight);
    match mode {
        WeightMode::MinHops => Ok(1.0),
        WeightMode::MinWeight if weight < 0.0 => Err("the weight mode \"min_weight\" needs weights of 0 or more"),
        WeightMode::MinWeight => Ok(weight),
        WeightMode::MaxWeight if !(weight > 0.0 && weight <= 1.0) => {
            Err("the weight mode \"max_weight\" needs weights above 0 and up to 1")
        }
        WeightMode::MaxWeight => Ok(-weight.ln()),
    }
}

/// Why an edge is refused.
pub fn refusal(view: &GraphView<'_>, from: u32, step: &Step, needs: &str) -> String {
    let FoundEdge { source, target, edge_type, .. } = view.edge_of(from, step);
    let weight = decimal(step.weight);
    format!("the edge {edge_type:?} from {source:?} to {target:?} has the weight {weight}; {needs}")
}
