//! Words that are a few edits away from another: an edit is a character inserted, deleted or replaced, or two
//! neighbours exchanged.

use std::sync::OnceLock;

use levenshtein_automata::{DFA, Distance, LevenshteinAutomatonBuilder, SINK_STATE};

use super::plan::Fuzziness;
use super::term_expansion::TokenTest;
use crate::error::EngineError;

/// Longer words are only compared exactly, characters: automata grow with the word.
const WORD_CHARACTERS_MAX: usize = 64;

const EDITS_MAX: u8 = 2;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearWord {
    fixed: String,
    rest: String,
    edits: u8,
}

/// Edits that are allowed for `word`: with `auto` none up to 2 characters, one up to 5, else two.
fn edits_for(word: &str, fuzziness: Fuzziness) -> u8 {
    let characters = word.chars().count();
    match fuzziness {
        _ if characters > WORD_CHARACTERS_MAX => 0,
        Fuzziness::Edits(edits) => edits.min(EDITS_MAX),
        Fuzziness::Auto(_) => match characters {
            0..=2 => 0,
            3..=5 => 1,
            _ => 2,
        },
    }
}

impl NearWord {
    /// The words near `word` whose first `prefix_length` characters are the same; `None` when that is only itself.
    pub fn new(word: &str, fuzziness: Fuzziness, prefix_length: usize) -> Option<Self> {
        let edits = edits_for(word, fuzziness);
        let split = word.char_indices().nth(prefix_length).map_or(word.len(), |(at, _)| at);
        let (fixed, rest) = word.split_at(split);
        (edits > 0).then(|| Self { fixed: fixed.to_owned(), rest: rest.to_owned(), edits })
    }

    pub fn edits(&self) -> usize {
        usize::from(self.edits)
    }

    /// What all the words begin with.
    pub fn fixed(&self) -> &str {
        &self.fixed
    }

    pub fn walker(&self) -> NearWalker {
        static BUILDERS: [OnceLock<LevenshteinAutomatonBuilder>; EDITS_MAX as usize + 1] = [const { OnceLock::new() }; 3];
        let builder = BUILDERS[self.edits()].get_or_init(|| LevenshteinAutomatonBuilder::new(self.edits, true));
        NearWalker { automaton: builder.build_dfa(&self.rest) }
    }
}

pub struct NearWalker {
    automaton: DFA,
}

impl TokenTest for NearWalker {
    type State = u32;

    fn start(&self) -> Result<Option<u32>, EngineError> {
        Ok(Some(self.automaton.initial_state()))
    }

    fn step(&self, state: u32, byte: u8) -> Result<Option<u32>, EngineError> {
        let next = self.automaton.transition(state, byte);
        Ok((next != SINK_STATE).then_some(next))
    }

    fn accepts(&self, state: u32) -> Result<bool, EngineError> {
        Ok(matches!(self.automaton.distance(state), Distance::Exact(_)))
    }

    fn distance(&self, token: &[u8]) -> Option<usize> {
        match self.automaton.eval(token) {
            Distance::Exact(edits) => Some(usize::from(edits)),
            Distance::AtLeast(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::full_text::query::plan::Automatic;

    #[test]
    fn how_many_edits_a_word_is_allowed() {
        for (word, edits) in [("of", 0), ("日本", 0), ("pie", 1), ("bread", 1), ("butter", 2), (&"x".repeat(65), 0)] {
            assert_eq!(edits_for(word, Fuzziness::Auto(Automatic::Auto)), edits, "{word}");
        }
        assert_eq!(edits_for("of", Fuzziness::Edits(2)), 2);
        assert_eq!(NearWord::new("soup", Fuzziness::Edits(0), 0), None);
    }

    #[test]
    fn distances() {
        let near = NearWord::new("soup", Fuzziness::Edits(2), 1).expect("a word");
        assert_eq!(near.fixed(), "s");
        let walker = near.walker();
        for (rest, distance) in [("oup", Some(0)), ("uop", Some(1)), ("up", Some(1)), ("oupés", Some(2)), ("tew", None)] {
            assert_eq!(walker.distance(rest.as_bytes()), distance, "{rest}");
        }
    }
}
