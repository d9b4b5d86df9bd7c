//! The search of one commit.

use sundew_base::error::EngineError;

use crate::dense::dense_index::DenseIndex;
use crate::dense::graph::{CodedQuery, Scratch};
use crate::dense::options::DistanceBounds;
use crate::dense::query::graph_search::GraphSearch;
use crate::dense::query::nearest::{Nearest, Neighbour};
use crate::dense::query::search_cost::{
    FOLDS_MAX, SURE_EFFORT, candidates_for, candidates_in, rows_for, scanned_among, scanned_for,
};
use crate::dense::query::search_state::{Candidates, DenseSearch};
use crate::dense::rows::copies::key_of;
use crate::dense::segment::{Segment, SegmentRows, Snapshot};
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
            SegmentRows::Flat(_) => {
                self.took("scan");
                self.scan(&segment.rows, &segment.dead);
            }
            SegmentRows::Graph(rows) => {
                let query = CodedQuery::new(self.metric, self.query);
                GraphSearch { search: self, rows, dead: &segment.dead, query: &query, scratch }.run();
            }
        }
    }

    /// Compares every row.
    fn scan(&mut self, rows: &SegmentRows, dead: &BitSet) {
        for row in 0..rows.len() as u32 {
            if (row as usize).is_multiple_of(ROWS_BETWEEN_LOOKS) && self.is_due() {
                return;
            }
            let ordinal = rows.ordinal(row);
            if dead.contains(row) || self.bounds.allowed.is_some_and(|allowed| !allowed.contains(ordinal)) {
                continue;
            }
            self.report.candidates += 1;
            let cost = self.metric.cost(self.query, rows.vector(row));
            self.offer(Neighbour { cost, ordinal, number: rows.number(row), sequence: rows.sequence(row) });
        }
        self.report.visited += rows.len() as u64;
    }

    fn finish(self) -> VectorHits {
        let metric = self.metric;
        let hit = |found: Neighbour| {
            let distance = metric.distance(found.cost);
            let Neighbour { ordinal, number, sequence, .. } = found;
            VectorHit { ordinal, number, sequence, distance, score: metric.score(distance) }
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
        let snapshot = self.snapshot();
        let rows = snapshot.live_count();
        let limit = rows_for(limit, rows, snapshot.document_count());
        let candidates = candidates_for(options.metric, effort, limit);
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

    /// The documents whose vectors are nearest to `query` in the newest commit, each by its nearest vector. `effort`, 0 to 1,
    /// moves between fast and thorough.
    ///
    /// Where documents have several vectors, more rows than documents are searched, so that near vectors of one document
    /// push no other off the page: again with twice as many while the graphs were cut off before the last document that is
    /// wanted, and in the end by comparing all rows.
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
        let snapshot = self.snapshot();
        let (rows, documents) = (snapshot.live_count(), snapshot.document_count());
        let run = Run { index: self, snapshot: &snapshot, query: &query, effort, distance, wanted: bounds.limit };
        let folds = rows > documents;
        let (mut row_limit, mut report) = (rows_for(bounds.limit, rows, documents), SearchReport::default());
        for _ in 0..=FOLDS_MAX {
            let row_bounds = SearchBounds { limit: row_limit, ..*bounds };
            let mut search = run.begin(&row_bounds, folds, report);
            run.walk(&mut search);
            if !folds || search.is_partial || search.nearest.last_cost() <= search.reach {
                return Ok(search.finish());
            }
            report = search.report;
            row_limit *= 2;
        }
        let mut search = run.begin(bounds, folds, report);
        search.took("exact_fallback");
        snapshot.segments.iter().for_each(|segment| search.scan(&segment.rows, &segment.dead));
        Ok(search.finish())
    }
}

/// The constants while a search is run again with more rows.
struct Run<'a> {
    index: &'a DenseIndex,
    snapshot: &'a Snapshot,
    query: &'a [f32],
    effort: f32,
    distance: DistanceBounds,
    /// Documents.
    wanted: usize,
}

impl<'a> Run<'a> {
    /// `bounds` says how many rows graphs are asked for; `report` is that of the runs before.
    fn begin<'b>(&self, bounds: &'b SearchBounds<'b>, folds: bool, report: SearchReport) -> DenseSearch<'b>
    where
        'a: 'b,
    {
        let metric = self.index.options().metric;
        let of_effort = |effort: f32| candidates_for(metric, effort, bounds.limit);
        DenseSearch {
            metric,
            query: self.query,
            key: key_of(self.query),
            distance: self.distance,
            bounds,
            effort: self.effort,
            candidates: Candidates { first: of_effort(self.effort.min(SURE_EFFORT)), full: of_effort(self.effort) },
            nearest: Nearest::new(self.wanted, folds),
            report,
            is_partial: false,
            reach: f32::INFINITY,
        }
    }

    fn walk(&self, search: &mut DenseSearch<'_>) {
        let (rows, Candidates { first, full }) = (self.snapshot.live_count(), search.candidates);
        let mut scratch = self.index.take_scratch();
        for segment in &self.snapshot.segments {
            let of_segment =
                |candidates: usize| candidates_in(segment.live_count(), rows, candidates, search.bounds.limit);
            search.candidates = Candidates { first: of_segment(first), full: of_segment(full) };
            search.segment(segment, &mut scratch);
        }
        self.index.give_scratch(scratch);
    }
}
