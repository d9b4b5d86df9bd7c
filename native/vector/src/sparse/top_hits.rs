//! The best documents so far, with all that tie with the last of them.

use crate::search::VectorHit;

pub struct TopHits {
    limit: usize,
    /// One for each document.
    hits: Vec<VectorHit>,
    /// The best vector of the document that was pushed last, which may have more of them.
    newest: Option<VectorHit>,
    /// Hits below this score are none of the best; minus infinity until there are `limit` hits.
    floor: f32,
    /// The length at which hits below the floor are thrown away.
    trim_at: usize,
}

impl TopHits {
    /// `limit` is at least 1.
    pub fn new(limit: usize) -> Self {
        let trim_at = limit.saturating_mul(2);
        Self { limit, hits: Vec::new(), newest: None, floor: f32::NEG_INFINITY, trim_at }
    }

    /// The score that a hit must reach to be taken.
    pub fn floor(&self) -> f32 {
        self.floor
    }

    /// The score of `hit` reaches the floor and is finite. Vectors of one document are pushed one after another, in the order
    /// of their numbers.
    pub fn push(&mut self, hit: VectorHit) {
        match &mut self.newest {
            Some(newest) if newest.ordinal == hit.ordinal => {
                if hit.score > newest.score {
                    *newest = hit;
                }
            }
            newest => {
                if let Some(document) = newest.replace(hit) {
                    self.add(document);
                }
            }
        }
    }

    fn add(&mut self, document: VectorHit) {
        if document.score < self.floor {
            return;
        }
        self.hits.push(document);
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
        if let Some(document) = self.newest.take() {
            self.add(document);
        }
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

    fn hit(ordinal: u32, number: u16, score: f32) -> VectorHit {
        VectorHit { ordinal, number, sequence: 0, distance: score, score }
    }

    fn best(limit: usize, pushed: &[(u32, u16, f32)]) -> Vec<(u32, u16, f32)> {
        let mut top = TopHits::new(limit);
        for &(ordinal, number, score) in pushed {
            if score >= top.floor() {
                top.push(hit(ordinal, number, score));
            }
        }
        top.finish().iter().map(|hit| (hit.ordinal, hit.number, hit.score)).collect()
    }

    #[test]
    fn keeps_the_best_and_what_ties_with_the_last() {
        let pushed = [(1, 0, 0.5), (2, 0, 2.0), (3, 0, 1.0), (4, 0, 1.0), (5, 0, 0.1), (6, 0, 1.0)];
        assert_eq!(best(2, &pushed), [(2, 0, 2.0), (3, 0, 1.0), (4, 0, 1.0), (6, 0, 1.0)]);
    }

    #[test]
    fn takes_a_document_once_by_the_best_of_its_vectors_and_the_first_of_equal_ones() {
        let pushed = [(1, 0, 0.5), (1, 1, 3.0), (1, 2, 3.0), (1, 3, 2.0), (2, 4, 1.0), (3, 0, 0.7), (4, 1, 0.8)];
        assert_eq!(
            best(2, &pushed),
            [(1, 1, 3.0), (2, 4, 1.0)],
            "one document with many vectors does not fill the page"
        );
        assert_eq!(best(1, &pushed), [(1, 1, 3.0)]);
    }
}
