//! The state that all collectors of a query share.

use super::budget::Budget;
use crate::error::EngineError;
use crate::full_text::query::Deadline;

pub struct Context<'a> {
    pub budget: &'a Budget,
    pub deadline: &'a Deadline,
    /// Answers with what was visited when the time is over.
    pub allows_partial: bool,
}

impl Context<'_> {
    /// Fails when the query has to stop. `Ok(true)`: the time is over, and what was visited is to be answered.
    pub fn is_over(&self) -> Result<bool, EngineError> {
        if !self.deadline.is_due() {
            return Ok(false);
        }
        let error = self.deadline.error();
        if self.allows_partial && self.deadline.is_end_of_time(&error) { Ok(true) } else { Err(error) }
    }
}
