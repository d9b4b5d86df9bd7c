//! The best hits so far, with all that tie with the last of them.

use crate::search::VectorHit;

pub struct TopHits {
    limit: usize,
    hits: Vec<VectorHit>,
    /// Hits below this score are none of the best; minus infinity until there are `limit` hits.
    floor: f32,
    /// The length at which hits below the floor are thrown away.
    trim_at: usize,
}

impl TopHits {
    /// `limit` is at least 1.
    pub fn new(limit: usize) -> Self {
        Self { limit, hits: Vec::new(), floor: f32::NEG_INFINITY, trim_at: limit.saturating_mul(2) }
    }

    /// What a hit must reach to be taken.
    pub fn floor(&self) -> f32 {
        self.floor
    }

    /// `score` reaches the floor and is finite.
    pub fn push(&mut self, ordinal: u32, sequence: u64, score: f32) {
        self.hits.push(VectorHit { ordinal, number: 0, sequence, distance: score, score });
        if self.hits.len() == self.limit && self.floor == f32::NEG_INFINITY || self.hits.len() >= self.trim_at {
            self.trim();
        }
    }

    fn trim(&mut self) {
        let by_score = |one: &VectorHit, other: &VectorHit| other.score.total_cmp(&one.score);
        let (_, last, _) = self.hits.select_nth_unstable_by(self.limit - 1, by_score);
        let floor = last.score;
        self.floor = floor;
        self.hits.retain(|hit| hit.score >= floor);
        // Many may tie; trimming stays linear in what is pushed.
        self.trim_at = self.hits.len().saturating_add(self.limit);
    }

    /// Best first; equal scores by ordinal.
    pub fn finish(mut self) -> Vec<VectorHit> {
        if self.hits.len() > self.limit {
            self.trim();
        }
        self.hits
            .sort_unstable_by(|one, other| other.score.total_cmp(&one.score).then(one.ordinal.cmp(&other.ordinal)));
        self.hits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_best_and_what_ties_with_the_last() {
        let mut top = TopHits::new(2);
        for (ordinal, score) in [(1, 0.5), (2, 2.0), (3, 1.0), (4, 1.0), (5, 0.1), (6, 1.0)] {
            if score >= top.floor() {
                top.push(ordinal, 0, score);
            }
        }
        let hits: Vec<_> = top.finish().iter().map(|hit| (hit.ordinal, hit.score)).collect();
        assert_eq!(hits, [(2, 2.0), (3, 1.0), (4, 1.0), (6, 1.0)]);
    }
}
