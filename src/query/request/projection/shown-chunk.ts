/** A chunk of a document, and what it was cut from. */
interface CutChunk {
  readonly documentKey: string;
  /** The name that its chunks are shown by. */
  readonly artifactName: string;
  readonly number: number;
  readonly content: string;
  /** Its place in the text, in characters (Unicode code points); the end is exclusive. */
  readonly characters: TextPlace;
  /** The same in bytes of UTF-8; undefined where the text is no longer at hand. */
  readonly bytes: TextPlace | undefined;
}

export interface TextPlace {
  readonly start: number;
  readonly end: number;
}

/** The text that chunks were cut from. */
interface ChunkOrigin {
  /** Path of a member of the document. */
  readonly field?: string | undefined;
  /** Name of another enrichment. */
  readonly artifact?: string | undefined;
  readonly hash: Uint8Array | undefined;
  /** Chunks that were made of it. */
  readonly count: number;
}

/** A chunk as `_chunks` shows it: neither a field nor another artifact is named where it comes from a template. */
export function shownChunk(chunk: CutChunk, { field: path, artifact, hash, count }: ChunkOrigin): object {
  const { documentKey, artifactName, number, content, characters, bytes } = chunk;
  const field = path?.replace(/^\$\./, '');
  return {
    // Under the name of the field too, as the document has it; the names of the server's own members stay theirs.
    ...(field === undefined ? {} : { [field]: content }),
    _id: chunkId(documentKey, artifactName, number),
    _chunk_id: number,
    _content: content,
    _start_char: characters.start,
    _end_char: characters.end,
    ...(bytes === undefined ? {} : { _start_offset: bytes.start, _end_offset: bytes.end }),
    _parent_doc_key: documentKey,
    _artifact_name: artifactName,
    ...(field === undefined ? {} : { _source_field: field }),
    _mime_type: 'text/plain',
    provenance: {
      document_id: documentKey,
      artifact_name: artifactName,
      source_kind: artifact === undefined ? (field === undefined ? 'template' : 'field') : 'artifact',
      ...(field === undefined ? {} : { source_field: field }),
      ...(artifact === undefined ? {} : { source_artifact_name: artifact }),
      ...(hash === undefined ? {} : { source_hash: Buffer.from(hash).toString('hex') }),
      chunk_index: number,
      chunk_count: count,
    },
  };
}

/** The id of a chunk: of the document's key, the name of its chunks, and its number. */
export function chunkId(documentKey: string, artifactName: string, number: number): string {
  return `af1:chunk:${base64url(documentKey)}:${base64url(artifactName)}:${number}`;
}

export function base64url(text: string): string {
  return Buffer.from(text).toString('base64url');
}
