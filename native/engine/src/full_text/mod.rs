//! Full-text indexes over Tantivy: documents in as frames, plans in, ordinals out.
//!
//! One index serves one range of one table. It is derived from the documents: whatever happens to it, it can be
//! deleted and built again from them.

mod aggregate;
mod analysis;
mod commit_count;
mod dates;
mod documents;
mod errors;
mod field_files;
mod fields;
mod first_docs;
mod highlight;
mod key_fences;
mod mapping;
mod merging;
mod options;
mod plan;
mod query;
#[cfg(test)]
mod random;
mod segment_columns;
mod segments;
mod slots;
mod storage;
mod term_files;
mod text_index;
mod writing;

pub use analysis::Analyzer;
pub use highlight::{HighlightPlan, highlight_documents};
pub use mapping::TableMapping;
pub use options::IndexOptions;
pub use plan::{
    ALL_FIELDS, Aggregation, AggregationKind, AggregationPlan, Automatic, Background, CalendarInterval,
    CardinalityMode, DateBounds, Fusion, Fuzziness, Leg, LegKind, Node, NumberBounds, NumberMetric, PageCursor, Pruner,
    QueryPlan, RangeKind, SignificanceAlgorithm, SortField, Strategy, TermValue, WeightedField,
};
pub use query::{
    CancelFlag, Hit, Hits, OrderedHit, PageHit, match_documents, matching_ordinals, order_page, query, text_stats,
};
pub use slots::tokens_of;
pub use sundew_base::derived_index::DerivedIndex;
pub use sundew_base::report::{ApplyReport, CheckpointReport, CommitReport, IndexStats, SkippedRow};
pub use text_index::TextIndex;

pub(crate) use aggregate::aggregate_documents;
pub(crate) use errors::damaged;
pub(crate) use query::{
    Deadline, Explained, Keys, RangeView, check_filters, explain_hits, filter_bits, filter_name, is_filtered,
    nothing_in_time, open_views, query_pool, query_until, query_views,
};
pub(crate) use segment_columns::SegmentColumns;
