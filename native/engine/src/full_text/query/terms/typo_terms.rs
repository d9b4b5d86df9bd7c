//! The words that a misspelt one may stand for: the most frequent of the words near it, the same ones in every range.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use sundew_base::bit_set::BitSet;
use tantivy::postings::TermInfo;
use tantivy::query::{EnableScoring, Query, Weight};
use tantivy::schema::IndexRecordOption;
use tantivy::{InvertedIndexReader, Searcher, Term};

use crate::full_text::errors::carried;
use crate::full_text::plan::{Automatic, Fuzziness, Node, QueryPlan};
use crate::full_text::query::compile::index_fields::{IndexFields, TextField};
use crate::full_text::query::deadline::Deadline;
use crate::full_text::query::run::statistics::{shared_term, term_in};
use crate::full_text::query::terms::levenshtein::FuzzyWord;
use crate::full_text::query::terms::term_expansion::{ExpandedTermsQuery, Listed, TermPrefix, Tokens};

/// Tokens that one word stands for. Rarer ones are slips themselves more often than not, and each costs a look-up in
/// every segment.
pub const TYPO_TOKENS_MAX: usize = 64;

/// Where the tokens lie, as ranges call it, and the words that they are to be near to.
type TypoKey = (Term, Arc<[FuzzyWord]>);

/// The words of one range.
pub struct RangeWords {
    pub searcher: Searcher,
    pub index: IndexFields,
    /// For each segment the documents that the asker may see; `None` where it may see all of them.
    pub permitted: Option<Vec<BitSet>>,
}

/// A token near one of some words.
struct NearToken {
    distance: usize,
    documents: u64,
    /// The range and the segment whose documents were counted last.
    counted_in: Option<(usize, usize)>,
}

/// The words of all ranges of a query.
pub struct Vocabulary {
    ranges: Vec<RangeWords>,
    listed: Mutex<HashMap<TypoKey, Listed>>,
}

impl fmt::Debug for Vocabulary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Vocabulary of {} ranges", self.ranges.len())
    }
}

impl Vocabulary {
    pub fn new(ranges: Vec<RangeWords>) -> Self {
        Self { ranges, listed: Mutex::default() }
    }

    /// The word itself, then by number of documents, then in order. Words that only hidden documents have are not there.
    fn tokens_near(&self, key: &TypoKey, deadline: &Deadline) -> tantivy::Result<Listed> {
        let mut listed = self.listed.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(known) = listed.get(key) {
            return Ok(Arc::clone(known));
        }
        let (shared, words) = key;
        let tokens = Tokens::FuzzyAny(Arc::clone(words));
        let mut found: HashMap<String, NearToken> = HashMap::new();
        for (range, RangeWords { searcher, index, permitted }) in self.ranges.iter().enumerate() {
            let term = term_in(shared, index);
            let prefix = term.serialized_value_bytes();
            for (segment, reader) in searcher.segment_readers().iter().enumerate() {
                let terms = reader.inverted_index(term.field())?;
                let permitted = permitted.as_ref().map(|segments| &segments[segment]);
                tokens.walk(terms.terms(), prefix, deadline, &mut |term, info, distance| {
                    let token = String::from_utf8_lossy(&term[prefix.len()..]).into_owned();
                    let near = found.entry(token).or_insert(NearToken { distance, documents: 0, counted_in: None });
                    near.distance = distance.min(near.distance);
                    // A token that is near several of the words comes once for each.
                    if near.counted_in.replace((range, segment)) != Some((range, segment)) {
                        near.documents += documents_with(&terms, info, permitted, deadline)?;
                    }
                    Ok(())
                })?;
            }
        }
        let mut found: Vec<(String, NearToken)> = found.into_iter().filter(|(_, near)| near.documents > 0).collect();
        found.sort_unstable_by(|(a, near_a), (b, near_b)| {
            let rank = |near: &NearToken| (near.distance > 0, Reverse(near.documents));
            rank(near_a).cmp(&rank(near_b)).then_with(|| a.cmp(b))
        });
        found.truncate(TYPO_TOKENS_MAX);
        let chosen: Listed = found.into_iter().map(|(token, near)| (token, near.distance)).collect();
        listed.insert(key.clone(), Arc::clone(&chosen));
        Ok(chosen)
    }
}

/// The documents of a segment that have a term, without those that are not permitted.
fn documents_with(
    terms: &InvertedIndexReader,
    info: &TermInfo,
    permitted: Option<&BitSet>,
    deadline: &Deadline,
) -> tantivy::Result<u64> {
    let Some(permitted) = permitted else { return Ok(u64::from(info.doc_freq)) };
    if deadline.is_due() {
        return Err(carried(deadline.error()));
    }
    let mut postings = terms.read_block_postings_from_terminfo(info, IndexRecordOption::Basic)?;
    let mut documents = 0;
    while !postings.docs().is_empty() {
        documents += postings.docs().iter().filter(|document| permitted.contains(**document)).count() as u64;
        postings.advance();
    }
    Ok(documents)
}

/// Whether a plan has words that may be misspelt, so that the ranges have to agree on what they stand for.
pub fn needs_vocabulary(plan: &QueryPlan) -> bool {
    plan.query.as_ref().is_some_and(allows_typos)
}

fn allows_typos(node: &Node) -> bool {
    match node {
        Node::Match { fuzziness, .. } => *fuzziness == Fuzziness::Auto(Automatic::Typo),
        Node::Bool { must, should, must_not, filter, .. } => {
            must.iter().chain(should).chain(must_not).chain(filter).any(allows_typos)
        }
        _ => false,
    }
}

/// The tokens near any of some words, as `ExpandedTermsQuery` scores them.
#[derive(Debug, Clone)]
pub struct TypoQuery {
    vocabulary: Arc<Vocabulary>,
    key: TypoKey,
    /// Where they lie in the range that is searched.
    prefix: TermPrefix,
    deadline: Deadline,
}

impl TypoQuery {
    pub fn new(
        vocabulary: &Arc<Vocabulary>,
        index: &IndexFields,
        text_field: &TextField,
        words: Vec<FuzzyWord>,
        deadline: &Deadline,
    ) -> Self {
        let term = text_field.term("");
        let key = (shared_term(&term, index), words.into());
        Self { vocabulary: Arc::clone(vocabulary), key, prefix: TermPrefix(term), deadline: deadline.clone() }
    }
}

impl Query for TypoQuery {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let tokens = Tokens::Listed(self.vocabulary.tokens_near(&self.key, &self.deadline)?);
        let prefixes = vec![self.prefix.clone()];
        ExpandedTermsQuery { prefixes, tokens, deadline: self.deadline.clone() }.weight(scoring)
    }
}
