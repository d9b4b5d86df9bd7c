//! The nearest documents seen so far, with what ties with the last of them.

/// Documents that tie with the last hit and are kept beside it, at most.
pub const TIES_MAX: usize = 1024;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbour {
    pub cost: f32,
    pub ordinal: u32,
    /// Which of the document's vectors it is.
    pub number: u16,
    pub sequence: u64,
}

pub struct Nearest {
    limit: usize,
    /// A document may be offered several times, for each of its vectors; it is kept once.
    folds: bool,
    found: Vec<Neighbour>,
    /// Length at which the rows that are too far are thrown out.
    full: usize,
    /// The cost of the last document that is in, once there are enough.
    bound: f32,
}

impl Nearest {
    /// `limit` must not be 0.
    pub fn new(limit: usize, folds: bool) -> Self {
        Self { limit, folds, found: Vec::new(), full: limit * 2 + 64, bound: f32::INFINITY }
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

    /// The cost of the last document that is wanted; infinite while there are fewer.
    pub fn last_cost(&mut self) -> f32 {
        self.shrink();
        self.bound
    }

    fn shrink(&mut self) {
        if self.folds {
            let by_document = |a: &Neighbour, b: &Neighbour| {
                a.ordinal.cmp(&b.ordinal).then(a.cost.total_cmp(&b.cost)).then(a.number.cmp(&b.number))
            };
            self.found.sort_unstable_by(by_document);
            self.found.dedup_by_key(|found| found.ordinal);
        }
        self.full = (self.limit * 2 + 64).max(self.found.len() * 2);
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
        Neighbour { cost, ordinal, number: 0, sequence: 0 }
    }

    #[test]
    fn keeps_the_nearest_and_the_ties_of_the_last() {
        let mut nearest = Nearest::new(3, false);
        for ordinal in 0..500 {
            nearest.offer(found(((ordinal * 7) % 500 / 2) as f32, ordinal));
        }
        let costs: Vec<f32> = nearest.finish().iter().map(|found| found.cost).collect();
        assert_eq!(costs, [0.0, 0.0, 1.0, 1.0]);
    }

    #[test]
    fn a_document_is_kept_once_however_many_of_its_vectors_are_near() {
        let mut nearest = Nearest::new(3, true);
        for number in (0..400).rev() {
            nearest.offer(Neighbour { number, ..found(f32::from(number) / 400.0, 7) });
        }
        for ordinal in [2, 9, 4] {
            nearest.offer(found(ordinal as f32, ordinal));
        }
        assert_eq!(nearest.last_cost(), 4.0);
        let kept: Vec<(u32, u16)> = nearest.finish().iter().map(|found| (found.ordinal, found.number)).collect();
        assert_eq!(kept, [(7, 0), (2, 0), (4, 0)]);
    }

    #[test]
    fn ties_have_a_bound() {
        let mut nearest = Nearest::new(3, false);
        for ordinal in (0..10_000).rev() {
            nearest.offer(found(1.0, ordinal));
        }
        assert!(nearest.finish().len() <= 3 + TIES_MAX);
    }
}
