//! The aggregations of a plan, as `src/query/aggregations/aggregation-plan.ts` writes it.

use serde::{Deserialize, Serialize};

use super::node::Node;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AggregationPlan {
    pub list: Vec<Aggregation>,
    /// The backgrounds with which `significant_terms` compare, by their `background`.
    #[serde(default)]
    pub backgrounds: Vec<Background>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Aggregation {
    pub name: String,
    pub of: AggregationKind,
    /// Computed for every bucket.
    #[serde(default)]
    pub sub: Vec<Aggregation>,
}

/// The terms of `field` in the documents that match `filter`, or in all of the table.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Background {
    pub field: String,
    #[serde(default)]
    pub filter: Option<Node>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum AggregationKind {
    /// Over all numbers at `field`; dates count as milliseconds since 1970.
    Numbers {
        field: String,
        metric: NumberMetric,
    },
    /// The number of values at `field`, or of documents.
    Count {
        #[serde(default)]
        field: Option<String>,
    },
    Cardinality {
        field: String,
        mode: CardinalityMode,
    },
    /// One bucket for each value; for several fields, for each combination of their values. With a `background`, values
    /// that only that has are buckets of no documents.
    Terms {
        fields: Vec<String>,
        size: usize,
        min_doc_count: u64,
        #[serde(default)]
        background: Option<usize>,
    },
    SignificantTerms {
        field: String,
        size: usize,
        min_doc_count: u64,
        algorithm: SignificanceAlgorithm,
        background: usize,
    },
    Range {
        field: String,
        ranges: Vec<NumberBounds>,
    },
    DateRange {
        field: String,
        ranges: Vec<DateBounds>,
    },
    Histogram {
        field: String,
        interval: f64,
        min_doc_count: u64,
        #[serde(default)]
        size: Option<usize>,
    },
    DateHistogram {
        field: String,
        calendar_interval: CalendarInterval,
        min_doc_count: u64,
        #[serde(default)]
        size: Option<usize>,
    },
    GeohashGrid {
        field: String,
        precision: u32,
        size: usize,
    },
    /// `from` and `to` count in `unit_meters`.
    GeoDistance {
        field: String,
        lat: f64,
        lon: f64,
        unit_meters: f64,
        ranges: Vec<NumberBounds>,
    },
}

impl AggregationKind {
    /// Paths whose values are aggregated; none for the number of documents.
    pub fn fields(&self) -> &[String] {
        match self {
            Self::Count { field } => field.as_slice(),
            Self::Terms { fields, .. } => fields,
            Self::Numbers { field, .. }
            | Self::Cardinality { field, .. }
            | Self::SignificantTerms { field, .. }
            | Self::Range { field, .. }
            | Self::DateRange { field, .. }
            | Self::Histogram { field, .. }
            | Self::DateHistogram { field, .. }
            | Self::GeohashGrid { field, .. }
            | Self::GeoDistance { field, .. } => std::slice::from_ref(field),
        }
    }

    /// The values that are aggregated.
    pub fn takes(&self) -> Taken {
        match self {
            Self::Terms { .. } | Self::SignificantTerms { .. } | Self::Cardinality { .. } => Taken::Values,
            Self::Count { .. } => Taken::ValuesAndPoints,
            Self::Numbers { .. } => Taken::NumbersAndDates,
            Self::Range { .. } | Self::Histogram { .. } => Taken::Numbers,
            Self::DateRange { .. } | Self::DateHistogram { .. } => Taken::Dates,
            Self::GeohashGrid { .. } | Self::GeoDistance { .. } => Taken::Points,
        }
    }
}

/// The kinds of values that an aggregation takes, of those that documents hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// Whole strings, numbers, dates and booleans.
    Values,
    ValuesAndPoints,
    Numbers,
    NumbersAndDates,
    Dates,
    Points,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NumberMetric {
    Sum,
    Avg,
    Min,
    Max,
    Sumsquares,
    Stats,
}

/// `auto` is exact up to a bound and estimates beyond it; `approximate` has a lower bound, `exact` none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CardinalityMode {
    #[default]
    Auto,
    Exact,
    Approximate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CalendarInterval {
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignificanceAlgorithm {
    Jlh,
    MutualInformation,
    ChiSquared,
    Percentage,
}

/// From inclusive, to exclusive.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NumberBounds {
    pub name: String,
    #[serde(default)]
    pub from: Option<f64>,
    #[serde(default)]
    pub to: Option<f64>,
}

/// RFC 3339; from inclusive, to exclusive.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DateBounds {
    pub name: String,
    #[serde(default)]
    pub from: Option<String>,
    #[serde(default)]
    pub to: Option<String>,
}
