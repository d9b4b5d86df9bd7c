//! All documents that have a term of some shape: wildcards, regular expressions, misspelt words, addresses. Terms are
//! found by walking the term dictionary, and documents gathered in bit sets, so that the number of terms has no bound
//! but the query's deadline.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use tantivy::columnar::Dictionary;
use tantivy::postings::TermInfo;
use tantivy::query::{BitSetDocSet, EmptyScorer, EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::schema::IndexRecordOption;
use tantivy::termdict::TermDictionary;
use tantivy::{BitSet, DocId, DocSet, Score, SegmentReader, TantivyError, Term};
use tantivy_fst::Automaton;

use crate::error::EngineError;
use crate::full_text::errors::carried;
use crate::full_text::query::deadline::Deadline;
use crate::full_text::query::terms::levenshtein::FuzzyWord;
use crate::full_text::query::terms::networks::Network;
use crate::full_text::query::terms::term_pattern::Pattern;
use crate::full_text::query::terms::token_test::TokenTest;

/// Steps of a walk between two looks at the clock: a power of two.
const STEPS_BETWEEN_LOOKS: u64 = 1 << 14;

/// Tokens with their distance from what was asked.
pub type Listed = Arc<[(String, usize)]>;

/// Which tokens are wanted.
#[derive(Debug, Clone)]
pub enum Tokens {
    Pattern(Arc<Pattern>),
    Fuzzy(Arc<FuzzyWord>),
    /// Near any of several words; the nearest counts.
    FuzzyAny(Arc<[FuzzyWord]>),
    Addresses(Network),
    /// These, without looking at others.
    Listed(Listed),
}

/// A test behind the bytes that all the terms in question begin with.
struct Walk<'a, T> {
    test: &'a T,
    prefix: &'a [u8],
    deadline: &'a Deadline,
    steps: Cell<u64>,
    failure: RefCell<Option<EngineError>>,
}

#[derive(Clone, Copy)]
enum WalkState<S> {
    InPrefix(usize),
    InToken(S),
    Nowhere,
}

impl<T: TokenTest> Walk<'_, T> {
    fn checked<V>(&self, result: Result<V, EngineError>, otherwise: V) -> V {
        result.unwrap_or_else(|error| {
            self.failure.borrow_mut().get_or_insert(error);
            otherwise
        })
    }

    fn token_start(&self) -> WalkState<T::State> {
        self.checked(self.test.start(), None).map_or(WalkState::Nowhere, WalkState::InToken)
    }

    fn has_failed(&self) -> bool {
        let steps = self.steps.get() + 1;
        self.steps.set(steps);
        if steps & (STEPS_BETWEEN_LOOKS - 1) == 0 && self.deadline.is_due() {
            self.failure.borrow_mut().get_or_insert(self.deadline.error());
        }
        self.failure.borrow().is_some()
    }
}

impl<T: TokenTest> Automaton for Walk<'_, T> {
    type State = WalkState<T::State>;

    fn start(&self) -> Self::State {
        if self.prefix.is_empty() { self.token_start() } else { WalkState::InPrefix(0) }
    }

    fn is_match(&self, state: &Self::State) -> bool {
        match state {
            WalkState::InToken(state) => self.checked(self.test.accepts(*state), false),
            _ => false,
        }
    }

    fn can_match(&self, state: &Self::State) -> bool {
        !matches!(state, WalkState::Nowhere)
    }

    fn accept(&self, state: &Self::State, byte: u8) -> Self::State {
        if self.has_failed() {
            return WalkState::Nowhere;
        }
        match state {
            WalkState::InPrefix(at) if self.prefix[*at] != byte => WalkState::Nowhere,
            WalkState::InPrefix(at) if at + 1 == self.prefix.len() => self.token_start(),
            WalkState::InPrefix(at) => WalkState::InPrefix(at + 1),
            WalkState::InToken(state) => {
                self.checked(self.test.step(*state, byte), None).map_or(WalkState::Nowhere, WalkState::InToken)
            }
            WalkState::Nowhere => WalkState::Nowhere,
        }
    }
}

/// Takes a string and what is known of it.
type VisitString<'a, Entry> = &'a mut dyn FnMut(&[u8], &Entry) -> tantivy::Result<()>;

/// Sorted strings that are searched by an automaton: the terms of a field, or the strings of a column.
pub trait Strings {
    /// The entry of a string: where its postings are, or its ordinal.
    type Entry;

    fn search<A: Automaton<State: Clone>>(
        &self,
        automaton: A,
        visit: VisitString<'_, Self::Entry>,
    ) -> tantivy::Result<()>;

    fn find(&self, string: &[u8]) -> tantivy::Result<Option<Self::Entry>>;
}

/// Takes a wanted string, what is known of it, and its distance.
pub type VisitWanted<'a, Entry> = &'a mut dyn FnMut(&[u8], &Entry, usize) -> tantivy::Result<()>;

impl Strings for TermDictionary {
    type Entry = TermInfo;

    fn search<A: Automaton<State: Clone>>(
        &self,
        automaton: A,
        visit: VisitString<'_, TermInfo>,
    ) -> tantivy::Result<()> {
        let mut stream = Self::search(self, automaton).into_stream()?;
        while stream.advance() {
            visit(stream.key(), stream.value())?;
        }
        Ok(())
    }

    fn find(&self, string: &[u8]) -> tantivy::Result<Option<TermInfo>> {
        Ok(self.get(string)?)
    }
}

impl Strings for Dictionary {
    type Entry = u64;

    fn search<A: Automaton<State: Clone>>(&self, automaton: A, visit: VisitString<'_, u64>) -> tantivy::Result<()> {
        let mut stream = Self::search(self, automaton).into_stream()?;
        while stream.advance() {
            visit(stream.key(), &stream.term_ord())?;
        }
        Ok(())
    }

    fn find(&self, string: &[u8]) -> tantivy::Result<Option<u64>> {
        Ok(self.term_ord(string)?)
    }
}

/// Every string that is `prefix` and a wanted token, with the token's distance.
fn walk_strings<S: Strings, T: TokenTest>(
    strings: &S,
    prefix: &[u8],
    test: &T,
    deadline: &Deadline,
    visit: VisitWanted<'_, S::Entry>,
) -> tantivy::Result<()> {
    let walk = Walk { test, prefix, deadline, steps: Cell::new(0), failure: RefCell::new(None) };
    strings.search(&walk, &mut |string, entry| match test.distance(&string[prefix.len()..]) {
        Some(distance) => visit(string, entry, distance),
        None => Ok(()),
    })?;
    match walk.failure.into_inner() {
        Some(failure) => Err(carried(failure)),
        None => Ok(()),
    }
}

fn walk_near<S: Strings>(
    strings: &S,
    prefix: &[u8],
    word: &FuzzyWord,
    deadline: &Deadline,
    visit: VisitWanted<'_, S::Entry>,
) -> tantivy::Result<()> {
    let prefix = [prefix, word.fixed().as_bytes()].concat();
    walk_strings(strings, &prefix, &word.walker(), deadline, visit)
}

impl Tokens {
    /// Greatest distance of a wanted token.
    pub fn distance_max(&self) -> usize {
        match self {
            Self::Fuzzy(word) => word.edits(),
            Self::FuzzyAny(words) => words.iter().map(FuzzyWord::edits).max().unwrap_or(0),
            Self::Listed(tokens) => tokens.iter().map(|(_, distance)| *distance).max().unwrap_or(0),
            Self::Pattern(_) | Self::Addresses(_) => 0,
        }
    }

    pub fn walk<S: Strings>(
        &self,
        strings: &S,
        prefix: &[u8],
        deadline: &Deadline,
        visit: VisitWanted<'_, S::Entry>,
    ) -> tantivy::Result<()> {
        match self {
            Self::Pattern(pattern) => walk_strings(strings, prefix, &pattern.walker(), deadline, visit),
            Self::Addresses(network) => walk_strings(strings, prefix, network, deadline, visit),
            Self::Fuzzy(word) => walk_near(strings, prefix, word, deadline, visit),
            Self::FuzzyAny(words) => {
                words.iter().try_for_each(|word| walk_near(strings, prefix, word, deadline, &mut *visit))
            }
            Self::Listed(tokens) => tokens.iter().try_for_each(|(token, distance)| {
                let string = [prefix, token.as_bytes()].concat();
                strings.find(&string)?.map_or(Ok(()), |entry| visit(&string, &entry, *distance))
            }),
        }
    }
}

/// Where terms lie: what they begin with, and their field.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TermPrefix(pub Term);

impl TermPrefix {
    pub fn term(&self, token: &str) -> Term {
        let mut term = self.0.clone();
        term.append_bytes(token.as_bytes());
        term
    }
}

/// A document scores 1 divided by one more than the distance of its nearest token.
#[derive(Debug, Clone)]
pub struct ExpandedTermsQuery {
    pub prefixes: Vec<TermPrefix>,
    pub tokens: Tokens,
    pub deadline: Deadline,
}

impl Query for ExpandedTermsQuery {
    fn weight(&self, _: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(self.clone()))
    }
}

impl Weight for ExpandedTermsQuery {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let empty = || BitSet::with_max_value(reader.max_doc());
        let mut by_distance: Vec<BitSet> = (0..=self.tokens.distance_max()).map(|_| empty()).collect();
        let mut visited = 0u64;
        for prefix in &self.prefixes {
            let inverted_index = reader.inverted_index(prefix.0.field())?;
            self.tokens.walk(
                inverted_index.terms(),
                prefix.0.serialized_value_bytes(),
                &self.deadline,
                &mut |_, term, distance| {
                    visited += 1;
                    if self.deadline.is_due_at(visited) {
                        return Err(carried(self.deadline.error()));
                    }
                    let mut postings =
                        inverted_index.read_block_postings_from_terminfo(term, IndexRecordOption::Basic)?;
                    while !postings.docs().is_empty() {
                        for &document in postings.docs() {
                            by_distance[distance].insert(document);
                        }
                        postings.advance();
                    }
                    Ok(())
                },
            )?;
        }
        if visited == 0 {
            return Ok(Box::new(EmptyScorer));
        }
        Ok(Box::new(NearestScorer::new(by_distance, reader.max_doc(), boost)))
    }

    fn explain(&self, reader: &SegmentReader, document: DocId) -> tantivy::Result<Explanation> {
        let mut scorer = self.scorer(reader, 1.0)?;
        if scorer.doc() > document || scorer.seek(document) != document {
            return Err(TantivyError::InvalidArgument(format!("document {document} does not match")));
        }
        Ok(Explanation::new("expanded terms", scorer.score()))
    }
}

pub struct NearestScorer {
    all: BitSetDocSet,
    by_distance: Vec<BitSet>,
    boost: Score,
}

impl NearestScorer {
    pub fn new(by_distance: Vec<BitSet>, max_doc: u32, boost: Score) -> Self {
        let mut all = BitSet::with_max_value(max_doc);
        for documents in &by_distance {
            let mut bucket = 0;
            while let Some(found) = documents.first_non_empty_bucket(bucket) {
                let mut word = documents.tinyset(found);
                while let Some(bit) = word.pop_lowest() {
                    all.insert(found * u64::BITS + bit);
                }
                bucket = found + 1;
            }
        }
        Self { all: BitSetDocSet::from(all), by_distance, boost }
    }
}

impl DocSet for NearestScorer {
    fn advance(&mut self) -> DocId {
        self.all.advance()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        self.all.seek(target)
    }

    fn doc(&self) -> DocId {
        self.all.doc()
    }

    fn size_hint(&self) -> u32 {
        self.all.size_hint()
    }
}

impl Scorer for NearestScorer {
    fn score(&mut self) -> Score {
        let document = self.all.doc();
        let distance = self.by_distance.iter().position(|documents| documents.contains(document)).unwrap_or(0);
        self.boost / (1 + distance) as Score
    }
}
