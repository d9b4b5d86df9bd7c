//! Phrases: the tokens of a text that stand where the index finds the phrase.

use tantivy::tokenizer::Token;

use super::near_test::NearTest;
use crate::full_text::analysis::TokenSpacing;
use crate::full_text::query::{can_choose_apart, phrase_windows, places_of};

/// A word of a phrase, and the words near it.
pub struct PhraseToken {
    pub text: String,
    pub near: Option<NearTest>,
}

impl PhraseToken {
    fn accepts(&self, token: &str) -> bool {
        self.text == token || self.near.as_ref().is_some_and(|near| near.accepts(token))
    }
}

pub struct Sequence {
    /// Of each position its offset, and the words that may stand there.
    positions: Vec<(i64, Vec<PhraseToken>)>,
    slop: i64,
}

impl Sequence {
    /// `None` where nothing can match.
    pub fn new(positions: Vec<(i64, Vec<PhraseToken>)>, slop: u32) -> Option<Self> {
        let has_words = !positions.is_empty() && positions.iter().all(|(_, words)| !words.is_empty());
        has_words.then_some(Self { positions, slop: i64::from(slop) })
    }

    pub fn mark(&self, tokens: &[Token], marked: &mut [bool]) {
        let mut spacing = TokenSpacing::default();
        let places: Vec<i64> = tokens.iter().map(|token| i64::from(spacing.place(token.position as u32))).collect();
        let of_position = |(offset, words): &(i64, Vec<PhraseToken>)| {
            let stands = |token: &Token| words.iter().any(|word| word.accepts(&token.text));
            let found = tokens.iter().zip(&places).filter(|(token, _)| stands(token));
            let mut shifts: Vec<i64> = found.map(|(_, place)| place - offset).collect();
            // Several tokens may stand at one place.
            shifts.dedup();
            shifts
        };
        let shifts: Vec<Vec<i64>> = self.positions.iter().map(of_position).collect();
        let offsets: Vec<i64> = self.positions.iter().map(|(offset, _)| *offset).collect();
        phrase_windows(&shifts, &offsets, self.slop, |window| {
            let lists = places_of(window, &offsets);
            for (at, (_, words)) in self.positions.iter().enumerate() {
                for place in &lists[at] {
                    let first = places.partition_point(|known| known < place);
                    let end = places.partition_point(|known| known <= place);
                    for token in first..end {
                        if !marked[token]
                            && words.iter().any(|word| word.accepts(&tokens[token].text))
                            && (self.slop == 0 || may_stand(&lists, at, *place))
                        {
                            marked[token] = true;
                        }
                    }
                }
            }
        });
    }
}

/// Whether the other positions have words of their own where the one `at` has that of `place`.
fn may_stand(lists: &[Vec<i64>], at: usize, place: i64) -> bool {
    let is_shared = |(other, list): (usize, &Vec<i64>)| other != at && list.contains(&place);
    if !lists.iter().enumerate().any(is_shared) {
        return true;
    }
    let mut chosen = lists.to_vec();
    chosen[at] = vec![place];
    can_choose_apart(&chosen)
}
