//! Scans the body of a write request: checks the JSON policy and the request's shape, and answers where each document,
//! deleted key and transform lies, without building values.

use std::ops::Range;

use super::server_members::{is_kept_by_server, kept_by_server, shape};
use super::transform_scan::scan_transform;
use crate::error::EngineError;
use crate::json::{RawString, ScanLimits, Scanner, shorten};

/// Words of one entry in `ScannedWrite::entries`: section, kind, key offset, key bytes, body offset, body bytes, flags,
/// offset and bytes of the member `_embeddings`, its name included (0 and 0 without one), the same of `_edges`, and how
/// many bytes its edges take in a frame at most.
pub const ENTRY_WORDS: usize = 12;

/// The bytes that an edge takes in a frame beside its strings, and what a list of edges takes beside them and the document's key.
const EDGE_HEAD_BYTES_MAX: usize = 40;
const PART_BYTES_MAX: usize = 64;

/// The key's literal contains escapes.
pub const FLAG_KEY_ESCAPED: u32 = 1;
/// The document has this member at its top level.
pub const FLAG_TIMESTAMP: u32 = 1 << 1;
pub const FLAG_EMBEDDINGS: u32 = 1 << 2;
pub const FLAG_EDGES: u32 = 1 << 3;
pub const FLAG_TYPE: u32 = 1 << 4;
/// The transform creates the document when it is missing.
pub const FLAG_UPSERT: u32 = 1 << 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteKind {
    /// `{inserts, deletes, transforms, sync_level}`
    Batch,
    /// `{tables: {name: batch}, sync_level, read_set}`
    Tables,
    /// `{records, last_merged_id, dry_run, sync_level}`
    Merge,
}

/// The content of a write request.
#[derive(Debug, PartialEq, Eq)]
pub struct ScannedWrite {
    /// The request without its documents, keys and transforms: every other member as sent; those of single tables
    /// under `tables`.
    pub envelope_json: String,
    /// Table names for `WriteKind::Tables`; one empty name otherwise.
    pub sections: Vec<String>,
    /// `ENTRY_WORDS` words an entry. Kinds are those of `RowKind`; the offsets count from the start of the scanned
    /// bytes; a key is the content of its string literal; a transform's body is its `operations` array.
    pub entries: Vec<u32>,
}

/// Errors: those of `scan_json`, `invalid_request`, `limit_exceeded`.
pub fn scan_write(bytes: &[u8], kind: WriteKind, limits: &ScanLimits) -> Result<ScannedWrite, EngineError> {
    let mut scan = WriteScan { scanner: Scanner::new(bytes, limits)?, limits, entries: Vec::new() };
    let mut sections = Vec::new();
    scan.scanner.skip_whitespace();
    let envelope_json = match kind {
        WriteKind::Tables => scan.tables(&mut sections)?,
        WriteKind::Batch | WriteKind::Merge => {
            sections.push(String::new());
            scan.section(kind, 0, "the body", 0)?
        }
    };
    scan.scanner.end()?;
    Ok(ScannedWrite { envelope_json, sections, entries: scan.entries })
}

/// Members that a document's scan has met at its top level.
#[derive(Default)]
struct ScannedDocument {
    flags: u32,
    /// Where the member `_embeddings` lies, its name included.
    embeddings: Range<usize>,
    /// Where the member `_edges` lies.
    edges: Range<usize>,
    edge_bytes: usize,
}

struct WriteScan<'a> {
    scanner: Scanner<'a>,
    limits: &'a ScanLimits,
    entries: Vec<u32>,
}

impl WriteScan<'_> {
    fn tables(&mut self, sections: &mut Vec<String>) -> Result<String, EngineError> {
        let mut envelope = Envelope::default();
        self.expect(b'{', "the body must be a JSON object")?;
        let mut root = self.scanner.open_object(0)?;
        while let Some(name) = self.scanner.next_member(&mut root)? {
            if self.scanner.decode(name) != "tables" {
                self.pass_through(&mut envelope, name, 1)?;
                continue;
            }
            self.expect(b'{', "\"tables\" must be an object of table names and batches")?;
            let mut table_envelopes = Envelope::default();
            let mut tables = self.scanner.open_object(1)?;
            while let Some(table) = self.scanner.next_member(&mut tables)? {
                let table_name = self.scanner.decode(table).into_owned();
                let path = format!("tables.{}", shorten(&table_name));
                let table_envelope = self.section(WriteKind::Batch, sections.len() as u32, &path, 2)?;
                sections.push(table_name);
                table_envelopes.push(self.literal_text(table), &table_envelope);
            }
            envelope.push("\"tables\"", &table_envelopes.finish());
        }
        Ok(envelope.finish())
    }

    /// Reads one batch or merge object; answers its envelope.
    fn section(&mut self, kind: WriteKind, section: u32, path: &str, depth: u32) -> Result<String, EngineError> {
        self.expect(b'{', &format!("{path} must be a JSON object"))?;
        let mut envelope = Envelope::default();
        let mut object = self.scanner.open_object(depth)?;
        while let Some(name) = self.scanner.next_member(&mut object)? {
            match (kind, &*self.scanner.decode(name)) {
                (WriteKind::Batch, "inserts") => {
                    self.documents(section, "inserts")?;
                }
                (WriteKind::Batch, "deletes") => self.deletes(section)?,
                (WriteKind::Batch, "transforms") => self.transforms(section)?,
                (WriteKind::Merge, "records") => {
                    if self.documents(section, "records")? {
                        // Told apart from no `records` at all: an empty object has a meaning of its own.
                        envelope.push("\"records\"", "{}");
                    }
                }
                _ => self.pass_through(&mut envelope, name, depth + 1)?,
            }
        }
        Ok(envelope.finish())
    }

    /// False when there is null instead of them.
    fn documents(&mut self, section: u32, member: &str) -> Result<bool, EngineError> {
        if self.skip_null()? {
            return Ok(false);
        }
        self.expect(b'{', &format!("\"{member}\" must be an object of keys and documents"))?;
        // Requests count their keys, documents their members: this object is neither.
        self.scanner.restart_member_count(u32::MAX);
        let mut object = self.scanner.open_object(0)?;
        while let Some(key) = self.scanner.next_member(&mut object)? {
            let start = self.scanner.position();
            if self.scanner.peek() != Some(b'{') {
                let key = self.scanner.decode(key);
                return Err(shape(format!("\"{member}\": the document {:?} must be an object", shorten(&key))));
            }
            self.scanner.restart_member_count(self.limits.members_max);
            let document = self.document(key)?;
            self.scanner.restart_member_count(u32::MAX);
            let bytes = self.scanner.position() - start;
            if bytes > self.limits.document_bytes_max as usize {
                let key = self.scanner.decode(key);
                let message = format!(
                    "the document {:?} has {bytes} bytes; the limit is {}",
                    shorten(&key),
                    self.limits.document_bytes_max
                );
                return Err(EngineError::new("limit_exceeded", message));
            }
            self.entry(section, 1, key, start..start + bytes, document)?;
        }
        Ok(true)
    }

    /// Steps over the document at the cursor; answers which reserved members it has. Those of vectors have bounds of
    /// their own and are not counted.
    fn document(&mut self, key: RawString) -> Result<ScannedDocument, EngineError> {
        let mut document = ScannedDocument::default();
        let mut object = self.scanner.open_object(0)?;
        while let Some(name) = self.scanner.next_member(&mut object)? {
            if name.escaped || self.scanner.text()[name.start] == b'_' {
                let flag = match &*self.scanner.decode(name) {
                    "_timestamp" => FLAG_TIMESTAMP,
                    "_embeddings" => FLAG_EMBEDDINGS,
                    "_edges" => FLAG_EDGES,
                    "_type" => FLAG_TYPE,
                    other if is_kept_by_server(other) => {
                        let key = self.scanner.decode(key);
                        return Err(shape(format!("document {:?}: {}", shorten(&key), kept_by_server(other))));
                    }
                    _ => 0,
                };
                document.flags |= flag;
                if flag == FLAG_EMBEDDINGS {
                    let members_left = self.scanner.restart_member_count(u32::MAX);
                    self.embeddings(key)?;
                    self.scanner.restart_member_count(members_left);
                    document.embeddings = name.start - 1..self.scanner.position();
                    continue;
                }
                if flag == FLAG_EDGES {
                    let members_left = self.scanner.restart_member_count(u32::MAX);
                    document.edge_bytes = self.edges()?;
                    self.scanner.restart_member_count(members_left);
                    document.edges = name.start - 1..self.scanner.position();
                    continue;
                }
            }
            self.scanner.value(1)?;
        }
        Ok(document)
    }

    /// Steps over the value of `_embeddings`. What is no JSON there, such as the `NaN` of some clients, or no double is told
    /// with the vector's position.
    fn embeddings(&mut self, key: RawString) -> Result<(), EngineError> {
        if self.scanner.peek() != Some(b'{') {
            return self.scanner.value(1);
        }
        let mut object = self.scanner.open_object(1)?;
        while let Some(index) = self.scanner.next_member(&mut object)? {
            self.scanner.value(2).map_err(|error| {
                let (key, index) = (self.scanner.decode(key), self.scanner.decode(index));
                let path = format!("document {:?}: \"_embeddings.{}\"", shorten(&key), shorten(&index));
                EngineError::new(error.code, format!("{path}: {}", error.message))
            })?;
        }
        Ok(())
    }

    /// Steps over the value of `_edges`; answers how many bytes its edges take in a frame at most. Of what has another
    /// shape than an object of objects of arrays only the JSON is checked here.
    fn edges(&mut self) -> Result<usize, EngineError> {
        let mut bytes = 0;
        if self.scanner.peek() != Some(b'{') {
            return self.scanner.value(1).map(|()| bytes);
        }
        let mut indexes = self.scanner.open_object(1)?;
        while self.scanner.next_member(&mut indexes)?.is_some() {
            bytes += PART_BYTES_MAX;
            if self.scanner.peek() != Some(b'{') {
                self.scanner.value(2)?;
                continue;
            }
            let mut types = self.scanner.open_object(2)?;
            while let Some(name) = self.scanner.next_member(&mut types)? {
                if self.scanner.peek() != Some(b'[') {
                    self.scanner.value(3)?;
                    continue;
                }
                let mut is_first = self.scanner.open_array(3)?;
                while self.scanner.next_element(&mut is_first)? {
                    let start = self.scanner.position();
                    self.scanner.value(4)?;
                    bytes += EDGE_HEAD_BYTES_MAX + name.end - name.start + self.scanner.position() - start;
                }
            }
        }
        Ok(bytes)
    }

    fn deletes(&mut self, section: u32) -> Result<(), EngineError> {
        if self.skip_null()? {
            return Ok(());
        }
        self.expect(b'[', "\"deletes\" must be an array of keys")?;
        let mut is_first = self.scanner.open_array(0)?;
        while self.scanner.next_element(&mut is_first)? {
            self.expect(b'"', "\"deletes\" must hold strings only")?;
            let key = self.scanner.string()?;
            self.entry(section, 2, key, 0..0, ScannedDocument::default())?;
        }
        Ok(())
    }

    fn transforms(&mut self, section: u32) -> Result<(), EngineError> {
        if self.skip_null()? {
            return Ok(());
        }
        self.expect(b'[', "\"transforms\" must be an array")?;
        let mut is_first = self.scanner.open_array(0)?;
        let mut index = 0;
        while self.scanner.next_element(&mut is_first)? {
            let transform = scan_transform(&mut self.scanner, self.limits, index)?;
            let flags = if transform.upsert { FLAG_UPSERT } else { 0 };
            let document = ScannedDocument { flags, ..ScannedDocument::default() };
            self.entry(section, 3, transform.key, transform.operations, document)?;
            index += 1;
        }
        Ok(())
    }

    fn entry(
        &mut self,
        section: u32,
        kind: u32,
        key: RawString,
        body: Range<usize>,
        document: ScannedDocument,
    ) -> Result<(), EngineError> {
        if self.entries.len() / ENTRY_WORDS >= self.limits.keys_max as usize {
            let message = format!("one request writes at most {} keys", self.limits.keys_max);
            return Err(EngineError::new("limit_exceeded", message));
        }
        let ScannedDocument { flags, embeddings, edges, edge_bytes } = document;
        let flags = flags | if key.escaped { FLAG_KEY_ESCAPED } else { 0 };
        let key_bytes = (key.end - key.start) as u32;
        self.entries.extend([section, kind, key.start as u32, key_bytes, body.start as u32, body.len() as u32, flags]);
        self.entries.extend([embeddings.start as u32, embeddings.len() as u32]);
        self.entries.extend([edges.start as u32, edges.len() as u32, edge_bytes as u32]);
        Ok(())
    }

    /// Copies the member at the cursor into the envelope.
    fn pass_through(&mut self, envelope: &mut Envelope, name: RawString, depth: u32) -> Result<(), EngineError> {
        let start = self.scanner.position();
        self.scanner.value(depth)?;
        let value = &self.scanner.text()[start..self.scanner.position()];
        envelope.push(self.literal_text(name), &String::from_utf8_lossy(value));
        Ok(())
    }

    /// A member whose value is `null` counts as absent, as some clients send it.
    fn skip_null(&mut self) -> Result<bool, EngineError> {
        let is_null = self.scanner.peek() == Some(b'n');
        if is_null {
            self.scanner.value(0)?;
        }
        Ok(is_null)
    }

    fn expect(&mut self, opening: u8, otherwise: &str) -> Result<(), EngineError> {
        if self.scanner.peek() == Some(opening) {
            return Ok(());
        }
        // The value may not even be JSON; that is then the better answer.
        self.scanner.value(0)?;
        Err(shape(otherwise))
    }

    /// A string with its quotes, as sent.
    fn literal_text(&self, string: RawString) -> &str {
        std::str::from_utf8(&self.scanner.text()[string.start - 1..string.end + 1]).unwrap_or_default()
    }
}

/// A JSON object that grows by members given as text.
#[derive(Default)]
struct Envelope {
    text: String,
}

impl Envelope {
    fn push(&mut self, name_literal: &str, value_json: &str) {
        self.text.push(if self.text.is_empty() { '{' } else { ',' });
        self.text.push_str(name_literal);
        self.text.push(':');
        self.text.push_str(value_json);
    }

    fn finish(mut self) -> String {
        if self.text.is_empty() {
            self.text.push('{');
        }
        self.text.push('}');
        self.text
    }
}
