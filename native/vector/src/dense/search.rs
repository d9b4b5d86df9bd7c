//! The search of one commit.

use sundew_base::error::EngineError;

use super::copies::key_of;
use super::dense_index::DenseIndex;
use super::flat_rows::FlatRows;
use super::graph::{CodedQuery, Scratch};
use super::graph_search::GraphSearch;
use super::nearest::{Nearest, Neighbour};
use super::options::DistanceBounds;
use super::search_cost::{SURE_EFFORT, candidates_for, candidates_in, scanned_among, scanned_for};
use super::search_state::{Candidates, DenseSearch};
use super::segment::{Segment, SegmentRows};
use crate::errors::invalid_query;
use crate::search::{SearchBounds, SearchReport, VectorHit, VectorHits};
use sundew_base::bit_set::BitSet;

/// Rows between two looks at the clock.
const ROWS_BETWEEN_LOOKS: usize = 4096;

/// Nanoseconds for a row that is scanned, besides its dimensions.
const SCANNED_NANOS: u64 = 5;

impl DenseSearch<'_> {
    fn segment(&mut self, segment: &Segment, scratch: &mut Scratch) {
        self.report.segments += 1;
        match &segment.rows {
            SegmentRows::Flat(rows) => self.scan_flat(rows, &segment.dead),
            SegmentRows::Graph(rows) => {
                let query = CodedQuery::new(self.metric, self.query);
                GraphSearch { search: self, rows, dead: &segment.dead, query: &query, scratch }.run();
            }
        }
    }

    fn scan_flat(&mut self, rows: &FlatRows, dead: &BitSet) {
        self.took("scan");
        for row in 0..rows.len() as u32 {
            let at = row as usize;
            if at.is_multiple_of(ROWS_BETWEEN_LOOKS) && self.is_due() {
                return;
            }
            let ordinal = rows.ordinals[at];
            if dead.contains(row) || self.bounds.allowed.is_some_and(|allowed| !allowed.contains(ordinal)) {
                continue;
            }
            self.report.candidates += 1;
            let cost = self.metric.cost(self.query, rows.vector(row));
            self.offer(Neighbour { cost, ordinal, sequence: rows.sequences[at] });
        }
        self.report.visited += rows.len() as u64;
    }

    fn finish(self) -> VectorHits {
        let metric = self.metric;
        let hit = |found: Neighbour| {
            let distance = metric.distance(found.cost);
            VectorHit { ordinal: found.ordinal, sequence: found.sequence, distance, score: metric.score(distance) }
        };
        let hits = self.nearest.finish().into_iter().map(hit).collect();
        VectorHits { hits, is_partial: self.is_partial, report: self.report }
    }
}

impl DenseIndex {
    /// About how long a search among all or the allowed rows takes, in nanoseconds.
    pub fn expected_nanos(&self, effort: f32, limit: usize, allowed: Option<&BitSet>) -> u64 {
        let options = self.options();
        let dimension = u64::from(options.dimension);
        let effort = effort.clamp(0.0, 1.0);
        let candidates = candidates_for(options.metric, effort, limit);
        let snapshot = self.snapshot();
        let rows = snapshot.live_count();
        let of_segment = |segment: &Segment| match &segment.rows {
            SegmentRows::Flat(rows) => rows.len() as u64 * (SCANNED_NANOS + dimension / 4),
            SegmentRows::Graph(_) => {
                let live = segment.live_count();
                let candidates = candidates_in(live, rows, candidates, limit);
                let scanned = allowed.map_or(scanned_for(candidates), |allowed| {
                    let count = allowed.len() * live / rows.max(1);
                    count.min(scanned_among(candidates, effort, limit, count, live))
                });
                // Of codes, a byte for a dimension.
                scanned as u64 * (SCANNED_NANOS + dimension / 16)
            }
        };
        snapshot.segments.iter().map(of_segment).sum()
    }

    /// The rows nearest to `query` in the newest commit. `effort`, 0 to 1, moves between fast and thorough.
    ///
    /// Error: `invalid_query` for a query vector that cannot be compared.
    pub fn search(
        &self,
        query: &[f32],
        effort: f32,
        distance: DistanceBounds,
        bounds: &SearchBounds,
    ) -> Result<VectorHits, EngineError> {
        let options = self.options();
        if query.len() != options.dimension as usize {
            return Err(invalid_query(format!(
                "the query vector has {} dimensions, index \"{}\" has {}",
                query.len(),
                options.name,
                options.dimension
            )));
        }
        if !(0.0..=1.0).contains(&effort) {
            return Err(invalid_query(format!("search_effort is {effort}; give a number from 0 to 1")));
        }
        let mut query = query.to_vec();
        let metric = options.metric;
        metric.prepare(&mut query).map_err(|reason| invalid_query(format!("index \"{}\": {reason}", options.name)))?;
        if bounds.limit == 0 {
            return Ok(VectorHits::default());
        }
        let of_effort = |effort: f32| candidates_for(metric, effort, bounds.limit);
        let (first, full) = (of_effort(effort.min(SURE_EFFORT)), of_effort(effort));
        let mut search = DenseSearch {
            metric,
            query: &query,
            key: key_of(&query),
            distance,
            bounds,
            effort,
            candidates: Candidates { first, full },
            nearest: Nearest::new(bounds.limit),
            report: SearchReport::default(),
            is_partial: false,
        };
        let snapshot = self.snapshot();
        let rows = snapshot.live_count();
        let mut scratch = self.take_scratch();
        for segment in &snapshot.segments {
            let of_segment = |candidates: usize| candidates_in(segment.live_count(), rows, candidates, bounds.limit);
            search.candidates = Candidates { first: of_segment(first), full: of_segment(full) };
            search.segment(segment, &mut scratch);
        }
        self.give_scratch(scratch);
        Ok(search.finish())
    }
}
