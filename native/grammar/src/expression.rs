//! A GBNF grammar as data.

/// A part of a rule. Rules are meant by their position in the grammar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expression {
    Text(String),
    /// Code points in ranges, both ends included.
    Class(Vec<(u32, u32)>),
    Rule(usize),
    Sequence(Vec<Expression>),
    Choice(Vec<Expression>),
    /// From the first number of times to the second; without one, there is no upper bound.
    Repeat(Box<Expression>, u32, Option<u32>),
}

#[derive(Debug)]
pub struct Gbnf {
    pub rules: Vec<Expression>,
    pub root: usize,
}
