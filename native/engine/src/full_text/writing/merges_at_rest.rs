//! Which segments of an index at rest are merged: fewer of them, and less work that every query does once for each.

use tantivy::SegmentMeta;
use tantivy::index::SegmentId;

/// A segment this many times as large as all smaller ones together is not merged: what trickles in is merged again and
/// again, what it trickles into is not. A document is so written about this many times more on its index's way to any
/// size.
const REST_SHARE_MIN: u64 = 8;

/// Documents that one merge brings together at most: some seconds of one thread.
const MERGED_DOCUMENTS_MAX: u64 = 1 << 20;

/// The segments of a commit that are to become one; empty when it is well as it is.
pub fn merges_at_rest(segments: &[SegmentMeta]) -> Vec<SegmentId> {
    let mut by_size: Vec<(u64, SegmentId)> =
        segments.iter().map(|segment| (u64::from(segment.num_docs()), segment.id())).collect();
    by_size.sort_unstable_by_key(|(documents, _)| std::cmp::Reverse(*documents));
    let sizes: Vec<u64> = by_size.iter().map(|(documents, _)| *documents).collect();
    by_size[first_to_merge(&sizes)..].iter().map(|(_, id)| *id).collect()
}

/// `sizes` descend; from which one on they are merged.
fn first_to_merge(sizes: &[u64]) -> usize {
    let rest = |from: usize| sizes[from..].iter().sum::<u64>();
    let is_worth_it = |&first: &usize| {
        rest(first) <= MERGED_DOCUMENTS_MAX && sizes[first] < rest(first + 1).saturating_mul(REST_SHARE_MIN)
    };
    let first = (0..sizes.len()).find(is_worth_it).unwrap_or(sizes.len());
    if first + 1 < sizes.len() { first } else { sizes.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(sizes: &[u64]) -> &[u64] {
        &sizes[first_to_merge(sizes)..]
    }

    #[test]
    fn what_is_of_like_size_becomes_one_and_what_is_much_larger_stays() {
        let none: [u64; 0] = [];
        assert_eq!(merged(&[]), none);
        assert_eq!(merged(&[100]), none);
        assert_eq!(merged(&[33, 33, 33]), [33, 33, 33]);
        assert_eq!(merged(&[800, 100]), none);
        assert_eq!(merged(&[799, 100]), [799, 100]);
        assert_eq!(merged(&[10_000, 100, 50, 1]), [100, 50, 1]);
        assert_eq!(merged(&[10_000, 1_000, 10, 1, 1]), [10, 1, 1]);
        assert_eq!(merged(&[5, 0]), none);
    }

    #[test]
    fn no_more_come_together_than_is_cheap() {
        let half = MERGED_DOCUMENTS_MAX / 2;
        assert_eq!(merged(&[half, half]), [half, half]);
        assert_eq!(merged(&[half + 1, half, half]), [half, half]);
        assert_eq!(merged(&[MERGED_DOCUMENTS_MAX * 2, half + 1, half]).len(), 0);
    }
}
