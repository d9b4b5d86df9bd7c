//! Words that are a few edits away from another: an edit is a character inserted, deleted or replaced, or two
//! neighbours exchanged.

use std::sync::OnceLock;

use levenshtein_automata::{DFA, Distance, LevenshteinAutomatonBuilder, SINK_STATE};

use crate::error::EngineError;
use crate::full_text::plan::{Automatic, Fuzziness};
use crate::full_text::query::terms::token_test::TokenTest;

/// Longer words are only compared exactly, characters: automata grow with the word.
const WORD_CHARACTERS_MAX: usize = 64;

const EDITS_MAX: u8 = 2;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FuzzyWord {
    fixed: String,
    rest: String,
    edits: u8,
}

/// Stems that are shorter say too little of a word that is misspelt, characters.
const STEM_CHARACTERS_MIN: usize = 4;

/// The words near a token of a query. `as_written` is what the analyzer made the token of: a slip may have changed how
/// a word is stemmed (`braed` is taken for the past of `bra`), so slips are counted from both.
pub fn fuzzy_words(token: &str, as_written: &str, fuzziness: Fuzziness, prefix_length: usize) -> Vec<FuzzyWord> {
    if fuzziness != Fuzziness::Auto(Automatic::Typo) {
        return FuzzyWord::new(token, fuzziness, prefix_length).into_iter().collect();
    }
    let written = as_written.to_lowercase();
    let edits = Fuzziness::Edits(edits_for(&written, fuzziness));
    let mut words: Vec<FuzzyWord> = FuzzyWord::new(&written, edits, prefix_length).into_iter().collect();
    if token != written && token.chars().count() >= STEM_CHARACTERS_MIN {
        words.extend(FuzzyWord::new(token, edits, prefix_length));
    }
    words
}

/// Edits that are allowed for `word`: with `auto` none up to 2 characters, one up to 5, else two.
fn edits_for(word: &str, fuzziness: Fuzziness) -> u8 {
    let characters = word.chars().count();
    match fuzziness {
        _ if characters > WORD_CHARACTERS_MAX => 0,
        Fuzziness::Edits(edits) => edits.min(EDITS_MAX),
        Fuzziness::Auto(Automatic::Typo) => match characters {
            0..=4 => 0,
            5..=8 => 1,
            _ => 2,
        },
        Fuzziness::Auto(Automatic::Auto) => match characters {
            0..=2 => 0,
            3..=5 => 1,
            _ => 2,
        },
    }
}

impl FuzzyWord {
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

    /// The beginning that all the words share.
    pub fn fixed(&self) -> &str {
        &self.fixed
    }

    pub fn walker(&self) -> NearWalker {
        static BUILDERS: [OnceLock<LevenshteinAutomatonBuilder>; EDITS_MAX as usize + 1] =
            [const { OnceLock::new() }; 3];
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

    #[test]
    fn how_many_edits_a_word_is_allowed() {
        for (word, edits) in [("of", 0), ("日本", 0), ("pie", 1), ("bread", 1), ("butter", 2), (&"x".repeat(65), 0)] {
            assert_eq!(edits_for(word, Fuzziness::Auto(Automatic::Auto)), edits, "{word}");
        }
        for (word, edits) in [("soup", 0), ("bread", 1), ("potatoes", 1), ("vegetable", 2), ("日本語日本", 1)] {
            assert_eq!(edits_for(word, Fuzziness::Auto(Automatic::Typo)), edits, "{word}");
        }
        assert_eq!(edits_for("of", Fuzziness::Edits(2)), 2);
        assert_eq!(FuzzyWord::new("soup", Fuzziness::Edits(0), 0), None);
    }

    #[test]
    fn slips_are_counted_from_the_word_as_written_and_from_its_stem() {
        let typo = Fuzziness::Auto(Automatic::Typo);
        let fixed_and_rest = |token: &str, written: &str| -> Vec<String> {
            fuzzy_words(token, written, typo, 1).iter().map(|word| format!("{}{}", word.fixed, word.rest)).collect()
        };
        assert_eq!(fixed_and_rest("bra", "Braed"), ["braed"]);
        assert_eq!(fixed_and_rest("suop", "suops"), ["suops", "suop"]);
        assert_eq!(fixed_and_rest("bread", "bread"), ["bread"]);
        assert_eq!(fixed_and_rest("soup", "soup"), Vec::<String>::new());
    }

    #[test]
    fn distances() {
        let near = FuzzyWord::new("soup", Fuzziness::Edits(2), 1).expect("a word");
        assert_eq!(near.fixed(), "s");
        let walker = near.walker();
        for (rest, distance) in [("oup", Some(0)), ("uop", Some(1)), ("up", Some(1)), ("oupés", Some(2)), ("tew", None)]
        {
            assert_eq!(walker.distance(rest.as_bytes()), distance, "{rest}");
        }
    }
}
