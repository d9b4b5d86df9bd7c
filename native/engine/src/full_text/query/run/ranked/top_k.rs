//! A plan's query, made ready for every segment: what a search for the best matches of one index runs.

use std::sync::Arc;

use tantivy::query::{Bm25StatisticsProvider, BoostQuery, EmptyQuery, EnableScoring, Occur, Query, TermQuery, Weight};

use crate::error::EngineError;
use crate::full_text::errors::tantivy_failed;
use crate::full_text::plan::QueryPlan;
use crate::full_text::query::boolean::bool_query::{BoolQuery, seek_weight_of};
use crate::full_text::query::boolean::seek_scorer::SeekWeight;
use crate::full_text::query::compile::compile_plan::compile_parts;
use crate::full_text::query::deadline::Deadline;
use crate::full_text::query::run::filter::filter_bits::{BitsQuery, known_filter_bits};
use crate::full_text::query::run::range_view::RangeView;
use crate::full_text::query::run::ranked::cost_model::expected_nanos;
use crate::full_text::query::run::statistics::RangeStatistics;
use crate::full_text::query::words::word_search::{
    FoundWords, KnownFrequencies, WordSearch, average_length, written_average,
};
use sundew_base::bit_set::BitSet;

/// A plan's query over one index.
pub struct TopKQuery {
    pub search: HitSource,
    /// At least this many documents match, deleted ones too, over all ranges.
    pub matches_at_least: u64,
}

pub enum HitSource {
    Words {
        words: WordSearch,
        /// Of each segment: all that the plan's conditions let through.
        bits: Option<Vec<Arc<BitSet>>>,
    },
    Weight {
        /// With the plan's conditions, unless they are apart.
        weight: Box<dyn Weight>,
        /// Tantivy skips what cannot reach the best matches.
        skips: bool,
        apart: Option<Apart>,
    },
}

/// Conditions that do not score, beside a query that does.
pub struct Apart {
    /// Of a query that is made of clauses.
    pub points: Option<SeekWeight>,
    pub conditions: Conditions,
    /// About how many of all documents a walk over the query's matches reads, where its terms tell.
    pub share: Option<f64>,
}

pub enum Conditions {
    /// Of each segment.
    Known(Vec<Arc<BitSet>>),
    New(Box<dyn Weight>),
}

impl TopKQuery {
    pub fn new(
        view: &RangeView,
        plan: &QueryPlan,
        statistics: &RangeStatistics<'_, '_>,
        deadline: &Deadline,
    ) -> Result<Self, EngineError> {
        let maker = TopKBuilder { view, statistics, deadline };
        let Some(compiled) = compile_parts(&view.compiling(plan), plan)? else { return maker.whole(&EmptyQuery, None) };
        let known = known_filter_bits(view, plan, deadline)?;
        let Some(scored) = &compiled.scored else {
            let Some(bits) = known else { return maker.whole(&*compiled.whole(), None) };
            let bits = Box::new(BitsQuery::new(view, bits));
            return maker.whole(&BoostQuery::new(bits, compiled.constant), None);
        };
        let mut found = FoundWords::of(&**scored, view, statistics).map_err(tantivy_failed)?;
        let is_unfiltered = compiled.conditions.is_empty();
        if (is_unfiltered || known.is_some())
            && let Some(found) = found.take()
        {
            deadline.expect(found.expected_nanos() / statistics.ranges())?;
            let matches_at_least = if is_unfiltered { found.matches_at_least() } else { 0 };
            let words = found.into_search(statistics).map_err(tantivy_failed)?;
            return Ok(Self { search: HitSource::Words { words, bits: known }, matches_at_least });
        }
        if is_unfiltered {
            return maker.whole(&**scored, found.as_ref());
        }
        let conditions = match known {
            Some(bits) => Conditions::Known(bits),
            None => {
                let scoring = EnableScoring::disabled_from_schema(&view.schema);
                Conditions::New(compiled.conditions.into_query().weight(scoring).map_err(tantivy_failed)?)
            }
        };
        maker.apart(&**scored, found.as_ref(), conditions)
    }
}

/// Makes weights for one range.
struct TopKBuilder<'m, 's, 'g> {
    view: &'m RangeView,
    statistics: &'m RangeStatistics<'s, 'g>,
    deadline: &'m Deadline,
}

impl TopKBuilder<'_, '_, '_> {
    fn expect(&self, query: &dyn Query, found: Option<&FoundWords<'_>>) -> Result<(), EngineError> {
        if !self.deadline.is_inline() {
            return Ok(());
        }
        self.deadline.expect(match found {
            Some(found) => found.expected_nanos() / self.statistics.ranges(),
            None => expected_nanos(query, self.statistics).map_err(tantivy_failed)?,
        })
    }

    fn whole(&self, query: &dyn Query, found: Option<&FoundWords<'_>>) -> Result<TopKQuery, EngineError> {
        self.expect(query, found)?;
        let statistics = KnownFrequencies { words: found, others: self.statistics };
        let scoring = EnableScoring::enabled_from_statistics_provider(&statistics, &self.view.searcher);
        let weight = query.weight(scoring).map_err(tantivy_failed)?;
        let matches_at_least = matches_at_least(query, &statistics).map_err(tantivy_failed)?;
        let search = HitSource::Weight { weight, skips: self.can_skip(query).map_err(tantivy_failed)?, apart: None };
        Ok(TopKQuery { search, matches_at_least })
    }

    fn apart(
        &self,
        scored: &dyn Query,
        found: Option<&FoundWords<'_>>,
        conditions: Conditions,
    ) -> Result<TopKQuery, EngineError> {
        self.expect(scored, found)?;
        let statistics = KnownFrequencies { words: found, others: self.statistics };
        let scoring = EnableScoring::enabled_from_statistics_provider(&statistics, &self.view.searcher);
        let weight = scored.weight(scoring).map_err(tantivy_failed)?;
        let points = seek_weight_of(scored, scoring).map_err(tantivy_failed)?;
        let documents = documents_read(scored, &statistics).map_err(tantivy_failed)?;
        let all = statistics.total_num_docs().map_err(tantivy_failed)?.max(1);
        let share = documents.map(|documents| documents as f64 / all as f64);
        let apart = Some(Apart { points, conditions, share });
        let skips = self.can_skip(scored).map_err(tantivy_failed)?;
        Ok(TopKQuery { search: HitSource::Weight { weight, skips, apart }, matches_at_least: 0 })
    }

    /// Whether Tantivy skips what cannot reach the best matches: unions and intersections of terms whose bounds hold.
    fn can_skip(&self, query: &dyn Query) -> tantivy::Result<bool> {
        let Some(boolean) = query.downcast_ref::<BoolQuery>() else { return self.is_bounded(query) };
        if !boolean.is_union() && !boolean.is_intersection() {
            return Ok(false);
        }
        for (_, clause) in boolean.clauses() {
            if !self.is_bounded(&**clause)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Bounds of a field with frequencies and without norms are 0, and those of a text are by the average length of its
    /// segment: by another one they are too low, and matches would be skipped.
    fn is_bounded(&self, query: &dyn Query) -> tantivy::Result<bool> {
        let Some(field) = query.downcast_ref::<TermQuery>().map(|term| term.term().field()) else { return Ok(false) };
        let fields = &self.view.index.fields;
        if field == fields.overflow || fields.slot_of(field).is_none() {
            return Ok(field != fields.overflow);
        }
        let average = average_length(self.statistics, field)?;
        for (_, reader, columns) in self.view.segments().iter() {
            let (index, norms) = (reader.inverted_index(field)?, columns.norms(reader, field)?);
            if index.total_num_tokens() > 0 && written_average(&index, &norms.all) != average {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The documents of the most frequent of the terms that each suffice.
fn matches_at_least(query: &dyn Query, statistics: &dyn Bm25StatisticsProvider) -> tantivy::Result<u64> {
    if let Some(term) = query.downcast_ref::<TermQuery>() {
        return statistics.doc_freq(term.term());
    }
    let Some(boolean) = query.downcast_ref::<BoolQuery>().filter(|boolean| boolean.is_union()) else { return Ok(0) };
    let mut most = 0;
    for (_, clause) in boolean.clauses() {
        most = most.max(matches_at_least(&**clause, statistics)?);
    }
    Ok(most)
}

/// The postings that a walk over all matches reads, as `SeekScorer::documents` counts them; `None` when not all
/// clauses are terms.
fn documents_read(query: &dyn Query, statistics: &dyn Bm25StatisticsProvider) -> tantivy::Result<Option<u64>> {
    if let Some(term) = query.downcast_ref::<TermQuery>() {
        return statistics.doc_freq(term.term()).map(Some);
    }
    let Some(boolean) = query.downcast_ref::<BoolQuery>() else { return Ok(None) };
    let (mut least, mut sum) = (None, 0);
    for (occur, clause) in boolean.clauses() {
        let Some(documents) = documents_read(&**clause, statistics)? else { return Ok(None) };
        match occur {
            Occur::Must => least = Some(least.map_or(documents, |least: u64| least.min(documents))),
            Occur::Should => sum += documents,
            Occur::MustNot => {}
        }
    }
    Ok(Some(least.unwrap_or(sum)))
}
