//! How much of a grammar may begin at one place of an output.

use std::slice::from_ref;

use crate::expression::{Expression, Gbnf};

/// Parts of a grammar that may begin at one place: the parser holds each of them against all others.
pub const BEGINNINGS_MAX: usize = 8_192;
/// Parts that are looked at to find that out, for all places together.
const LOOKS_MAX: usize = 1 << 24;

struct Beginnings<'g> {
    grammar: &'g Gbnf,
    /// Whether each rule may be nothing.
    empty: Vec<bool>,
    /// The place at which each rule was last met.
    met: Vec<usize>,
    place: usize,
    looks: usize,
}

/// Whether no more than `BEGINNINGS_MAX` parts may begin at any place.
pub fn begins_narrowly(grammar: &Gbnf) -> bool {
    let rules = grammar.rules.len();
    let mut beginnings = Beginnings { grammar, empty: empty_rules(grammar), met: vec![0; rules], place: 0, looks: 0 };
    let root = Expression::Rule(grammar.root);
    let mut left: Vec<&Expression> = grammar.rules.iter().collect();
    while let Some(expression) = left.pop() {
        match expression {
            Expression::Choice(ways) => left.extend(ways),
            Expression::Repeat(inside, ..) => left.push(inside),
            Expression::Sequence(parts) => {
                // What begins where the sequence does, or behind nothing, counts at the place before.
                let mut begun = true;
                for (at, part) in parts.iter().enumerate() {
                    if !begun && !beginnings.is_narrow(&parts[at..]) {
                        return false;
                    }
                    begun = may_be_empty(part, &beginnings.empty);
                }
                left.extend(parts);
            }
            _ => {}
        }
    }
    beginnings.is_narrow(from_ref(&root))
}

impl Beginnings<'_> {
    /// Whether few enough parts begin where this sequence does.
    fn is_narrow(&mut self, sequence: &[Expression]) -> bool {
        self.place += 1;
        let mut count = 0;
        let mut left = vec![sequence];
        while let Some(parts) = left.pop() {
            for part in parts {
                count += 1;
                match part {
                    Expression::Choice(ways) => left.extend(ways.iter().map(from_ref)),
                    Expression::Sequence(inside) => left.push(inside),
                    Expression::Repeat(inside, ..) => left.push(from_ref(&**inside)),
                    Expression::Rule(rule) if self.met[*rule] != self.place => {
                        self.met[*rule] = self.place;
                        left.push(from_ref(&self.grammar.rules[*rule]));
                    }
                    _ => {}
                }
                if !may_be_empty(part, &self.empty) {
                    break;
                }
            }
            if count > BEGINNINGS_MAX || self.looks + count > LOOKS_MAX {
                return false;
            }
        }
        self.looks += count;
        true
    }
}

fn empty_rules(grammar: &Gbnf) -> Vec<bool> {
    let mut empty = vec![false; grammar.rules.len()];
    loop {
        let mut found = false;
        // Rules stand in front of those that they use, or behind them.
        for at in (0..empty.len()).rev().chain(0..empty.len()) {
            if !empty[at] && may_be_empty(&grammar.rules[at], &empty) {
                empty[at] = true;
                found = true;
            }
        }
        if !found {
            return empty;
        }
    }
}

fn may_be_empty(expression: &Expression, empty: &[bool]) -> bool {
    match expression {
        Expression::Text(text) => text.is_empty(),
        Expression::Class(_) => false,
        Expression::Rule(rule) => empty[*rule],
        Expression::Sequence(parts) => parts.iter().all(|part| may_be_empty(part, empty)),
        Expression::Choice(ways) => ways.iter().any(|way| may_be_empty(way, empty)),
        Expression::Repeat(inside, least, _) => *least == 0 || may_be_empty(inside, empty),
    }
}
