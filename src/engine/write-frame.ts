import { limits } from '../config/limits.ts';
import type { WrittenVectors } from '../index-kinds/index-kind.ts';
import { awaitNative, callNative } from './engine-error.ts';
import type { ScanLimits } from './json-scan.ts';
import { nativeAddon } from './native-addon.ts';
import type { TableSchema } from './table-schema.ts';

/** The kind of a write request's body: a batch, several tables' batches, or a page of a linear merge. */
type WriteKind = 'batch' | 'tables' | 'merge';

export interface ScannedWrite {
  /** The request as JSON without its documents, keys and transforms; those of single tables under `tables`. */
  readonly envelopeJson: string;
  /** Table names for `tables`, in the order sent; one empty name otherwise. */
  readonly sections: readonly string[];
  /** `entryWords` words an entry, sections one after another; see `sectionEntries`. */
  readonly entries: Uint32Array;
}

export interface FrameOptions {
  /** When the request was received, in milliseconds since 1970: the `_timestamp` of documents that bring none. */
  timestampMs: number;
  /** Dotted path of the TTL base; absent when the table has no TTL. */
  ttlField?: string;
  keyBytesMax?: number;
  /** Whether a key may be both deleted and put: the document is then a new one. Not, unless given. */
  putsDeleted?: boolean;
  /** The table's indexes; needed when `holdsVectors` or `holdsEdges`, or an index makes edges of fields. */
  vectorIndexes?: WrittenVectors[];
}

/**
 * Words of an entry: section, kind (as `rowKind`), key offset, key bytes, body offset, body bytes, flags, offset and
 * bytes of the member `_embeddings`, the same of `_edges`, and how many bytes its edges take in a frame at most.
 */
export const entryWords = 12;

/** Bodies up to this size are worked on at once: handing them to the thread pool costs more than it saves. */
const inlineBytesMax = 32 * 1024;

const writeBounds: ScanLimits = {
  depthMax: limits.jsonDepthMax,
  membersMax: limits.documentMembersMax,
  memberNameBytesMax: limits.memberNameBytesMax,
  documentBytesMax: limits.documentBytesMax,
  keysMax: limits.batchKeysMax,
  pathSegmentsMax: limits.transformPathSegmentsMax,
};

/**
 * Checks the body of a write request and finds its parts. `bytes` must neither change nor be transferred until the
 * promise has settled.
 * Throws the errors of `scanJson`, and ServiceError `invalid_request`.
 */
export async function scanWrite(
  bytes: Uint8Array,
  kind: WriteKind,
  bounds: ScanLimits = writeBounds,
): Promise<ScannedWrite> {
  const addon = nativeAddon();
  if (bytes.byteLength <= inlineBytesMax) return callNative(() => addon.scanWriteSync(bytes, kind, bounds));
  return awaitNative(() => addon.scanWrite(bytes, kind, bounds));
}

/** The entries of one section, a view. */
export function sectionEntries({ entries }: ScannedWrite, section: number): Uint32Array {
  return entries.subarray(sectionStart(entries, section), sectionStart(entries, section + 1));
}

/** The place of the first entry of the section, or of one behind it. */
function sectionStart(entries: Uint32Array, section: number): number {
  let [low, high] = [0, entries.length / entryWords];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((entries[middle * entryWords] ?? 0) < section) low = middle + 1;
    else high = middle;
  }
  return low * entryWords;
}

/** Whether a document among these entries has `_embeddings`. */
export function holdsVectors(entries: Uint32Array): boolean {
  for (let at = 0; at < entries.length; at += entryWords) if (entries[at + 8] !== 0) return true;
  return false;
}

/** Whether a document among these entries has `_edges`. */
export function holdsEdges(entries: Uint32Array): boolean {
  for (let at = 0; at < entries.length; at += entryWords) if (entries[at + 10] !== 0) return true;
  return false;
}

/**
 * The document frame of one section's entries: keys checked, times of writes noted, TTL bases computed, documents
 * validated. Puts come first, each before the rows of its vectors and edges, then deletes, then transforms; the delete of a key
 * that is put lies before them. The result's buffer is
 * its own and may be transferred; `bytes` must neither change nor be transferred until the promise has settled.
 * Throws ServiceError `invalid_key`, `conflicting_operations`, `validation_failed`, `invalid_embedding`,
 * `invalid_edge`, `too_many_edges`, `tree_topology_violation` or `limit_exceeded`.
 */
export async function buildFrame(
  bytes: Uint8Array,
  entries: Uint32Array,
  options: FrameOptions,
  schema?: TableSchema,
): Promise<Uint8Array<ArrayBuffer>> {
  const addon = nativeAddon();
  const handle = schema?.handle ?? 0;
  if (bytes.byteLength <= inlineBytesMax) {
    return callNative(() => addon.buildFrameSync(bytes, entries, options, handle) as Uint8Array<ArrayBuffer>);
  }
  const output = new Uint8Array(frameBytesGuess(entries, options));
  const built = await awaitNative(() => addon.buildFrame(bytes, entries, options, handle, output));
  return typeof built === 'number' ? output.subarray(0, built) : (built as Uint8Array<ArrayBuffer>);
}

/** The members of a transform's body beside its operations. */
const addedBytesMax = 32;

/** Of the edges that a document has from fields: how many they are is not known before. */
const usualFieldEdgesBytes = 256;

/** A size that the frame of these entries misses by little, and exceeds only where documents have many edges from fields. */
function frameBytesGuess(entries: Uint32Array, options: FrameOptions): number {
  const { vectorIndexes = [] } = options;
  const makesEdges = vectorIndexes.some(({ edgeRules }) => edgeRules?.includes('"field"'));
  const denseBytes = vectorIndexes.reduce((sum, { dimension = 0 }) => sum + 4 * dimension, 0);
  const graphs = vectorIndexes.filter(({ kind }) => kind === 'graph').length;
  let size = 32 + (entries.length / entryWords) * (48 + addedBytesMax);
  for (let at = 0; at < entries.length; at += entryWords) {
    const keyBytes = entries[at + 3] ?? 0;
    const embeddingsBytes = entries[at + 8] ?? 0;
    size += keyBytes + (entries[at + 5] ?? 0);
    // Sparse entries have at least four bytes of text for eight of their row; the member itself is cut out of the body.
    if (embeddingsBytes > 0) size += vectorIndexes.length * (56 + keyBytes) + denseBytes + embeddingsBytes;
    if (makesEdges) size += graphs * usualFieldEdgesBytes;
    size += (entries[at + 11] ?? 0) + (graphs > 0 ? graphs * (64 + keyBytes) : 0);
  }
  return size;
}
