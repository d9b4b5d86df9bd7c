//! GBNF, the notation of llama.cpp for grammars, read under bounds.
//!
//! Source of the notation: `grammars/README.md` of llama.cpp.

use sundew_base::error::EngineError;

use crate::beginnings::{BEGINNINGS_MAX, begins_narrowly};
use crate::expression::{Expression, Gbnf};
use crate::gbnf_reader::{Definitions, Reader};

const CHARACTERS_MAX: usize = 262_144;
const RULES_MAX: usize = 5_000;

/// Reads a grammar.
///
/// Errors: `unsupported_response_format` with the line and column of what cannot be read, the name of a rule that is used
/// and not defined, or the bound that the grammar is beyond.
pub fn read_gbnf(text: &str) -> Result<Gbnf, EngineError> {
    let length = text.chars().count();
    if length > CHARACTERS_MAX {
        return Err(refusal(format!("it has {length} characters; {CHARACTERS_MAX} are allowed")));
    }
    let Definitions { names, bodies } = Reader::new(text).definitions().map_err(refusal)?;
    let mut rules: Vec<Option<Expression>> = vec![None; names.len()];
    for (number, body) in bodies {
        // The last definition of a name counts.
        rules[number] = Some(body);
    }
    let root = names.iter().position(|name| name == "root").filter(|root| rules[*root].is_some());
    let root = root.ok_or_else(|| refusal("it has no rule \"root\"".to_owned()))?;
    let defined = rules.iter().flatten().count();
    if defined > RULES_MAX {
        return Err(refusal(format!("it has {defined} rules; {RULES_MAX} are allowed")));
    }
    if let Some(missing) = rules.iter().position(Option::is_none) {
        let name = &names[missing];
        return Err(refusal(format!("it uses the rule \"{name}\", which it does not define")));
    }
    let grammar = Gbnf { rules: rules.into_iter().flatten().collect(), root };
    if !begins_narrowly(&grammar) {
        return Err(refusal(format!(
            "more than {BEGINNINGS_MAX} of its parts may begin at one place; make its choices smaller"
        )));
    }
    Ok(grammar)
}

pub fn refusal(reason: String) -> EngineError {
    EngineError::new("unsupported_response_format", format!("the grammar cannot be used: {reason}"))
}
