//! What full-text indexes find, count and keep.

mod aggregation_bounds;
mod aggregations;
mod array_phrases;
mod artifacts;
mod capabilities;
mod counters;
mod cursors;
mod document_types;
mod durability;
mod filters;
mod geo;
mod highlights;
mod languages;
mod mapping;
mod matching;
mod merges;
mod on_disk;
mod phrases;
mod query;
mod scores;
mod scores_by_plan;
mod strings;
pub mod support;
mod typos;
mod values;
mod word_search;
mod words;
