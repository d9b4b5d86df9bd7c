//! The edges that a search follows from a node.

use super::{GraphView, SegmentView, Step};
use crate::search::request::Direction;

impl GraphView<'_> {
    /// Replaces `steps` by the edges of a node in the direction of the request, in no particular order.
    pub fn expand(&mut self, node: u32, steps: &mut Vec<Step>) {
        self.expand_towards(node, self.direction, steps);
    }

    pub fn expand_towards(&mut self, node: u32, direction: Direction, steps: &mut Vec<Step>) {
        steps.clear();
        if self.is_hidden(node) {
            return;
        }
        let mut hash = None;
        if direction != Direction::In {
            for segment in self.home(node) {
                if let Some(local) = self.local(node, segment, &mut hash) {
                    self.expand_out(node, segment, local, steps);
                }
            }
        }
        if direction != Direction::Out {
            let with_loops = direction != Direction::Both;
            for segment in 0..self.segments.len() {
                if let Some(local) = self.local(node, segment, &mut hash) {
                    self.expand_in(node, segment, local, with_loops, steps);
                }
            }
        }
    }

    /// Replaces `steps` by those from a node to another one. The edges of the end that has fewer are looked at.
    pub fn expand_between(&mut self, from: u32, to: u32, steps: &mut Vec<Step>) {
        let (ahead, back) = (self.direction, self.direction.reversed());
        if self.edges_max_of(from, ahead) <= self.edges_max_of(to, back) {
            self.expand_towards(from, ahead, steps);
            steps.retain(|step| step.node == to);
        } else {
            self.expand_towards(to, back, steps);
            steps.retain(|step| step.node == from);
            steps.iter_mut().for_each(|step| *step = Step { node: to, forward: !step.forward, ..*step });
        }
    }

    /// Edges that an expansion of the node may have to look at.
    pub fn edges_max_of(&self, node: u32, direction: Direction) -> usize {
        let (mut hash, mut edges) = (None, 0);
        if direction != Direction::In {
            for segment in self.home(node) {
                let columns = &self.segments[segment].columns;
                let row = self.local(node, segment, &mut hash).and_then(|local| columns.row_of_node(local));
                edges += row.map_or(0, |row| columns.row_edges(row).len());
            }
        }
        if direction != Direction::Out {
            for segment in 0..self.segments.len() {
                let local = self.local(node, segment, &mut hash);
                edges += local.map_or(0, |local| self.segments[segment].columns.positions_into(local).len());
            }
        }
        edges
    }

    fn expand_out(&mut self, node: u32, segment: usize, local: u32, steps: &mut Vec<Step>) {
        let SegmentView { live, columns, .. } = self.segments[segment];
        let Some(row) = columns.row_of_node(local).filter(|row| live.is_live(*row)) else { return };
        let mut last = None;
        for edge in columns.row_edges(row) {
            if !self.bounds.counts_edge() {
                return;
            }
            let target = columns.targets[edge];
            let Some(mut step) = self.step(segment, row, edge, true) else { continue };
            // An edge that is declared and follows from a field is one.
            if last == Some((step.edge_type, target)) {
                continue;
            }
            step.node = self.node_of_local(segment, target);
            self.meet(step.node);
            if self.is_there(segment, row, edge, [node, step.node]) && !self.is_hidden(step.node) {
                last = Some((step.edge_type, target));
                steps.push(step);
            }
        }
    }

    fn expand_in(&mut self, node: u32, segment: usize, local: u32, with_loops: bool, steps: &mut Vec<Step>) {
        let SegmentView { live, columns, .. } = self.segments[segment];
        let mut last = None;
        for (row, edge) in columns.edges_into(local) {
            if !self.bounds.counts_edge() {
                return;
            }
            if !live.is_live(row) {
                continue;
            }
            let Some(mut step) = self.step(segment, row, edge, false) else { continue };
            if last == Some((step.edge_type, row)) {
                continue;
            }
            step.node = self.node_of_local(segment, columns.row_nodes[row]);
            self.meet(step.node);
            // Both ways, an edge of a node to itself was met on the way out.
            let is_wanted = with_loops || step.node != node;
            if is_wanted && self.is_there(segment, row, edge, [step.node, node]) && !self.is_hidden(step.node) {
                last = Some((step.edge_type, row));
                steps.push(step);
            }
        }
    }
}
