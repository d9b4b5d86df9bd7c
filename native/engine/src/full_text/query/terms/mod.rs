//! Conditions on terms and whole strings that are found by walking a dictionary.

pub mod constant_score_union;
pub mod docs_by_string;
pub mod exact_docs;
pub mod levenshtein;
pub mod long_strings;
pub mod networks;
pub mod string_columns;
pub mod term_expansion;
pub mod term_pattern;
pub mod term_range;
pub mod token_test;
pub mod typo_terms;
