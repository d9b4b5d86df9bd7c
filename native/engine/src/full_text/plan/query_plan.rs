//! One query over the ranges of a table.

use serde::{Deserialize, Serialize};

use super::aggregation::AggregationPlan;
use super::legs::{Fusion, Leg, Pruner};
use super::node::Node;

const TOTAL_EXACT_UP_TO: u64 = 1_000;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueryPlan {
    /// Scores. Without it every document matches with score 1.
    #[serde(default)]
    pub query: Option<Node>,
    /// All must match; they do not score.
    #[serde(default)]
    pub filter: Vec<Node>,
    /// None may match.
    #[serde(default)]
    pub exclusion: Vec<Node>,
    /// The rows that the caller may see: conditions beside all others, in every search, count, aggregation and background.
    /// All must match. Each is compiled by itself and as it is: without the table's synonyms, and without typo tolerance.
    #[serde(default)]
    pub row_filter: Vec<Node>,
    #[serde(default)]
    pub key_prefix: Option<String>,
    /// False: the table's text index was dropped, and conditions on words are refused.
    #[serde(default = "default_has_text_index")]
    pub has_text_index: bool,
    /// Without a text index: one is being built, and conditions that it would compare by words are refused until it is.
    #[serde(default)]
    pub text_index_comes: bool,
    /// Hides documents whose TTL base (milliseconds since 1970) is set and at or before this.
    #[serde(default)]
    pub expired_at_or_before_ms: Option<i64>,
    pub limit: usize,
    #[serde(default)]
    pub offset: usize,
    #[serde(default)]
    pub sort: Vec<SortField>,
    /// Where the page begins; needs `sort`, and excludes `offset`.
    #[serde(default)]
    pub cursor: Option<PageCursor>,
    #[serde(default)]
    pub count_only: bool,
    /// Counts every match, however many.
    #[serde(default)]
    pub exact_total: bool,
    /// Above this total, counting may stop early.
    #[serde(default = "default_total_exact_up_to")]
    pub total_exact_up_to: u64,
    /// How the score of each hit of the page comes about.
    #[serde(default)]
    pub explain: bool,
    /// Computed over all matches.
    #[serde(default)]
    pub aggregations: Option<AggregationPlan>,
    /// Paths of which counters are kept, that aggregations over all documents are answered from.
    #[serde(default)]
    pub counted_paths: Option<Vec<String>>,
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// After `timeout_ms`, answer with what was found by then.
    #[serde(default)]
    pub allows_partial: bool,
    /// Vector legs; their query vectors come beside the plan. Filters, exclusions, key prefix and expiry hold for them
    /// too.
    #[serde(default)]
    pub legs: Vec<Leg>,
    /// Weight of the text leg; there is one when `query` is given.
    #[serde(default = "default_weight")]
    pub text_weight: f64,
    #[serde(default)]
    pub fusion: Fusion,
    /// Dense legs find raw distances below this only.
    #[serde(default)]
    pub distance_under: Option<f32>,
    /// Dense legs find raw distances above this only.
    #[serde(default)]
    pub distance_over: Option<f32>,
    #[serde(default)]
    pub pruner: Pruner,
    /// How each leg went.
    #[serde(default)]
    pub profile: bool,
}

fn default_has_text_index() -> bool {
    true
}

fn default_weight() -> f64 {
    1.0
}

fn default_total_exact_up_to() -> u64 {
    TOTAL_EXACT_UP_TO
}

impl QueryPlan {
    /// Whether it matches every document, but for deleted and expired ones.
    pub fn takes_all(&self) -> bool {
        let narrows = !(self.filter.is_empty() && self.exclusion.is_empty() && self.row_filter.is_empty());
        matches!(self.query, None | Some(Node::MatchAll { .. }))
            && !narrows
            && self.key_prefix.is_none()
            && self.legs.is_empty()
    }

    /// Whether it wants no hits, and no sort that would order them.
    pub fn wants_only_total(&self) -> bool {
        self.count_only || (self.limit == 0 && self.sort.is_empty())
    }

    /// The first `limit` documents that match `node`.
    pub fn of(node: Node, limit: usize) -> Self {
        Self {
            query: Some(node),
            filter: Vec::new(),
            exclusion: Vec::new(),
            row_filter: Vec::new(),
            key_prefix: None,
            has_text_index: true,
            text_index_comes: false,
            expired_at_or_before_ms: None,
            limit,
            offset: 0,
            sort: Vec::new(),
            cursor: None,
            count_only: false,
            exact_total: false,
            total_exact_up_to: TOTAL_EXACT_UP_TO,
            explain: false,
            aggregations: None,
            counted_paths: None,
            timeout_ms: None,
            allows_partial: false,
            legs: Vec::new(),
            text_weight: default_weight(),
            fusion: Fusion::default(),
            distance_under: None,
            distance_over: None,
            pruner: Pruner::default(),
            profile: false,
        }
    }

    /// Whether the page is the one before its cursor.
    pub fn reads_backwards(&self) -> bool {
        self.cursor.as_ref().is_some_and(|cursor| cursor.before)
    }
}

/// The page after a document, or the one before it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageCursor {
    /// The sort values of the document, as `Hit::position` gave them.
    pub position: String,
    /// The document's key: the last tie.
    pub key: String,
    #[serde(default)]
    pub before: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SortField {
    /// `_id`, `_score` or a dotted path.
    pub field: String,
    #[serde(default)]
    pub desc: bool,
}
