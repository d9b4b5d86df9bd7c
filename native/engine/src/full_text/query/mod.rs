//! Queries: a plan is compiled for each range's index, run over all of them, and merged.

mod boolean;
mod compile;
mod constant_docs;
mod deadline;
mod geo;
mod run;
mod terms;
mod words;

pub(super) use compile::field_checks::check_field;
pub(super) use compile::index_fields::{ExactField, IndexFields, column_name};
pub(super) use compile::value_nodes::{RangeBounds, ValueRange, text_of_term};
pub(crate) use deadline::Deadline;
pub(super) use run::collect::Visible;
pub(crate) use run::explain::{Explained, explain_hits};
pub(super) use run::filter::filter_bits::BitsQuery;
pub(crate) use run::filter::filter_bits::{check_filters, filter_bits, filter_name, is_filtered};
pub(super) use run::filter::filter_cache::FilterCache;
pub(super) use run::filter::filtered_query::filtered_query;
pub(super) use run::matching::{mapping_of, permitted_rows};
pub(crate) use run::open_views::open_views;
pub(crate) use run::ordered::key_order::Keys;
pub(crate) use run::pool::query_pool;
pub(crate) use run::range_view::RangeView;
pub(crate) use run::search::{nothing_in_time, query_until, query_views};
pub(super) use terms::docs_by_string::DocsByString;
pub(super) use terms::exact_docs::ExactDocs;
pub(super) use terms::levenshtein::{FuzzyWord, NearWalker, fuzzy_words};
pub(super) use terms::networks::Network;
pub(super) use terms::term_pattern::Pattern;
pub(super) use terms::token_test::TokenTest;
pub(super) use words::phrase_windows::{can_choose_apart, phrase_windows, places_of};
pub(super) use words::word_frequencies::FrequencyCache;

pub use deadline::CancelFlag;
pub use run::hits::{Hit, Hits};
pub use run::matching::{match_documents, matching_ordinals};
pub use run::ordered::page_order::{OrderedHit, PageHit, order_page};
pub use run::search::query;
pub use run::text_stats::text_stats;
