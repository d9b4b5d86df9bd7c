//! Tests of tokens that are walked byte by byte, as dictionaries are.

use crate::error::EngineError;

/// Decides byte by byte which tokens are wanted.
pub trait TokenTest {
    type State: Copy;

    fn start(&self) -> Result<Option<Self::State>, EngineError>;

    /// `None` when nothing that goes on so is wanted.
    fn step(&self, state: Self::State, byte: u8) -> Result<Option<Self::State>, EngineError>;

    fn accepts(&self, state: Self::State) -> Result<bool, EngineError>;

    /// How far an accepted token is from what was asked; `None` when it is not wanted after all.
    fn distance(&self, token: &[u8]) -> Option<usize>;
}
