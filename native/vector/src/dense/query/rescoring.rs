//! Exact distances of the rows that stand at the nodes found, near copies among them.

use crate::dense::graph::{CodedQuery, Copied, Graph, Scratch};
use crate::dense::metric::Metric;
use crate::dense::query::nearest::{Neighbour, TIES_MAX};
use crate::dense::query::search_cost::rescored_for;
use crate::dense::query::search_state::DenseSearch;
use crate::dense::rows::graph_rows::GraphRows;
use sundew_base::bit_set::BitSet;

/// Copies that are compared exactly rather than by their codes first.
const EXACT_COPIES_MAX: usize = 256;

/// Copies between two looks at the clock.
const COPIES_BETWEEN_LOOKS: usize = 4096;

/// The rows of a graph that may be hits.
#[derive(Clone, Copy)]
pub enum Wanted<'w> {
    Among(&'w BitSet),
    NotAmong(&'w BitSet),
}

impl Wanted<'_> {
    #[inline]
    pub fn has(self, row: u32) -> bool {
        match self {
            Self::Among(rows) => rows.contains(row),
            Self::NotAmong(rows) => !rows.contains(row),
        }
    }

    /// Whether a row that stands at the node may be a hit.
    #[inline]
    pub fn has_at(self, graph: &Graph, node: u32) -> bool {
        self.has(node) || graph.copies_of(node).iter().any(|copy| self.has(copy.row))
    }
}

/// The copies of a node, which may be nearer than it.
struct Group<'g> {
    least_cost: f32,
    leader: u32,
    leader_cost: f32,
    copies: &'g [Copied],
}

/// Collects the nearest rows that stand at nodes.
pub struct Rescoring<'s, 'a> {
    pub search: &'s mut DenseSearch<'a>,
    pub rows: &'s GraphRows,
    pub query: &'s CodedQuery,
    pub wanted: Wanted<'s>,
    pub scratch: &'s mut Scratch,
    /// Rows that are accepted.
    pub found: Vec<Neighbour>,
}

impl<'s> Rescoring<'s, '_> {
    fn cost_of(&self, row: u32) -> f32 {
        self.search.metric.cost(self.search.query, self.rows.vector(row))
    }

    fn take(&mut self, row: u32, cost: f32) {
        if self.search.accepts(cost) {
            let graph = &self.rows.graph;
            self.found.push(Neighbour {
                cost,
                ordinal: graph.ordinal(row),
                number: graph.number(row),
                sequence: graph.sequence(row),
            });
        }
    }

    /// Computes the cost of the rows at these nodes; of copies only where they may be among the nearest. Gives the cost of
    /// the last node.
    pub fn nodes(&mut self, nodes: &[u32]) -> Option<f32> {
        nodes.iter().for_each(|&node| self.rows.prefetch(node));
        let length = self.search.query.iter().map(|value| value * value).sum::<f32>().sqrt();
        let (metric, graph) = (self.search.metric, &self.rows.graph);
        let mut groups = Vec::new();
        let mut last_cost = None;
        for &node in nodes {
            let cost = self.cost_of(node);
            last_cost = Some(cost);
            if self.wanted.has(node) {
                self.take(node, cost);
            }
            let copies = graph.copies_of(node);
            if let Some(furthest) = copies.last() {
                // Rounding must not hide a copy.
                let (apart, slack) = (1.001 * furthest.distance, 1e-6 * (1.0 + cost.abs()));
                let least_cost = metric.least_cost(cost, apart, length) - slack;
                groups.push(Group { least_cost, leader: node, leader_cost: cost, copies });
            }
        }
        self.search.report.candidates += nodes.len() as u64;
        groups.sort_unstable_by(|a, b| a.least_cost.total_cmp(&b.least_cost));
        for group in groups {
            if group.least_cost > self.bound() || self.search.is_partial {
                break;
            }
            self.group(&group);
        }
        last_cost
    }

    /// No row that costs more is wanted.
    fn bound(&mut self) -> f32 {
        let limit = self.search.bounds.limit;
        if self.found.len() < limit {
            return f32::INFINITY;
        }
        self.found.select_nth_unstable_by(limit - 1, |a, b| a.cost.total_cmp(&b.cost)).1.cost
    }

    fn group(&mut self, group: &Group<'_>) {
        let equal = group.copies.partition_point(|copy| copy.distance == 0.0);
        let (equal, near) = group.copies.split_at(equal);
        let wanted = self.wanted;
        let enough = self.search.bounds.limit + TIES_MAX;
        for copy in equal.iter().filter(|copy| wanted.has(copy.row)).take(enough) {
            self.take(copy.row, group.leader_cost);
        }
        if near.len() <= EXACT_COPIES_MAX || !self.search.distance.is_open() {
            for copies in near.chunks(COPIES_BETWEEN_LOOKS) {
                if copies.len() == COPIES_BETWEEN_LOOKS && self.search.is_due() {
                    return;
                }
                self.exact(copies.iter().map(|copy| copy.row).filter(|&row| wanted.has(row)));
            }
            return;
        }
        self.weigh(group, near);
        let nearest: Vec<u32> = self.scratch.copies.iter().map(|(_, row)| row).collect();
        nearest.iter().for_each(|&row| self.rows.prefetch(row));
        self.exact(nearest.into_iter());
    }

    fn exact(&mut self, rows: impl Iterator<Item = u32>) {
        for row in rows {
            self.search.report.candidates += 1;
            let cost = self.cost_of(row);
            self.take(row, cost);
        }
    }

    /// Fills `scratch.copies` with the nearest of the copies by what tells them from their leader.
    fn weigh(&mut self, group: &Group<'_>, near: &[Copied]) {
        let graph = &self.rows.graph;
        let from_leader;
        let query = if self.search.metric == Metric::L2Squared {
            let values = self.search.query.iter().zip(self.rows.vector(group.leader));
            let difference: Vec<f32> = values.map(|(value, leader)| value - leader).collect();
            from_leader = CodedQuery::new(Metric::L2Squared, &difference);
            &from_leader
        } else {
            from_leader = CodedQuery { base: group.leader_cost, ..self.query.clone() };
            &from_leader
        };
        let (wanted, scratch) = (self.wanted, &mut *self.scratch);
        scratch.copies.reset(rescored_for(self.search.bounds.limit));
        for copies in near.chunks(COPIES_BETWEEN_LOOKS) {
            if self.search.is_due() {
                return;
            }
            for copies in copies.chunks(32) {
                scratch.fresh.clear();
                scratch.fresh.extend(copies.iter().map(|copy| copy.row).filter(|&row| wanted.has(row)));
                scratch.fresh.iter().for_each(|&row| graph.prefetch(row));
                graph.costs(query, &scratch.fresh, &mut scratch.dots, &mut scratch.costs);
                scratch.visits += scratch.fresh.len() as u64;
                for (&row, &cost) in scratch.fresh.iter().zip(&scratch.costs) {
                    if cost < scratch.copies.bound() {
                        scratch.copies.insert(cost, row);
                    }
                }
            }
        }
    }
}
