//! The costs of the ways of searching a graph, by which one is chosen. The unit is a row that a scan compares by its codes.

use crate::dense::metric::Metric;

/// Efforts from which on the result of a walk that has probably missed rows is rejected; the default effort is one of them.
pub const SURE_EFFORT: f32 = 0.5;

/// The cost of a walk for each candidate that it keeps, and before it has kept any: a scan knows where it goes next.
const COST_PER_CANDIDATE: usize = 20;
const COST_PER_WALK: usize = 1200;

/// Allowed rows from all over the graph at which a walk starts when it finds none near the query.
const SAMPLED_STARTS: usize = 2048;

/// At most one in this many allowed rows is such a start.
const ROWS_PER_START: usize = 16;

/// Nodes of the upper layers that a walk begins at, at most.
pub const STARTS_MAX: usize = 64;

/// The same for a walk that goes on because it is in doubt: where a query lies off all clusters, its nearest rows lie at the
/// rims of many, and only the upper layers lead from one to another.
const WIDER_STARTS_MAX: usize = 512;

/// Comparisons that each further start may lose: the nodes of the upper layers that lead to it.
pub const LOST_PER_START: u64 = 8;

/// Candidates of a walk by effort: 12 at 0, 48 at 0.25, 192 at 0.5, 768 at 0.75, 3,072 at 1, and as many more as hits
/// are wanted; twice as many for the inner product, whose nearest rows are less often neighbours of one another.
pub fn candidates_for(metric: Metric, effort: f32, limit: usize) -> usize {
    let candidates = (12.0 * 256f32.powf(effort)) as usize + limit;
    if metric == Metric::InnerProduct { 2 * candidates } else { candidates }
}

/// Candidates of a walk through one of several graphs: fewer where fewer of the hits are to be expected.
pub fn candidates_in(rows: usize, all_rows: usize, candidates: usize, limit: usize) -> usize {
    let share = (rows as f64 / all_rows.max(1) as f64).sqrt().max(0.25);
    limit + (candidates.saturating_sub(limit) as f64 * share) as usize
}

/// Times that a search is run again with twice the rows because documents with several vectors fill its page, before
/// all rows are compared.
pub const FOLDS_MAX: u32 = 4;

/// Rows that a graph is asked for first, for each document that is wanted where documents have several vectors.
const ROWS_PER_DOCUMENT_MAX: usize = 4;

/// Rows that are searched for `limit` documents of `documents` that have `rows`.
pub fn rows_for(limit: usize, rows: usize, documents: usize) -> usize {
    limit * rows.div_ceil(documents.max(1)).clamp(1, ROWS_PER_DOCUMENT_MAX)
}

/// Candidates whose exact distance is computed.
pub fn rescored_for(limit: usize) -> usize {
    3 * limit + 20
}

/// Nodes of the upper layers that a walk with `candidates` begins at: a way that begins at the nearest alone ends in
/// the cluster of that one, however near others are.
pub fn starts_for(candidates: usize) -> usize {
    (candidates / 8).clamp(1, STARTS_MAX)
}

pub fn wider_starts_for(candidates: usize) -> usize {
    (candidates / 2).min(WIDER_STARTS_MAX)
}

/// Rows whose scan costs as much as a walk with `candidates`.
pub fn scanned_for(candidates: usize) -> usize {
    COST_PER_WALK + COST_PER_CANDIDATE * candidates
}

/// Candidates of a walk that costs as much as the scan of `rows`.
pub fn candidates_worth(scanned: usize) -> usize {
    scanned.saturating_sub(COST_PER_WALK) / COST_PER_CANDIDATE
}

/// Nodes that a walk covers for each that lies no further away than the last wanted one, beside its candidates.
pub fn around(effort: f32) -> f32 {
    1.0 + 2.0 * effort
}

/// Nodes in the ball around a query that holds `wanted` rows well within it, if the `count` allowed of `rows` lie everywhere.
fn ball_for(candidates: usize, effort: f32, wanted: usize, count: usize, rows: usize) -> usize {
    candidates + (around(effort) * (wanted * rows / count.max(1)) as f32) as usize
}

/// Rows whose scan costs about what a walk among the `count` allowed of `rows` costs.
pub fn scanned_among(candidates: usize, effort: f32, limit: usize, count: usize, rows: usize) -> usize {
    scanned_for(ball_for(candidates, effort, limit.min(count), count, rows))
}

/// Of `count` allowed rows, those from which a walk that steps on allowed ones only begins, and the rows whose scan costs
/// what that walk does.
pub fn steps_among(count: usize, candidates: usize) -> (usize, usize) {
    let starts = (count / ROWS_PER_START).min(SAMPLED_STARTS);
    (starts, starts + 2 * scanned_for(candidates))
}

/// Comparisons that all walks of a search among `count` allowed nodes may lose. Where they turn out to lose more they
/// are abandoned, and with the scan that follows, which compares nothing again, the search costs half more than that
/// scan alone. With a quarter, walks among a tenth of 100,000 rows were still given up that cost less than half of the
/// scan.
pub fn lost_at_most(count: usize) -> u64 {
    count as u64 / 2
}
