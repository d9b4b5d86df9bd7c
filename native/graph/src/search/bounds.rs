//! How much one search may look at, and for how long.

use std::time::{Duration, Instant};

use super::request::GraphRequest;

/// Edges between two looks at the clock.
const EDGES_BETWEEN_LOOKS: u64 = 4096;

/// The surroundings of a search: whether it is given up, and who hears how far it is. A function that tells the one is enough.
pub trait Watch {
    fn is_cancelled(&self) -> bool;

    /// An algorithm over the whole graph has gone through it so often.
    fn iterated(&self, _iterations: u32) {}
}

impl<F: Fn() -> bool> Watch for F {
    fn is_cancelled(&self) -> bool {
        self()
    }
}

pub struct Bounds<'a> {
    edges_max: u64,
    nodes_max: u64,
    edges_seen: u64,
    /// Number of edges at which bounds are compared next.
    next_look: u64,
    until: Instant,
    watch: &'a dyn Watch,
    was_cancelled: bool,
    partial: Option<&'static str>,
}

impl<'a> Bounds<'a> {
    pub fn new(request: &GraphRequest, watch: &'a dyn Watch) -> Self {
        let mut bounds = Self {
            edges_max: request.edges_max,
            nodes_max: request.nodes_max,
            edges_seen: 0,
            next_look: 0,
            until: Instant::now() + Duration::from_millis(request.millis_max),
            watch,
            was_cancelled: false,
            partial: None,
        };
        bounds.set_next_look();
        bounds
    }

    /// As `Watch::iterated`.
    pub fn iterated(&self, iterations: u32) {
        self.watch.iterated(iterations);
    }

    pub fn was_cancelled(&self) -> bool {
        self.was_cancelled
    }

    /// The bound that was met.
    pub fn partial(&self) -> Option<&'static str> {
        self.partial
    }

    /// Whether the search has to end with what it has.
    pub fn must_stop(&self) -> bool {
        self.partial.is_some() || self.was_cancelled
    }

    /// Whether this number of nodes, or anything before, ends the search.
    #[inline]
    pub fn meets_nodes(&mut self, reached: usize) -> bool {
        if reached as u64 > self.nodes_max {
            self.stop("nodes");
        }
        self.must_stop()
    }

    pub fn stop(&mut self, bound: &'static str) {
        self.partial.get_or_insert(bound);
    }

    /// Counts one edge that is looked at; false when the search has to end.
    #[inline]
    pub fn counts_edge(&mut self) -> bool {
        self.edges_seen += 1;
        if self.edges_seen >= self.next_look {
            self.look();
        }
        !self.must_stop()
    }

    #[cold]
    fn look(&mut self) {
        if self.edges_seen > self.edges_max {
            self.stop("edges");
        }
        self.goes_on();
        self.set_next_look();
    }

    /// Whether there is time to go on with something that takes long by itself.
    pub fn goes_on(&mut self) -> bool {
        self.was_cancelled |= self.watch.is_cancelled();
        if Instant::now() >= self.until {
            self.stop("time");
        }
        !self.must_stop()
    }

    fn set_next_look(&mut self) {
        self.next_look = (self.edges_seen + EDGES_BETWEEN_LOOKS).min(self.edges_max.saturating_add(1));
    }
}
