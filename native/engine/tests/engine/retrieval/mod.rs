//! Words and vectors asked together.

mod answers;
mod filters;
mod fusion;
mod inline;
pub mod support;
