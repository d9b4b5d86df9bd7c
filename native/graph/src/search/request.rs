//! The request of a graph search and its answer, as they cross the native boundary.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::shown_values::{as_json, as_text, as_time, short_float};

/// Keys of deleted documents that edges may still lead to: of each range the sequence up to which they are gone.
pub type RemovedTargets = HashMap<String, Vec<u64>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    Out,
    In,
    Both,
}

impl Direction {
    /// The direction of the same edges as seen from their other ends.
    pub fn reversed(self) -> Self {
        match self {
            Self::Out => Self::In,
            Self::In => Self::Out,
            Self::Both => Self::Both,
        }
    }
}

/// By what paths are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WeightMode {
    /// The number of edges.
    MinHops,
    /// The least sum of weights.
    MinWeight,
    /// The greatest product of weights.
    MaxWeight,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphRequest {
    pub search: Search,
    #[serde(default)]
    pub starts: Vec<String>,
    #[serde(default)]
    pub targets: Vec<String>,
    /// Empty for all.
    #[serde(default)]
    pub edge_types: Vec<String>,
    pub direction: Direction,
    #[serde(default)]
    pub min_weight: Option<f32>,
    #[serde(default)]
    pub max_weight: Option<f32>,
    /// Edges that were created at or before it have expired; milliseconds since 1970.
    #[serde(default)]
    pub expired_at_or_before_ms: Option<i64>,
    /// Keys that are not there for the caller: no edge leads to them or away from them.
    #[serde(default)]
    pub hidden: Vec<String>,
    /// The first key of each range.
    pub range_starts: Vec<String>,
    /// Edges that are looked at before the answer is partial.
    pub edges_max: u64,
    /// Nodes that are met before the answer is partial.
    pub nodes_max: u64,
    pub millis_max: u64,
    /// The answer names every node that was met.
    #[serde(default)]
    pub reports_nodes: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Search {
    /// The edges of the first start, in the order of `EdgeCursor`.
    Edges { limit: usize, after: Option<EdgeCursor> },
    /// Nodes within some steps of the starts.
    Traverse(TraverseOptions),
    /// The best paths from any start to the targets.
    Paths(PathOptions),
    /// Nodes that stand to each other as the elements of a pattern do.
    Pattern(PatternOptions),
    /// Something that depends on all edges.
    Algorithm(AlgorithmOptions),
    /// How many edges and nodes there are.
    Count,
    /// Documents with edges that have expired or lead to a removed target.
    Sources { limit: usize },
}

/// Position of an edge among those of one node: first those that lead away from it, then by type and by the other end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct EdgeCursor(pub bool, pub String, pub String);

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraverseOptions {
    pub max_depth: u32,
    /// Of the nodes found, the first in the order of depth and key.
    pub max_results: usize,
    /// False: a node is found once for each path on which no node comes twice.
    pub deduplicate_nodes: bool,
    pub include_paths: bool,
    pub include_edges: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathOptions {
    /// Edges of a path.
    pub max_depth: u32,
    pub weight_mode: WeightMode,
    /// 0: the best path to each target; otherwise the number of paths to any of them.
    pub k: usize,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatternOptions {
    /// The first is one of the starts, each other is reached from the one before it.
    pub elements: Vec<PatternElement>,
    /// Of the matches, the first in their order.
    pub max_results: usize,
    /// Matches that are counted before the answer is partial.
    pub matches_max: u64,
    pub include_paths: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatternElement {
    /// Elements of one number are one node.
    pub variable: usize,
    /// How it is reached; of the first element nothing is read.
    pub edge: PatternEdge,
    /// The answer names the nodes that were met as this element.
    #[serde(default)]
    pub is_filtered: bool,
    /// Keys of nodes that are not this element.
    #[serde(default)]
    pub rejected: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatternEdge {
    /// Empty for all.
    #[serde(default)]
    pub types: Vec<String>,
    pub direction: Direction,
    pub min_hops: u32,
    pub max_hops: u32,
    #[serde(default)]
    pub min_weight: Option<f32>,
    #[serde(default)]
    pub max_weight: Option<f32>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlgorithmOptions {
    pub algorithm: Algorithm,
    /// Of the nodes, or components, the first in their order.
    pub limit: usize,
    /// The answer has the value of every node.
    pub takes_all: bool,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Algorithm {
    Pagerank {
        damping: f64,
        max_iterations: u32,
        tolerance: f64,
    },
    /// Nodes that are connected whichever way edges lead.
    ConnectedComponents,
    /// The number of edges of each node.
    Degree {
        outgoing: bool,
        incoming: bool,
    },
}

/// How an algorithm went.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AlgorithmReport {
    pub iterations: u32,
    pub has_converged: bool,
    pub component_count: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FoundScore {
    pub key: String,
    pub score: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FoundComponent {
    /// The least key in it.
    pub key: String,
    pub nodes: u64,
}

/// The result of an algorithm for a node.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum NodeValue {
    Number(f64),
    Count(u64),
    Key(String),
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct GraphAnswer {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<FoundNode>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<FoundEdge>,
    /// Where the next page of edges begins, where there may be one.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text")]
    pub next: Option<EdgeCursor>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<FoundPath>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<FoundSource>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<FoundMatch>,
    /// Keys of the nodes that were met as each element of a pattern, where it is filtered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<Vec<String>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scores: Vec<FoundScore>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<FoundComponent>,
    /// Nodes with what the algorithm says of each, by key: pages of JSON, arrays of `[key, value]`. Text within text, so that
    /// a reader need not take in all of them in one go.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub value_pages: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<AlgorithmReport>,
    /// Nodes, paths, matches or edges that there are, of which the answer may hold fewer.
    pub total: u64,
    /// Of `Count` and `Algorithm`.
    pub edge_count: u64,
    pub node_count: u64,
    /// Which bound ended the search early; the answer then lacks something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub touched: Vec<String>,
    /// Why the first of the refused edges was, where nodes are reported. The paths are those without such edges: each
    /// of these may be one of a node that is yet to be hidden.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FoundEdge {
    pub source: String,
    pub target: String,
    #[serde(rename = "type")]
    pub edge_type: String,
    #[serde(serialize_with = "short_float")]
    pub weight: f32,
    /// A JSON object; empty for none.
    #[serde(skip_serializing_if = "String::is_empty", serialize_with = "as_json")]
    pub metadata: String,
    #[serde(rename = "created_at", serialize_with = "as_time")]
    pub created_ms: i64,
    #[serde(rename = "updated_at", serialize_with = "as_time")]
    pub updated_ms: i64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FoundNode {
    pub key: String,
    pub depth: u32,
    /// Sum of the weights on the way.
    #[serde(serialize_with = "short_float")]
    pub distance: f64,
    /// From the start on.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path_edges: Vec<FoundEdge>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<FoundEdge>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FoundPath {
    pub nodes: Vec<String>,
    pub edges: Vec<FoundEdge>,
    /// Sum of the weights, the product where the greatest product is searched for.
    #[serde(serialize_with = "short_float")]
    pub total_weight: f64,
    pub length: usize,
}

/// Nodes of a pattern, one for each element.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FoundMatch {
    /// `depth` and `distance` are those of the way from the first.
    pub nodes: Vec<FoundNode>,
    /// The edges of that way.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<FoundEdge>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FoundSource {
    pub range: usize,
    pub key: String,
    pub edges: usize,
}
