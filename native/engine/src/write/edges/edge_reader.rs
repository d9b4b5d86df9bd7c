//! Reads edges out of documents: of their member `_edges`, and of the fields from which an index makes edges.

use std::borrow::Cow;

use sundew_base::part::edges::{EDGES_MAX, EdgeOrigin};

use super::edge_rules::{EdgeTypeRules, GraphTarget};
use super::new_edge::NewEdge;
use crate::error::EngineError;
use crate::json::{ScanLimits, Scanner, decode_string, find_member, float_at, shorten};
use crate::write::index_member::{Fault, MemberPosition, refuse, scanner_at_value};
use crate::write::vectors::VectorTarget;

/// Edges of one document that there is room for at first.
const USUAL_EDGES: usize = 16;
/// Bytes of the metadata of one edge.
const METADATA_BYTES_MAX: usize = 64 * 1024;

/// Reads the member `_edges`, given with its name, which a scan has accepted: fills in the list of each graph that it names.
/// `others`: all indexes of the table, for a better message. Error: `invalid_edge`, naming document and index.
pub(super) fn read_declared<'m>(
    member: &'m [u8],
    key: &str,
    limits: &'m ScanLimits,
    graphs: &[GraphTarget],
    others: &[VectorTarget],
    lists: &mut [Option<Vec<NewEdge<'m>>>],
) -> Result<(), EngineError> {
    let text = std::str::from_utf8(member).map_err(|_| EngineError::internal("edges that are not UTF-8"))?;
    let mut scanner = scanner_at_value(member, limits)?;
    if scanner.peek() == Some(b'n') {
        return Ok(());
    }
    if scanner.peek() != Some(b'{') {
        let message = format!("document {:?}: \"_edges\" must be an object of index names and edges", shorten(key));
        return Err(EngineError::new("invalid_edge", message));
    }
    let mut indexes = scanner.open_object(0)?;
    while let Some(name) = scanner.next_member(&mut indexes)? {
        let name = scanner.decode(name);
        let position = position(key, &name);
        let graph = graphs.iter().position(|graph| *graph.name == *name);
        let graph = graph.ok_or_else(|| position.error("invalid_edge", no_graph(&name, others)))?;
        let mut reader = EdgeReader { text, scanner: &mut scanner };
        lists[graph] = Some(reader.types().map_err(|fault| fault.at(position, "invalid_edge"))?);
    }
    Ok(())
}

fn no_graph(name: &str, others: &[VectorTarget]) -> &'static str {
    if others.iter().any(|index| index.name == name) {
        "names an index that takes no edges of a write: it is not a graph, or its edges are made of an artifact"
    } else {
        "names no index of the table; create a graph index of this name first"
    }
}

pub(super) fn position<'a>(key: &'a str, index: &'a str) -> MemberPosition<'a> {
    MemberPosition { key, member: "_edges", index }
}

/// Appends the edges that follow from a document's field: a key, or an array of keys. Null, the empty string and no field
/// at all mean none.
pub(super) fn derive<'b>(body: &'b [u8], rules: &'b EdgeTypeRules, edges: &mut Vec<NewEdge<'b>>) -> Result<(), String> {
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
            return refuse("has an edge that is not an object with a \"target\"");
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
                        return refuse(format!(
                            "has an edge with more than {METADATA_BYTES_MAX} bytes of \"metadata\""
                        ));
                    }
                }
                ("weight" | "metadata", Some(b'n')) => self.scanner.value(4)?,
                ("target", _) => return refuse("has an edge whose \"target\" is not a string"),
                ("weight", _) => return refuse("has an edge whose \"weight\" is not a number"),
                ("metadata", _) => return refuse("has an edge whose \"metadata\" is not an object"),
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
            None => refuse("has an edge without \"target\""),
        }
    }
}
