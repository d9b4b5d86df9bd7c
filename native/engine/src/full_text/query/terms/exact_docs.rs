//! The documents whose strings at a path are whole values, where the types of a table declare the path differently.

use std::sync::Arc;

use tantivy::columnar::StrColumn;
use tantivy::{DocId, SegmentReader};

use crate::full_text::mapping::{ExactTypes, TYPE};
use crate::full_text::query::compile::index_fields::column_name;

/// Of one segment. A document is known by its type, which lies in a column as every write names it by a string.
pub struct ExactDocs {
    types: Arc<ExactTypes>,
    names: Option<StrColumn>,
    /// The declared types that the segment has, by their ordinals in its dictionary.
    declared: Vec<(u64, bool)>,
}

impl ExactDocs {
    /// `None` where all documents are such.
    pub fn open(reader: &SegmentReader, types: &Option<Arc<ExactTypes>>) -> tantivy::Result<Option<Self>> {
        let Some(types) = types else { return Ok(None) };
        let names = reader.fast_fields().str(&column_name(TYPE))?;
        let mut declared = Vec::new();
        for (name, is_exact) in &types.by_name {
            let ordinal = names.as_ref().map_or(Ok(None), |names| names.dictionary().term_ord(name))?;
            declared.extend(ordinal.map(|ordinal| (ordinal, *is_exact)));
        }
        Ok(Some(Self { types: Arc::clone(types), names, declared }))
    }

    pub fn has(&self, doc: DocId) -> bool {
        let Some(name) = self.names.as_ref().and_then(|names| names.ords().first(doc)) else {
            return self.types.of_unnamed;
        };
        let declared = self.declared.iter().find(|(ordinal, _)| *ordinal == name);
        declared.map_or(self.types.of_others, |(_, is_exact)| *is_exact)
    }
}
