//! The best matches of one index, by score.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use tantivy::query::{
    Bm25StatisticsProvider, BooleanQuery, BoostQuery, ConstScorer, EmptyQuery, EnableScoring, Occur, Query, Scorer,
    TermQuery, Weight, intersect_scorers,
};
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED};

use super::collect::{Collected, Scored, Segments, Visible, rounded, visit_scorer};
use super::compile::compile_parts;
use super::doc_bits::{ConstantDocs, DocBits};
use super::expected_work::expected_nanos;
use super::filter_bits::{BitsQuery, known_filter_bits};
use super::plan::QueryPlan;
use super::point_scorer::{PointScorer, PointWeight};
use super::search::RangeView;
use super::statistics::RangeStatistics;
use super::stop::Stop;
use super::word_search::{FoundWords, KnownFrequencies, WordSearch};
use crate::error::EngineError;
use crate::full_text::errors::tantivy_failed;
use crate::full_text::segment_columns::SegmentColumns;

/// Scoring one document by itself costs about as much as this many steps of a walk.
const POINT_COST: u64 = 8;

/// Ties of one segment whose keys are looked up; for more, the least keys of blocks are worth their reading.
const TIES_READ: u32 = 256;

/// A plan's query over one index.
pub struct BestQuery {
    search: Search,
    /// At least so many documents match, deleted ones too, over all ranges.
    matches_at_least: u64,
}

enum Search {
    Words {
        words: WordSearch,
        /// Of each segment: all that the plan's conditions let through.
        bits: Option<Vec<Arc<DocBits>>>,
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
struct Apart {
    /// Of a query that is made of clauses.
    points: Option<PointWeight>,
    conditions: Conditions,
    /// About how many of all documents a walk over the query's matches reads, where its terms tell.
    share: Option<f64>,
}

enum Conditions {
    /// Of each segment.
    Known(Vec<Arc<DocBits>>),
    New(Box<dyn Weight>),
}

impl BestQuery {
    pub fn new(
        view: &RangeView,
        plan: &QueryPlan,
        statistics: &RangeStatistics<'_, '_>,
        stop: &Stop,
    ) -> Result<Self, EngineError> {
        let maker = Maker { view, statistics, stop };
        let Some(compiled) = compile_parts(&view.index, plan)? else { return maker.whole(&EmptyQuery, None) };
        let known = known_filter_bits(view, plan, stop)?;
        let Some(scored) = &compiled.scored else {
            let Some(bits) = known else { return maker.whole(&*compiled.whole(), None) };
            let bits = Box::new(BitsQuery::new(view, bits));
            return maker.whole(&BoostQuery::new(bits, compiled.constant), None);
        };
        let mut found = FoundWords::of(&**scored, view, statistics).map_err(tantivy_failed)?;
        let is_unfiltered = compiled.conditions.is_empty();
        let (through, all) = let_through(view, known.as_deref());
        let is_for_words = found.as_ref().is_some_and(|found| found.is_better_than_wand(through, all));
        if (is_unfiltered || known.is_some())
            && is_for_words
            && let Some(found) = found.take()
        {
            stop.expect(found.expected_nanos() / statistics.ranges())?;
            let matches_at_least = if is_unfiltered { found.matches_at_least() } else { 0 };
            let words = found.into_search(statistics).map_err(tantivy_failed)?;
            return Ok(Self { search: Search::Words { words, bits: known }, matches_at_least });
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
struct Maker<'m, 's, 'g> {
    view: &'m RangeView,
    statistics: &'m RangeStatistics<'s, 'g>,
    stop: &'m Stop,
}

impl Maker<'_, '_, '_> {
    fn expect(&self, query: &dyn Query, found: Option<&FoundWords<'_>>) -> Result<(), EngineError> {
        if !self.stop.is_at_once() {
            return Ok(());
        }
        self.stop.expect(match found {
            Some(found) => found.expected_nanos() / self.statistics.ranges(),
            None => expected_nanos(query, self.statistics).map_err(tantivy_failed)?,
        })
    }

    fn whole(&self, query: &dyn Query, found: Option<&FoundWords<'_>>) -> Result<BestQuery, EngineError> {
        self.expect(query, found)?;
        let statistics = KnownFrequencies { words: found, others: self.statistics };
        let scoring = EnableScoring::enabled_from_statistics_provider(&statistics, &self.view.searcher);
        let weight = query.weight(scoring).map_err(tantivy_failed)?;
        let matches_at_least = matches_at_least(query, &statistics).map_err(tantivy_failed)?;
        let search = Search::Weight { weight, skips: can_skip(query), apart: None };
        Ok(BestQuery { search, matches_at_least })
    }

    fn apart(
        &self,
        scored: &dyn Query,
        found: Option<&FoundWords<'_>>,
        conditions: Conditions,
    ) -> Result<BestQuery, EngineError> {
        self.expect(scored, found)?;
        let statistics = KnownFrequencies { words: found, others: self.statistics };
        let scoring = EnableScoring::enabled_from_statistics_provider(&statistics, &self.view.searcher);
        let weight = scored.weight(scoring).map_err(tantivy_failed)?;
        let points = PointWeight::of_clauses(scored, scoring).map_err(tantivy_failed)?;
        let documents = documents_read(scored, &statistics).map_err(tantivy_failed)?;
        let all = statistics.total_num_docs().map_err(tantivy_failed)?.max(1);
        let share = documents.map(|documents| documents as f64 / all as f64);
        let apart = Some(Apart { points, conditions, share });
        Ok(BestQuery { search: Search::Weight { weight, skips: can_skip(scored), apart }, matches_at_least: 0 })
    }
}

/// How many documents what is known lets through, and of how many.
fn let_through(view: &RangeView, known: Option<&[Arc<DocBits>]>) -> (u64, u64) {
    let all = view.searcher.segment_readers().iter().map(|reader| u64::from(reader.max_doc())).sum();
    (known.map_or(all, |bits| bits.iter().map(|bits| u64::from(bits.len())).sum()), all)
}

/// Whether Tantivy skips what cannot reach the best matches: unions and intersections of terms.
fn can_skip(query: &dyn Query) -> bool {
    if query.is::<TermQuery>() {
        return true;
    }
    let Some(boolean) = query.downcast_ref::<BooleanQuery>() else { return false };
    let all_are =
        |wanted: Occur| boolean.clauses().iter().all(|(occur, clause)| *occur == wanted && clause.is::<TermQuery>());
    (all_are(Occur::Should) && boolean.get_minimum_number_should_match() <= 1) || all_are(Occur::Must)
}

/// The documents of the most frequent of the terms that each suffice.
fn matches_at_least(query: &dyn Query, statistics: &dyn Bm25StatisticsProvider) -> tantivy::Result<u64> {
    if let Some(term) = query.downcast_ref::<TermQuery>() {
        return statistics.doc_freq(term.term());
    }
    let Some(boolean) = query.downcast_ref::<BooleanQuery>() else { return Ok(0) };
    let mut most = 0;
    for (occur, clause) in boolean.clauses() {
        if *occur != Occur::Should || boolean.get_minimum_number_should_match() > 1 {
            return Ok(0);
        }
        most = most.max(matches_at_least(&**clause, statistics)?);
    }
    Ok(most)
}

/// The postings that a walk over all matches reads, as `PointScorer::documents` counts them; `None` when not all
/// clauses are terms.
fn documents_read(query: &dyn Query, statistics: &dyn Bm25StatisticsProvider) -> tantivy::Result<Option<u64>> {
    if let Some(term) = query.downcast_ref::<TermQuery>() {
        return statistics.doc_freq(term.term()).map(Some);
    }
    let Some(boolean) = query.downcast_ref::<BooleanQuery>() else { return Ok(None) };
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

/// A score below any that is rounded to `rounded`.
fn below_rounded(rounded: Score) -> Score {
    if rounded.is_finite() {
        rounded - rounded.abs() * Score::EPSILON * (1 << super::collect::SCORE_BITS_ROUNDED) as Score
    } else {
        rounded
    }
}

/// Orders the worst match first in a `BinaryHeap`: lowest score, then highest key.
struct WorstFirst(Scored);

impl Ord for WorstFirst {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.score.total_cmp(&self.0.score).then(self.0.key_rank.cmp(&other.0.key_rank))
    }
}

impl PartialOrd for WorstFirst {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for WorstFirst {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for WorstFirst {}

/// The best matches of one segment.
struct SegmentTop<'a> {
    columns: &'a SegmentColumns,
    segment: u32,
    wanted: usize,
    /// No match below this score can be among the best of the index.
    floor: Score,
    best: BinaryHeap<WorstFirst>,
    max_score: Score,
    /// Matches that tied with the worst of the best.
    ties: u32,
}

impl SegmentTop<'_> {
    /// Takes a visible match.
    fn take(&mut self, doc: DocId, score: Score) {
        let score = rounded(score);
        self.max_score = self.max_score.max(score);
        if self.wanted == 0 || score < self.floor {
            return;
        }
        let key_rank = || self.columns.keys.ords().first(doc).unwrap_or(u64::MAX);
        if self.best.len() < self.wanted {
            let found = Scored { score, key_rank: key_rank(), doc, segment: self.segment };
            self.best.push(WorstFirst(found));
        } else if let Some(mut worst) = self.best.peek_mut()
            && score >= worst.0.score
        {
            if score == worst.0.score {
                self.ties += 1;
                if self.ties > TIES_READ && self.columns.least_key_rank(doc) > worst.0.key_rank {
                    return;
                }
            }
            let key_rank = key_rank();
            if score > worst.0.score || key_rank < worst.0.key_rank {
                *worst = WorstFirst(Scored { score, key_rank, doc, segment: self.segment });
            }
        }
        if self.best.len() == self.wanted
            && let Some(worst) = self.best.peek()
        {
            self.floor = self.floor.max(worst.0.score);
        }
    }
}

impl SegmentTop<'_> {
    /// Takes visible matches of one score.
    fn take_alike(&mut self, docs: &DocBits, score: Score) {
        if docs.len() <= TIES_READ {
            docs.iter().for_each(|doc| self.take(doc, score));
            return;
        }
        let rounded = rounded(score);
        self.max_score = self.max_score.max(rounded);
        for (block, least_key) in self.columns.blocks_by_key() {
            let worst = self.best.peek().filter(|_| self.best.len() == self.wanted).map(|worst| &worst.0);
            let is_full = worst.is_some_and(|worst| (worst.score, least_key) > (rounded, worst.key_rank));
            if is_full || rounded < self.floor || self.wanted == 0 {
                break;
            }
            docs.within(block).for_each(|doc| self.take(doc, score));
        }
    }
}

/// One segment of the search.
struct SegmentSearch<'a> {
    reader: &'a SegmentReader,
    visible: Visible<'a>,
    query: &'a BestQuery,
    /// Above this total, not every match need be counted.
    count_up_to: u64,
    stop: &'a Stop,
}

/// The `offset + limit` best matches of an index, segment after segment; not yet ordered. `hidden` documents of all
/// ranges are deleted or may have expired.
pub fn collect_best(
    segments: Segments<'_>,
    query: &BestQuery,
    plan: &QueryPlan,
    hidden: u64,
    stop: &Stop,
) -> Result<Collected<Scored>, EngineError> {
    let mut collected = Collected::default();
    let wanted = plan.offset + plan.limit;
    let matches_at_least = query.matches_at_least.saturating_sub(hidden);
    let count_up_to = match plan.exact_total {
        true => u64::MAX,
        false if matches_at_least > plan.total_exact_up_to => 0,
        false => plan.total_exact_up_to,
    };
    let mut floor = Score::MIN;
    for (segment, reader, columns) in segments.iter() {
        if stop.is_due() {
            collected.note_end(Err(stop.error()), plan, stop)?;
            break;
        }
        let mut top = SegmentTop {
            columns,
            segment,
            wanted,
            floor,
            best: BinaryHeap::with_capacity(wanted.min(1024)),
            max_score: Score::MIN,
            ties: 0,
        };
        let visible = Visible::new(reader, columns, plan);
        let search = SegmentSearch { reader, visible, query, count_up_to, stop };
        let visited = search.run(segment as usize, &mut top, &mut collected);
        collected.note_end(visited, plan, stop)?;
        collected.max_score = collected.max_score.max(top.max_score);
        collected.matches.extend(top.best.into_iter().map(|worst| worst.0));
        floor = floor_of(&mut collected.matches, wanted).max(floor);
        if collected.is_partial {
            break;
        }
    }
    if !collected.total_is_exact && !collected.is_partial {
        collected.matches_at_least = matches_at_least;
    }
    Ok(collected)
}

/// Forgets the matches that have `wanted` better ones, and gives the least score that may still be among those.
fn floor_of(matches: &mut Vec<Scored>, wanted: usize) -> Score {
    if wanted == 0 || matches.len() < wanted {
        return Score::MIN;
    }
    let (_, last, _) = matches.select_nth_unstable_by(wanted - 1, |a, b| b.score.total_cmp(&a.score));
    let floor = last.score;
    matches.retain(|found| found.score >= floor);
    floor
}

enum Way {
    Points(PointScorer),
    /// With the query's scorer, when it was made already.
    Walk(Option<Box<dyn Scorer>>),
}

impl SegmentSearch<'_> {
    fn run(
        &self,
        segment: usize,
        top: &mut SegmentTop<'_>,
        collected: &mut Collected<Scored>,
    ) -> Result<(), EngineError> {
        let (weight, skips, apart) = match &self.query.search {
            Search::Words { words, bits } => {
                let bits = bits.as_ref().map(|bits| &*bits[segment]);
                return self.skip(
                    |_| true,
                    top,
                    collected,
                    |first, visit| words.for_each(self.reader, segment, first, bits, self.stop, visit),
                );
            }
            Search::Weight { weight, skips, apart } => (&**weight, *skips && self.count_up_to < u64::MAX, apart),
        };
        let by_wand = |first: Score, visit: &mut dyn FnMut(DocId, Score) -> Score| {
            weight.for_each_pruning(first, self.reader, visit).map_err(tantivy_failed)
        };
        let Some(apart) = apart else {
            if skips {
                return self.skip(|_| true, top, collected, by_wand);
            }
            if self.stop.is_due() {
                return Err(self.stop.error());
            }
            let scorer = weight.scorer(self.reader, 1.0).map_err(tantivy_failed)?;
            return match scorer.downcast::<ConstantDocs>() {
                Ok(docs) => self.take_alike(&docs, top, collected),
                Err(scorer) => visit_scorer(scorer, self.stop, self.taking(top, collected)),
            };
        };
        let (scored, conditions) = match &apart.conditions {
            Conditions::Known(bits) => {
                let bits = &bits[segment];
                let scored = match self.way(weight, apart, u64::from(bits.len()))? {
                    Way::Points(points) => return self.score_each(bits.iter(), points, top, collected),
                    Way::Walk(scored) => scored,
                };
                if skips {
                    return self.skip(|doc| bits.contains(doc), top, collected, by_wand);
                }
                (scored, ConstantDocs::scorer(Arc::clone(bits), 0.0))
            }
            Conditions::New(conditions) => {
                let mut scorer = conditions.scorer(self.reader, 1.0).map_err(tantivy_failed)?;
                let scored = match self.way(weight, apart, scorer.cost())? {
                    Way::Points(points) => {
                        let first = Some(scorer.doc()).filter(|doc| *doc != TERMINATED);
                        let next = |_: &DocId| Some(scorer.advance()).filter(|doc| *doc != TERMINATED);
                        return self.score_each(std::iter::successors(first, next), points, top, collected);
                    }
                    Way::Walk(scored) => scored,
                };
                (scored, Box::new(ConstScorer::new(scorer, 0.0)) as Box<dyn Scorer>)
            }
        };
        let scored = match scored {
            Some(scored) => scored,
            None => weight.scorer(self.reader, 1.0).map_err(tantivy_failed)?,
        };
        let both = intersect_scorers(vec![scored, conditions], self.reader.num_docs());
        visit_scorer(both, self.stop, self.taking(top, collected))
    }

    /// Documents are scored one by one when that many cost less than a walk over the query's matches.
    fn way(&self, weight: &dyn Weight, apart: &Apart, documents: u64) -> Result<Way, EngineError> {
        let cost = documents * POINT_COST;
        // Words are not spread evenly over segments; twice the estimate is worth a closer look.
        if apart.share.is_some_and(|share| cost as f64 > 2.0 * share * f64::from(self.reader.max_doc())) {
            return Ok(Way::Walk(None));
        }
        let points = match &apart.points {
            Some(points) => points.scorer(self.reader),
            None => weight.scorer(self.reader, 1.0).map(PointScorer::of),
        };
        let points = points.map_err(tantivy_failed)?;
        Ok(if cost <= points.documents() { Way::Points(points) } else { Way::Walk(points.into_whole()) })
    }

    /// All are counted; of those that score alike, the ones of the least keys are looked for.
    fn take_alike(
        &self,
        docs: &ConstantDocs,
        top: &mut SegmentTop<'_>,
        collected: &mut Collected<Scored>,
    ) -> Result<(), EngineError> {
        let shown = if self.visible.shows_all() { None } else { Some(self.shown(docs.all())?) };
        collected.total += u64::from(shown.as_ref().unwrap_or(docs.all()).len());
        for (score, docs) in docs.by_score() {
            match &shown {
                Some(shown) => top.take_alike(&docs.and(shown), score),
                None => top.take_alike(&docs, score),
            }
        }
        Ok(())
    }

    fn shown(&self, docs: &DocBits) -> Result<DocBits, EngineError> {
        DocBits::collect(self.reader.max_doc(), |take| {
            for (at, doc) in docs.iter().enumerate() {
                if self.stop.is_due_at(at as u64 + 1) {
                    return Err(self.stop.error());
                }
                if self.visible.shows(doc) {
                    take(doc);
                }
            }
            Ok(())
        })
    }

    fn taking<'t>(
        &'t self,
        top: &'t mut SegmentTop<'_>,
        collected: &'t mut Collected<Scored>,
    ) -> impl FnMut(DocId, &mut dyn FnMut() -> Score) + 't {
        |doc, score| {
            if self.visible.shows(doc) {
                collected.total += 1;
                let score = score();
                top.take(doc, score);
            }
        }
    }

    /// Of few documents each by itself.
    fn score_each(
        &self,
        docs: impl Iterator<Item = DocId>,
        mut points: PointScorer,
        top: &mut SegmentTop<'_>,
        collected: &mut Collected<Scored>,
    ) -> Result<(), EngineError> {
        for (at, doc) in docs.enumerate() {
            if self.stop.is_due_at(at as u64 + 1) {
                return Err(self.stop.error());
            }
            if self.visible.shows(doc)
                && let Some(score) = points.score(doc)
            {
                collected.total += 1;
                top.take(doc, score);
            }
        }
        Ok(())
    }

    /// Counts exactly up to `count_up_to`, then lets `walk` skip: it is given the score that matches have to exceed at
    /// first and whom it is to tell of each, who answers that score anew.
    fn skip(
        &self,
        lets_through: impl Fn(DocId) -> bool,
        top: &mut SegmentTop<'_>,
        collected: &mut Collected<Scored>,
        walk: impl FnOnce(Score, &mut dyn FnMut(DocId, Score) -> Score) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let mut visited = 0u64;
        let mut stopped = false;
        let threshold = |floor: Score, total: u64| {
            // Just below the floor: a match of the same score may have the lesser key.
            if total > self.count_up_to || self.count_up_to == 0 {
                below_rounded(floor).next_down()
            } else {
                Score::MIN
            }
        };
        let first = threshold(top.floor, collected.total);
        walk(first, &mut |doc, score| {
            visited += 1;
            if self.stop.is_due_at(visited) {
                stopped = true;
            }
            if stopped {
                return Score::MAX;
            }
            if lets_through(doc) && self.visible.shows(doc) {
                collected.total += 1;
                top.take(doc, score);
            }
            threshold(top.floor, collected.total)
        })?;
        if stopped {
            return Err(self.stop.error());
        }
        if collected.total > self.count_up_to || self.count_up_to == 0 {
            collected.total_is_exact = false;
        }
        Ok(())
    }
}
