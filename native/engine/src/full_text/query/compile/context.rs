//! What compiling a plan for one index looks at.

use std::sync::Arc;

use crate::full_text::plan::QueryPlan;
use crate::full_text::query::compile::index_fields::IndexFields;
use crate::full_text::query::deadline::{CancelFlag, Deadline};
use crate::full_text::query::terms::typo_terms::Vocabulary;

pub struct CompileContext<'a> {
    pub index: &'a IndexFields,
    /// The words of all ranges of the query; without it slips stand for whatever is near them.
    pub vocabulary: Option<&'a Arc<Vocabulary>>,
    /// Walks of the term dictionary end by themselves; everything else is ended by who runs the query.
    pub deadline: Deadline,
}

impl<'a> CompileContext<'a> {
    pub fn new(index: &'a IndexFields, vocabulary: Option<&'a Arc<Vocabulary>>, plan: &QueryPlan) -> Self {
        Self { index, vocabulary, deadline: Deadline::new(&CancelFlag::default(), plan.timeout_ms) }
    }
}
