//! The vocabulary of one model, as a trie.

use std::sync::Arc;

use llguidance::ParserFactory;
use llguidance::toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie};
use sundew_base::error::EngineError;

/// Parses that may be alive at one character of an output: more than the values that the enumerations of a schema may have.
const PARSES_MAX: usize = 3_000;
/// Work for the tokens that may follow at one position: parser items (about 20,000 a millisecond), lexer steps (about
/// 14,000 a millisecond).
const STEP_ITEMS_MAX: usize = 1_000_000;
const STEP_LEXER_FUEL: u64 = 1_000_000;
const LEXER_STATES_MAX: usize = 50_000;

/// Shared by all outputs of one model.
pub struct Vocabulary {
    pub(crate) factory: ParserFactory,
    pub(crate) env: TokEnv,
    /// Tokens that end an output.
    pub(crate) ends: Vec<u32>,
    /// Sorted. Control tokens: not text of an output unless a request says so.
    pub(crate) control: Vec<u32>,
}

/// The parts of a vocabulary.
pub struct VocabularyParts<'v> {
    /// Bytes of all tokens, one after another; nothing for tokens without a text.
    pub bytes: &'v [u8],
    /// Bytes of each token.
    pub lengths: &'v [u32],
    pub ends: Vec<u32>,
    pub control: Vec<u32>,
}

impl Vocabulary {
    /// Errors: `internal` when the parts contradict each other.
    pub fn new(parts: VocabularyParts<'_>) -> Result<Arc<Self>, EngineError> {
        let VocabularyParts { bytes, lengths, ends, mut control } = parts;
        let mut words = Vec::with_capacity(lengths.len());
        let mut rest = bytes;
        for &length in lengths {
            let (word, behind) = rest
                .split_at_checked(length as usize)
                .ok_or_else(|| EngineError::internal("the vocabulary is shorter than its lengths"))?;
            words.push(word.to_vec());
            rest = behind;
        }
        // An end has no text, and what begins with this byte means something else to the trie.
        for &end in &ends {
            if let Some(word) = words.get_mut(end as usize) {
                word.clear();
            }
        }
        for word in &mut words {
            if word.first() == Some(&TokTrie::SPECIAL_TOKEN_MARKER) {
                word.clear();
            }
        }
        let size = u32::try_from(words.len()).map_err(|_| EngineError::internal("the vocabulary is too large"))?;
        let known: Vec<u32> = ends.iter().copied().filter(|&end| end < size).collect();
        // A model without an end of its own: no token stands for it.
        let eos = known.first().copied().unwrap_or(size.saturating_sub(1));
        let mut trie = TokTrie::from(&TokRxInfo::new(size, eos), &words);
        if !known.is_empty() {
            trie = trie.with_eos_tokens(&known);
        }
        let env: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
        let mut factory = ParserFactory::new(&env, Default::default(), &[])
            .map_err(|error| EngineError::internal(format!("the vocabulary: {error}")))?;
        factory.quiet();
        let limits = factory.limits_mut();
        limits.max_items_in_row = PARSES_MAX;
        limits.step_max_items = STEP_ITEMS_MAX;
        limits.step_lexer_fuel = STEP_LEXER_FUEL;
        limits.max_lexer_states = LEXER_STATES_MAX;
        limits.verbose_errors = false;
        control.sort_unstable();
        Ok(Arc::new(Self { factory, env, ends: known, control }))
    }
}
