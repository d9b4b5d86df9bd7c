//! The answer of a query.

use serde_json::Value;
use tantivy::DocId;

use crate::full_text::aggregate::Counted;

#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Position of the index among those that were asked.
    pub range: u32,
    pub ordinal: u32,
    /// The version of the document that matched.
    pub sequence: u64,
    pub score: f32,
    /// One value for each sort field, null where the document has none.
    pub sort: Vec<Value>,
    /// The same values for a `PageCursor`; empty when the plan does not sort.
    pub position: String,
    /// Segment and document within its commit.
    pub(crate) location: (u32, DocId),
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Hits {
    /// The page, in order.
    pub hits: Vec<Hit>,
    pub total: u64,
    /// False: there are at least `total` matches.
    pub total_is_exact: bool,
    /// The time was over before all documents were looked at.
    pub is_partial: bool,
    /// Best score of all matches; 0 without any, and when the page is sorted without scores.
    pub max_score: f32,
    /// A JSON object; empty when nothing was to be aggregated.
    pub aggregations: String,
    /// Of a table with counters, how each aggregation was answered.
    pub counted: Vec<Counted>,
    /// A JSON array with the tree of each hit's score; empty when it was not asked for.
    pub explanations: String,
    /// For each hit its distance by the first dense leg that found it, NaN without one; empty without vector legs.
    pub distances: Vec<f32>,
    /// The legs that made the answer; none without vector legs.
    pub legs: Vec<String>,
    /// For each hit, one after another, what each of `legs` scored it, NaN where that leg did not find it.
    pub leg_scores: Vec<f32>,
    /// In the same order which of the document's vectors the leg has found, NaN where it did not find it or finds texts.
    pub leg_numbers: Vec<f32>,
    /// A JSON object: how each leg went; empty when it was not asked for.
    pub profile: String,
    pub took_micros: u64,
}
