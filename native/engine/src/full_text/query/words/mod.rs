//! Words and phrases, searched over blocks of postings.

pub mod word_positions;
pub mod word_search;
pub mod word_unions;
pub mod word_walks;
