//! The cost of the search for a query's best matches, before it begins: roughly, and rather too much.

use tantivy::query::{Bm25StatisticsProvider, EmptyQuery, Query, TermQuery};

use crate::full_text::query::boolean::bool_query::BoolQuery;
use crate::full_text::query::run::statistics::RangeStatistics;
use crate::full_text::query::words::exact_phrase::ExactPhraseQuery;

/// For each term that is looked up.
const LOOK_UP: u64 = 5_000;

/// For what is not made of terms, each document of the index.
const OTHERWISE: u64 = 100;

/// The cost of `query` in one of the ranges, in nanoseconds. What a document costs was measured over 100,000 of them, whose
/// words are as frequent as those of a language, and rounded up.
pub fn expected_nanos(query: &dyn Query, statistics: &RangeStatistics<'_, '_>) -> tantivy::Result<u64> {
    Ok(nanos_of(query, statistics)? / statistics.ranges())
}

fn nanos_of(query: &dyn Query, statistics: &RangeStatistics<'_, '_>) -> tantivy::Result<u64> {
    if query.is::<EmptyQuery>() {
        return Ok(0);
    }
    if let Some(term) = query.downcast_ref::<TermQuery>() {
        return Ok(LOOK_UP + statistics.doc_freq(term.term())?);
    }
    if let Some(phrase) = query.downcast_ref::<ExactPhraseQuery>() {
        let documents = phrase.terms().map(|term| statistics.doc_freq(term)).collect::<tantivy::Result<Vec<_>>>()?;
        return Ok(nanos_of_phrase(&documents));
    }
    if let Some(boolean) = query.downcast_ref::<BoolQuery>()
        && let Some(cost) = of_terms(boolean, statistics)?
    {
        return Ok(cost);
    }
    Ok(OTHERWISE * statistics.total_num_docs()?)
}

/// A union or an intersection of terms; `None` for anything else.
fn of_terms(boolean: &BoolQuery, statistics: &RangeStatistics<'_, '_>) -> tantivy::Result<Option<u64>> {
    let mut documents = Vec::new();
    for (_, clause) in boolean.clauses() {
        let Some(term) = clause.downcast_ref::<TermQuery>() else { return Ok(None) };
        documents.push(statistics.doc_freq(term.term())?);
    }
    let every = boolean.is_intersection();
    Ok((every || boolean.is_union()).then(|| nanos_of_words(every, &documents)))
}

/// A union of words, or an intersection, by the number of documents of each; in nanoseconds.
pub fn nanos_of_words(every: bool, documents: &[u64]) -> u64 {
    let (Some(&fewest), Some(&most)) = (documents.iter().min(), documents.iter().max()) else { return 0 };
    let look_up = LOOK_UP * documents.len() as u64;
    let search = if every {
        // The rarest leads; where it is frequent too, the blocks of the others are gone through.
        (70 * fewest).min(40_000 + 2 * most)
    } else {
        // What has the most frequent term alone is skipped.
        most + 40 * (documents.iter().sum::<u64>() - most)
    };
    look_up + search
}

/// A phrase, by the number of documents of each of its words; in nanoseconds.
pub fn nanos_of_phrase(documents: &[u64]) -> u64 {
    LOOK_UP * documents.len() as u64 + 100 * documents.iter().min().unwrap_or(&0)
}
