//! The nearest nodes that a walk has met, in order, each once, and which of them it has gone on from.

/// Set in `node` once the walk has gone on from the node.
const EXPANDED: u32 = 1 << 31;

#[derive(Debug, Clone, Copy)]
struct Entry {
    cost: f32,
    node: u32,
}

#[derive(Debug, Default)]
pub struct Beam {
    entries: Vec<Entry>,
    limit: usize,
    /// All entries before it are expanded.
    cursor: usize,
}

impl Beam {
    pub fn reset(&mut self, limit: usize) {
        self.entries.clear();
        self.entries.reserve(limit + 1);
        self.limit = limit;
        self.cursor = 0;
    }

    /// A node that costs as much or more is not taken.
    #[inline(always)]
    pub fn bound(&self) -> f32 {
        if self.entries.len() < self.limit { f32::INFINITY } else { self.entries[self.limit - 1].cost }
    }

    /// Takes a node that costs less than the bound; gives the one that falls out, if the walk has not gone on from it.
    #[inline(always)]
    pub fn insert(&mut self, cost: f32, node: u32) -> Option<(f32, u32)> {
        let at = self.entries.partition_point(|entry| entry.cost <= cost);
        let out = if self.entries.len() == self.limit { self.entries.pop() } else { None };
        self.entries.insert(at, Entry { cost, node });
        self.cursor = self.cursor.min(at);
        out.filter(|entry| entry.node & EXPANDED == 0).map(|entry| (entry.cost, entry.node))
    }

    /// Makes room for more nodes.
    pub fn widen(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// The cost of the last of the nearest `count` nodes; infinity while there are fewer.
    pub fn cost_of(&self, count: usize) -> f32 {
        count.checked_sub(1).and_then(|at| self.entries.get(at)).map_or(f32::INFINITY, |entry| entry.cost)
    }

    /// Nodes that cost no more than this.
    pub fn count_within(&self, cost: f32) -> usize {
        self.entries.partition_point(|entry| entry.cost <= cost)
    }

    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The nearest node that the walk has not gone on from.
    #[inline(always)]
    pub fn next(&mut self) -> Option<u32> {
        while let Some(entry) = self.entries.get_mut(self.cursor) {
            self.cursor += 1;
            if entry.node & EXPANDED == 0 {
                let node = entry.node;
                entry.node |= EXPANDED;
                return Some(node);
            }
        }
        None
    }

    /// The node that comes next as it stands.
    #[inline(always)]
    pub fn peek(&self) -> Option<u32> {
        self.entries.get(self.cursor).map(|entry| entry.node & !EXPANDED)
    }

    /// Nearest first.
    pub fn iter(&self) -> impl Iterator<Item = (f32, u32)> + '_ {
        self.entries.iter().map(|entry| (entry.cost, entry.node & !EXPANDED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_on_from_the_nearest_and_keeps_so_many() {
        let mut beam = Beam::default();
        beam.reset(3);
        for (cost, node) in [(5.0, 5), (1.0, 1), (3.0, 3)] {
            beam.insert(cost, node);
        }
        assert_eq!(beam.next(), Some(1));
        assert_eq!(beam.bound(), 5.0);
        beam.insert(0.5, 9);
        assert_eq!(beam.iter().map(|(_, node)| node).collect::<Vec<_>>(), [9, 1, 3]);
        assert_eq!((beam.next(), beam.next(), beam.next()), (Some(9), Some(3), None));
    }
}
