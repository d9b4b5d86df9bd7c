//! The context in which a plan is compiled for one index.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::sync::Arc;

use crate::full_text::plan::Node;
use crate::full_text::query::compile::dropped_words::fields_with_words;
use crate::full_text::query::compile::index_fields::IndexFields;
use crate::full_text::query::deadline::Deadline;
use crate::full_text::query::terms::typo_terms::Vocabulary;

pub struct CompileContext<'a> {
    pub index: &'a IndexFields,
    /// The words of all ranges of the query; without it slips stand for whatever is near them.
    pub vocabulary: Option<&'a Arc<Vocabulary>>,
    /// Walks of the term dictionary end by themselves; everything else is ended by who runs the query.
    pub deadline: Deadline,
    /// The nodes among whose words a text without any is left out.
    scope: Vec<&'a Node>,
    fields_with_words: OnceCell<HashSet<String>>,
}

impl<'a> CompileContext<'a> {
    pub fn new(index: &'a IndexFields, vocabulary: Option<&'a Arc<Vocabulary>>, deadline: Deadline) -> Self {
        Self { index, vocabulary, deadline, scope: Vec::new(), fields_with_words: OnceCell::new() }
    }

    /// The same for nodes that are compiled together.
    pub fn within<'n>(&self, scope: impl IntoIterator<Item = &'n Node>) -> CompileContext<'n>
    where
        'a: 'n,
    {
        CompileContext {
            index: self.index,
            vocabulary: self.vocabulary,
            deadline: self.deadline.clone(),
            scope: scope.into_iter().collect(),
            fields_with_words: OnceCell::new(),
        }
    }

    /// Whether the nodes of the scope ask for words of the field.
    pub fn has_words_of(&self, field: &str) -> bool {
        let fields = || fields_with_words(self.index, self.scope.iter().copied());
        self.fields_with_words.get_or_init(fields).contains(field)
    }
}
