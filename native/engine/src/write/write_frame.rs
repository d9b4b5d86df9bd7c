//! Turns the entries of a scanned write request into a document frame: keys decoded and checked, the time of the write
//! noted, the TTL base computed, vectors checked and made rows of their own, bodies otherwise as sent.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::document_key::check_key;
use super::edges::{EdgeContext, EdgeRows, GraphTarget};
use super::vectors::{VectorRows, VectorTarget};
use super::write_scan::{ENTRY_WORDS, FLAG_KEY_ESCAPED, FLAG_TIMESTAMP, FLAG_TYPE, FLAG_UPSERT};
use crate::error::EngineError;
use crate::frame::{FrameWriter, ROW_KEEPS_DECLARED, RowKind};
use crate::json::{decode_string, find_member, shorten};
use crate::schema::TableSchema;

const TIMESTAMP_MEMBER: &str = "_timestamp";
/// Milliseconds since 1970 beyond which JavaScript has no `Date`.
const INSTANT_MS_MAX: f64 = 8.64e15;

#[derive(Debug, Clone)]
pub struct FrameOptions {
    /// When the request was received, in milliseconds since 1970: the `_timestamp` of documents that bring none.
    pub timestamp_ms: i64,
    /// Dotted path of the member that holds a document's TTL base; `None` when the table has no TTL.
    pub ttl_field: Option<String>,
    pub key_bytes_max: usize,
    /// Whether a key may be both deleted and put: it is deleted first then, and the document begins without what the
    /// old one had.
    pub puts_deleted: bool,
    /// The table's indexes; they are looked at only for documents with `_embeddings`.
    pub vector_indexes: Vec<VectorTarget>,
    /// The table's graph indexes; needed where a document has `_edges`, or an index makes edges of fields.
    pub graph_indexes: Vec<GraphTarget>,
}

struct Entry<'a> {
    kind: RowKind,
    key: Cow<'a, str>,
    /// Without the members `_embeddings` and `_edges`.
    body: Cow<'a, [u8]>,
    flags: u32,
    /// The member `_embeddings` with its name; empty without one.
    embeddings: &'a [u8],
    /// Its vectors among those of the request.
    vectors: Range<usize>,
    /// The member `_edges` with its name; empty without one.
    edges: &'a [u8],
    /// Its lists of edges among those of the request.
    edge_rows: Range<usize>,
}

/// Builds the frame of one section's entries (`ENTRY_WORDS` words each) of the request `bytes`. Rows lie as given,
/// puts first, each followed by the rows of its vectors and edges, then deletes, then transforms; a key that is deleted and
/// put has its delete before the puts. Puts are validated against `schema`, when the table has one.
/// Errors: `invalid_key`, `conflicting_operations`, `validation_failed`, `invalid_embedding`, `invalid_edge`,
/// `tree_topology_violation`, `limit_exceeded`.
pub fn build_frame(
    bytes: &[u8],
    entries: &[u32],
    options: &FrameOptions,
    schema: Option<&TableSchema>,
) -> Result<Vec<u8>, EngineError> {
    let mut rows = read_entries(bytes, entries, options.key_bytes_max)?;
    let put_again = deleted_and_put(&rows);
    if let Some(key) = put_again.iter().next().filter(|_| !options.puts_deleted) {
        return Err(conflict(key, "is both inserted and deleted"));
    }
    let vectors = read_vectors(&mut rows, &options.vector_indexes)?;
    let edges = read_edges(&mut rows, options)?;
    let overhead = TRANSFORM_HEAD.len() + TRANSFORM_UPSERT_TAIL.len();
    let heap_bytes: usize = rows.iter().map(|row| row.key.len() + row.body.len() + overhead).sum();
    let key_bytes_max = rows.iter().map(|row| row.key.len()).max().unwrap_or(0);
    let part_count = vectors.rows.len() + edges.rows.len();
    let part_bytes = vectors.payloads.len() + edges.payloads.len() + part_count * (8 + key_bytes_max);
    let mut writer = FrameWriter::new(rows.len() + part_count, heap_bytes + part_bytes)?;
    let ttl_path: Option<Vec<&str>> = options.ttl_field.as_deref().map(|field| field.split('.').collect());
    let (deletes_before, deletes_behind): (Vec<&Entry>, Vec<&Entry>) =
        rows.iter().filter(|row| row.kind == RowKind::Delete).partition(|row| put_again.contains(&*row.key));
    for row in deletes_before {
        writer.push(RowKind::Delete, 0, row.key.as_bytes(), &[]);
    }
    for row in rows.iter().filter(|row| row.kind == RowKind::Put) {
        check_document(row)?;
        if let Some(schema) = schema {
            schema.validate(&row.key, &row.body)?;
        }
        let ttl_base_ms = match &ttl_path {
            Some(path) => ttl_base(row, path, options.timestamp_ms)?,
            None => 0,
        };
        writer.push(RowKind::Put, ttl_base_ms, row.key.as_bytes(), &[&row.body]);
        if row.flags & FLAG_TIMESTAMP == 0 {
            writer.set_written_ms(options.timestamp_ms.max(1) as u64);
        }
        for vector in &vectors.rows[row.vectors.clone()] {
            let payload = &vectors.payloads[vector.payload.clone()];
            writer.push(vector.kind, 0, row.key.as_bytes(), &[&vector.head, payload]);
        }
        for list in &edges.rows[row.edge_rows.clone()] {
            let payload = &edges.payloads[list.payload.clone()];
            writer.push(list.kind, 0, row.key.as_bytes(), &[&list.head, payload]);
            if list.keeps_declared {
                writer.set_flags(ROW_KEEPS_DECLARED);
            }
        }
    }
    for row in deletes_behind {
        writer.push(RowKind::Delete, 0, row.key.as_bytes(), &[]);
    }
    for row in rows.iter().filter(|row| row.kind == RowKind::Transform) {
        let tail = if row.flags & FLAG_UPSERT != 0 { TRANSFORM_UPSERT_TAIL } else { TRANSFORM_TAIL };
        writer.push(RowKind::Transform, 0, row.key.as_bytes(), &[TRANSFORM_HEAD, &row.body, tail]);
    }
    Ok(writer.finish())
}

const TRANSFORM_HEAD: &[u8] = b"{\"operations\":";
const TRANSFORM_TAIL: &[u8] = b",\"upsert\":false}";
const TRANSFORM_UPSERT_TAIL: &[u8] = b",\"upsert\":true}";

fn read_entries<'a>(bytes: &'a [u8], entries: &[u32], key_bytes_max: usize) -> Result<Vec<Entry<'a>>, EngineError> {
    if !entries.len().is_multiple_of(ENTRY_WORDS) {
        return Err(EngineError::internal("scan entries of a broken length"));
    }
    let slice = |offset: u32, length: u32| {
        bytes
            .get(offset as usize..offset as usize + length as usize)
            .ok_or_else(|| EngineError::internal("a scan entry points outside the request"))
    };
    let within = |body: &[u8], body_offset: u32, member: &[u8], offset: u32| {
        let start = offset.checked_sub(body_offset).map(|start| start as usize);
        let start = start.filter(|start| start + member.len() < body.len());
        let outside = || EngineError::internal("a scan entry with a member that lies outside it");
        start.map(|start| start..start + member.len()).ok_or_else(outside)
    };
    let mut rows = Vec::with_capacity(entries.len() / ENTRY_WORDS);
    for entry in entries.chunks_exact(ENTRY_WORDS) {
        let kind = u8::try_from(entry[1]).ok().and_then(RowKind::from_code);
        let kind = kind.ok_or_else(|| EngineError::internal("a scan entry of unknown kind"))?;
        let flags = entry[6];
        let key = decode_string(slice(entry[2], entry[3])?, flags & FLAG_KEY_ESCAPED != 0);
        check_key(&key, key_bytes_max)?;
        let body = slice(entry[4], entry[5])?;
        let embeddings = slice(entry[7], entry[8])?;
        let edges = slice(entry[9], entry[10])?;
        let mut members = Vec::new();
        for (member, offset) in [(embeddings, entry[7]), (edges, entry[9])] {
            if !member.is_empty() {
                members.push(within(body, entry[4], member, offset)?);
            }
        }
        // From the end on, so that what is cut does not move what is cut next.
        members.sort_unstable_by_key(|member| std::cmp::Reverse(member.start));
        let mut body = Cow::Borrowed(body);
        for member in members {
            body = Cow::Owned(without_member(&body, member));
        }
        rows.push(Entry { kind, key, body, flags, embeddings, vectors: 0..0, edges, edge_rows: 0..0 });
    }
    Ok(rows)
}

/// The object without the member at `member`, and without the comma that came with it.
fn without_member(object: &[u8], member: Range<usize>) -> Vec<u8> {
    let (mut head, tail) = (&object[..member.start], &object[member.end..]);
    let mut tail_start = 0;
    let rest = tail.trim_ascii_start();
    if rest.first() == Some(&b',') {
        tail_start = tail.len() - rest.len() + 1;
    } else {
        let before = head.trim_ascii_end();
        head = before.strip_suffix(b",").unwrap_or(before);
    }
    [head, &tail[tail_start..]].concat()
}

/// The vector rows of all documents; each entry learns which are its own.
fn read_vectors(rows: &mut [Entry<'_>], indexes: &[VectorTarget]) -> Result<VectorRows, EngineError> {
    let mut vectors = VectorRows::default();
    for row in rows.iter_mut().filter(|row| !row.embeddings.is_empty()) {
        let start = vectors.rows.len();
        vectors.read(row.embeddings, &row.key, indexes)?;
        row.vectors = start..vectors.rows.len();
    }
    Ok(vectors)
}

/// The lists of edges of all documents; each entry learns which are its own.
fn read_edges<'a>(rows: &mut [Entry<'_>], options: &'a FrameOptions) -> Result<EdgeRows<'a>, EngineError> {
    let context = EdgeContext {
        graphs: &options.graph_indexes,
        others: &options.vector_indexes,
        key_bytes_max: options.key_bytes_max,
        timestamp_ms: options.timestamp_ms,
    };
    let mut lists = EdgeRows::new(context, rows.iter().map(|row| row.edges.len()).sum());
    for row in rows.iter_mut().filter(|row| row.kind == RowKind::Put) {
        let start = lists.rows.len();
        lists.read(row.edges, &row.key, &row.body)?;
        row.edge_rows = start..lists.rows.len();
    }
    Ok(lists)
}

/// Keys that are both deleted and put: in one batch the order would be a guess. Puts are unique as members of one object,
/// and a key that is deleted twice is deleted.
fn deleted_and_put(rows: &[Entry<'_>]) -> BTreeSet<String> {
    let deleted: HashSet<&str> = rows.iter().filter(|row| row.kind == RowKind::Delete).map(|row| &*row.key).collect();
    if deleted.is_empty() {
        return BTreeSet::new();
    }
    let puts = rows.iter().filter(|row| row.kind == RowKind::Put);
    puts.filter(|row| deleted.contains(&*row.key)).map(|row| row.key.clone().into_owned()).collect()
}

fn conflict(key: &str, what: &str) -> EngineError {
    EngineError::new("conflicting_operations", format!("the key {:?} {what} in one batch", shorten(key)))
}

/// Checks the members that Sundew itself reads.
fn check_document(row: &Entry<'_>) -> Result<(), EngineError> {
    let refuse = |what: &str| Err(invalid_document(&row.key, what));
    if row.flags & FLAG_TYPE != 0 && find_member(&row.body, &["_type"])?.is_none_or(|value| value[0] != b'"') {
        return refuse("_type must be a string");
    }
    if row.flags & FLAG_TIMESTAMP != 0 {
        let value = find_member(&row.body, &[TIMESTAMP_MEMBER])?;
        if value.and_then(date_time_ms).is_none() {
            return refuse("_timestamp must be an RFC 3339 date and time");
        }
    }
    Ok(())
}

/// The TTL base in milliseconds, at least 1 because 0 means "never expires".
fn ttl_base(row: &Entry<'_>, path: &[&str], timestamp_ms: i64) -> Result<i64, EngineError> {
    if path == [TIMESTAMP_MEMBER] && row.flags & FLAG_TIMESTAMP == 0 {
        return Ok(timestamp_ms.max(1));
    }
    let Some(value) = find_member(&row.body, path)? else {
        return Ok(timestamp_ms.max(1));
    };
    let base = date_time_ms(value).or_else(|| nanoseconds_to_ms(value)).ok_or_else(|| {
        let path = path.join(".");
        let what = "must be an RFC 3339 time, or nanoseconds since 1970 such as 1.7e18";
        invalid_document(&row.key, &format!("the TTL field {path} {what}"))
    })?;
    Ok(base.max(1))
}

/// Milliseconds since 1970 of a JSON string literal in RFC 3339.
fn date_time_ms(literal: &[u8]) -> Option<i64> {
    let content = literal.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let instant = OffsetDateTime::parse(&decode_string(content, true), &Rfc3339).ok()?;
    i64::try_from(instant.unix_timestamp_nanos().div_euclid(1_000_000)).ok()
}

/// Of any number: documents have integers up to 2^53 only, which as nanoseconds is a hundred days.
fn nanoseconds_to_ms(literal: &[u8]) -> Option<i64> {
    let nanoseconds: f64 = std::str::from_utf8(literal).ok()?.parse().ok()?;
    Some((nanoseconds / 1e6).floor().min(INSTANT_MS_MAX) as i64)
}

fn invalid_document(key: &str, what: &str) -> EngineError {
    EngineError::new("validation_failed", format!("document {:?}: {what}", shorten(key)))
}
