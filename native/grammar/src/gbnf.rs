//! GBNF, the notation of llama.cpp for grammars, read under bounds.
//!
//! Source of the notation: `grammars/README.md` of llama.cpp.

use std::collections::HashMap;

use sundew_base::error::EngineError;

use crate::expression::{Expression, Gbnf};
use crate::gbnf_reader::Reader;

const CHARACTERS_MAX: usize = 262_144;
const RULES_MAX: usize = 5_000;

/// Reads a grammar.
///
/// Errors: `unsupported_response_format` with the line and column of what cannot be read, or the name of a rule that is
/// used and not defined.
pub fn read_gbnf(text: &str) -> Result<Gbnf, EngineError> {
    let length = text.chars().count();
    if length > CHARACTERS_MAX {
        return Err(refusal(format!("it has {length} characters; {CHARACTERS_MAX} are allowed")));
    }
    let definitions = Reader::new(text).definitions().map_err(refusal)?;
    let mut positions: HashMap<String, usize> = HashMap::new();
    for name in definitions.names {
        let next = positions.len();
        positions.entry(name).or_insert(next);
    }
    let mut rules: Vec<Option<Expression>> = vec![None; positions.len()];
    let mut defined = 0;
    for (name, body) in definitions.bodies {
        let rule = &mut rules[positions[&name]];
        defined += usize::from(rule.is_none());
        // The last definition of a name counts.
        *rule = Some(body);
    }
    let root = match positions.get("root") {
        Some(&root) if rules[root].is_some() => root,
        _ => return Err(refusal("it has no rule \"root\"".to_owned())),
    };
    if defined > RULES_MAX {
        return Err(refusal(format!("it has {defined} rules; {RULES_MAX} are allowed")));
    }
    if let Some((name, _)) = positions.iter().find(|&(_, &at)| rules[at].is_none()) {
        return Err(refusal(format!("it uses the rule \"{name}\", which it does not define")));
    }
    let rules = rules.into_iter().flatten().collect();
    Ok(Gbnf { rules, root })
}

/// Refuses what `read_gbnf` refuses.
pub fn check_gbnf(text: &str) -> Result<(), EngineError> {
    read_gbnf(text).map(|_| ())
}

pub fn refusal(reason: String) -> EngineError {
    EngineError::new("unsupported_response_format", format!("the grammar cannot be used: {reason}"))
}
