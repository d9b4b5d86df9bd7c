//! Texts of which analysis leaves no word.

use std::collections::HashSet;

use tantivy::tokenizer::TokenStream;

use crate::error::EngineError;
use crate::full_text::analysis::Analyzer;
use crate::full_text::fields::KEY;
use crate::full_text::plan::Node;
use crate::full_text::query::compile::index_fields::IndexFields;

/// Errors: `invalid_query` for an analyzer that does not exist.
pub fn named_analyzer(name: &Option<String>) -> Result<Option<Analyzer>, EngineError> {
    let Some(name) = name else { return Ok(None) };
    let analyzer = Analyzer::named(name);
    analyzer.map(Some).ok_or_else(|| EngineError::new("invalid_query", format!("there is no analyzer \"{name}\"")))
}

/// Whether whole strings of the path can be compared.
pub fn has_exact_form(index: &IndexFields, path: &str) -> bool {
    path == KEY || !index.mapping.facts_of(path).exact_paths.is_empty()
}

/// Whether the analyzers that `text` is read with drop all of it. Decided by the table's mapping where a field is
/// named, so that it does not depend on which documents an index holds.
pub fn is_dropped(index: &IndexFields, field: Option<&str>, text: &str, analyzer: Option<Analyzer>) -> bool {
    let drops_all = |analyzers: &[Analyzer]| {
        !analyzers.is_empty() && analyzers.iter().all(|analyzer| !analyzer.token_stream(text).advance())
    };
    match (analyzer, field) {
        (Some(analyzer), _) => drops_all(&[analyzer]),
        (None, Some(path)) => drops_all(&index.mapping.facts_of(path).analyzers),
        (None, None) => {
            let mut analyzers: Vec<Analyzer> = index.default_texts().iter().map(|text| text.analyzer).collect();
            analyzers.dedup();
            drops_all(if analyzers.is_empty() { &[Analyzer::Standard] } else { &analyzers })
        }
    }
}

/// The fields that any of the nodes requires words of.
pub fn fields_with_words<'n>(index: &IndexFields, nodes: impl IntoIterator<Item = &'n Node>) -> HashSet<String> {
    let mut fields = HashSet::new();
    nodes.into_iter().for_each(|node| add_fields(index, node, &mut fields));
    fields
}

fn add_fields(index: &IndexFields, node: &Node, fields: &mut HashSet<String>) {
    match node {
        Node::Match { field: Some(field), text, analyzer, .. }
        | Node::Phrase { field: Some(field), text, analyzer, .. } => {
            let analyzer = named_analyzer(analyzer).unwrap_or(None);
            if !is_dropped(index, Some(field), text, analyzer) {
                fields.insert(field.clone());
            }
        }
        Node::Prefix { field, .. }
        | Node::Fuzzy { field, .. }
        | Node::Wildcard { field, .. }
        | Node::Regexp { field, .. }
        | Node::TermsPhrase { field, .. } => fields.extend(field.clone()),
        Node::Bool { must, should, filter, min_should, .. } => {
            let is_enough = min_should.map_or(!(must.is_empty() && filter.is_empty()), |min| min == 0);
            let should = if is_enough { &[] } else { &should[..] };
            must.iter().chain(filter).chain(should).for_each(|clause| add_fields(index, clause, fields));
        }
        _ => {}
    }
}
