//! Queries: a plan, compiled for each range's index, run over all of them, merged.

mod addresses;
mod any_alike;
mod best;
mod best_query;
mod collect;
mod compile;
mod doc_bits;
mod expected_work;
mod explain;
mod fields_of_path;
mod filter_bits;
mod geo_nodes;
mod hits;
mod long_strings;
mod matching;
mod near_words;
mod plan;
mod point_scorer;
mod position;
mod search;
mod segment_top;
mod sort_values;
mod sorted;
mod statistics;
mod stop;
mod string_columns;
mod term_expansion;
mod term_pattern;
mod term_range;
mod text_nodes;
mod typo_terms;
mod value_nodes;
mod word_nodes;
mod word_positions;
mod word_search;
mod word_walks;

pub(super) use collect::Visible;
pub(crate) use doc_bits::DocBits;
pub(crate) use explain::{Explained, explain_hits};
pub(super) use fields_of_path::{IndexFields, column_name};
pub(super) use filter_bits::{BitsQuery, FilterCache};
pub(crate) use filter_bits::{filter_bits, filter_name, is_filtered};
pub(super) use matching::mapping_of;
pub(super) use near_words::{NearWord, near_words};
pub(super) use search::compile_for;
pub(crate) use search::{Keys, RangeView, query_pool, query_until, query_views};
pub(crate) use stop::Stop;
pub(super) use term_expansion::TokenTest;
pub(super) use term_pattern::Pattern;

pub use hits::{Hit, Hits};
pub use matching::{match_documents, matching_ordinals};
pub use plan::{
    ALL_FIELDS, Automatic, Fuzziness, Node, PageCursor, QueryPlan, RangeKind, SortField, TermValue, WeightedField,
};
pub use search::query;
pub use stop::CancelFlag;
