//! Filters as bits of a segment, kept between queries.

pub mod filter_bits;
pub mod filter_cache;
pub mod filtered_query;
