//! The members of a plan that speak of legs beside the text and of what becomes of their hits.

use serde::{Deserialize, Serialize};

const RANK_CONSTANT: f64 = 60.0;
const EFFORT: f32 = 0.5;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LegKind {
    Dense,
    Sparse,
    /// Its documents are already known: nodes of a graph search.
    Graph,
}

/// One query vector and the index that it asks, or the documents of a graph search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Leg {
    /// The index's name: what the leg is called in scores, explanations and profiles.
    pub name: String,
    pub kind: LegKind,
    /// Length of its query vector: dense f32s, or sparse u32 indices and then f32 values; little-endian. Of a graph leg the
    /// length of its documents: for each the u32 of its range, its ordinal, and its score as f32.
    pub bytes: usize,
    #[serde(default = "default_weight")]
    pub weight: f64,
    /// 0 to 1: from fast to thorough. Sparse legs are always exact.
    #[serde(default = "default_effort")]
    pub effort: f32,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// Reciprocal rank fusion: the sum of weight / (rank constant + rank), ranks from 1.
    #[default]
    Rrf,
    /// Relative scores: the weighted sum of scores, each leg's moved to 0..1 over its window.
    Rsf,
    /// The vector legs; the text leg when they find nothing.
    Failover,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fusion {
    pub strategy: Strategy,
    pub rank_constant: f64,
    /// Hits of each leg that are considered; by default the plan's limit.
    pub window: Option<usize>,
}

impl Default for Fusion {
    fn default() -> Self {
        Self { strategy: Strategy::default(), rank_constant: RANK_CONSTANT, window: None }
    }
}

/// Rules that drop hits from the fused list, applied in the order of the members to what the one before has left.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Pruner {
    /// Keeps what at least two legs have found.
    pub require_multi_index: bool,
    pub min_absolute_score: Option<f64>,
    /// Keeps scores of at least this share of the best one.
    pub min_score_ratio: Option<f64>,
    /// Keeps scores of at least the mean less this many standard deviations.
    pub std_dev_threshold: Option<f64>,
    /// Cuts at the first gap of more than this share, in percent, of the way from the best score to the worst.
    pub max_score_gap_percent: Option<f64>,
}

fn default_weight() -> f64 {
    1.0
}

fn default_effort() -> f32 {
    EFFORT
}
