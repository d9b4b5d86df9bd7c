//! Which segments of an index at rest are merged: fewer of them, and less work that every query does once for each.

use tantivy::SegmentMeta;
use tantivy::index::SegmentId;

/// A segment this many times as large as all smaller ones together is not merged: what trickles in is merged again and
/// again, what it trickles into is not. A document is so written about this many times more on its index's way to any
/// size.
const REST_SHARE_MIN: u64 = 8;

/// Documents that a large merge brings together at most: under a minute of one thread.
const LARGE_DOCUMENTS_MAX: u64 = 1 << 24;

/// A segment this many times as large as all smaller ones together is in no large merge: each at least doubles the
/// largest, so that a document is written four times more on its way from one bound to the other.
const LARGE_REST_SHARE_MIN: u64 = 1;

/// The segments of a commit that are to become one of at most `documents_max`; empty when it is well as it is.
pub fn merges_at_rest(segments: &[SegmentMeta], documents_max: u64) -> Vec<SegmentId> {
    merges(segments, |sizes| first_to_merge(sizes, documents_max, REST_SHARE_MIN))
}

/// The segments of a commit that are to become one of more than `documents_min`. Such a merge takes long: others go on beside it.
pub fn large_merges_at_rest(segments: &[SegmentMeta], documents_min: u64) -> Vec<SegmentId> {
    merges(segments, |sizes| first_of_large(sizes, documents_min))
}

fn merges(segments: &[SegmentMeta], first_of: impl Fn(&[u64]) -> usize) -> Vec<SegmentId> {
    let mut by_size: Vec<(u64, SegmentId)> =
        segments.iter().map(|segment| (u64::from(segment.num_docs()), segment.id())).collect();
    by_size.sort_unstable_by_key(|(documents, _)| std::cmp::Reverse(*documents));
    let sizes: Vec<u64> = by_size.iter().map(|(documents, _)| *documents).collect();
    by_size[first_of(&sizes)..].iter().map(|(_, id)| *id).collect()
}

/// `sizes` descend; from which one on they are merged in a large merge.
fn first_of_large(sizes: &[u64], documents_min: u64) -> usize {
    let first = first_to_merge(sizes, LARGE_DOCUMENTS_MAX, LARGE_REST_SHARE_MIN);
    if sizes[first..].iter().sum::<u64>() > documents_min { first } else { sizes.len() }
}

/// `sizes` descend; from which one on they are merged, so that no more than `documents_max` come together, and none that is
/// `share` times as large as all smaller ones.
fn first_to_merge(sizes: &[u64], documents_max: u64, share: u64) -> usize {
    let rest = |from: usize| sizes[from..].iter().sum::<u64>();
    let is_worth_it =
        |&first: &usize| rest(first) <= documents_max && sizes[first] < rest(first + 1).saturating_mul(share);
    let first = (0..sizes.len()).find(is_worth_it).unwrap_or(sizes.len());
    if first + 1 < sizes.len() { first } else { sizes.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MERGED_DOCUMENTS_MAX: u64 = 1 << 20;

    fn merged(sizes: &[u64]) -> &[u64] {
        &sizes[first_to_merge(sizes, MERGED_DOCUMENTS_MAX, REST_SHARE_MIN)..]
    }

    fn merged_large(sizes: &[u64]) -> &[u64] {
        &sizes[first_of_large(sizes, MERGED_DOCUMENTS_MAX)..]
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

    #[test]
    fn large_merges_at_least_double_the_largest_of_their_segments() {
        const MILLION: u64 = 1_000_000;
        assert_eq!(merged_large(&[MILLION; 10]).len(), 10);
        assert_eq!(merged_large(&[MILLION; 20]).len(), 16);
        assert_eq!(merged_large(&[4 * MILLION, 2 * MILLION, MILLION, MILLION / 2]).len(), 0);
        assert_eq!(merged_large(&[4 * MILLION, 2 * MILLION, MILLION, MILLION + 1]).len(), 4);
        assert_eq!(merged_large(&[10 * MILLION, MILLION, MILLION]).len(), 0);
        assert_eq!(merged_large(&[10 * MILLION, MILLION, MILLION, MILLION]).len(), 3);
        assert_eq!(merged_large(&[MILLION / 3; 3]).len(), 0, "these are not large");
        assert_eq!(merged_large(&[]).len(), 0);
    }
}
