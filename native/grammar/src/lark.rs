//! GBNF in llguidance's Lark notation, one character to a terminal. Longer terminals would be cheaper, but where two of
//! them overlap the lexer takes the longest one, and GBNF knows no lexer.

use std::fmt::Write;

use sundew_base::error::EngineError;

use crate::expression::{Expression, Gbnf};
use crate::gbnf::refusal;

/// Rules of the Lark text. Each may lie within the one before, which takes about 3 KiB of the stack of who reads it.
pub const LARK_RULES_MAX: usize = 20_000;

struct Writer {
    /// For each rule the one that it only stands for, or itself.
    meant: Vec<usize>,
    lines: String,
    helpers: usize,
}

/// The grammar as Lark text. No expression in it nests, however deep those of the grammar do.
///
/// Errors: `unsupported_response_format` where that would have too many rules.
pub fn lark_of(grammar: &Gbnf) -> Result<String, EngineError> {
    let meant = (0..grammar.rules.len()).map(|rule| follow(grammar, rule)).collect();
    let mut writer = Writer { meant, lines: String::new(), helpers: 0 };
    writer.line("start", &format!("r{}", writer.meant[grammar.root]));
    for (at, rule) in grammar.rules.iter().enumerate() {
        if writer.meant[at] == at {
            let body = writer.body(rule);
            writer.line(&format!("r{at}"), &body);
        }
    }
    if grammar.rules.len() + writer.helpers > LARK_RULES_MAX {
        return Err(refusal(format!("it has more than {LARK_RULES_MAX} rules and groups")));
    }
    Ok(writer.lines)
}

/// Chains of rules that are nothing but another rule would fill the rows of the parser.
fn follow(grammar: &Gbnf, rule: usize) -> usize {
    let mut at = rule;
    for _ in 0..grammar.rules.len() {
        match grammar.rules[at] {
            Expression::Rule(next) => at = next,
            _ => return at,
        }
    }
    // A circle of names, which nothing satisfies.
    rule
}

impl Writer {
    fn line(&mut self, name: &str, body: &str) {
        let _ = writeln!(self.lines, "{name}: {body}");
    }

    /// The text behind a name and its colon.
    fn body(&mut self, expression: &Expression) -> String {
        match expression {
            Expression::Choice(ways) => {
                let ways: Vec<String> = ways.iter().map(|way| self.parts(way)).collect();
                ways.join(" | ")
            }
            other => self.parts(other),
        }
    }

    /// The text of the items of a sequence.
    fn parts(&mut self, expression: &Expression) -> String {
        match expression {
            Expression::Sequence(parts) if !parts.is_empty() => {
                let parts: Vec<String> = parts.iter().map(|part| self.parts(part)).collect();
                parts.join(" ")
            }
            Expression::Sequence(_) => "\"\"".to_owned(),
            Expression::Text(text) if text.is_empty() => "\"\"".to_owned(),
            Expression::Text(text) => {
                let characters: Vec<String> = text.chars().map(terminal).collect();
                characters.join(" ")
            }
            Expression::Class(ranges) => class(ranges),
            Expression::Rule(rule) => format!("r{}", self.meant[*rule]),
            Expression::Choice(_) => self.helper(expression),
            Expression::Repeat(inside, least, most) => self.repeated(inside, *least, *most),
        }
    }

    fn repeated(&mut self, inside: &Expression, least: u32, most: Option<u32>) -> String {
        if most == Some(0) {
            return "\"\"".to_owned();
        }
        let one = match inside {
            Expression::Rule(rule) => format!("r{}", self.meant[*rule]),
            Expression::Class(ranges) => class(ranges),
            other => self.helper(other),
        };
        match (least, most) {
            (0, None) => format!("{one}*"),
            (1, None) => format!("{one}+"),
            (0, Some(1)) => format!("{one}?"),
            (least, None) => format!("{one}{{{least},}}"),
            (least, Some(most)) => format!("{one}{{{least},{most}}}"),
        }
    }

    /// A rule of its own for an expression; gives its name.
    fn helper(&mut self, expression: &Expression) -> String {
        let name = format!("h{}", self.helpers);
        self.helpers += 1;
        let body = self.body(expression);
        self.line(&name, &body);
        name
    }
}

fn terminal(character: char) -> String {
    match character {
        '"' | '\\' => format!("\"\\{character}\""),
        '\0'..='\u{1f}' | '\u{7f}' => format!("\"\\u{:04x}\"", character as u32),
        other => format!("\"{other}\""),
    }
}

/// Surrogates are not characters: no output has them.
fn class(ranges: &[(u32, u32)]) -> String {
    let mut inside = String::new();
    for &(low, high) in ranges {
        for (low, high) in [(low, high.min(0xD7FF)), (low.max(0xE000), high)] {
            if low <= high {
                let _ = write!(inside, "\\x{{{low:x}}}-\\x{{{high:x}}}");
            }
        }
    }
    if inside.is_empty() { "/[^\\x{0}-\\x{10ffff}]/".to_owned() } else { format!("/[{inside}]/") }
}
