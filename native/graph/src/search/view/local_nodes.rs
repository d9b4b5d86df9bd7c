//! Which nodes of a search the nodes of a segment are.

use std::collections::HashMap;

use crate::key_hash::BuildKeyHasher;

/// More nodes than this are kept in a list with room for all of the segment: to make that room takes longer than a short search.
const FEW_MAX: usize = 256;

/// Nodes of the search by their numbers in a segment, as far as they are known.
#[derive(Default)]
pub struct LocalNodes {
    few: HashMap<u32, u32, BuildKeyHasher>,
    /// Node + 1, or 0; empty while they are few.
    all: Vec<u32>,
}

impl LocalNodes {
    #[inline]
    pub fn get(&self, local: u32) -> Option<u32> {
        if self.all.is_empty() { self.few.get(&local).copied() } else { self.all[local as usize].checked_sub(1) }
    }

    /// `node_count`: nodes of the segment.
    pub fn insert(&mut self, local: u32, node: u32, node_count: u32) {
        if self.all.is_empty() {
            self.few.insert(local, node);
            if self.few.len() <= FEW_MAX {
                return;
            }
            self.all = vec![0; node_count as usize];
            for (local, node) in self.few.drain() {
                self.all[local as usize] = node + 1;
            }
        }
        self.all[local as usize] = node + 1;
    }
}
