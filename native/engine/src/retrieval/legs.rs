//! Runs the legs of a plan over all ranges, side by side, and merges each over the ranges.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Instant;

use sundew_base::bit_set::BitSet;
use sundew_vector::dense::{DenseIndex, DistanceBounds};
use sundew_vector::search::{SearchBounds, SearchReport, VectorHit, VectorHits};
use sundew_vector::sparse::SparseIndex;

use super::ranges::{DocLocation, FoundDocument, Ranges, by_key};
use super::shared_work::share;
use crate::error::EngineError;
use crate::full_text::{Deadline, DerivedIndex, Keys, QueryPlan, query_pool, query_views};
use crate::full_text::{Leg, LegKind};

/// An index of vectors of one range.
#[derive(Clone)]
pub enum VectorIndex {
    Dense(Arc<DenseIndex>),
    Sparse(Arc<SparseIndex>),
}

/// The index that a leg searches in one range.
#[derive(Clone)]
pub enum LegIndex {
    Vectors(VectorIndex),
    /// The leg has its documents with it.
    Listed,
}

impl VectorIndex {
    pub fn derived(&self) -> &dyn DerivedIndex {
        match self {
            Self::Dense(index) => &**index,
            Self::Sparse(index) => &**index,
        }
    }
}

/// The query vector of a leg.
pub enum QueryVector {
    Dense(Vec<f32>),
    Sparse(Vec<(u32, f32)>),
    /// Documents that are known: range, ordinal and score.
    Listed(Vec<(u32, u32, f32)>),
}

impl QueryVector {
    /// The vectors of `legs`, which lie in `bytes` one after another.
    pub fn of_legs(legs: &[Leg], mut bytes: &[u8]) -> Result<Vec<Self>, EngineError> {
        let broken = || EngineError::internal("the query vectors do not fit the legs of the plan");
        let mut vectors = Vec::with_capacity(legs.len());
        for leg in legs {
            let (own, rest) = bytes.split_at_checked(leg.bytes).ok_or_else(broken)?;
            let (words, odd) = own.as_chunks::<4>();
            let of_one = match leg.kind {
                LegKind::Dense => 1,
                LegKind::Sparse => 2,
                LegKind::Graph => 3,
            };
            let is_whole = odd.is_empty() && words.len().is_multiple_of(of_one);
            if !is_whole {
                return Err(broken());
            }
            bytes = rest;
            vectors.push(match leg.kind {
                LegKind::Dense => Self::Dense(words.iter().map(|word| f32::from_le_bytes(*word)).collect()),
                LegKind::Sparse => {
                    let (indices, values) = words.split_at(words.len() / 2);
                    let pairs = indices.iter().zip(values);
                    Self::Sparse(
                        pairs.map(|(at, value)| (u32::from_le_bytes(*at), f32::from_le_bytes(*value))).collect(),
                    )
                }
                LegKind::Graph => {
                    let (documents, _) = words.as_chunks::<3>();
                    let read = |[range, ordinal, score]: &[[u8; 4]; 3]| {
                        (u32::from_le_bytes(*range), u32::from_le_bytes(*ordinal), f32::from_le_bytes(*score))
                    };
                    Self::Listed(documents.iter().map(read).collect())
                }
            });
        }
        if bytes.is_empty() { Ok(vectors) } else { Err(broken()) }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct LegHit {
    pub found: FoundDocument,
    pub score: f32,
    /// The raw distance of a dense leg; NaN of others.
    pub distance: f32,
    /// Which of the document's vectors a leg of vectors has found; `None` of text.
    pub number: Option<u16>,
}

/// The hits of a leg in all ranges, best first.
#[derive(Default)]
pub struct LegAnswer {
    pub hits: Vec<LegHit>,
    /// There is no more to find.
    pub is_exhausted: bool,
    pub is_partial: bool,
    pub report: SearchReport,
    /// Of the range that took the longest.
    pub took_micros: u64,
}

/// The state that every leg works with; its own, so that a thread that comes too late finds it still there.
pub struct LegContext {
    pub ranges: Arc<Ranges>,
    pub plan: QueryPlan,
    /// For each leg its index of each range, leg after leg.
    pub indexes: Vec<LegIndex>,
    pub vectors: Vec<QueryVector>,
    /// The documents of each range that may be found.
    pub allowed: Vec<Option<Arc<BitSet>>>,
    /// Hits wanted of each leg.
    pub window: usize,
    pub deadline: Deadline,
}

/// The answer of one task.
enum Answer {
    Text(LegAnswer),
    /// One leg in one range, and the microseconds that it took.
    Vectors(VectorHits, u64),
}

impl LegContext {
    /// The answers of the vector legs, and of the text leg when it is wanted.
    pub fn run(
        self: &Arc<Self>,
        with_text: bool,
        keys: &mut Keys<'_>,
    ) -> Result<(Vec<LegAnswer>, Option<LegAnswer>), EngineError> {
        let tasks = self.indexes.len() + usize::from(with_text);
        let pool = query_pool(tasks, self.ranges.document_count()).filter(|_| self.deadline.is_shared());
        // A search of vectors mostly takes longer than one of words: it begins here, while a thread wakes for the words.
        let text_at = if with_text { self.indexes.len().min(1) } else { tasks };
        let own = Arc::clone(self);
        let answers = share(pool, tasks, move |task| match task.cmp(&text_at) {
            Ordering::Less => own.search(task),
            Ordering::Equal => own.text_leg().map(Answer::Text),
            Ordering::Greater => own.search(task - 1),
        });
        let mut text = None;
        let mut found = Vec::with_capacity(self.indexes.len());
        for answer in answers {
            match answer? {
                Answer::Text(answer) => text = Some(answer),
                Answer::Vectors(hits, took_micros) => found.push((hits, took_micros)),
            }
        }
        let mut found = found.into_iter();
        let ranges = self.ranges.views.len();
        let merge = |leg: &Leg| self.merge(leg, found.by_ref().take(ranges), keys);
        Ok((self.plan.legs.iter().map(merge).collect(), text))
    }

    /// One leg in one range.
    fn search(&self, task: usize) -> Result<Answer, EngineError> {
        let started = Instant::now();
        let (leg, range) = (task / self.ranges.views.len(), task % self.ranges.views.len());
        let allowed = self.allowed[range].as_deref();
        let hits = if self.window == 0 || allowed.is_some_and(BitSet::is_empty) {
            VectorHits::default()
        } else {
            let is_due = || self.deadline.is_due();
            let bounds = SearchBounds { limit: self.window, allowed, is_due: &is_due };
            match (&self.indexes[task], &self.vectors[leg]) {
                (LegIndex::Vectors(VectorIndex::Dense(index)), QueryVector::Dense(vector)) => {
                    let distance = DistanceBounds { under: self.plan.distance_under, over: self.plan.distance_over };
                    index.search(vector, self.plan.legs[leg].effort, distance, &bounds)?
                }
                (LegIndex::Vectors(VectorIndex::Sparse(index)), QueryVector::Sparse(vector)) => {
                    index.search(vector, &bounds)?
                }
                (LegIndex::Listed, QueryVector::Listed(documents)) => listed(documents, range, allowed),
                _ => return Err(EngineError::internal("a leg of the plan has an index of another kind")),
            }
        };
        Ok(Answer::Vectors(hits, started.elapsed().as_micros() as u64))
    }

    fn merge(&self, leg: &Leg, found: impl Iterator<Item = (VectorHits, u64)>, keys: &mut Keys<'_>) -> LegAnswer {
        let mut answer = LegAnswer::default();
        for (range, (VectorHits { hits, is_partial, report }, took_micros)) in found.enumerate() {
            answer.took_micros = answer.took_micros.max(took_micros);
            answer.is_partial |= is_partial;
            for arm in report.arms {
                if !answer.report.arms.contains(&arm) {
                    answer.report.arms.push(arm);
                }
            }
            answer.report.candidates += report.candidates;
            answer.report.visited += report.visited;
            answer.report.segments += report.segments;
            answer.hits.extend(hits.iter().map(|hit| LegHit {
                found: self.ranges.find(range, hit.ordinal),
                score: hit.score,
                distance: if leg.kind == LegKind::Dense { hit.distance } else { f32::NAN },
                number: (leg.kind != LegKind::Graph).then_some(hit.number),
            }));
        }
        answer.hits.sort_unstable_by(|a, b| {
            let by_score = b.score.total_cmp(&a.score);
            by_score.then_with(|| by_key(&self.ranges, keys, &a.found, &b.found))
        });
        answer.is_exhausted = answer.hits.len() < self.window && !answer.is_partial;
        answer.hits.truncate(self.window);
        answer
    }

    /// The plan's own query, as it would be answered without vector legs.
    pub fn text_leg(&self) -> Result<LegAnswer, EngineError> {
        let started = Instant::now();
        let plan = QueryPlan {
            limit: self.window,
            offset: 0,
            count_only: false,
            aggregations: None,
            // The number of its matches is not asked for.
            exact_total: false,
            total_exact_up_to: 0,
            ..self.plan.clone()
        };
        let text = query_views(&self.ranges.views, &plan, &self.deadline)?;
        let hits = text.hits.iter().map(|hit| {
            let location = DocLocation { segment: hit.location.0, doc: hit.location.1 };
            let found = FoundDocument { range: hit.range, ordinal: hit.ordinal, location: Some(location) };
            LegHit { found, score: hit.score, distance: f32::NAN, number: None }
        });
        Ok(LegAnswer {
            hits: hits.collect(),
            is_exhausted: text.hits.len() < self.window && !text.is_partial,
            is_partial: text.is_partial,
            report: SearchReport { arms: vec!["text"], ..SearchReport::default() },
            took_micros: started.elapsed().as_micros() as u64,
        })
    }
}

/// The documents of a range among those that a leg has with it.
fn listed(documents: &[(u32, u32, f32)], range: usize, allowed: Option<&BitSet>) -> VectorHits {
    let own = documents.iter().filter(|(of, ..)| *of as usize == range);
    let visited = own.clone().count() as u64;
    let may_be_found = own.filter(|(_, ordinal, _)| allowed.is_none_or(|allowed| allowed.contains(*ordinal)));
    let hit = |&(_, ordinal, score): &(u32, u32, f32)| VectorHit {
        ordinal,
        number: 0,
        sequence: 0,
        distance: f32::NAN,
        score,
    };
    let hits: Vec<VectorHit> = may_be_found.map(hit).collect();
    let candidates = hits.len() as u64;
    let report = SearchReport { arms: vec!["graph"], candidates, visited, ..SearchReport::default() };
    VectorHits { hits, is_partial: false, report }
}
