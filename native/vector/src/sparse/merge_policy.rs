//! Which segments become one. Pure.

/// Segments up to this size are of the lowest layer; each layer above is `LAYER_FACTOR` times as large.
const LOWEST_LAYER_VECTORS: usize = 64;
/// Segments of one layer that become one of the next.
const LAYER_FACTOR: usize = 4;
/// A segment with a larger share of dead vectors than one in this many is written again.
const DEAD_SHARE_DIVISOR: usize = 4;

/// Vectors of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentSize {
    pub live: usize,
    pub dead: usize,
}

/// The positions of the segments that are to be merged next, ascending; empty when all is well. Those that are cheap to
/// merge come first. At most `vectors_max` vectors come together.
pub fn next_merge(sizes: &[SegmentSize], vectors_max: usize) -> Vec<usize> {
    let mut by_size: Vec<usize> = (0..sizes.len()).filter(|&at| sizes[at].live <= vectors_max).collect();
    by_size.sort_by_key(|&at| sizes[at].live);
    for same_layer in by_size.chunk_by(|&one, &next| layer(sizes[one].live) == layer(sizes[next].live)) {
        let together: usize = same_layer.iter().map(|&at| sizes[at].live).sum();
        if same_layer.len() >= LAYER_FACTOR && together <= vectors_max {
            let mut chosen = same_layer.to_vec();
            chosen.sort_unstable();
            return chosen;
        }
    }
    let is_worn = |at: &usize| sizes[*at].dead * DEAD_SHARE_DIVISOR > sizes[*at].live + sizes[*at].dead;
    by_size.into_iter().find(is_worn).into_iter().collect()
}

fn layer(vectors: usize) -> u32 {
    let times = vectors.max(LOWEST_LAYER_VECTORS) / LOWEST_LAYER_VECTORS;
    times.ilog(LAYER_FACTOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(live: &[usize]) -> Vec<SegmentSize> {
        live.iter().map(|&live| SegmentSize { live, dead: 0 }).collect()
    }

    #[test]
    fn merges_four_of_like_size_and_the_smallest_first() {
        assert_eq!(next_merge(&sizes(&[5000, 1, 60, 3]), 1 << 20), Vec::<usize>::new());
        assert_eq!(next_merge(&sizes(&[5000, 1, 60, 3, 2]), 1 << 20), [1, 2, 3, 4]);
        assert_eq!(next_merge(&sizes(&[5000, 5000, 5000, 1, 5000, 1, 1, 1]), 1 << 20), [3, 5, 6, 7]);
        assert_eq!(next_merge(&sizes(&[5000, 5000, 5000, 5000]), 1 << 20), [0, 1, 2, 3]);
        assert_eq!(next_merge(&sizes(&[5000, 5000, 5000, 5000]), 10_000), Vec::<usize>::new());
    }

    #[test]
    fn writes_a_segment_again_when_a_quarter_of_it_is_dead() {
        let worn = SegmentSize { live: 70, dead: 30 };
        let sound = SegmentSize { live: 300, dead: 100 };
        assert_eq!(next_merge(&[sound, worn], 1 << 20), [1]);
        assert_eq!(next_merge(&[sound], 1 << 20), Vec::<usize>::new());
    }
}
