//! Rules that drop hits from a list in order.

use super::fuse::Fused;
use crate::full_text::Pruner;

/// Applies the rules one after another, each to what the one before has left. `fused` is in order, best first.
pub fn prune(fused: &mut Vec<Fused>, rules: &Pruner) {
    if rules.require_multi_index {
        fused.retain(|found| found.lists >= 2);
    }
    if let Some(least) = rules.min_absolute_score {
        fused.retain(|found| f64::from(found.score) >= least);
    }
    if let Some(ratio) = rules.min_score_ratio {
        let best = fused.first().map_or(0.0, |found| f64::from(found.score));
        // A share of a score below zero would be above it.
        fused.retain(|found| best <= 0.0 || f64::from(found.score) >= ratio * best);
    }
    if let Some(deviations) = rules.std_dev_threshold {
        let (mean, deviation) = mean_and_deviation(fused);
        fused.retain(|found| f64::from(found.score) >= mean - deviations * deviation);
    }
    if let Some(percent) = rules.max_score_gap_percent {
        fused.truncate(before_gap(fused, percent));
    }
}

fn mean_and_deviation(fused: &[Fused]) -> (f64, f64) {
    let count = fused.len().max(1) as f64;
    let mean = fused.iter().map(|found| f64::from(found.score)).sum::<f64>() / count;
    let variance = fused.iter().map(|found| (f64::from(found.score) - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt())
}

/// How many hits come before the first gap that is too large.
fn before_gap(fused: &[Fused], percent: f64) -> usize {
    let score = |at: usize| f64::from(fused[at].score);
    let Some(last) = fused.len().checked_sub(1) else { return 0 };
    let allowed = (score(0) - score(last)) * percent / 100.0;
    (0..last).find(|&at| score(at) - score(at + 1) > allowed).map_or(fused.len(), |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Documents 0, 1, ... of these scores; those of even number are found by two lists.
    fn left(scores: &[f32], rules: Pruner) -> Vec<usize> {
        let found = |(document, &score): (usize, &f32)| Fused { document, score, lists: 2 - document % 2 };
        let mut fused: Vec<Fused> = scores.iter().enumerate().map(found).collect();
        prune(&mut fused, &rules);
        fused.iter().map(|found| found.document).collect()
    }

    const SCORES: &[f32] = &[10.0, 9.0, 5.0, 4.0, 2.0];

    #[test]
    fn each_rule_alone() {
        assert_eq!(left(SCORES, Pruner::default()), [0, 1, 2, 3, 4]);
        assert_eq!(left(SCORES, Pruner { require_multi_index: true, ..Pruner::default() }), [0, 2, 4]);
        assert_eq!(left(SCORES, Pruner { min_absolute_score: Some(5.0), ..Pruner::default() }), [0, 1, 2]);
        assert_eq!(left(SCORES, Pruner { min_score_ratio: Some(0.4), ..Pruner::default() }), [0, 1, 2, 3]);
        // Mean 6, standard deviation 3.03.
        assert_eq!(left(SCORES, Pruner { std_dev_threshold: Some(0.5), ..Pruner::default() }), [0, 1, 2]);
        assert_eq!(left(SCORES, Pruner { std_dev_threshold: Some(-1.0), ..Pruner::default() }), [0]);
        // Gaps of 12.5, 50, 12.5 and 25 percent.
        assert_eq!(left(SCORES, Pruner { max_score_gap_percent: Some(20.0), ..Pruner::default() }), [0, 1]);
        assert_eq!(left(SCORES, Pruner { max_score_gap_percent: Some(50.0), ..Pruner::default() }), [0, 1, 2, 3, 4]);
        assert_eq!(left(SCORES, Pruner { max_score_gap_percent: Some(0.0), ..Pruner::default() }), [0]);
    }

    #[test]
    fn each_rule_sees_what_the_one_before_has_left() {
        let rules = Pruner { require_multi_index: true, min_score_ratio: Some(0.3), ..Pruner::default() };
        assert_eq!(left(SCORES, rules), [0, 2]);
        let rules = Pruner { min_absolute_score: Some(3.0), max_score_gap_percent: Some(70.0), ..Pruner::default() };
        assert_eq!(left(SCORES, rules), [0, 1, 2, 3]);
    }

    #[test]
    fn equal_scores_nothing_and_scores_below_zero() {
        let all = |percent| Pruner {
            min_score_ratio: Some(0.5),
            std_dev_threshold: Some(0.0),
            max_score_gap_percent: Some(percent),
            ..Pruner::default()
        };
        assert_eq!(left(&[0.25, 0.25, 0.25], all(0.0)), [0, 1, 2]);
        assert!(left(&[], all(0.0)).is_empty());
        assert_eq!(left(&[-1.0, -2.0], Pruner { min_score_ratio: Some(0.5), ..Pruner::default() }), [0, 1]);
    }
}
