//! Aggregations over all matches of a query.
//!
//! A segment's matches go through a tree of collectors in blocks of (document, bucket) pairs. What a segment answers
//! is keyed by values, not by positions, so that answers of segments and ranges merge; the sum is rendered once. The
//! answer does not depend on how documents are spread over segments and ranges.

mod answers;
mod bucket_key;
mod budget;
mod calendar;
mod collect;
mod context;
mod counters;
mod geo;
mod render;
mod run;
mod significance;
mod value_text;

pub use self::geo::GeoPoint;
pub use counters::{Counted, CounterCache};
pub use run::{aggregate, aggregate_documents};
