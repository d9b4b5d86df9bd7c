//! Wildcards and regular expressions as automata over the bytes of a token. A pattern matches whole tokens, in time
//! linear in the token.

use std::cell::RefCell;

use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson;
use regex_automata::util::{start, syntax};
use regex_automata::{Anchored, MatchKind};

use crate::error::EngineError;
use crate::full_text::query::terms::token_test::TokenTest;

/// Characters of a pattern as it was written.
pub const PATTERN_CHARACTERS_MAX: usize = 1_000;
/// Groups inside each other.
const NESTING_MAX: u32 = 50;
const PROGRAM_BYTES_MAX: usize = 256 * 1024;
/// States that a walk builds as it meets them; more than these fill, and the pattern is refused.
const STATES_BYTES_MAX: usize = 2 * 1024 * 1024;

#[derive(Debug)]
pub struct Pattern {
    automaton: DFA,
}

impl Pattern {
    /// Errors: `invalid_query` when `expression` is not a regular expression, `limit_exceeded` when it is too large.
    pub fn from_expression(expression: &str) -> Result<Self, EngineError> {
        Self::from_expression_with(expression, false)
    }

    /// The same for tokens in any case.
    pub fn from_expression_in_any_case(expression: &str) -> Result<Self, EngineError> {
        Self::from_expression_with(expression, true)
    }

    fn from_expression_with(expression: &str, any_case: bool) -> Result<Self, EngineError> {
        if expression.chars().count() > PATTERN_CHARACTERS_MAX {
            return Err(too_large());
        }
        Self::compile(expression, any_case)
    }

    /// `*` stands for any characters, `?` for one, a backslash makes the next character ordinary.
    pub fn from_wildcard(pattern: &str) -> Result<Self, EngineError> {
        if pattern.chars().count() > PATTERN_CHARACTERS_MAX {
            return Err(too_large());
        }
        let mut expression = String::from("(?s-u:");
        let mut characters = pattern.chars();
        while let Some(character) = characters.next() {
            match character {
                '*' if expression.ends_with(ANY_CHARACTERS) => {}
                '*' => expression.push_str(ANY_CHARACTERS),
                '?' => expression.push_str(ONE_CHARACTER),
                '\\' => push_literal(&mut expression, characters.next().unwrap_or('\\')),
                other => push_literal(&mut expression, other),
            }
        }
        expression.push(')');
        Self::compile(&expression, false)
    }

    fn compile(expression: &str, any_case: bool) -> Result<Self, EngineError> {
        let syntax = syntax::Config::new().nest_limit(NESTING_MAX).utf8(false).case_insensitive(any_case);
        let program = thompson::Config::new().nfa_size_limit(Some(PROGRAM_BYTES_MAX)).utf8(false);
        let states = DFA::config()
            .match_kind(MatchKind::All)
            .cache_capacity(STATES_BYTES_MAX)
            .skip_cache_capacity_check(true)
            .minimum_cache_clear_count(Some(0));
        let built = DFA::builder().syntax(syntax).thompson(program).configure(states).build(expression);
        match built {
            Ok(automaton) => Ok(Self { automaton }),
            Err(error) if is_size_error(&error) => Err(too_large()),
            Err(error) => {
                Err(EngineError::new("invalid_query", format!("not a regular expression: {}", reason(&error))))
            }
        }
    }

    pub fn walker(&self) -> PatternWalker<'_> {
        PatternWalker { automaton: &self.automaton, cache: RefCell::new(self.automaton.create_cache()) }
    }

    /// Whether the pattern is all of `token`.
    #[cfg(test)]
    fn matches(&self, token: &str) -> bool {
        let walker = self.walker();
        let mut state = walker.start().expect("a start");
        for byte in token.bytes() {
            state = state.and_then(|state| walker.step(state, byte).expect("a step"));
        }
        state.is_some_and(|state| walker.accepts(state).expect("an answer"))
    }
}

const ANY_CHARACTERS: &str = "(?:.*)";
/// One character of UTF-8.
const ONE_CHARACTER: &str = r"(?:[\x00-\x7F]|[\xC0-\xFF][\x80-\xBF]*)";

fn push_literal(expression: &mut String, character: char) {
    let mut bytes = [0; 4];
    for byte in character.encode_utf8(&mut bytes).bytes() {
        expression.push_str(&format!("\\x{byte:02X}"));
    }
}

fn too_large() -> EngineError {
    EngineError::new("limit_exceeded", "a wildcard or regular expression is too large")
}

fn is_size_error(error: &regex_automata::hybrid::BuildError) -> bool {
    let mut source: Option<&dyn std::error::Error> = Some(error);
    while let Some(current) = source {
        if let Some(build) = current.downcast_ref::<thompson::BuildError>() {
            return build.size_limit().is_some();
        }
        source = current.source();
    }
    false
}

/// The innermost reason, on one line.
fn reason(error: &dyn std::error::Error) -> String {
    let mut current = error;
    while let Some(source) = current.source() {
        current = source;
    }
    let text = current.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

/// The automaton with the states that one walk has met.
pub struct PatternWalker<'a> {
    automaton: &'a DFA,
    cache: RefCell<Cache>,
}

impl TokenTest for PatternWalker<'_> {
    type State = LazyStateID;

    fn start(&self) -> Result<Option<LazyStateID>, EngineError> {
        let config = start::Config::new().anchored(Anchored::Yes);
        let state = self.automaton.start_state(&mut self.cache.borrow_mut(), &config).map_err(|_| too_large())?;
        Ok((!state.is_dead()).then_some(state))
    }

    fn step(&self, state: LazyStateID, byte: u8) -> Result<Option<LazyStateID>, EngineError> {
        let next = self.automaton.next_state(&mut self.cache.borrow_mut(), state, byte).map_err(|_| too_large())?;
        Ok((!next.is_dead() && !next.is_quit()).then_some(next))
    }

    fn accepts(&self, state: LazyStateID) -> Result<bool, EngineError> {
        let end = self.automaton.next_eoi_state(&mut self.cache.borrow_mut(), state).map_err(|_| too_large())?;
        Ok(end.is_match())
    }

    fn distance(&self, _: &[u8]) -> Option<usize> {
        Some(0)
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn wildcards_match_whole_tokens() {
        for (pattern, token, matches) in [
            ("s?p", "soup", false),
            ("s??p", "soup", true),
            ("s*p", "sp", true),
            ("s*p", "soups", false),
            ("**", "", true),
            ("?", "日", true),
            ("??", "日", false),
            ("?", "", false),
            ("a\\*b", "a*b", true),
            ("a\\*b", "axb", false),
            ("a.b", "axb", false),
            ("*é*", "café au", true),
            ("a\\", "a\\", true),
        ] {
            assert_eq!(
                Pattern::from_wildcard(pattern).expect("a pattern").matches(token),
                matches,
                "{pattern} {token}"
            );
        }
    }

    #[test]
    fn expressions_match_whole_tokens() {
        for (expression, token, matches) in [
            ("so", "soup", false),
            ("so.*", "soup", true),
            ("a|ab", "ab", true),
            ("a*?b", "aab", true),
            ("^soup$", "soup", true),
            ("[^a-z]+", "日本", true),
            (".", "日", true),
            ("(?i)SOUP", "soup", true),
            ("\\d{4}-\\d{2}", "2024-05", true),
            ("", "", true),
        ] {
            assert_eq!(
                Pattern::from_expression(expression).expect("a pattern").matches(token),
                matches,
                "{expression}"
            );
        }
    }

    #[test]
    fn expressions_that_explode_elsewhere_take_a_moment() {
        let token = "ab".repeat(127);
        for expression in ["(.*a){40}.*", "(a|b|ab)*", "(.*.*.*.*)*b", "((a*)*b)*", "(\\w+)+$"] {
            let pattern = Pattern::from_expression(expression).expect("a pattern");
            assert!(pattern.matches(&token), "{expression}");
            assert!(!pattern.matches(&format!("{token} ")) || expression.contains('.'), "{expression}");
        }
    }

    #[test]
    fn bad_and_large_expressions_are_refused() {
        let code = |expression: &str| Pattern::from_expression(expression).map(|_| ()).expect_err("refused").code;
        assert_eq!(code("(a"), "invalid_query");
        assert_eq!(code("a{2,1}"), "invalid_query");
        assert_eq!(code(&"(".repeat(100)), "invalid_query");
        assert_eq!(code("((a{1000}){1000}){1000}"), "limit_exceeded");
        assert_eq!(code("\\w{500}"), "limit_exceeded");
        assert_eq!(code(&"a".repeat(1_001)), "limit_exceeded");
        assert!(Pattern::from_wildcard(&"?*a".repeat(300)).is_ok());
    }
}
