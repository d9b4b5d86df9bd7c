//! The edges of documents, declared and derived, are checked against the index that they are for; those of a document become
//! one list, the body of a row of its own.

use std::ops::Range;

use sundew_base::part::edges::{EDGES_MAX, append_edges};
use sundew_base::part::{PartForm, part_head};

use super::edge_reader::{derive, position, read_declared};
use super::edge_rules::{GraphTarget, check};
use super::new_edge::NewEdge;
use crate::error::EngineError;
use crate::frame::RowKind;
use crate::write::index_member::accepted_limits;
use crate::write::vectors::VectorTarget;

/// The context that the edges of a write are checked against.
#[derive(Clone, Copy)]
pub(crate) struct EdgeContext<'a> {
    pub graphs: &'a [GraphTarget],
    /// All indexes of the table.
    pub others: &'a [VectorTarget],
    pub key_bytes_max: usize,
    pub timestamp_ms: i64,
}

/// A row to be written; `payload` lies in `EdgeRows::payloads`.
#[derive(Debug)]
pub(crate) struct EdgeRow {
    pub kind: RowKind,
    pub head: [u8; 8],
    pub payload: Range<usize>,
    /// The document's declared edges stay as they are: it came without `_edges` for this index.
    pub keeps_declared: bool,
}

/// The lists of edges of many documents.
pub(crate) struct EdgeRows<'a> {
    pub rows: Vec<EdgeRow>,
    pub payloads: Vec<u8>,
    context: EdgeContext<'a>,
}

impl<'a> EdgeRows<'a> {
    /// `member_bytes`: bytes of all members `_edges` that are to be read.
    pub fn new(context: EdgeContext<'a>, member_bytes: usize) -> Self {
        // An edge of a short key takes twice the room that it takes in a request.
        Self { rows: Vec::new(), payloads: Vec::with_capacity(member_bytes * 5 / 2), context }
    }

    /// Reads one document: `member` is `_edges` with its name, which a scan has accepted, or empty. Appends a row for each
    /// index that it names and for each that makes edges of fields.
    ///
    /// Errors, naming document and index: `invalid_edge`, `too_many_edges`, `tree_topology_violation`.
    pub fn read(&mut self, member: &[u8], key: &str, body: &[u8]) -> Result<(), EngineError> {
        let EdgeContext { graphs, others, .. } = self.context;
        let limits = accepted_limits();
        let mut lists: Vec<Option<Vec<NewEdge<'_>>>> = graphs.iter().map(|_| None).collect();
        if !member.is_empty() {
            read_declared(member, key, &limits, graphs, others, &mut lists)?;
        }
        for (target, edges) in graphs.iter().zip(lists) {
            let makes_edges = target.rules.edge_types.iter().any(|rules| rules.field.is_some());
            let keeps_declared = edges.is_none();
            if keeps_declared && !makes_edges {
                continue;
            }
            let mut edges = edges.unwrap_or_default();
            for rules in &target.rules.edge_types {
                derive(body, rules, &mut edges)
                    .map_err(|what| position(key, &target.name).error("invalid_edge", &what))?;
            }
            self.append(target, key, edges, keeps_declared)?;
        }
        Ok(())
    }

    fn append(
        &mut self,
        target: &GraphTarget,
        key: &str,
        mut edges: Vec<NewEdge<'_>>,
        keeps_declared: bool,
    ) -> Result<(), EngineError> {
        let GraphTarget { name, id, rules } = target;
        // Of an edge that is given twice the last counts.
        edges.reverse();
        edges.sort_by(|left, right| left.identity().cmp(&right.identity()));
        edges.dedup_by(|left, right| left.identity() == right.identity());
        let position = position(key, name);
        for edge in &edges {
            check(edge, key, rules, self.context.key_bytes_max)
                .map_err(|what| position.error("invalid_edge", &what))?;
        }
        let most = match rules.max_edges_per_document {
            0 => EDGES_MAX,
            most => most.min(EDGES_MAX),
        };
        if edges.len() > most {
            let message = format!("has {} edges; the index takes {most} of a document", edges.len());
            return Err(position.error("too_many_edges", &message));
        }
        for rules in rules.edge_types.iter().filter(|rules| rules.is_tree) {
            let mut targets = edges.iter().filter(|edge| edge.edge_type == rules.name).map(|edge| &edge.target);
            let parent = targets.next();
            if targets.any(|other| Some(other) != parent) {
                let message =
                    format!("has two edges of the type {:?}, which is a tree: a document has one parent", rules.name);
                return Err(position.error("tree_topology_violation", &message));
            }
        }
        if edges.is_empty() && !keeps_declared {
            let head = part_head(*id, PartForm::Deleted);
            self.rows.push(EdgeRow { kind: RowKind::PartDelete, head, payload: 0..0, keeps_declared });
            return Ok(());
        }
        let now = self.context.timestamp_ms;
        let start = self.payloads.len();
        append_edges(&mut self.payloads, edges.iter().map(|edge| edge.at(now)))?;
        let head = part_head(*id, PartForm::Edges);
        let payload = start..self.payloads.len();
        self.rows.push(EdgeRow { kind: RowKind::PartPut, head, payload, keeps_declared });
        Ok(())
    }
}
