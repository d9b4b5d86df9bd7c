//! Form 4: the edges that lead from one document, sorted by type, then target, then origin, each of them once.
//!
//! ```text
//! 0 count u32, then for each edge:
//!   0 type bytes u16, 2 flags u8, 3 zero, 4 target bytes u32, 8 metadata bytes u32, 12 weight f32,
//!   16 created ms i64, 24 updated ms i64, 32 where flag 2 is set: since u64,
//!   then type, target, metadata (UTF-8; JSON object, or nothing)
//! ```
//!
//! Flag 1: the edge follows from a field or an artifact of its document; without it, it was declared by a write.
//! Flag 2: the edge is there since an earlier sequence of its range than that of the part.

use super::payload::Payload;
use crate::error::EngineError;

/// Edges of one document in one index.
pub const EDGES_MAX: usize = 1 << 20;
const IS_DERIVED: u8 = 1;
const HAS_SINCE: u8 = 2;
/// Bytes of an edge before its strings.
const HEAD_BYTES: usize = 32;

/// The origin of an edge. Two edges of the same type and target differ by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EdgeOrigin {
    /// A write, in the member `_edges`.
    Declared,
    /// A field or an artifact of the document.
    Derived,
}

/// One edge, borrowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Edge<'a> {
    pub edge_type: &'a str,
    /// Key of the document that the edge leads to, which need not exist.
    pub target: &'a str,
    pub origin: EdgeOrigin,
    /// Finite.
    pub weight: f32,
    /// Milliseconds since 1970.
    pub created_ms: i64,
    pub updated_ms: i64,
    /// Sequence of the part by which the edge was written last; 0 for the part that holds it.
    pub since: u64,
    /// A JSON object; empty for none.
    pub metadata: &'a str,
}

impl<'a> Edge<'a> {
    /// By what edges of one document are told apart and sorted; strings compare bytewise.
    pub fn identity(&self) -> (&'a str, &'a str, EdgeOrigin) {
        (self.edge_type, self.target, self.origin)
    }
}

/// Reads all edges of a payload. Error: `internal` for bytes that are not a sorted list of edges.
pub fn read_edges(bytes: &[u8]) -> Result<Vec<Edge<'_>>, EngineError> {
    let mut payload = Payload::new(bytes, "a list of edges");
    let count = payload.u32()? as usize;
    if count > EDGES_MAX {
        return Err(payload.broken("has a count out of bounds"));
    }
    // A count that is wrong must not make room for edges that are not there.
    let mut edges: Vec<Edge<'_>> = Vec::with_capacity(count.min(bytes.len() / HEAD_BYTES));
    for _ in 0..count {
        let edge = read_edge(&mut payload)?;
        if edges.last().is_some_and(|last| last.identity() >= edge.identity()) {
            return Err(payload.broken("is not sorted"));
        }
        edges.push(edge);
    }
    payload.end()?;
    Ok(edges)
}

fn read_edge<'a>(payload: &mut Payload<'a>) -> Result<Edge<'a>, EngineError> {
    let type_bytes = payload.u16()? as usize;
    let [flags, _] = payload.array()?;
    let target_bytes = payload.u32()? as usize;
    let metadata_bytes = payload.u32()? as usize;
    let weight = f32::from_le_bytes(payload.array()?);
    let (created_ms, updated_ms) = (payload.i64()?, payload.i64()?);
    if flags & !(IS_DERIVED | HAS_SINCE) != 0 {
        return Err(payload.broken("has an edge with unknown flags"));
    }
    let origin = if flags & IS_DERIVED == 0 { EdgeOrigin::Declared } else { EdgeOrigin::Derived };
    let since = if flags & HAS_SINCE == 0 { 0 } else { payload.i64()? as u64 };
    if !weight.is_finite() {
        return Err(payload.broken("has a weight that is not finite"));
    }
    let edge_type = payload.text(type_bytes)?;
    let target = payload.text(target_bytes)?;
    let metadata = payload.text(metadata_bytes)?;
    Ok(Edge { edge_type, target, origin, weight, created_ms, updated_ms, since, metadata })
}

/// The payload of these edges, which it sorts. Error: `invalid_request` for two of the same identity, a type of more than
/// 65,535 bytes, a weight that is not finite, or more than `EDGES_MAX`.
pub fn write_edges(edges: &[Edge<'_>]) -> Result<Vec<u8>, EngineError> {
    let invalid = |message: String| Err(EngineError::new("invalid_request", message));
    if edges.len() > EDGES_MAX {
        return invalid(format!("a document has at most {EDGES_MAX} edges in an index, not {}", edges.len()));
    }
    let mut sorted: Vec<&Edge<'_>> = edges.iter().collect();
    sorted.sort_by_key(|edge| edge.identity());
    if let Some([twin, _]) = sorted.array_windows().find(|[left, right]| left.identity() == right.identity()) {
        return invalid(format!("the edge {:?} to {:?} is there twice", twin.edge_type, twin.target));
    }
    let mut payload = Vec::new();
    append_edges(&mut payload, sorted.into_iter().copied())?;
    Ok(payload)
}

/// Appends the payload of edges that are sorted already, each of them once. Errors: `invalid_request` for a type of more than
/// 65,535 bytes or a weight that is not finite; what was appended then is no payload.
pub fn append_edges<'a>(
    payload: &mut Vec<u8>,
    edges: impl ExactSizeIterator<Item = Edge<'a>>,
) -> Result<(), EngineError> {
    let invalid = |message: String| Err(EngineError::new("invalid_request", message));
    payload.extend((edges.len() as u32).to_le_bytes());
    for edge in edges {
        let Ok(type_bytes) = u16::try_from(edge.edge_type.len()) else {
            return invalid("the type of an edge has more than 65,535 bytes".to_owned());
        };
        if !edge.weight.is_finite() {
            return invalid(format!("the weight of the edge to {:?} is not finite", edge.target));
        }
        let derived = if edge.origin == EdgeOrigin::Derived { IS_DERIVED } else { 0 };
        let mut head = [0; HEAD_BYTES];
        head[..2].copy_from_slice(&type_bytes.to_le_bytes());
        head[2] = derived | if edge.since == 0 { 0 } else { HAS_SINCE };
        head[4..8].copy_from_slice(&(edge.target.len() as u32).to_le_bytes());
        head[8..12].copy_from_slice(&(edge.metadata.len() as u32).to_le_bytes());
        head[12..16].copy_from_slice(&edge.weight.to_le_bytes());
        head[16..24].copy_from_slice(&edge.created_ms.to_le_bytes());
        head[24..].copy_from_slice(&edge.updated_ms.to_le_bytes());
        payload.extend_from_slice(&head);
        if edge.since != 0 {
            payload.extend(edge.since.to_le_bytes());
        }
        for text in [edge.edge_type, edge.target, edge.metadata] {
            payload.extend_from_slice(text.as_bytes());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge<'a>(edge_type: &'a str, target: &'a str, origin: EdgeOrigin) -> Edge<'a> {
        let (created_ms, updated_ms) = (1_700_000_000_000, 1_700_000_000_001);
        Edge { edge_type, target, origin, weight: 0.5, created_ms, updated_ms, since: 0, metadata: "{\"note\":\"é\"}" }
    }

    #[test]
    fn reads_back_what_was_written_sorted() {
        let given = [
            edge("likes", "b", EdgeOrigin::Derived),
            edge("likes", "b", EdgeOrigin::Declared),
            Edge { since: 7, ..edge("knows", "z", EdgeOrigin::Declared) },
        ];
        let payload = write_edges(&given).unwrap();
        assert_eq!(read_edges(&payload).unwrap(), [given[2], given[1], given[0]]);
        assert_eq!(read_edges(&write_edges(&[]).unwrap()).unwrap(), []);
    }

    #[test]
    fn refuses_edges_that_cannot_be_told_apart_or_weighed() {
        let twice = [edge("likes", "b", EdgeOrigin::Declared); 2];
        assert_eq!(write_edges(&twice).unwrap_err().code, "invalid_request");
        let weightless = Edge { weight: f32::NAN, ..twice[0] };
        assert_eq!(write_edges(&[weightless]).unwrap_err().code, "invalid_request");
    }

    #[test]
    fn refuses_bytes_that_are_not_a_sorted_list() {
        let payload =
            write_edges(&[edge("a", "b", EdgeOrigin::Declared), edge("a", "c", EdgeOrigin::Declared)]).unwrap();
        assert!((0..payload.len()).all(|length| read_edges(&payload[..length]).is_err()));
        assert!(read_edges(&[payload.as_slice(), &[0]].concat()).is_err());
        let each = (payload.len() - 4) / 2;
        let (first, second) = payload[4..].split_at(each);
        assert!(read_edges(&[&payload[..4], second, first].concat()).is_err());
        let mut wild = payload.clone();
        wild[6] = 4;
        assert!(read_edges(&wild).is_err());
    }
}
