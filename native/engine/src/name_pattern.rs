//! Names by a user's regular expression. The `regex` crate matches in linear time, whatever the pattern.

use regex::RegexBuilder;

use crate::error::EngineError;

/// Bytes that a compiled pattern may take.
const COMPILED_BYTES_MAX: usize = 1 << 20;

/// Whether each of the names has a match of the pattern in it.
///
/// Errors: `invalid_request` when the pattern cannot be compiled.
pub fn match_names(pattern: &str, names: &[String]) -> Result<Vec<bool>, EngineError> {
    let compiled = RegexBuilder::new(pattern).size_limit(COMPILED_BYTES_MAX).build().map_err(|error| {
        EngineError::new("invalid_request", format!("\"pattern\" is not a regular expression: {error}"))
    })?;
    Ok(names.iter().map(|name| compiled.is_match(name)).collect())
}

#[cfg(test)]
mod tests {
    use super::match_names;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_pattern_may_match_anywhere_unless_it_is_anchored() {
        assert_eq!(match_names("log", &names(&["logs", "blog", "web"])).unwrap(), [true, true, false]);
        assert_eq!(match_names("^log", &names(&["logs", "blog"])).unwrap(), [true, false]);
    }

    #[test]
    fn a_pattern_that_makes_backtracking_engines_explode_answers_at_once() {
        let name = format!("{}!", "a".repeat(255));
        assert_eq!(match_names("(a+)+$", &[name]).unwrap(), [false]);
    }

    #[test]
    fn a_broken_or_huge_pattern_is_refused() {
        assert_eq!(match_names("(", &[]).unwrap_err().code, "invalid_request");
        assert_eq!(match_names("(a{1000}){1000}", &[]).unwrap_err().code, "invalid_request");
    }
}
