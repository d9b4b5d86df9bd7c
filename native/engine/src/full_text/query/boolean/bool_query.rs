//! Queries that are made of clauses. A document scores the same wherever it lies and however it was found.
//!
//! Tantivy adds up the clauses of a document in single precision, in the order in which it comes to them: that of their
//! cost in the segment, or of the documents ahead of them. With three clauses the last digits would differ between
//! ranges, and between a query with a filter and one without. Here the clauses that are needed and those that may match
//! are added up in double precision each, in the order of the query; both sums are rounded to single precision, and
//! then added.

use tantivy::Term;
use tantivy::query::{
    BooleanQuery, BooleanWeight, ConstScoreQuery, EnableScoring, Occur, Query, ScoreCombiner, Scorer, SumCombiner,
    Weight,
};

use crate::full_text::query::boolean::seek_scorer::{Clauses, SeekWeight};
use crate::full_text::query::boolean::several::{Clause, SeveralWeight};

/// Two numbers have the same sum in either order. Added in single precision, it is their exact sum, rounded once.
pub const ADDED_IN_ANY_ORDER: usize = 2;

/// A union of more clauses is read by windows: it costs too much to open each of them for a few seeks.
const SOUGHT_MAX: usize = 16;

/// A `BooleanQuery` but for its scores.
#[derive(Debug, Clone)]
pub struct BoolQuery {
    query: BooleanQuery,
    /// Clauses that add to the score.
    adding: usize,
}

impl BoolQuery {
    pub fn new(mut clauses: Vec<(Occur, Box<dyn Query>)>, mut min_should: usize) -> Self {
        let may_match = clauses.iter_mut().map(|(occur, _)| occur).filter(|occur| **occur == Occur::Should);
        let may_match: Vec<&mut Occur> = may_match.collect();
        if min_should > 0 && min_should == may_match.len() {
            may_match.into_iter().for_each(|occur| *occur = Occur::Must);
            min_should = 0;
        }
        let adding = clauses.iter().filter(|(occur, _)| *occur != Occur::MustNot).count();
        Self { query: BooleanQuery::with_minimum_required_clauses(clauses, min_should), adding }
    }

    pub fn any(queries: Vec<Box<dyn Query>>) -> Self {
        Self::new(queries.into_iter().map(|query| (Occur::Should, query)).collect(), 1)
    }

    pub fn every(queries: Vec<Box<dyn Query>>) -> Self {
        Self::new(queries.into_iter().map(|query| (Occur::Must, query)).collect(), 0)
    }

    /// Clauses that have to match, too, and do not score.
    pub fn with_filters(self, filters: impl IntoIterator<Item = Box<dyn Query>>) -> Self {
        let without_score = |query| Box::new(ConstScoreQuery::new(query, 0.0)) as Box<dyn Query>;
        let filters = filters.into_iter().map(|query| (Occur::Must, without_score(query)));
        let clauses =
            self.clauses().iter().map(|(occur, clause)| (*occur, clause.box_clone())).chain(filters).collect();
        let query = BooleanQuery::with_minimum_required_clauses(clauses, self.min_should());
        Self { query, ..self }
    }

    pub fn clauses(&self) -> &[(Occur, Box<dyn Query>)] {
        self.query.clauses()
    }

    fn min_should(&self) -> usize {
        self.query.get_minimum_number_should_match()
    }

    /// Whether each of the clauses suffices.
    pub fn is_union(&self) -> bool {
        self.min_should() <= 1 && self.clauses().iter().all(|(occur, _)| *occur == Occur::Should)
    }

    /// Whether all of the clauses are needed, and none is excluded.
    pub fn is_intersection(&self) -> bool {
        self.clauses().iter().all(|(occur, _)| *occur == Occur::Must)
    }

    /// Whether one clause that is needed beside others is a union.
    fn has_unions_to_seek(&self) -> bool {
        let mut needed = self.clauses().iter().filter(|(occur, _)| *occur == Occur::Must);
        needed.clone().count() > 1 && needed.any(|(_, clause)| union_of(&**clause).is_some())
    }

    /// Where there are more clauses than can be added up in any order, or a union is best sought in.
    fn grouped(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let (mut needed, mut others, mut groups) = (Vec::new(), Vec::new(), Vec::new());
        for (occur, clause) in self.clauses() {
            match *occur {
                Occur::Must => needed.push(clause_of(&**clause, scoring)?),
                Occur::Should => others.push(clause.weight(scoring)?),
                Occur::MustNot => groups.push((Occur::MustNot, clause.weight(scoring)?)),
            }
        }
        if !needed.is_empty() {
            let least = needed.len();
            groups.push((Occur::Must, SeveralWeight::of(needed, least)));
        }
        let min_should = self.min_should();
        if min_should > others.len().min(1) {
            let clauses = others.into_iter().map(|whole| Clause { whole, united: Vec::new() }).collect();
            groups.push((Occur::Must, SeveralWeight::of(clauses, min_should)));
        } else if !others.is_empty() {
            let occur = if min_should > 0 { Occur::Must } else { Occur::Should };
            let each = others.into_iter().map(|weight| (Occur::Should, weight)).collect();
            groups.push((occur, combined::<UnionSum>(each, 1)));
        }
        Ok(match <[_; 1]>::try_from(groups) {
            Ok([(_, only)]) => only,
            Err(groups) => combined::<SumCombiner>(groups, 0),
        })
    }

    fn seek_weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<SeekWeight> {
        let mut clauses = Clauses::new(self.min_should());
        for (occur, clause) in self.clauses() {
            let weight = match clause.downcast_ref::<Self>() {
                Some(inner) => inner.seek_weight(scoring)?,
                None => SeekWeight::Whole(clause.weight(scoring)?),
            };
            clauses.push(*occur, weight);
        }
        Ok(SeekWeight::Clauses(clauses))
    }
}

impl Query for BoolQuery {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let is_grouped = self.adding > ADDED_IN_ANY_ORDER || self.has_unions_to_seek();
        if scoring.is_scoring_enabled() && is_grouped { self.grouped(scoring) } else { self.query.weight(scoring) }
    }

    fn query_terms<'a>(&'a self, visitor: &mut dyn FnMut(&'a Term, bool)) {
        self.query.query_terms(visitor);
    }
}

/// A clause that is needed.
fn clause_of(clause: &dyn Query, scoring: EnableScoring<'_>) -> tantivy::Result<Clause> {
    let united = union_of(clause).into_iter().flat_map(BoolQuery::clauses).map(|(_, each)| each.weight(scoring));
    Ok(Clause { whole: clause.weight(scoring)?, united: united.collect::<tantivy::Result<_>>()? })
}

/// A union of few clauses, each of which can be sought in by itself.
fn union_of(clause: &dyn Query) -> Option<&BoolQuery> {
    clause.downcast_ref::<BoolQuery>().filter(|clause| clause.is_union() && clause.clauses().len() <= SOUGHT_MAX)
}

fn combined<Sum: ScoreCombiner + Sync>(weights: Vec<(Occur, Box<dyn Weight>)>, min_should: usize) -> Box<dyn Weight> {
    Box::new(BooleanWeight::with_minimum_number_should_match(weights, min_should, true, Box::new(Sum::default)))
}

/// The way to score single documents of a query that is made of clauses; `None` when its scorer will do.
pub fn seek_weight_of(query: &dyn Query, scoring: EnableScoring<'_>) -> tantivy::Result<Option<SeekWeight>> {
    query.downcast_ref::<BoolQuery>().map(|query| query.seek_weight(scoring)).transpose()
}

/// The sum of a document's clauses, to which Tantivy's unions come in the order of the query.
#[derive(Default, Clone, Copy)]
struct UnionSum(f64);

impl ScoreCombiner for UnionSum {
    fn update<S: Scorer>(&mut self, scorer: &mut S) {
        self.0 += f64::from(scorer.score());
    }

    fn clear(&mut self) {
        self.0 = 0.0;
    }

    fn score(&self) -> f32 {
        self.0 as f32
    }
}
