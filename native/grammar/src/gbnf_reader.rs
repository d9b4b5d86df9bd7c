//! Reads GBNF text.

use std::collections::HashMap;

use crate::expression::Expression;

/// Parentheses inside each other.
const DEPTH_MAX: usize = 200;
/// Repetitions of repetitions, without parentheses between them.
const STACKED_MAX: usize = 2;
const REPETITIONS_MAX: u32 = 2_000;
const CODE_MAX: u32 = 0x10_FFFF;

/// The rules that a text defines, in its order, by the numbers that `Expression::Rule` holds.
pub struct Definitions {
    pub bodies: Vec<(usize, Expression)>,
    /// Each once; that of number 0 first.
    pub names: Vec<String>,
}

pub struct Reader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
    numbers: HashMap<String, usize>,
    names: Vec<String>,
}

/// The reason why a text cannot be read, with its position.
type Read<T> = Result<T, String>;

impl<'t> Reader<'t> {
    pub fn new(text: &'t str) -> Self {
        Self { text, at: 0, depth: 0, numbers: HashMap::new(), names: Vec::new() }
    }

    pub fn definitions(mut self) -> Read<Definitions> {
        let mut bodies = Vec::new();
        self.skip_blank();
        while self.peek().is_some() {
            let name = match self.begins_definition() {
                Some(name) => name,
                None => return Err(self.unexpected()),
            };
            let number = self.number_of(&name);
            let body = self.choice()?;
            if self.peek().is_some() && self.begins_definition_ahead().is_none() {
                return Err(self.unexpected());
            }
            bodies.push((number, body));
        }
        Ok(Definitions { bodies, names: self.names })
    }

    fn choice(&mut self) -> Read<Expression> {
        let mut ways = vec![self.sequence()?];
        while self.take('|') {
            ways.push(self.sequence()?);
        }
        Ok(if ways.len() == 1 { ways.swap_remove(0) } else { Expression::Choice(ways) })
    }

    fn sequence(&mut self) -> Read<Expression> {
        let mut parts: Vec<Expression> = Vec::new();
        let mut stacked = 0;
        loop {
            self.skip_blank();
            let next = self.peek();
            stacked = if matches!(next, Some('*' | '+' | '?' | '{')) { stacked + 1 } else { 0 };
            match next {
                None | Some('|' | ')') => break,
                Some('*' | '+' | '?' | '{') => {
                    if stacked > STACKED_MAX {
                        return Err(self.fault(&format!("more than {STACKED_MAX} repetitions of one another")));
                    }
                    let Some(last) = parts.pop() else { return Err(self.fault("a repetition has nothing to repeat")) };
                    let (least, most) = self.bounds()?;
                    parts.push(Expression::Repeat(Box::new(last), least, most));
                }
                Some('"') => parts.push(self.literal()?),
                Some('[') => parts.push(self.class()?),
                Some('(') => parts.push(self.group()?),
                Some('.') => {
                    self.at += 1;
                    parts.push(Expression::Class(vec![(0, CODE_MAX)]));
                }
                Some(next) if is_word(next) => {
                    if self.begins_definition_ahead().is_some() {
                        break;
                    }
                    let name = self.word();
                    parts.push(Expression::Rule(self.number_of(&name)));
                }
                Some(_) => return Err(self.unexpected()),
            }
        }
        Ok(if parts.len() == 1 { parts.swap_remove(0) } else { Expression::Sequence(parts) })
    }

    fn group(&mut self) -> Read<Expression> {
        self.at += 1;
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.fault(&format!("more than {DEPTH_MAX} parentheses inside each other")));
        }
        let inside = self.choice()?;
        if !self.take(')') {
            return Err(self.fault("a parenthesis is not closed"));
        }
        self.depth -= 1;
        Ok(inside)
    }

    fn literal(&mut self) -> Read<Expression> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.peek() {
                None | Some('\0') => return Err(self.fault_at(start, "a text is not closed")),
                Some('"') => break,
                Some(_) => text.push(
                    char::from_u32(self.code()?).ok_or_else(|| self.fault("half a character cannot be written"))?,
                ),
            }
        }
        self.at += 1;
        Ok(Expression::Text(text))
    }

    fn class(&mut self) -> Read<Expression> {
        let start = self.at;
        self.at += 1;
        let negated = self.peek() == Some('^');
        self.at += usize::from(negated);
        let mut ranges = Vec::new();
        loop {
            match self.peek() {
                None | Some('\0') => return Err(self.fault_at(start, "a class of characters is not closed")),
                Some(']') => break,
                Some(_) => {}
            }
            let low = self.code()?;
            let ranged = self.peek() == Some('-') && self.rest().chars().nth(1).is_some_and(|next| next != ']');
            self.at += usize::from(ranged);
            let high = if ranged { self.code()? } else { low };
            if high < low {
                return Err(self.fault("a range of characters ends before it begins"));
            }
            ranges.push((low, high));
        }
        self.at += 1;
        Ok(Expression::Class(if negated { complement(ranges) } else { ranges }))
    }

    /// One character, escaped or not.
    fn code(&mut self) -> Read<u32> {
        let next = self.peek().unwrap_or('\0');
        self.at += next.len_utf8();
        if next != '\\' {
            return Ok(next as u32);
        }
        let kind = self.peek().unwrap_or('\0');
        let digits = match kind {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            't' | 'r' | 'n' | '\\' | '"' | '[' | ']' => 0,
            _ => return Err(self.fault("an unknown escape")),
        };
        self.at += 1;
        if digits == 0 {
            return Ok(match kind {
                't' => 9,
                'n' => 10,
                'r' => 13,
                other => other as u32,
            });
        }
        let code = self.rest().get(..digits).and_then(|hex| u32::from_str_radix(hex, 16).ok());
        let code = code.filter(|&code| code <= CODE_MAX).ok_or_else(|| self.fault("an unknown escape"))?;
        self.at += digits;
        Ok(code)
    }

    fn bounds(&mut self) -> Read<(u32, Option<u32>)> {
        let kind = self.peek();
        self.at += 1;
        match kind {
            Some('*') => return Ok((0, None)),
            Some('+') => return Ok((1, None)),
            Some('?') => return Ok((0, Some(1))),
            _ => {}
        }
        let shape = || "a repetition is not {m}, {m,} or {m,n}".to_owned();
        let inside = self.rest().split_once('}').map(|(inside, _)| inside).filter(|inside| inside.len() < 64);
        let Some(inside) = inside else { return Err(self.fault(&shape())) };
        let (least, most) = match inside.split_once(',') {
            None => (inside.trim(), Some(inside.trim())),
            Some((least, most)) => (least.trim(), Some(most.trim()).filter(|most| !most.is_empty())),
        };
        let Some(least) = repetitions(least) else { return Err(self.fault(&shape())) };
        let most = match most.map(repetitions) {
            None => None,
            Some(Some(most)) => Some(most),
            Some(None) => return Err(self.fault(&shape())),
        };
        if least.max(most.unwrap_or(0)) > REPETITIONS_MAX {
            return Err(self.fault(&format!("a repetition is longer than {REPETITIONS_MAX}")));
        }
        if most.is_some_and(|most| most < least) {
            return Err(self.fault("a repetition ends before it begins"));
        }
        self.at += inside.len() + 1;
        Ok((least, most))
    }

    /// The name that is defined here, its `::=` taken too.
    fn begins_definition(&mut self) -> Option<String> {
        let (name, end) = self.begins_definition_ahead()?;
        self.at = end;
        Some(name)
    }

    fn begins_definition_ahead(&self) -> Option<(String, usize)> {
        let rest = self.rest();
        let name = &rest[..rest.find(|next| !is_word(next)).unwrap_or(rest.len())];
        let behind = rest[name.len()..].trim_start_matches([' ', '\t']);
        let defines = !name.is_empty() && behind.starts_with("::=");
        defines.then(|| (name.to_owned(), self.text.len() - behind.len() + 3))
    }

    fn number_of(&mut self, name: &str) -> usize {
        if let Some(&known) = self.numbers.get(name) {
            return known;
        }
        self.numbers.insert(name.to_owned(), self.names.len());
        self.names.push(name.to_owned());
        self.names.len() - 1
    }

    fn word(&mut self) -> String {
        let rest = self.rest();
        let word = &rest[..rest.find(|next| !is_word(next)).unwrap_or(rest.len())];
        self.at += word.len();
        word.to_owned()
    }

    fn take(&mut self, wanted: char) -> bool {
        self.skip_blank();
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    /// Skips white space and comments.
    fn skip_blank(&mut self) {
        while let Some(next) = self.peek() {
            if next.is_ascii_whitespace() {
                self.at += 1;
            } else if next == '#' {
                self.at += self.rest().find(['\r', '\n']).unwrap_or(self.rest().len());
            } else {
                return;
            }
        }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn unexpected(&self) -> String {
        let found = self.peek().unwrap_or('\0');
        if found == ')' {
            self.fault("a parenthesis is closed that is not open")
        } else {
            self.fault(&format!("unexpected {found:?}"))
        }
    }

    fn fault(&self, what: &str) -> String {
        self.fault_at(self.at, what)
    }

    fn fault_at(&self, at: usize, what: &str) -> String {
        let before = &self.text[..at];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!("{what} at line {line}, column {column}")
    }
}

fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '-'
}

/// Digits as a number; too large a one as more than is allowed.
fn repetitions(digits: &str) -> Option<u32> {
    let plain = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    plain.then(|| digits.parse().unwrap_or(u32::MAX))
}

/// All code points that are in none of the ranges.
fn complement(mut ranges: Vec<(u32, u32)>) -> Vec<(u32, u32)> {
    ranges.sort_unstable();
    let mut rest = Vec::new();
    let mut next = 0;
    for (low, high) in ranges {
        if low > next {
            rest.push((next, low - 1));
        }
        next = next.max(high + 1);
    }
    if next <= CODE_MAX {
        rest.push((next, CODE_MAX));
    }
    rest
}
