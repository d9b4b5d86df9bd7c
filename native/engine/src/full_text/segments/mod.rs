//! Documents become a segment: tokens are numbers as soon as they are read, and are put in order once, when the segment is
//! written. The files are Tantivy's (decision 37).

mod columns;
mod inverted_index;
mod known_words;
#[cfg(test)]
mod same_files;
mod segment_builder;
mod token_log;
mod value_log;
mod value_terms;
mod vocabulary;

pub use columns::fixed_columns;
pub use segment_builder::{SegmentBuilder, write_empty_store};
pub use value_log::{DocumentHead, Scalar};
pub use value_terms::as_integer;
