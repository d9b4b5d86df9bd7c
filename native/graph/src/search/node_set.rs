//! Nodes that a search has met.

use sundew_base::bit_set::BitSet;

/// More nodes than this are kept as bits, with room for all of the graph: to make that room takes longer than to look
/// through a few.
const FEW_MAX: usize = 32;

pub struct NodeSet {
    few: Vec<u32>,
    /// Empty while they are few.
    all: BitSet,
    room: usize,
}

impl NodeSet {
    /// `room`: nodes of the graph, as far as they are known.
    pub fn with_room(room: usize) -> Self {
        Self { few: Vec::new(), all: BitSet::default(), room }
    }

    /// Whether the node is newly in the set.
    #[inline]
    pub fn insert(&mut self, node: u32) -> bool {
        if !self.all.is_empty() {
            return self.all.insert(node);
        }
        if self.few.contains(&node) {
            return false;
        }
        self.few.push(node);
        if self.few.len() > FEW_MAX {
            self.all = BitSet::with_room(self.room);
            for node in self.few.drain(..) {
                self.all.insert(node);
            }
        }
        true
    }

    pub fn len(&self) -> usize {
        self.few.len() + self.all.len()
    }

    /// In ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let mut few = self.few.clone();
        few.sort_unstable();
        few.into_iter().chain(self.all.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_each_node_once_however_many_there_are() {
        for count in [0, 1, FEW_MAX as u32, FEW_MAX as u32 + 1, 1_000] {
            let mut set = NodeSet::with_room(100);
            for node in (0..count).rev() {
                assert!(set.insert(node * 3), "{count} nodes");
                assert!(!set.insert(node * 3), "{count} nodes");
            }
            assert_eq!(set.len(), count as usize);
            assert!(set.iter().eq((0..count).map(|node| node * 3)), "{count} nodes");
        }
    }
}
