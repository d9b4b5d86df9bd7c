//! Rows that get the links which they had in another index.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use sundew_base::bit_set::BitSet;

use super::super::dense_index::DenseIndex;
use super::super::segment::{Segment, SegmentRows, Snapshot};
use super::linking::{LinkedGraph, Unlinked, link_by};

/// How the rows of an index came by their links.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct LinkReport {
    /// Rows with the links of the file.
    pub kept: usize,
    /// Rows that have lost most of their neighbours and were linked again.
    pub relinked: usize,
    /// Rows of which the file knows nothing: they wait for a graph as those that are written.
    pub left: usize,
    /// Why the file was left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

impl DenseIndex {
    /// Has rows wait without a graph, however many come, until `link_again`, or until the index is opened again.
    pub fn hold(&self) {
        self.writing().is_held = true;
    }

    /// Makes a graph of committed rows whose vectors have links in `hints`, a file of another index, with these links,
    /// and makes it durable. The other rows wait for a graph as ever, and so do all where the file cannot be what it
    /// says. Returns when no more rows wait than may.
    pub fn link_again(&self, hints: &Path) -> LinkReport {
        let mut writing = self.writing();
        writing.is_held = true;
        while writing.builders > 0 {
            writing = self.wait_for_builder(writing);
        }
        let flat = |segment: &&Segment| segment.rows.as_flat().is_some() && segment.live_count() > 0;
        let sources: Vec<Segment> = writing.segments.iter().filter(flat).cloned().collect();
        if !self.is_open() {
            return LinkReport::default();
        }
        writing.busy.extend(sources.iter().map(|segment| segment.id));
        writing.builders += 1;
        writing.next_segment_id += 1;
        let id = writing.next_segment_id;
        drop(writing);
        let work = || link_by(hints, &sources, self.options(), id, self.files(), self.closing());
        let outcome = catch_unwind(AssertUnwindSafe(work));
        let outcome = outcome.unwrap_or_else(|_| Err(Unlinked::Refused("linking has panicked".to_owned())));
        let mut report = LinkReport { left: sources.iter().map(Segment::live_count).sum(), ..LinkReport::default() };
        let mut writing = self.writing();
        for segment in &sources {
            writing.busy.remove(&segment.id);
        }
        match outcome {
            Ok(None) | Err(Unlinked::Cancelled) => {}
            Err(Unlinked::Refused(reason)) => report.refused = Some(reason),
            Ok(Some(linked)) => {
                (report.kept, report.relinked) = (linked.kept, linked.relinked);
                report.left -= linked.origins.len();
                writing.segments = moved(&writing.segments, &sources, id, &linked);
                let seen = self.snapshot();
                let segments = moved(&seen.segments, &sources, id, &linked);
                self.publish(Snapshot { sequence: seen.sequence, segments });
                drop(writing);
                self.keep_graphs();
                writing = self.writing();
            }
        }
        writing.is_held = false;
        writing.builders -= 1;
        self.start_builder(&mut writing);
        drop(self.wait_for_room(writing));
        self.tell_built();
        report
    }
}

/// The segments once a graph has some rows of them: it comes first, and where the rows were they are dead.
fn moved(segments: &[Segment], sources: &[Segment], id: u64, linked: &LinkedGraph) -> Vec<Segment> {
    let mut left = segments.to_vec();
    let place_of = |id: u64| segments.iter().position(|segment| segment.id == id);
    let places: Vec<Option<usize>> = sources.iter().map(|source| place_of(source.id)).collect();
    let mut gone = BitSet::with_room(linked.rows.len());
    let (mut document_count, mut last) = (0, None);
    for (&(source, row), at) in linked.origins.iter().zip(0..) {
        // A segment that is gone had no live row left.
        let live = places[source as usize].filter(|&place| !segments[place].dead.contains(row));
        let Some(place) = live else {
            gone.insert(at);
            continue;
        };
        let segment = &mut left[place];
        Arc::make_mut(&mut segment.dead).insert(row);
        let ordinal = Some(segment.rows.ordinal(row));
        if ordinal != last {
            // All vectors of a document move together.
            segment.document_count -= 1;
            document_count += 1;
            last = ordinal;
        }
    }
    left.retain(|segment| segment.live_count() > 0);
    let rows = SegmentRows::Graph(Arc::clone(&linked.rows));
    left.insert(0, Segment { id, rows, dead: Arc::new(gone), document_count });
    left
}
