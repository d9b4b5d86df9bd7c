//! The nearest rows seen so far, with what ties with the last of them.

/// Rows that tie with the last hit and are kept beside it, at most.
pub const TIES_MAX: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbour {
    pub cost: f32,
    pub ordinal: u32,
    pub sequence: u64,
}

pub struct Nearest {
    limit: usize,
    found: Vec<Neighbour>,
    /// Length at which the rows that are too far are thrown out.
    full: usize,
    /// The cost of the last row that is in, once there are enough.
    bound: f32,
}

impl Nearest {
    /// `limit` must not be 0.
    pub fn new(limit: usize) -> Self {
        Self { limit, found: Vec::new(), full: limit * 2 + 64, bound: f32::INFINITY }
    }

    #[inline]
    pub fn offer(&mut self, found: Neighbour) {
        if found.cost > self.bound {
            return;
        }
        self.found.push(found);
        if self.found.len() >= self.full {
            self.shrink();
        }
    }

    fn shrink(&mut self) {
        if self.found.len() < self.limit {
            return;
        }
        let by_cost = |a: &Neighbour, b: &Neighbour| a.cost.total_cmp(&b.cost).then(a.ordinal.cmp(&b.ordinal));
        self.bound = self.found.select_nth_unstable_by(self.limit - 1, by_cost).1.cost;
        let bound = self.bound;
        self.found.retain(|found| found.cost <= bound);
        if self.found.len() > self.limit + TIES_MAX {
            self.found.select_nth_unstable_by(self.limit + TIES_MAX, by_cost);
            self.found.truncate(self.limit + TIES_MAX);
        }
        self.full = (self.limit * 2 + 64).max(self.found.len() * 2);
    }

    /// Nearest first, equal ones by ordinal.
    pub fn finish(mut self) -> Vec<Neighbour> {
        self.shrink();
        self.found.sort_unstable_by(|a, b| a.cost.total_cmp(&b.cost).then(a.ordinal.cmp(&b.ordinal)));
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(cost: f32, ordinal: u32) -> Neighbour {
        Neighbour { cost, ordinal, sequence: 0 }
    }

    #[test]
    fn keeps_the_nearest_and_the_ties_of_the_last() {
        let mut nearest = Nearest::new(3);
        for ordinal in 0..500 {
            nearest.offer(found(((ordinal * 7) % 500 / 2) as f32, ordinal));
        }
        let costs: Vec<f32> = nearest.finish().iter().map(|found| found.cost).collect();
        assert_eq!(costs, [0.0, 0.0, 1.0, 1.0]);
    }

    #[test]
    fn ties_have_a_bound() {
        let mut nearest = Nearest::new(3);
        for ordinal in (0..10_000).rev() {
            nearest.offer(found(1.0, ordinal));
        }
        assert!(nearest.finish().len() <= 3 + TIES_MAX);
    }
}
