//! A page of the edges of one node, found by its cursor: it costs what the page holds, however many edges the node has.

use std::cmp::Ordering;
use std::ops::Range;

use super::{ABSENT, GraphView, SegmentView, Step};
use crate::search::request::{Direction, EdgeCursor};
use crate::segment::partition;

/// Edges of a node in one segment, in the order of types and then of the other ends.
#[derive(Clone)]
struct EdgeList {
    segment: usize,
    /// The number of the node in the segment.
    local: u32,
    forward: bool,
    /// Edges of its row, or positions of the edges that lead to it.
    positions: Range<usize>,
}

impl GraphView<'_> {
    /// The first `limit` edges of a node behind `after`, and how many it has: first those that lead away from it, then by
    /// type and by the key of the other end.
    pub fn page_of(&mut self, node: u32, limit: usize, after: Option<&EdgeCursor>) -> (Vec<Step>, u64) {
        if self.is_hidden(node) {
            return (Vec::new(), 0);
        }
        let (mut steps, mut total) = (Vec::new(), 0);
        for list in self.lists_of(node) {
            if self.must_look_at_each(node, &list) {
                let mut all = Vec::new();
                self.take(node, &list, usize::MAX, None, &mut all);
                total += all.len() as u64;
                all.retain(|step| after.is_none_or(|after| self.is_behind(step, after)));
                steps.append(&mut all);
                continue;
            }
            total += self.count(node, &list);
            let is_before = after.is_some_and(|after| list.forward && after.0);
            if !is_before {
                // Behind a cursor among those that lead away, all that lead in follow.
                let after = after.filter(|after| after.0 != list.forward);
                self.take(node, &list, limit, after, &mut steps);
            }
        }
        // Of many that were looked at only the page is sorted.
        if steps.len() > limit {
            steps.select_nth_unstable_by(limit, |left, right| self.compare_steps(left, right));
            steps.truncate(limit);
        }
        steps.sort_unstable_by(|left, right| self.compare_steps(left, right));
        (steps, total)
    }

    fn compare_steps(&self, left: &Step, right: &Step) -> Ordering {
        let of = |step: &Step| (!step.forward, step.edge_type);
        of(left).cmp(&of(right)).then_with(|| self.compare(left.node, right.node))
    }

    fn is_behind(&self, step: &Step, EdgeCursor(leads_in, edge_type, key): &EdgeCursor) -> bool {
        let order = (!step.forward).cmp(leads_in).then_with(|| self.type_name(step.edge_type).cmp(edge_type));
        order.then_with(|| self.key(step.node).cmp(key)).is_gt()
    }

    fn lists_of(&self, node: u32) -> Vec<EdgeList> {
        let (mut hash, mut lists) = (None, Vec::new());
        if self.direction != Direction::In {
            for segment in self.home(node) {
                let Some(local) = self.local(node, segment, &mut hash) else { continue };
                let SegmentView { live, columns, .. } = &self.segments[segment];
                let row = columns.row_of_node(local).filter(|row| live.is_live(*row));
                lists.extend(row.map(|row| EdgeList {
                    segment,
                    local,
                    forward: true,
                    positions: columns.row_edges(row),
                }));
            }
        }
        if self.direction != Direction::Out {
            for segment in 0..self.segments.len() {
                let Some(local) = self.local(node, segment, &mut hash) else { continue };
                let positions = self.segments[segment].columns.positions_into(local);
                lists.push(EdgeList { segment, local, forward: false, positions });
            }
        }
        lists
    }

    /// Row and edge at a position of a list, and the number of the other end in the segment.
    fn edge_in(&self, list: &EdgeList, position: usize) -> (usize, usize, u32) {
        let columns = &self.segments[list.segment].columns;
        if list.forward {
            let row = columns.row_of_node(list.local).unwrap_or_default();
            (row, position, columns.targets[position])
        } else {
            let (row, edge) = columns.edge_at(position);
            (row, edge, columns.row_nodes[row])
        }
    }

    /// Whether edges of a list may be left out for another reason than their type, the row that they lie in, a loop, or the
    /// removal of the other end; or all nodes have to be met.
    fn must_look_at_each(&self, node: u32, list: &EdgeList) -> bool {
        let live = self.segments[list.segment].live;
        let has_expired = || live.segment.oldest_ms() <= self.expired_at_or_before_ms;
        self.reports_nodes
            || live.segment.has_twins()
            || self.min_weight != f32::NEG_INFINITY
            || self.max_weight != f32::INFINITY
            || !self.hidden.is_empty()
            || self.removed.contains_key(&node)
            || self.removed.len() > list.positions.len()
            || (self.expired_at_or_before_ms != i64::MIN && has_expired())
    }

    /// Edges of a list that are shown: all of the types that are asked for, but for few that are looked for one by one.
    fn count(&mut self, node: u32, list: &EdgeList) -> u64 {
        let SegmentView { live, columns, ref types, .. } = self.segments[list.segment];
        let wanted: Vec<u32> = (0..).zip(types).filter(|(_, rank)| **rank != ABSENT).map(|(at, _)| at).collect();
        let listed = match wanted.len() == types.len() {
            true => list.positions.len(),
            false => wanted.iter().map(|edge_type| self.positions_of_type(list, *edge_type).len()).sum(),
        };
        let between = |row: usize, target: u32| {
            wanted.iter().flat_map(move |edge_type| columns.edges_between(row, *edge_type, target))
        };
        let live_row = |local: u32| columns.row_of_node(local).filter(|row| live.is_live(*row));
        let mut left_out = 0;
        if !list.forward {
            left_out += self.count_dead(list, &wanted);
            // Both ways, an edge of a node to itself is among those that lead away.
            if self.direction == Direction::Both {
                left_out += live_row(list.local).map_or(0, |row| between(row, list.local).count());
            }
        }
        for removed in self.removed.keys().copied().collect::<Vec<_>>() {
            if !self.bounds.counts_edge() {
                break;
            }
            let Some(other) = self.local(removed, list.segment, &mut None) else { continue };
            let (from, to) = if list.forward { (list.local, other) } else { (other, list.local) };
            let Some(row) = live_row(from) else { continue };
            left_out +=
                between(row, to).filter(|edge| !self.is_there(list.segment, row, *edge, [node, removed])).count();
        }
        listed.saturating_sub(left_out) as u64
    }

    /// Edges of a list that lie in rows which have left the segment: looked for in these rows, or in the list, whichever is
    /// shorter.
    fn count_dead(&mut self, list: &EdgeList, wanted: &[u32]) -> usize {
        let SegmentView { live, columns, .. } = self.segments[list.segment];
        let mut count = 0;
        if live.dead.len() < list.positions.len() {
            for row in live.dead.iter() {
                if !self.bounds.counts_edge() {
                    break;
                }
                let of_type = |edge_type: &u32| columns.edges_between(row as usize, *edge_type, list.local).len();
                count += wanted.iter().map(of_type).sum::<usize>();
            }
            return count;
        }
        for position in list.positions.clone() {
            if !self.bounds.counts_edge() {
                break;
            }
            let (row, edge) = columns.edge_at(position);
            count += usize::from(!live.is_live(row) && wanted.contains(&columns.edge_type(edge)));
        }
        count
    }

    fn positions_of_type(&self, list: &EdgeList, edge_type: u32) -> Range<usize> {
        let columns = &self.segments[list.segment].columns;
        let type_at = |position: usize| columns.edge_type(self.edge_in(list, position).1);
        let start = partition(list.positions.clone(), |position| type_at(position) < edge_type);
        start..partition(start..list.positions.end, |position| type_at(position) <= edge_type)
    }

    /// Appends the first `limit` shown edges of a list behind `after`.
    fn take(&mut self, node: u32, list: &EdgeList, limit: usize, after: Option<&EdgeCursor>, steps: &mut Vec<Step>) {
        let mut left = limit;
        for edge_type in 0..self.segments[list.segment].types.len() as u32 {
            let rank = self.segments[list.segment].types[edge_type as usize];
            if rank == ABSENT || left == 0 {
                continue;
            }
            let Range { mut start, end } = self.positions_of_type(list, edge_type);
            if let Some(EdgeCursor(_, name, key)) = after {
                match self.type_name(rank).cmp(name) {
                    Ordering::Less => continue,
                    Ordering::Equal => {
                        let first = self.segments[list.segment].columns.node_behind(key);
                        start = partition(start..end, |position| self.edge_in(list, position).2 < first);
                    }
                    Ordering::Greater => {}
                }
            }
            let mut last = None;
            for position in start..end {
                if left == 0 || !self.bounds.counts_edge() {
                    break;
                }
                let (row, edge, other) = self.edge_in(list, position);
                if last == Some(other) {
                    continue;
                }
                if let Some(step) = self.step_to(node, list, (row, edge, other)) {
                    steps.push(step);
                    last = Some(other);
                    left -= 1;
                }
            }
        }
    }

    /// The edge as it is shown, if it is.
    fn step_to(&mut self, node: u32, list: &EdgeList, (row, edge, other): (usize, usize, u32)) -> Option<Step> {
        if !self.segments[list.segment].live.is_live(row) {
            return None;
        }
        let mut step = self.step(list.segment, row, edge, list.forward)?;
        step.node = self.node_of_local(list.segment, other);
        self.meet(step.node);
        let is_met_on_the_way_out = !list.forward && self.direction == Direction::Both && step.node == node;
        let ends = if list.forward { [node, step.node] } else { [step.node, node] };
        let is_shown =
            !is_met_on_the_way_out && self.is_there(list.segment, row, edge, ends) && !self.is_hidden(step.node);
        is_shown.then_some(step)
    }
}
