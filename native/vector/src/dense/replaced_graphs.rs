//! Graphs that are being replaced are read from files, so that memory holds one large graph of an index and not two.

use std::sync::Arc;

use super::builder::Plan;
use super::dense_index::DenseIndex;
use super::segment::{Segment, SegmentRows, Snapshot};

impl DenseIndex {
    /// Has the large graphs of a plan read from their files from here on. Where that fails they stay in memory.
    pub(super) fn spill_replaced(&self, plan: &mut Plan) {
        let options = self.options();
        for segment in plan.segments_mut() {
            let Some(rows) = segment.rows.as_graph() else { continue };
            if rows.written.is_some() || rows.graph.layout.bytes <= options.replaced_bytes_max {
                continue;
            }
            let Some(checkpoints) = self.checkpoints() else { return };
            let Ok(spilled) = checkpoints.spill_graph(segment.id, rows, options) else { continue };
            spilled.prepare();
            segment.rows = SegmentRows::Graph(Arc::new(spilled));
            // A checkpoint that came before the exchange would write the file once more, under those who read its map.
            self.exchange(segment.id, &segment.rows);
        }
    }

    /// Has a segment read the same rows from elsewhere, in what searches see and in what the next commit will show.
    fn exchange(&self, id: u64, rows: &SegmentRows) {
        let exchange = |segments: &mut [Segment]| {
            segments.iter_mut().filter(|segment| segment.id == id).for_each(|segment| segment.rows = rows.clone());
        };
        let mut writing = self.writing();
        exchange(&mut writing.segments);
        let seen = self.snapshot();
        let mut segments = seen.segments.clone();
        exchange(&mut segments);
        self.publish(Snapshot { sequence: seen.sequence, segments });
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use sundew_base::derived_index::DerivedIndex;
    use sundew_base::frame::{FrameWriter, RowKind};
    use sundew_base::part::{PartForm, part_head};

    use super::*;
    use crate::dense::{DenseOptions, DistanceBounds, Metric};
    use crate::search::SearchBounds;

    const DIMENSION: u32 = 8;
    const ROWS: u32 = 1000;

    fn vector(ordinal: u32) -> Vec<f32> {
        let mixed = |at: u32| (u64::from(ordinal * DIMENSION + at) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        (0..DIMENSION).map(|at| mixed(at) as f32 / (1u64 << 24) as f32 - 0.5).collect()
    }

    fn put(index: &DenseIndex, ordinals: std::ops::Range<u32>) {
        let mut frame = FrameWriter::new(ordinals.len(), 0).expect("a frame");
        for (at, ordinal) in ordinals.clone().enumerate() {
            let values: Vec<u8> = vector(ordinal).iter().flat_map(|value| value.to_le_bytes()).collect();
            frame.push(RowKind::PartPut, 0, b"key", &[&part_head(1, PartForm::Dense), &values]);
            frame.set_position(at, ordinal, u64::from(ordinal) + 1, 0);
        }
        index.apply(&frame.finish()).expect("applied");
        index.commit(u64::from(ordinals.end)).expect("committed");
        index.settle();
    }

    fn names(directory: &Path, extension: &str) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<String> = entries.filter_map(|name| name.into_string().ok()).collect();
        names.retain(|name| name.ends_with(extension));
        names
    }

    fn find_all(index: &DenseIndex, rows: u32) {
        let bounds = SearchBounds { limit: 1, allowed: None, is_due: &|| false };
        for ordinal in (0..rows).step_by(7) {
            let hits = index.search(&vector(ordinal), 0.5, DistanceBounds::default(), &bounds).expect("hits").hits;
            assert_eq!(hits[0].ordinal, ordinal);
        }
    }

    fn options(replaced_bytes_max: usize) -> DenseOptions {
        let options = DenseOptions::new("taste", 1, DIMENSION, Metric::L2Squared);
        DenseOptions { tail_bytes: 4 * DIMENSION as usize * ROWS as usize, replaced_bytes_max, ..options }
    }

    fn graph_of(index: &DenseIndex) -> Segment {
        let snapshot = index.snapshot();
        assert_eq!(snapshot.segments.len(), 1);
        snapshot.segments[0].clone()
    }

    fn is_in_file(segment: &Segment) -> bool {
        segment.rows.as_graph().expect("a graph").written.is_some()
    }

    #[test]
    fn a_large_graph_is_read_from_its_file_while_another_takes_its_place() {
        let directory = std::env::temp_dir().join(format!("sundew-replaced-{}", std::process::id()));
        for (bytes_max, is_large) in [(0, true), (usize::MAX, false)] {
            let index = DenseIndex::open(&directory, options(bytes_max)).expect("an index");
            put(&index, 0..ROWS);
            assert!(!is_in_file(&graph_of(&index)));
            index.spill_replaced(&mut Plan { grown: Some(graph_of(&index)), sources: vec![] });
            assert_eq!(is_in_file(&graph_of(&index)), is_large);
            assert_eq!(names(&directory, ".graph").len(), usize::from(is_large));
            find_all(&index, ROWS);
            // The next graph is in memory; the file that no checkpoint has named goes with the old one.
            put(&index, ROWS..2 * ROWS);
            assert!(!is_in_file(&graph_of(&index)));
            assert!(names(&directory, ".graph").is_empty());
            find_all(&index, 2 * ROWS);
            index.close().expect("closed");
            fs::remove_dir_all(&directory).expect("removed");
        }
    }

    #[test]
    fn a_checkpoint_never_writes_a_file_that_a_graph_is_read_from() {
        let directory = std::env::temp_dir().join(format!("sundew-mapped-{}", std::process::id()));
        let index = DenseIndex::open(&directory, options(0)).expect("an index");
        for round in 0..16 {
            put(&index, round * ROWS..(round + 1) * ROWS);
            let graph = graph_of(&index);
            let written = || {
                let file = fs::metadata(directory.join(format!("{}.graph", graph.id))).expect("the file of the graph");
                file.modified().expect("a time")
            };
            let begun = std::sync::Barrier::new(2);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    begun.wait();
                    index.checkpoint().expect("a checkpoint");
                });
                begun.wait();
                index.spill_replaced(&mut Plan { grown: Some(graph.clone()), sources: vec![] });
                let (mapped, after) = (written(), || index.checkpoint().map(|_| written()));
                assert_eq!(after().expect("a checkpoint"), mapped, "round {round}");
            });
        }
        fs::remove_dir_all(&directory).expect("removed");
    }

    #[test]
    fn a_checkpoint_takes_the_file_of_a_graph_and_a_graph_that_of_a_checkpoint() {
        let directory = std::env::temp_dir().join(format!("sundew-taken-{}", std::process::id()));
        let open = || DenseIndex::open(&directory, options(0)).expect("an index");
        let index = open();
        put(&index, 0..ROWS);
        index.spill_replaced(&mut Plan { grown: Some(graph_of(&index)), sources: vec![] });
        index.checkpoint().expect("a checkpoint");
        // What the checkpoint names outlives the graph.
        put(&index, ROWS..2 * ROWS);
        assert_eq!(names(&directory, ".graph").len(), 1);
        index.close().expect("closed");
        let index = open();
        index.verify().expect("whole files");
        find_all(&index, ROWS);
        put(&index, ROWS..2 * ROWS);
        index.checkpoint().expect("a checkpoint");
        assert_eq!(names(&directory, ".graph").len(), 1);
        index.spill_replaced(&mut Plan { grown: Some(graph_of(&index)), sources: vec![] });
        assert!(is_in_file(&graph_of(&index)));
        assert_eq!(names(&directory, ".graph").len(), 1);
        index.close().expect("closed");
        let index = open();
        index.verify().expect("whole files");
        find_all(&index, 2 * ROWS);
        fs::remove_dir_all(&directory).expect("removed");
    }
}
