//! Reads the edges of documents: of their member `_edges`, and of the fields from which an index makes edges. All are
//! checked against the index that they are for; those of a document become one list, the body of a row of its own.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use sundew_base::part::edges::{EDGES_MAX, Edge, EdgeOrigin, append_edges};
use sundew_base::part::{PartForm, part_head};

use super::document_key::check_key;
use super::vector_scan::VectorTarget;
use crate::error::EngineError;
use crate::frame::RowKind;
use crate::json::float_at;
use crate::json::{ScanLimits, Scanner, decode_string, find_member, shorten};

/// A graph index of the table, as far as the edges of a write concern it.
#[derive(Debug, Clone)]
pub struct GraphTarget {
    pub name: String,
    /// The index's part.
    pub id: u32,
    pub rules: EdgeRules,
}

/// What edges an index takes.
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

/// What the edges of a write are checked against.
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

/// An edge that is not a part of a list yet.
struct NewEdge<'a> {
    edge_type: Cow<'a, str>,
    target: Cow<'a, str>,
    origin: EdgeOrigin,
    weight: f32,
    metadata: &'a str,
}

/// What `_edges` says of one index.
#[derive(Default)]
struct Declared<'a> {
    index: usize,
    edges: Vec<NewEdge<'a>>,
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
        let limits = ScanLimits { member_name_bytes_max: u32::MAX, ..ScanLimits::default() };
        let declared = if member.is_empty() { Vec::new() } else { self.declared(member, key, &limits)? };
        let mut lists: Vec<Option<Vec<NewEdge<'_>>>> = self.context.graphs.iter().map(|_| None).collect();
        for Declared { index, edges } in declared {
            lists[index] = Some(edges);
        }
        for (target, edges) in self.context.graphs.iter().zip(lists) {
            let makes_edges = target.rules.edge_types.iter().any(|rules| rules.field.is_some());
            let keeps_declared = edges.is_none();
            if keeps_declared && !makes_edges {
                continue;
            }
            let mut edges = edges.unwrap_or_default();
            for rules in &target.rules.edge_types {
                derive(body, rules, &mut edges).map_err(|what| refusal(key, &target.name, &what))?;
            }
            self.append(target, key, edges, keeps_declared)?;
        }
        Ok(())
    }

    fn declared<'m>(
        &self,
        member: &'m [u8],
        key: &str,
        limits: &'m ScanLimits,
    ) -> Result<Vec<Declared<'m>>, EngineError> {
        let text = std::str::from_utf8(member).map_err(|_| EngineError::internal("edges that are not UTF-8"))?;
        let mut scanner = Scanner::new(member, limits)?;
        if scanner.peek() != Some(b'"') {
            return Err(EngineError::internal("a scan entry whose edges are not a member"));
        }
        scanner.string()?;
        scanner.skip_whitespace();
        scanner.jump(scanner.position() + 1);
        scanner.skip_whitespace();
        if scanner.peek() == Some(b'n') {
            return Ok(Vec::new());
        }
        if scanner.peek() != Some(b'{') {
            let message = format!("document {:?}: `_edges` must be an object of index names and edges", shorten(key));
            return Err(EngineError::new("invalid_edge", message));
        }
        let mut found = Vec::new();
        let mut indexes = scanner.open_object(0)?;
        while let Some(name) = scanner.next_member(&mut indexes)? {
            let name = scanner.decode(name);
            let index = self.context.graphs.iter().position(|index| *index.name == *name);
            let index = index.ok_or_else(|| self.no_graph(key, &name))?;
            let mut reader = EdgeReader { text, scanner: &mut scanner };
            let edges = reader.types().map_err(|fault| fault.of(key, &name))?;
            found.push(Declared { index, edges });
        }
        Ok(found)
    }

    fn no_graph(&self, key: &str, name: &str) -> EngineError {
        let is_other = self.context.others.iter().any(|index| index.name == name);
        let what = if is_other {
            "names an index that takes no edges of a write: it is not a graph, or its edges are made of an artifact"
        } else {
            "names no index of the table; create a graph index of this name first"
        };
        refusal(key, name, what)
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
        for edge in &edges {
            check(edge, key, rules, self.context.key_bytes_max).map_err(|what| refusal(key, name, &what))?;
        }
        let most = match rules.max_edges_per_document {
            0 => EDGES_MAX,
            most => most.min(EDGES_MAX),
        };
        if edges.len() > most {
            let message = format!("has {} edges; the index takes {most} of a document", edges.len());
            return Err(EngineError::new("too_many_edges", named(key, name, &message)));
        }
        for rules in rules.edge_types.iter().filter(|rules| rules.is_tree) {
            let mut targets = edges.iter().filter(|edge| edge.edge_type == rules.name).map(|edge| &edge.target);
            let parent = targets.next();
            if targets.any(|other| Some(other) != parent) {
                let message =
                    format!("has two edges of the type {:?}, which is a tree: a document has one parent", rules.name);
                return Err(EngineError::new("tree_topology_violation", named(key, name, &message)));
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

impl NewEdge<'_> {
    fn identity(&self) -> (&str, &str, EdgeOrigin) {
        (&self.edge_type, &self.target, self.origin)
    }

    fn at(&self, now_ms: i64) -> Edge<'_> {
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

/// Whether the index takes the edge; otherwise what is wrong with it.
fn check(edge: &NewEdge<'_>, key: &str, rules: &EdgeRules, key_bytes_max: usize) -> Result<(), String> {
    let NewEdge { edge_type, target, weight, metadata, origin } = edge;
    check_key(target, key_bytes_max).map_err(|error| format!("has a target that is not a key: {}", error.message))?;
    if edge_type.is_empty() || edge_type.len() > TYPE_BYTES_MAX {
        return Err(format!("has an edge whose type is empty or has more than {TYPE_BYTES_MAX} bytes"));
    }
    let to = |what: &str| format!("has an edge {:?} to {:?} {what}", shorten(edge_type), shorten(target));
    let rules = match rules.edge_types.iter().find(|rules| *rules.name == **edge_type) {
        Some(rules) => rules,
        None if rules.edge_types.is_empty() => &ANY_TYPE,
        None => return Err(to("of a type that the index does not have in `edge_types`")),
    };
    if !weight.is_finite() || *weight < rules.min_weight {
        return Err(to(&format!("of the weight {weight}; weights are numbers from {} on", rules.min_weight)));
    }
    if let Some(most) = rules.max_weight.filter(|most| weight > most) {
        return Err(to(&format!("of the weight {weight}; `max_weight` is {most}")));
    }
    if !rules.allow_self_loops && **target == *key {
        return Err(to("that leads to its own document, which this type does not allow"));
    }
    for member in rules.required_metadata.iter().filter(|_| *origin == EdgeOrigin::Declared) {
        let value = if metadata.is_empty() { None } else { find_member(metadata.as_bytes(), &[member]).ok().flatten() };
        if value.is_none_or(|value| value == b"null") {
            return Err(to(&format!("without {member:?} in its `metadata`, which this type requires")));
        }
    }
    Ok(())
}

/// Edges of one document that there is room for at first.
const USUAL_EDGES: usize = 16;
/// Bytes of the name of a type.
const TYPE_BYTES_MAX: usize = 256;
/// Bytes of the metadata of one edge.
const METADATA_BYTES_MAX: usize = 64 * 1024;

static ANY_TYPE: EdgeTypeRules = EdgeTypeRules {
    name: String::new(),
    field: None,
    is_tree: false,
    min_weight: 0.0,
    max_weight: None,
    allow_self_loops: true,
    required_metadata: Vec::new(),
};

/// Appends the edges that follow from a document's field: a key, or an array of keys. Null, the empty string and no field
/// at all mean none.
fn derive<'b>(body: &'b [u8], rules: &'b EdgeTypeRules, edges: &mut Vec<NewEdge<'b>>) -> Result<(), String> {
    let Some(field) = &rules.field else { return Ok(()) };
    let path: Vec<&str> = field.split('.').collect();
    let Some(value) = find_member(body, &path).map_err(|error| error.message)? else { return Ok(()) };
    let refused = || format!("makes edges of the field {field:?}, which must hold a key or an array of keys");
    let mut edge = |literal: &'b [u8]| match literal {
        b"\"\"" => {}
        _ => edges.push(NewEdge {
            edge_type: Cow::Borrowed(&*rules.name),
            target: decode_string(&literal[1..literal.len() - 1], true),
            origin: EdgeOrigin::Derived,
            weight: 1.0,
            metadata: "",
        }),
    };
    match value.first() {
        Some(b'"') => edge(value),
        Some(b'n') => {}
        Some(b'[') => {
            let limits = ScanLimits::default();
            let mut scanner = Scanner::new(value, &limits).map_err(|error| error.message)?;
            let mut is_first = scanner.open_array(0).map_err(|error| error.message)?;
            while scanner.next_element(&mut is_first).map_err(|error| error.message)? {
                let start = scanner.position();
                if scanner.peek() != Some(b'"') {
                    return Err(refused());
                }
                scanner.string().map_err(|error| error.message)?;
                edge(&value[start..scanner.position()]);
            }
        }
        _ => return Err(refused()),
    }
    Ok(())
}

/// Reads what `_edges` says of one index.
struct EdgeReader<'m, 's> {
    text: &'m str,
    scanner: &'s mut Scanner<'m>,
}

impl<'m> EdgeReader<'m, '_> {
    fn types(&mut self) -> Result<Vec<NewEdge<'m>>, Fault> {
        let mut edges = Vec::with_capacity(USUAL_EDGES);
        if self.scanner.peek() == Some(b'n') {
            self.scanner.value(1)?;
            return Ok(edges);
        }
        if self.scanner.peek() != Some(b'{') {
            return refuse("must be an object of types and arrays of edges, or null");
        }
        let mut types = self.scanner.open_object(1)?;
        while let Some(name) = self.scanner.next_member(&mut types)? {
            let edge_type = self.scanner.decode(name);
            if self.scanner.peek() != Some(b'[') {
                return refuse(format!("must have an array of edges of the type {:?}", shorten(&edge_type)));
            }
            let mut is_first = self.scanner.open_array(2)?;
            while self.scanner.next_element(&mut is_first)? {
                let edge = self.edge(edge_type.clone())?;
                edges.push(edge);
                if edges.len() > EDGES_MAX {
                    return refuse(format!("has more than {EDGES_MAX} edges"));
                }
            }
        }
        Ok(edges)
    }

    fn edge(&mut self, edge_type: Cow<'m, str>) -> Result<NewEdge<'m>, Fault> {
        if self.scanner.peek() != Some(b'{') {
            return refuse("has an edge that is not an object with a `target`");
        }
        let (mut target, mut weight, mut metadata) = (None, 1.0, "");
        let mut members = self.scanner.open_object(3)?;
        while let Some(name) = self.scanner.next_member(&mut members)? {
            let name = self.scanner.decode(name);
            let opening = self.scanner.peek();
            match (&*name, opening) {
                ("target", Some(b'"')) => {
                    let string = self.scanner.string()?;
                    target = Some(self.scanner.decode(string));
                }
                ("weight", Some(b'-' | b'0'..=b'9')) => {
                    let number = float_at(self.scanner.text(), self.scanner.position());
                    let (number, end) =
                        number.ok_or_else(|| Fault::Refused("has a weight that is not a number".into()))?;
                    weight = number;
                    self.scanner.jump(end);
                }
                ("metadata", Some(b'{')) => {
                    let start = self.scanner.position();
                    self.scanner.value(4)?;
                    metadata = &self.text[start..self.scanner.position()];
                    if metadata.len() > METADATA_BYTES_MAX {
                        return refuse(format!("has an edge with more than {METADATA_BYTES_MAX} bytes of `metadata`"));
                    }
                }
                ("weight" | "metadata", Some(b'n')) => self.scanner.value(4)?,
                ("target", _) => return refuse("has an edge whose `target` is not a string"),
                ("weight", _) => return refuse("has an edge whose `weight` is not a number"),
                ("metadata", _) => return refuse("has an edge whose `metadata` is not an object"),
                (other, _) => {
                    let message = format!(
                        "has an edge with the member {:?}; edges have target, weight and metadata",
                        shorten(other)
                    );
                    return refuse(message);
                }
            }
        }
        match target {
            Some(target) => Ok(NewEdge { edge_type, target, origin: EdgeOrigin::Declared, weight, metadata }),
            None => refuse("has an edge without `target`"),
        }
    }
}

/// Why edges are not taken, without their document.
enum Fault {
    Refused(Cow<'static, str>),
    Json(EngineError),
}

impl Fault {
    fn of(self, key: &str, index: &str) -> EngineError {
        match self {
            Self::Json(error) => error,
            Self::Refused(what) => refusal(key, index, &what),
        }
    }
}

impl From<EngineError> for Fault {
    fn from(error: EngineError) -> Self {
        Self::Json(error)
    }
}

fn refuse<T>(what: impl Into<Cow<'static, str>>) -> Result<T, Fault> {
    Err(Fault::Refused(what.into()))
}

fn refusal(key: &str, index: &str, what: &str) -> EngineError {
    EngineError::new("invalid_edge", named(key, index, what))
}

fn named(key: &str, index: &str, what: &str) -> String {
    format!("document {:?}: `_edges.{}` {what}", shorten(key), shorten(index))
}
