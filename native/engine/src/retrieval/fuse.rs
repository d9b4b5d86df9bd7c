//! Ranked lists made one.

use crate::full_text::{Fusion, Strategy};

/// The entry of a list for a document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LegScore {
    /// From 1.
    pub rank: usize,
    pub score: f32,
    /// To the fused score.
    pub contribution: f64,
}

/// The hits of one leg, best first, each a number of the document.
pub struct Ranked {
    pub weight: f64,
    pub hits: Vec<(usize, f32)>,
}

/// A document that at least one list has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fused {
    pub document: usize,
    pub score: f32,
    /// How many lists have it.
    pub lists: usize,
}

/// The entry of each list for each document, in one table: a list of its own for each document would cost more than all else.
pub struct LegScores {
    lists: usize,
    scores: Vec<Option<LegScore>>,
}

impl LegScores {
    /// One for each list.
    pub fn of(&self, document: usize) -> &[Option<LegScore>] {
        &self.scores[document * self.lists..][..self.lists]
    }
}

/// The documents of all lists, each once and not yet in order. A list alone keeps its own scores. Scores are sums in
/// double precision rounded to single, so that what is added up in another order still ties.
pub fn fuse(lists: &[Ranked], documents: usize, fusion: &Fusion) -> (Vec<Fused>, LegScores) {
    let mut scores = LegScores { lists: lists.len(), scores: vec![None; documents * lists.len()] };
    for (at, list) in lists.iter().enumerate() {
        let contribution = contributions(list, lists.len() == 1, fusion);
        for (rank, &(document, score)) in (1..).zip(&list.hits) {
            scores.scores[document * lists.len() + at] =
                Some(LegScore { rank, score, contribution: contribution(rank, score) });
        }
    }
    let all = (0..documents).map(|document| {
        let found = scores.of(document).iter().flatten();
        let score = found.clone().map(|leg_score| leg_score.contribution).sum::<f64>() as f32;
        Fused { document, score, lists: found.count() }
    });
    let fused = all.filter(|found| found.lists > 0).collect();
    (fused, scores)
}

/// The summand of a fused score by a rank and a score of the list.
fn contributions(list: &Ranked, is_alone: bool, fusion: &Fusion) -> impl Fn(usize, f32) -> f64 {
    let scores = list.hits.iter().map(|(_, score)| f64::from(*score));
    let (least, most) = scores.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), score| (a.min(score), b.max(score)));
    let (weight, rank_constant, strategy) = (list.weight, fusion.rank_constant, fusion.strategy);
    move |rank, score| match strategy {
        _ if is_alone => f64::from(score),
        Strategy::Rrf | Strategy::Failover => weight / (rank_constant + rank as f64),
        Strategy::Rsf if most > least => weight * (f64::from(score) - least) / (most - least),
        Strategy::Rsf => weight,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(strategy: Strategy, lists: &[(f64, &[(usize, f32)])]) -> Vec<(usize, f32)> {
        let lists: Vec<Ranked> =
            lists.iter().map(|(weight, hits)| Ranked { weight: *weight, hits: hits.to_vec() }).collect();
        let fusion = Fusion { strategy, ..Fusion::default() };
        fuse(&lists, 4, &fusion).0.iter().map(|found| (found.document, found.score)).collect()
    }

    const TEXT: &[(usize, f32)] = &[(0, 7.5), (1, 3.0), (2, 1.5)];
    const DENSE: &[(usize, f32)] = &[(2, 0.9), (0, 0.9)];

    #[test]
    fn ranks_are_counted_from_one() {
        let fused = scores(Strategy::Rrf, &[(1.0, TEXT), (2.0, DENSE)]);
        let wanted: [f64; 3] = [1.0 / 61.0 + 2.0 / 62.0, 1.0 / 62.0, 1.0 / 63.0 + 2.0 / 61.0];
        assert_eq!(fused, [(0, wanted[0] as f32), (1, wanted[1] as f32), (2, wanted[2] as f32)]);
    }

    #[test]
    fn relative_scores_reach_from_0_to_1() {
        let fused = scores(Strategy::Rsf, &[(1.0, TEXT), (0.5, DENSE)]);
        assert_eq!(fused, [(0, 1.5), (1, 0.25), (2, 0.5)]);
    }

    #[test]
    fn a_list_alone_keeps_its_scores() {
        for strategy in [Strategy::Rrf, Strategy::Rsf, Strategy::Failover] {
            assert_eq!(scores(strategy, &[(3.0, TEXT)]), TEXT);
        }
    }
}
