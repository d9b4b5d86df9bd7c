//! The best matches of one index, by score.

use std::sync::Arc;

use tantivy::query::{ConstScorer, Scorer, Weight, intersect_scorers};
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED};

use crate::error::EngineError;
use crate::full_text::errors::tantivy_failed;
use crate::full_text::plan::QueryPlan;
use crate::full_text::query::boolean::seek_scorer::SeekScorer;
use crate::full_text::query::constant_docs::ConstantDocs;
use crate::full_text::query::deadline::Deadline;
use crate::full_text::query::run::collect::{Collected, Scored, Segments, Visible, visit_scorer};
use crate::full_text::query::run::ranked::segment_top::SegmentTop;
use crate::full_text::query::run::ranked::top_k::{Apart, Conditions, HitSource, TopKQuery};
use crate::full_text::query::words::word_search::WordSearch;
use crate::full_text::query::words::word_seeks::WordSeeks;
use crate::full_text::segment_columns::SegmentColumns;
use sundew_base::bit_set::BitSet;

/// Scoring one document by itself costs about as much as this many steps of a walk.
const POINT_COST: u64 = 8;

/// Just below the floor: a match of the same score may have the lesser key.
fn threshold_of(floor: Score) -> Score {
    floor.next_down()
}

/// One segment of the search.
struct SegmentSearch<'a> {
    reader: &'a SegmentReader,
    columns: &'a SegmentColumns,
    visible: Visible<'a>,
    query: &'a TopKQuery,
    /// Above this total, not every match need be counted.
    count_up_to: u64,
    deadline: &'a Deadline,
}

/// The `offset + limit` best matches of an index, segment after segment; not yet ordered. `hidden` documents of all
/// ranges are deleted or may have expired.
pub fn collect_top_k(
    segments: Segments<'_>,
    query: &TopKQuery,
    plan: &QueryPlan,
    hidden: u64,
    deadline: &Deadline,
) -> Result<Collected<Scored>, EngineError> {
    let mut collected = Collected::default();
    let wanted = plan.offset + plan.limit;
    let matches_at_least = query.matches_at_least.saturating_sub(hidden);
    let count_up_to = match plan.exact_total {
        true => u64::MAX,
        false if matches_at_least > plan.total_exact_up_to => 0,
        false => plan.total_exact_up_to,
    };
    let mut floor = first_floor(segments, query, plan, count_up_to);
    for (segment, reader, columns) in segments.iter() {
        if deadline.is_due() {
            collected.note_end(Err(deadline.error()), plan, deadline)?;
            break;
        }
        let mut top = SegmentTop::new(columns, segment, wanted, floor);
        let visible = Visible::new(reader, columns, plan);
        let search = SegmentSearch { reader, columns, visible, query, count_up_to, deadline };
        let visited = search.run(segment as usize, &mut top, &mut collected);
        collected.note_end(visited, plan, deadline)?;
        collected.max_score = collected.max_score.max(top.max_score);
        collected.matches.extend(top.into_matches());
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

/// No match below this score can be among the best, as far as it is known before the search.
fn first_floor(segments: Segments<'_>, query: &TopKQuery, plan: &QueryPlan, count_up_to: u64) -> Score {
    let HitSource::Words { words, bits: None } = &query.search else { return Score::MIN };
    // Matches that are counted are visited all the same.
    if count_up_to > 0 && !words.is_one_word() {
        return Score::MIN;
    }
    let shown = segments.iter().filter(|(_, reader, columns)| Visible::new(reader, columns, plan).shows_all());
    let shown: Vec<u32> = shown.map(|(segment, ..)| segment).collect();
    words.reached(plan.offset + plan.limit, &shown).unwrap_or(Score::MIN)
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
    Points(SeekScorer),
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
            HitSource::Words { words, bits } => {
                let bits = bits.as_ref().map(|bits| &*bits[segment]);
                return self.words(words, bits, segment, top, collected);
            }
            HitSource::Weight { weight, skips, apart } => (&**weight, *skips && self.count_up_to < u64::MAX, apart),
        };
        let by_wand = |first: Score, visit: &mut dyn FnMut(DocId, Score) -> Score| {
            weight.for_each_pruning(first, self.reader, visit).map_err(tantivy_failed)
        };
        let Some(apart) = apart else {
            if skips {
                return self.skip(|_| true, top, collected, by_wand);
            }
            if self.deadline.is_due() {
                return Err(self.deadline.error());
            }
            let scorer = weight.scorer(self.reader, 1.0).map_err(tantivy_failed)?;
            return match scorer.downcast::<ConstantDocs>() {
                Ok(docs) => self.take_alike(&docs, top, collected),
                Err(scorer) => visit_scorer(scorer, self.deadline, self.taking(top, collected)),
            };
        };
        let (scored, conditions) = match &apart.conditions {
            Conditions::Known(bits) => {
                let bits = &bits[segment];
                let scored = match self.way(weight, apart, bits.len() as u64)? {
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
        visit_scorer(both, self.deadline, self.taking(top, collected))
    }

    fn words(
        &self,
        words: &WordSearch,
        bits: Option<&BitSet>,
        segment: usize,
        top: &mut SegmentTop<'_>,
        collected: &mut Collected<Scored>,
    ) -> Result<(), EngineError> {
        let place = (segment, self.reader, self.columns);
        // Of a word alone, every posting is a match: they are counted without a visit.
        if bits.is_none()
            && self.visible.shows_all()
            && let Some(matches) = words.matches_known(segment)
        {
            collected.total += matches;
            return words.for_each_best(place, threshold_of(top.floor), self.deadline, &mut |doc, score| {
                top.take(doc, score);
                threshold_of(top.floor)
            });
        }
        if let Some(bits) = bits
            && let Some(seeks) = words.seeks(place, bits, self.deadline)?
        {
            return self.seek(seeks, top, collected);
        }
        let wanted = top.wanted();
        self.skip(
            |_| true,
            top,
            collected,
            |first, visit| words.for_each(place, wanted, first, bits, self.deadline, visit),
        )
    }

    /// Matches whose number is known are counted without a visit.
    fn seek(
        &self,
        seeks: WordSeeks<'_>,
        top: &mut SegmentTop<'_>,
        collected: &mut Collected<Scored>,
    ) -> Result<(), EngineError> {
        if self.visible.shows_all()
            && let Some(matches) = seeks.matches_known()
        {
            collected.total += matches;
            return seeks.for_each(threshold_of(top.floor), self.deadline, &mut |doc, score| {
                top.take(doc, score);
                threshold_of(top.floor)
            });
        }
        self.skip(|_| true, top, collected, |first, visit| seeks.for_each(first, self.deadline, visit))
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
            None => weight.scorer(self.reader, 1.0).map(SeekScorer::of),
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
        collected.total += shown.as_ref().unwrap_or(docs.all()).len() as u64;
        for (score, docs, others) in docs.by_score() {
            match &shown {
                Some(shown) => top.take_alike(&docs.intersection(shown), others, score),
                None => top.take_alike(docs, others, score),
            }
        }
        Ok(())
    }

    fn shown(&self, docs: &BitSet) -> Result<BitSet, EngineError> {
        BitSet::collect(self.reader.max_doc(), |take| {
            for (at, doc) in docs.iter().enumerate() {
                if self.deadline.is_due_at(at as u64 + 1) {
                    return Err(self.deadline.error());
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
        mut points: SeekScorer,
        top: &mut SegmentTop<'_>,
        collected: &mut Collected<Scored>,
    ) -> Result<(), EngineError> {
        for (at, doc) in docs.enumerate() {
            if self.deadline.is_due_at(at as u64 + 1) {
                return Err(self.deadline.error());
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

    /// Counts exactly up to `count_up_to`, then lets `walk` skip: it is given the score that matches have to exceed
    /// at first, and a callback for each, which returns the new one.
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
            if total > self.count_up_to || self.count_up_to == 0 { threshold_of(floor) } else { Score::MIN }
        };
        let first = threshold(top.floor, collected.total);
        walk(first, &mut |doc, score| {
            visited += 1;
            if self.deadline.is_due_at(visited) {
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
            return Err(self.deadline.error());
        }
        if collected.total > self.count_up_to || self.count_up_to == 0 {
            collected.total_is_exact = false;
        }
        Ok(())
    }
}
