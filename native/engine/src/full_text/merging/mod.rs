//! Segments become one: what a merged segment holds is read from theirs block by block, without walking documents one by one.

mod inverted_index;
#[cfg(test)]
mod merged_files;
mod segment_merge;
mod source_segment;
mod stored_postings;

pub use segment_merge::{MergedSegment, SegmentMerge};
