//! The edges that a graph index takes.

use serde::Deserialize;
use sundew_base::part::edges::EdgeOrigin;

use super::new_edge::NewEdge;
use crate::json::{find_member, shorten};
use crate::write::document_key::check_key;

/// Bytes of the name of a type.
const TYPE_BYTES_MAX: usize = 256;

/// A graph index of the table, as far as the edges of a write concern it.
#[derive(Debug, Clone)]
pub struct GraphTarget {
    pub name: String,
    /// The index's part.
    pub id: u32,
    pub rules: EdgeRules,
}

/// The rules for edges of one index.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EdgeRules {
    /// When empty, edges of every type are taken, with the default bounds.
    #[serde(default)]
    pub edge_types: Vec<EdgeTypeRules>,
    /// 0 for no bound of its own.
    #[serde(default)]
    pub max_edges_per_document: usize,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EdgeTypeRules {
    pub name: String,
    /// Dotted path of the member that holds the keys of targets.
    #[serde(default)]
    pub field: Option<String>,
    /// A document has one edge of this type at most.
    #[serde(default)]
    pub is_tree: bool,
    #[serde(default)]
    pub min_weight: f32,
    #[serde(default)]
    pub max_weight: Option<f32>,
    #[serde(default)]
    pub allow_self_loops: bool,
    #[serde(default)]
    pub required_metadata: Vec<String>,
}

static ANY_TYPE: EdgeTypeRules = EdgeTypeRules {
    name: String::new(),
    field: None,
    is_tree: false,
    min_weight: 0.0,
    max_weight: None,
    allow_self_loops: true,
    required_metadata: Vec::new(),
};

/// Whether the index takes the edge; otherwise what is wrong with it.
pub(super) fn check(edge: &NewEdge<'_>, key: &str, rules: &EdgeRules, key_bytes_max: usize) -> Result<(), String> {
    let NewEdge { edge_type, target, weight, metadata, origin } = edge;
    check_key(target, key_bytes_max).map_err(|error| format!("has a target that is not a key: {}", error.message))?;
    if edge_type.is_empty() || edge_type.len() > TYPE_BYTES_MAX {
        return Err(format!("has an edge whose type is empty or has more than {TYPE_BYTES_MAX} bytes"));
    }
    let to = |what: &str| format!("has an edge {:?} to {:?} {what}", shorten(edge_type), shorten(target));
    let rules = match rules.edge_types.iter().find(|rules| *rules.name == **edge_type) {
        Some(rules) => rules,
        None if rules.edge_types.is_empty() => &ANY_TYPE,
        None => return Err(to("of a type that the index does not have in \"edge_types\"")),
    };
    if !weight.is_finite() || *weight < rules.min_weight {
        return Err(to(&format!("of the weight {weight}; weights are numbers from {} on", rules.min_weight)));
    }
    if let Some(most) = rules.max_weight.filter(|most| weight > most) {
        return Err(to(&format!("of the weight {weight}; \"max_weight\" is {most}")));
    }
    if !rules.allow_self_loops && **target == *key {
        return Err(to("that leads to its own document, which this type does not allow"));
    }
    for member in rules.required_metadata.iter().filter(|_| *origin == EdgeOrigin::Declared) {
        let value = if metadata.is_empty() { None } else { find_member(metadata.as_bytes(), &[member]).ok().flatten() };
        if value.is_none_or(|value| value == b"null") {
            return Err(to(&format!("without {member:?} in its \"metadata\", which this type requires")));
        }
    }
    Ok(())
}
