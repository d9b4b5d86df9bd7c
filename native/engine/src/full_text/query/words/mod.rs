//! Words and phrases, searched over blocks of postings.

pub mod block_bounds;
pub mod exact_phrase;
pub mod phrase_walk;
pub mod phrase_windows;
pub mod position_lists;
pub mod rare_unions;
pub mod short_postings;
pub mod skip_data;
pub mod word_bits;
pub mod word_cursor;
#[cfg(test)]
pub mod word_fixture;
pub mod word_frequencies;
pub mod word_positions;
pub mod word_search;
pub mod word_seeks;
pub mod word_unions;
pub mod word_walks;
