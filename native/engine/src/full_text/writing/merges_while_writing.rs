//! Which segments are merged while rows come: as few as queries can bear, since each merge takes the processor from the writes.

use tantivy::SegmentMeta;
use tantivy::index::SegmentId;
use tantivy::indexer::{LogMergePolicy, MergePolicy};

/// Segments of like size that are merged into one.
const MERGED_SEGMENTS_MIN: usize = 12;

/// The same for large ones: their documents are most of the work of a query, not their number.
const LARGE_SEGMENTS_MIN: usize = 24;
const LARGE_DOCUMENTS_MIN: u32 = 1 << 15;

/// Segments up to this size count as of like size. Tantivy's own 10,000 merges the segments of single writes with much
/// larger ones again and again; with this they are merged among themselves first.
const SMALLEST_LAYER_DOCUMENTS: u32 = 100;

/// A segment with more deleted documents than this share is merged.
const DELETED_SHARE_MAX: f32 = 0.3;

/// The segments of a commit that are to become one, small and large ones among themselves; empty when it is well as it is.
pub fn merges_while_writing(segments: &[SegmentMeta]) -> Vec<SegmentId> {
    let is_large = |segment: &SegmentMeta| segment.num_docs() >= LARGE_DOCUMENTS_MIN;
    let (large, small): (Vec<_>, Vec<_>) = segments.iter().cloned().partition(is_large);
    let of_small = by_size(MERGED_SEGMENTS_MIN).compute_merge_candidates(&small).into_iter().next();
    let of_large = || by_size(LARGE_SEGMENTS_MIN).compute_merge_candidates(&large).into_iter().next();
    of_small.or_else(of_large).map(|candidate| candidate.0).unwrap_or_default()
}

fn by_size(segments_min: usize) -> LogMergePolicy {
    let mut policy = LogMergePolicy::default();
    policy.set_min_num_segments(segments_min);
    policy.set_min_layer_size(SMALLEST_LAYER_DOCUMENTS);
    policy.set_del_docs_ratio_before_merge(DELETED_SHARE_MAX);
    policy
}

#[cfg(test)]
mod tests {
    use tantivy::Index;
    use tantivy::schema::Schema;

    use super::*;

    #[test]
    fn large_segments_are_merged_later_than_small_ones_and_never_with_them() {
        let index = Index::create_in_ram(Schema::builder().build());
        let merged = |sizes: &[(usize, u32)]| {
            let sizes = sizes.iter().flat_map(|&(count, documents)| vec![documents; count]);
            let metas: Vec<SegmentMeta> =
                sizes.map(|documents| index.new_segment_meta(SegmentId::generate_random(), documents)).collect();
            merges_while_writing(&metas).len()
        };
        assert_eq!(merged(&[(11, 500)]), 0);
        assert_eq!(merged(&[(12, 500)]), 12);
        assert_eq!(merged(&[(23, LARGE_DOCUMENTS_MIN)]), 0);
        assert_eq!(merged(&[(24, LARGE_DOCUMENTS_MIN)]), 24);
        assert_eq!(merged(&[(11, LARGE_DOCUMENTS_MIN - 1), (13, LARGE_DOCUMENTS_MIN)]), 0);
    }
}
