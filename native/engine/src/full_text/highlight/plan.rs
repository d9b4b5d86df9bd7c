//! The options of highlighting.

use serde::{Deserialize, Serialize};

/// The fields, tags and fragments that a request asks for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HighlightPlan {
    /// Dotted paths; all that the query asks about when empty.
    #[serde(default)]
    pub fields: Vec<String>,
    /// Length of a fragment without its tags, in characters.
    pub fragment_chars: usize,
    /// Most fragments of one field.
    pub fragments: usize,
    pub pre_tag: String,
    pub post_tag: String,
}
