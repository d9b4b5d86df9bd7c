//! Documents that all clauses have, or a number of them. Their scores are added up in the order of the clauses.

use tantivy::query::{EmptyScorer, Explanation, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SeekDangerResult, SegmentReader, TERMINATED, TantivyError};

use crate::full_text::query::boolean::seeking_union::SeekingUnion;

pub struct SeveralWeight {
    clauses: Vec<Clause>,
    least: usize,
}

/// A clause, and those that it is the union of where it is one.
pub struct Clause {
    pub whole: Box<dyn Weight>,
    pub united: Vec<Box<dyn Weight>>,
}

impl SeveralWeight {
    /// Documents that `least` of the clauses have, one or more.
    pub fn of(mut clauses: Vec<Clause>, least: usize) -> Box<dyn Weight> {
        if clauses.len() == 1 && least == 1 { clauses.remove(0).whole } else { Box::new(Self { clauses, least }) }
    }

    /// Of clauses that are all needed the one of fewest documents leads, and the others are asked about those.
    fn needed_scorers(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Vec<Box<dyn Scorer>>> {
        let found = self.clauses.iter().map(|clause| clause.found(reader, boost));
        let found = found.collect::<tantivy::Result<Vec<_>>>()?;
        let asked = found.iter().map(Found::cost).min().unwrap_or(0);
        let chosen = self.clauses.iter().zip(found).map(|(clause, found)| match found {
            Found::Whole(scorer) => Ok(scorer),
            Found::Union(union) if union.is_cheaper(asked) => Ok(Box::new(union) as Box<dyn Scorer>),
            Found::Union(_) => clause.whole.scorer(reader, boost),
        });
        chosen.collect()
    }
}

/// What a clause matches in a segment.
enum Found {
    Whole(Box<dyn Scorer>),
    /// May be read as a whole as well.
    Union(SeekingUnion),
}

impl Found {
    fn cost(&self) -> u64 {
        match self {
            Self::Whole(scorer) => scorer.cost(),
            Self::Union(union) => union.cost(),
        }
    }
}

impl Clause {
    fn found(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Found> {
        if self.united.is_empty() {
            return Ok(Found::Whole(self.whole.scorer(reader, boost)?));
        }
        let scorers = self.united.iter().map(|clause| clause.scorer(reader, boost));
        Ok(Found::Union(SeekingUnion::new(scorers.collect::<tantivy::Result<_>>()?)))
    }
}

impl Weight for SeveralWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let scorers = if self.least == self.clauses.len() {
            self.needed_scorers(reader, boost)?
        } else {
            let scorers = self.clauses.iter().map(|clause| clause.whole.scorer(reader, boost));
            scorers.collect::<tantivy::Result<Vec<_>>>()?
        };
        let matching = scorers.iter().filter(|scorer| scorer.doc() != TERMINATED).count();
        Ok(if matching < self.least {
            Box::new(EmptyScorer)
        } else {
            Box::new(SeveralScorer::new(scorers, self.least))
        })
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        let mut scorer = self.scorer(reader, 1.0)?;
        if scorer.doc() > doc || scorer.seek(doc) != doc {
            return Err(TantivyError::InvalidArgument(format!("document {doc} does not match")));
        }
        let mut explanation = Explanation::new("BooleanClause. sum of ...", scorer.score());
        // Those that do not match have none.
        let matching = self.clauses.iter().filter_map(|clause| clause.whole.explain(reader, doc).ok());
        matching.for_each(|clause| explanation.add_detail(clause));
        Ok(explanation)
    }
}

struct SeveralScorer {
    /// The one that costs least first.
    scorers: Vec<Box<dyn Scorer>>,
    /// Where they are, in the order of the clauses.
    by_clause: Vec<usize>,
    least: usize,
    docs: Vec<DocId>,
    doc: DocId,
}

impl SeveralScorer {
    fn new(scorers: Vec<Box<dyn Scorer>>, least: usize) -> Self {
        let mut by_cost: Vec<(usize, Box<dyn Scorer>)> = scorers.into_iter().enumerate().collect();
        by_cost.sort_by_key(|(_, scorer)| scorer.cost());
        let mut by_clause = vec![0; by_cost.len()];
        for (at, (clause, _)) in by_cost.iter().enumerate() {
            by_clause[*clause] = at;
        }
        let scorers: Vec<Box<dyn Scorer>> = by_cost.into_iter().map(|(_, scorer)| scorer).collect();
        let docs = Vec::with_capacity(scorers.len());
        let mut several = Self { scorers, by_clause, least, docs, doc: 0 };
        several.doc = several.of_some(0);
        several
    }

    /// The first document from `target` on, behind where all stand, that every clause has.
    fn of_all(&mut self, mut target: DocId) -> DocId {
        let Some((first, others)) = self.scorers.split_first_mut() else { return TERMINATED };
        'targets: loop {
            target = first.seek(target);
            if target == TERMINATED {
                return target;
            }
            for other in &mut *others {
                if let SeekDangerResult::SeekLowerBound(bound) = other.seek_danger(target) {
                    target = bound;
                    continue 'targets;
                }
            }
            return target;
        }
    }

    /// The same of as many clauses as are needed, from wherever they stand.
    fn of_some(&mut self, mut target: DocId) -> DocId {
        loop {
            self.docs.clear();
            self.docs.extend(self.scorers.iter_mut().map(|scorer| match scorer.doc() {
                doc if doc < target => scorer.seek(target),
                doc => doc,
            }));
            // Before the document of as many clauses as are needed there is no match.
            let (before, next, _) = self.docs.select_nth_unstable(self.least - 1);
            if *next == TERMINATED || before.iter().all(|doc| doc == next) {
                return *next;
            }
            target = *next;
        }
    }
}

impl DocSet for SeveralScorer {
    fn advance(&mut self) -> DocId {
        self.seek(self.doc.saturating_add(1).min(TERMINATED))
    }

    fn seek(&mut self, target: DocId) -> DocId {
        if self.doc < target {
            let of_all = self.least == self.scorers.len() && target < TERMINATED;
            self.doc = if of_all { self.of_all(target) } else { self.of_some(target) };
        }
        self.doc
    }

    fn doc(&self) -> DocId {
        self.doc
    }

    fn size_hint(&self) -> u32 {
        self.scorers[self.scorers.len() - self.least].size_hint()
    }

    fn cost(&self) -> u64 {
        self.scorers[..=self.scorers.len() - self.least].iter().map(|scorer| scorer.cost()).sum()
    }
}

impl Scorer for SeveralScorer {
    fn score(&mut self) -> Score {
        let (doc, of_all) = (self.doc, self.least == self.scorers.len());
        let mut sum = 0.0;
        for at in &self.by_clause {
            let scorer = &mut self.scorers[*at];
            if of_all || scorer.doc() == doc {
                sum += f64::from(scorer.score());
            }
        }
        sum as Score
    }
}
