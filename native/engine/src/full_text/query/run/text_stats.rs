//! Numbers about an index that only its queries know.

use tantivy::collector::Count;

use crate::full_text::TextIndex;
use crate::full_text::query::compile::value_nodes::exists_query;
use crate::full_text::query::deadline::CancelFlag;
use crate::full_text::query::run::range_view::RangeView;
use sundew_base::derived_index::DerivedIndex;
use sundew_base::report::IndexStats;

/// The numbers of an index; one over artifacts counts the documents that have any. What cannot be read counts for nothing
/// here: it fails for the query that needs it.
pub fn text_stats(index: &TextIndex) -> IndexStats {
    let mut stats = index.stats();
    if let Some(path) = index.mapping.searched_member()
        && let Ok(view) = RangeView::of(index, &CancelFlag::default())
    {
        stats.doc_count = index.text_count.of(&view.searcher, || {
            view.searcher.search(&exists_query(&view.index, path), &Count).map_or(0, |count| count as u64)
        });
    }
    stats
}
