//! JSON scanning and document frames.

use std::sync::Arc;

use napi::Env;
use napi::bindgen_prelude::{Either, Uint8Array, Uint32Array};
use napi_derive::napi;
use sundew_engine::error::EngineError;
use sundew_engine::full_text::TableMapping;
use sundew_engine::json::{self, ScanLimits as EngineLimits};
use sundew_engine::schema::TableSchema;
use sundew_engine::write::{
    self as write_requests, FrameOptions as EngineFrameOptions, GraphTarget, VectorTarget, VectorsTaken, WriteKind,
};

use crate::guard::{EngineTask, Started, call};
use crate::json::{from_json, to_json};
use crate::owned_array::OwnedArray;
use crate::registry::Registry;

static SCHEMAS: Registry<Arc<TableSchema>> = Registry::new("table schema");

/// Document keys are at most this long unless the caller says otherwise.
const KEY_BYTES_MAX: u32 = 1024;

/// Bounds of a scan; what is absent has the documented default.
#[napi(object)]
#[derive(Default)]
pub struct ScanLimits {
    /// Levels of objects and arrays.
    pub depth_max: Option<u32>,
    /// Members of one document, all levels together.
    pub members_max: Option<u32>,
    pub member_name_bytes_max: Option<u32>,
    pub document_bytes_max: Option<u32>,
    /// Inserts, deletes, transforms and records of one request.
    pub keys_max: Option<u32>,
    pub path_segments_max: Option<u32>,
}

impl ScanLimits {
    fn resolve(limits: Option<Self>) -> EngineLimits {
        let given = limits.unwrap_or_default();
        let default = EngineLimits::default();
        EngineLimits {
            depth_max: given.depth_max.unwrap_or(default.depth_max),
            members_max: given.members_max.unwrap_or(default.members_max),
            member_name_bytes_max: given.member_name_bytes_max.unwrap_or(default.member_name_bytes_max),
            document_bytes_max: given.document_bytes_max.unwrap_or(default.document_bytes_max),
            keys_max: given.keys_max.unwrap_or(default.keys_max),
            path_segments_max: given.path_segments_max.unwrap_or(default.path_segments_max),
        }
    }
}

#[napi(object, object_from_js = false)]
pub struct ScannedWrite {
    /// The request without its documents, keys and transforms.
    pub envelope_json: String,
    /// Table names for `tables`; one empty name otherwise.
    pub sections: Vec<String>,
    /// Twelve words an entry: section, kind, key offset, key bytes, body offset, body bytes, flags, offset and bytes of
    /// the member `_embeddings`, the same of `_edges`, and how many bytes its edges take in a frame at most.
    #[napi(ts_type = "Uint32Array")]
    pub entries: OwnedArray<u32>,
}

#[napi(object)]
pub struct FrameOptions {
    /// When the request was received, in milliseconds since 1970: the `_timestamp` of documents that bring none.
    pub timestamp_ms: f64,
    /// Dotted path of the TTL base; absent when the table has no TTL.
    pub ttl_field: Option<String>,
    pub key_bytes_max: Option<u32>,
    /// Whether a key may be both deleted and put, in this order; not, unless given.
    pub puts_deleted: Option<bool>,
    /// The table's indexes; needed when a document has `_embeddings` or `_edges`, or a graph index makes edges of fields.
    pub vector_indexes: Option<Vec<VectorIndexSpec>>,
}

/// An index of a table, as far as the vectors of a write concern it.
#[napi(object)]
pub struct VectorIndexSpec {
    pub name: String,
    /// Its incarnation.
    pub id: u32,
    /// `managed`: its embedder makes the vectors. `full_text` and `graph`: it takes none.
    #[napi(ts_type = "'dense' | 'sparse' | 'managed' | 'full_text' | 'graph'")]
    pub kind: String,
    /// Of a dense index.
    pub dimension: Option<u32>,
    /// Of a dense index: `cosine` refuses vectors of zero norm.
    pub metric: Option<String>,
    /// Of a graph index: which edges it takes, as JSON.
    pub edge_rules: Option<String>,
}

/// Checks one JSON text of any type.
#[napi]
pub fn scan_json(env: Env, bytes: &[u8], limits: Option<ScanLimits>) -> napi::Result<()> {
    call(&env, || json::scan_json(bytes, &ScanLimits::resolve(limits)))
}

#[napi(ts_return_type = "Promise<ScannedWrite>")]
pub fn scan_write(
    bytes: Uint8Array,
    #[napi(ts_arg_type = "'batch' | 'tables' | 'merge'")] kind: String,
    limits: Option<ScanLimits>,
) -> Started<(Uint8Array, String, EngineLimits), ScannedWrite> {
    EngineTask::start((bytes, kind, ScanLimits::resolve(limits)), |(bytes, kind, limits)| scan(bytes, kind, limits))
}

/// `scanWrite` on the calling thread, for bodies of a few tens of kilobytes.
#[napi]
pub fn scan_write_sync(
    env: Env,
    bytes: &[u8],
    #[napi(ts_arg_type = "'batch' | 'tables' | 'merge'")] kind: String,
    limits: Option<ScanLimits>,
) -> napi::Result<ScannedWrite> {
    call(&env, || scan(bytes, &kind, &ScanLimits::resolve(limits)))
}

type FrameInput = (Uint8Array, Uint32Array, FrameOptions, u32, Uint8Array);

/// Writes the document frame of one section's entries of a scanned request to `output` and answers its length, or the
/// frame itself where it does not fit there.
/// `schemaHandle` is 0 or from `openTableSchema`. The caller provides the memory, so that a frame of many megabytes is
/// not copied on the JavaScript thread; like `bytes` it must be left alone until the promise has settled.
#[napi(ts_return_type = "Promise<number | Uint8Array>")]
pub fn build_frame(
    bytes: Uint8Array,
    entries: Uint32Array,
    options: FrameOptions,
    schema_handle: u32,
    output: Uint8Array,
) -> Started<FrameInput, Either<u32, OwnedArray<u8>>> {
    let input = (bytes, entries, options, schema_handle, output);
    EngineTask::start(input, |(bytes, entries, options, schema_handle, output)| {
        let frame = frame(bytes, entries, &frame_options(options)?, *schema_handle)?;
        // SAFETY: the caller leaves `output` alone until the promise has settled, and no other task has it.
        let target = unsafe { output.as_mut() };
        let Some(target) = target.get_mut(..frame.len()) else {
            return Ok(Either::B(OwnedArray(frame)));
        };
        target.copy_from_slice(&frame);
        Ok(Either::A(frame.len() as u32))
    })
}

/// `buildFrame` on the calling thread, for requests of a few tens of kilobytes.
#[napi(ts_return_type = "Uint8Array")]
pub fn build_frame_sync(
    env: Env,
    bytes: &[u8],
    entries: &[u32],
    options: FrameOptions,
    schema_handle: u32,
) -> napi::Result<OwnedArray<u8>> {
    call(&env, || frame(bytes, entries, &frame_options(&options)?, schema_handle).map(OwnedArray))
}

/// Compiles a table schema given as JSON; the handle lives until `closeTableSchema`.
#[napi(ts_return_type = "Promise<number>")]
pub fn open_table_schema(json: String) -> Started<String, u32> {
    EngineTask::start(json, |json| Ok(SCHEMAS.insert(Arc::new(TableSchema::compile(json.as_bytes())?))))
}

/// Gives a handle back. Frames that are being built finish with their schema.
#[napi]
pub fn close_table_schema(env: Env, schema_handle: u32) -> napi::Result<()> {
    call(&env, || SCHEMAS.remove(schema_handle).map(drop))
}

/// What queries can do with the fields that a table schema declares: a JSON object of paths.
#[napi]
pub fn field_capabilities(env: Env, schema_json: String) -> napi::Result<String> {
    call(&env, || {
        let schema: serde_json::Value = from_json(&schema_json, "table schema")?;
        to_json(&TableMapping::from_schema(&schema).capabilities())
    })
}

fn frame(
    bytes: &[u8],
    entries: &[u32],
    options: &EngineFrameOptions,
    schema_handle: u32,
) -> Result<Vec<u8>, EngineError> {
    let schema = if schema_handle == 0 { None } else { Some(SCHEMAS.get(schema_handle)?) };
    write_requests::build_frame(bytes, entries, options, schema.as_deref())
}

fn scan(bytes: &[u8], kind: &str, limits: &EngineLimits) -> Result<ScannedWrite, EngineError> {
    let kind = match kind {
        "batch" => WriteKind::Batch,
        "tables" => WriteKind::Tables,
        "merge" => WriteKind::Merge,
        _ => return Err(EngineError::internal(format!("unknown kind of write request: {kind}"))),
    };
    let scanned = write_requests::scan_write(bytes, kind, limits)?;
    Ok(ScannedWrite {
        envelope_json: scanned.envelope_json,
        sections: scanned.sections,
        entries: OwnedArray(scanned.entries),
    })
}

fn frame_options(options: &FrameOptions) -> Result<EngineFrameOptions, EngineError> {
    let indexes = options.vector_indexes.as_deref().unwrap_or_default();
    let graph_of = |spec: &VectorIndexSpec| {
        let rules = spec.edge_rules.as_deref().map(|json| from_json(json, "edge rules"));
        rules.map(|rules| rules.map(|rules| GraphTarget { name: spec.name.clone(), id: spec.id, rules }))
    };
    Ok(EngineFrameOptions {
        timestamp_ms: options.timestamp_ms as i64,
        ttl_field: options.ttl_field.clone(),
        key_bytes_max: options.key_bytes_max.unwrap_or(KEY_BYTES_MAX) as usize,
        puts_deleted: options.puts_deleted.unwrap_or(false),
        vector_indexes: indexes.iter().map(vector_index).collect(),
        graph_indexes: indexes.iter().filter_map(graph_of).collect::<Result<_, _>>()?,
    })
}

fn vector_index(VectorIndexSpec { name, id, kind, dimension, metric, .. }: &VectorIndexSpec) -> VectorTarget {
    let takes = match kind.as_str() {
        "dense" => VectorsTaken::Dense {
            dimension: dimension.unwrap_or(0),
            needs_direction: metric.as_deref() == Some("cosine"),
        },
        "sparse" => VectorsTaken::Sparse,
        "managed" => VectorsTaken::Managed,
        _ => VectorsTaken::None,
    };
    VectorTarget { name: name.clone(), id: *id, takes }
}

/// Bounds of vectors, written or searched by.
#[napi(object)]
pub struct VectorBounds {
    /// Sum of squares of a dense vector, but for the metric `cosine`: distances of longer ones do not fit a float32.
    pub squares_max: f64,
    /// Entries of a sparse vector.
    pub sparse_entries_max: u32,
}

#[napi]
pub fn vector_bounds() -> VectorBounds {
    VectorBounds {
        squares_max: write_requests::SQUARES_MAX,
        sparse_entries_max: write_requests::SPARSE_ENTRIES_MAX as u32,
    }
}

/// The JSON text of a stored vector, given as the body of a vector row.
#[napi]
pub fn render_vector(env: Env, body: &[u8]) -> napi::Result<String> {
    call(&env, || write_requests::render_vector(body))
}
