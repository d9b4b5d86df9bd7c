//! How far apart the tokens of a field are: within a text, and between the texts of one document.

/// Positions between the last token of a text and the first of the next text of the same document. No phrase reaches over them.
pub const GAP_BETWEEN_TEXTS: u32 = 256;

/// The greatest step from a token to the next of its text: more words that are dropped between them do not count.
const STEP_MAX: u32 = 128;

/// Moves that the words of a phrase may need; a phrase with more is one with as many.
pub const SLOP_MAX: u32 = 100;

const _: () = assert!(STEP_MAX + SLOP_MAX < GAP_BETWEEN_TEXTS);

/// The positions of a text's tokens, one after another, in an index and in a query alike.
pub struct TokenSpacing {
    /// Of the last token; the highest number before the first.
    last: u32,
    /// Positions that were left out before it.
    left_out: u32,
}

impl Default for TokenSpacing {
    fn default() -> Self {
        Self { last: u32::MAX, left_out: 0 }
    }
}

impl TokenSpacing {
    /// The place of the next token, which stands at `position` by its analyzer.
    pub fn place(&mut self, position: u32) -> u32 {
        self.left_out += position.saturating_sub(self.last).saturating_sub(STEP_MAX);
        self.last = position;
        position - self.left_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_long_runs_between_tokens_are_cut() {
        let mut spacing = TokenSpacing::default();
        let placed = [500, 500, 501, 501 + STEP_MAX, 10_000, 10_002].map(|position| spacing.place(position));
        assert_eq!(placed, [500, 500, 501, 501 + STEP_MAX, 501 + 2 * STEP_MAX, 503 + 2 * STEP_MAX]);
    }
}
