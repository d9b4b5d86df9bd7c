import { type Caller, serverCaller } from '../access/principal.ts';
import { must } from '../lib/assert.ts';
import { type DocumentFrame, FrameBuilder, readFrame, rowKind } from '../lib/document-frame.ts';
import { partDeleteBody, partIdOfBody } from '../lib/parts/part-body.ts';
import { hasExpired } from '../lib/ttl.ts';
import { ServiceError } from '../protocol/service-error.ts';
import type { RangeReader } from '../storage/reader/range-reader.ts';
import { type SourceTemplates, sourceOf } from './derive-source.ts';
import type { FollowedPart } from './following/followed-part.ts';
import { heldParts } from './following/held-part.ts';
import { isMade, madeBody, type PartOutcome } from './following/part-outcome.ts';

/** Bodies by the rows of the transforms that leave them. */
export type TransformedRows = ReadonlyMap<number, { readonly body: Uint8Array } | undefined>;

interface Precompute {
  readonly stored: RangeReader;
  /** Each behind the one that it is made from. */
  readonly definitions: readonly FollowedPart[];
  readonly templates: SourceTemplates;
  readonly caller: Caller;
  /** Row of a transform -> the document behind it; undefined for a row that a later one of its document follows. */
  readonly transformed: TransformedRows;
  /** The latest TTL base of documents that have expired at the time of the write; undefined when none ever does. */
  readonly expiredAtOrBeforeMs: number | undefined;
}

/** A part row for the put, or the transform, of a row. */
interface PartRow {
  readonly kind: typeof rowKind.partPut | typeof rowKind.partDelete;
  readonly body: Uint8Array;
}

/**
 * Puts the parts of the documents that a frame writes behind their puts and transforms. An unchanged source is not
 * embedded again. Throws `enrichment_failed` for a document that cannot be embedded, and the fault of an embedder as it
 * is.
 */
export async function precomputeParts(
  bytes: Uint8Array<ArrayBuffer>,
  how: Precompute,
): Promise<Uint8Array<ArrayBuffer>> {
  const partRows = new Map<number, PartRow[]>();
  for (const definition of how.definitions) await addParts(bytes, definition, how, partRows);
  const frame = readFrame(bytes);
  const built = new FrameBuilder(frame.rowCount * 2, bytes.byteLength * 2);
  let put: number | undefined;
  const close = () => {
    if (put === undefined) return;
    for (const { kind, body } of partRows.get(put) ?? []) built.append(kind, frame.keyBytes(put), body);
    put = undefined;
  };
  for (let row = 0; row < frame.rowCount; row += 1) {
    const kind = frame.kind(row);
    // Parts that came with the document lie behind it already.
    if (kind !== rowKind.partPut && kind !== rowKind.partDelete) close();
    if (kind === rowKind.put || how.transformed.get(row)) put = row;
    built.appendRow(frame, row);
  }
  close();
  return built.finish();
}

/** `partRows`: row of the put or the transform -> its part rows. */
async function addParts(
  bytes: Uint8Array<ArrayBuffer>,
  definition: FollowedPart,
  { stored, templates, caller, transformed, expiredAtOrBeforeMs }: Precompute,
  partRows: Map<number, PartRow[]>,
): Promise<void> {
  const frame = readFrame(bytes);
  const replaced = deletedKeys(frame);
  /** The stored document whose parts the written one has; one that is deleted before, or has expired, takes them with it. */
  const heldDocument = (key: string) => {
    const document = replaced.has(key) ? undefined : stored.documents.get(key);
    return document && hasExpired(document.ttlBaseMs, expiredAtOrBeforeMs) ? undefined : document;
  };
  const newBatch = definition.batches();
  // Write access to the table suffices: no grant for inference is needed.
  const { requestId, signal } = caller;
  const call = { caller: serverCaller(requestId, signal), signal };
  for (let row = 0; row < frame.rowCount; ) {
    const batch = newBatch();
    for (; row < frame.rowCount && !batch.isFull; row += 1) {
      const isPut = frame.kind(row) === rowKind.put && !transformed.has(row);
      const body = isPut ? frame.body(row) : transformed.get(row)?.body;
      if (body === undefined) continue;
      const ordinal = heldDocument(frame.key(row))?.ordinal;
      const held =
        ordinal === undefined ? undefined : heldParts(stored.parts, definition.partId, [ordinal]).get(ordinal);
      // The number of the row stands for that of the document, which it has yet to get.
      const artifacts = sourceArtifacts(stored, ordinal, definition, partRows.get(row));
      const derived = sourceOf(body, definition.source, templates, { caller, signal }, artifacts);
      const source = derived instanceof Promise ? await derived : derived;
      await batch.add({ ordinal: row, key: frame.keyBytes(row), sequence: 0, body }, source, held, call);
    }
    const outcomes = await batch.run(call);
    for (const { row: document, outcome } of outcomes) {
      const part = partRow(definition.partId, outcome, frame.key(document.ordinal));
      if (part) partRows.set(document.ordinal, [...(partRows.get(document.ordinal) ?? []), part]);
    }
  }
}

/** The source of the part, as it is with this write; undefined where that is the document. */
function sourceArtifacts(
  stored: RangeReader,
  ordinal: number | undefined,
  { source: { artifact } }: FollowedPart,
  rows: readonly PartRow[] = [],
): ReadonlyMap<number, Uint8Array> | undefined {
  if (artifact === undefined) return undefined;
  const written = rows.find(({ body }) => partIdOfBody(body) === artifact);
  if (written) return written.kind === rowKind.partPut ? new Map([[artifact, written.body]]) : new Map();
  return ordinal === undefined ? undefined : stored.parts.read([ordinal], [artifact]).found.get(ordinal);
}

/** Deletes lie before the puts and transforms of their key. */
function deletedKeys(frame: DocumentFrame): Set<string> {
  const keys = new Set<string>();
  for (let row = 0; row < frame.rowCount; row += 1) if (frame.kind(row) === rowKind.delete) keys.add(frame.key(row));
  return keys;
}

function partRow(partId: number, outcome: PartOutcome, key: string): PartRow | undefined {
  if (outcome.kind === 'kept') return undefined;
  if (isMade(outcome)) return { kind: rowKind.partPut, body: madeBody(partId, outcome) };
  if (outcome.kind === 'none') return { kind: rowKind.partDelete, body: partDeleteBody(partId) };
  const error = must(outcome.error, 'a failure without its reason');
  throw new ServiceError('enrichment_failed', `document "${key}" cannot be enriched: ${error.message}`, {
    cause: error,
  });
}
