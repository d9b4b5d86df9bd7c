//! Whether a string is near a word.

use crate::full_text::query::{FuzzyWord, NearWalker, TokenTest};

pub struct NearTest {
    fixed: String,
    walker: NearWalker,
}

impl NearTest {
    pub fn of(word: &FuzzyWord) -> Self {
        Self { fixed: word.fixed().to_owned(), walker: word.walker() }
    }

    pub fn accepts(&self, text: &str) -> bool {
        text.strip_prefix(self.fixed.as_str()).is_some_and(|rest| self.walker.distance(rest.as_bytes()).is_some())
    }
}
