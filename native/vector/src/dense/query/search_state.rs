//! One search on its way through the segments of an index.

use crate::dense::metric::Metric;
use crate::dense::options::DistanceBounds;
use crate::dense::query::nearest::{Nearest, Neighbour};
use crate::search::{SearchBounds, SearchReport};

pub struct DenseSearch<'a> {
    pub metric: Metric,
    pub query: &'a [f32],
    /// By which an equal vector is found.
    pub key: u32,
    pub distance: DistanceBounds,
    /// `limit` counts rows here: more than the documents that are wanted where documents have several vectors.
    pub bounds: &'a SearchBounds<'a>,
    /// From 0, fast, to 1, thorough.
    pub effort: f32,
    /// Candidates of a walk in the graph at hand.
    pub candidates: Candidates,
    pub nearest: Nearest,
    pub report: SearchReport,
    pub is_partial: bool,
    /// Every row that costs less than this has been offered, as far as the graphs have found it.
    pub reach: f32,
}

/// How many nodes a walk keeps.
#[derive(Debug, Clone, Copy)]
pub struct Candidates {
    /// Before it is judged.
    pub first: usize,
    /// The candidates that the effort asks for.
    pub full: usize,
}

impl DenseSearch<'_> {
    pub fn took(&mut self, arm: &'static str) {
        if !self.report.arms.contains(&arm) {
            self.report.arms.push(arm);
        }
    }

    pub fn accepts(&self, cost: f32) -> bool {
        self.distance.is_open() || self.distance.accept(self.metric.distance(cost))
    }

    pub fn offer(&mut self, found: Neighbour) {
        if self.accepts(found.cost) {
            self.nearest.offer(found);
        }
    }

    /// Whether rows may be too near to be hits, so that a walk towards the query leads away from them.
    pub fn has_inner_bound(&self) -> bool {
        self.distance.over.is_some()
    }

    /// Whether the time is over; asked between steps that take microseconds.
    pub fn is_due(&mut self) -> bool {
        self.is_partial = self.is_partial || (self.bounds.is_due)();
        self.is_partial
    }
}
