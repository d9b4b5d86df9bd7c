//! An edge of a request.

use std::borrow::Cow;

use sundew_base::part::edges::{Edge, EdgeOrigin};

/// An edge that is not a part of a list yet.
pub struct NewEdge<'a> {
    pub edge_type: Cow<'a, str>,
    pub target: Cow<'a, str>,
    pub origin: EdgeOrigin,
    pub weight: f32,
    pub metadata: &'a str,
}

impl NewEdge<'_> {
    pub fn identity(&self) -> (&str, &str, EdgeOrigin) {
        (&self.edge_type, &self.target, self.origin)
    }

    pub fn at(&self, now_ms: i64) -> Edge<'_> {
        Edge {
            edge_type: &self.edge_type,
            target: &self.target,
            origin: self.origin,
            weight: self.weight,
            created_ms: now_ms,
            updated_ms: now_ms,
            since: 0,
            metadata: self.metadata,
        }
    }
}
