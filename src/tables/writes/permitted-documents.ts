import { limits } from '../../config/limits.ts';
import type { IndexedRange } from '../../indexing/indexed-range.ts';
import { forEachYielding } from '../../lib/concurrency/yield-to-event-loop.ts';
import { type DocumentFrame, rowKind } from '../../lib/document-frame.ts';
import { hasExpired } from '../../lib/ttl.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { matchIndexed, matchStored } from '../../query/execution/open-target.ts';
import { IndexedBodies, indexedTextsOf } from '../../query/indexed-bodies.ts';
import type { NativePlan } from '../../query/plan/native-plan.ts';
import type { TransformedDocument } from '../../storage/evaluation/transform-document.ts';
import type { StoredDocument } from '../../storage/reader/document-store.ts';
import type { ReadAssertion } from '../../storage/write-request.ts';
import { isIndexed } from '../reads/scan-filter.ts';
import type { Table } from '../table.ts';
import { foreseeTransforms } from './foreseen-transforms.ts';

/** A table of which a writer sees only some documents. */
export interface FilteredTable {
  readonly table: Table;
  readonly ranges: readonly IndexedRange[];
  /** The condition on those that it sees. */
  readonly permitted: NativePlan;
  /** The instant of the write. */
  readonly at: { readonly timeMs: number; readonly timestamp: string };
  readonly signal: AbortSignal;
}

/** The document of a key as it is stored. */
interface StoredState {
  readonly key: string;
  /** Undefined where there is none, as where it has expired. */
  readonly document: StoredDocument | undefined;
  readonly isHidden: boolean;
  /** Holds until the document changes, or what its row filters go by; undefined of one that is damaged and hidden. */
  readonly assertion: ReadAssertion | undefined;
}

/**
 * The documents of these keys of a range, in slices of bounded size. Fails with `data_corrupted` for a damaged document which
 * its last good version permits.
 */
export async function* storedStates(
  filtered: FilteredTable,
  range: IndexedRange,
  keys: Iterable<string>,
): AsyncGenerator<StoredState[]> {
  const { table, permitted } = filtered;
  const bodies = new IndexedBodies(indexedTextsOf(table), { hides: true });
  let slice: StoredState[] = [];
  let bytes = 0;
  const judged = async () => {
    const documents = slice.flatMap(({ document }) => document ?? []);
    const matches = await matchStored(table, permitted, documents, bodies);
    const hidden = new Set(documents.filter((_, at) => !matches[at]));
    const states = slice.map((state) => (state.document && hidden.has(state.document) ? hiddenState(state) : state));
    [slice, bytes] = [[], 0];
    return states;
  };
  for (const key of keys) {
    const state = await storedState(filtered, range, key, bodies);
    slice.push(state);
    bytes += state.document?.body.byteLength ?? 0;
    if (slice.length === limits.scanPageRowsMax || bytes >= limits.scanPageBytesMax) yield await judged();
  }
  if (slice.length > 0) yield await judged();
}

function hiddenState(state: StoredState): StoredState {
  return { ...state, document: undefined, isHidden: true };
}

/** Nobody has said yet whether the document is hidden, unless it is damaged. */
function storedState(
  { table, permitted, at, signal }: FilteredTable,
  range: IndexedRange,
  key: string,
  bodies: IndexedBodies,
): StoredState | Promise<StoredState> {
  const { stored } = range;
  const read = () => {
    const found = bodies.get(range, key);
    const isThere = found && !hasExpired(found.ttlBaseMs, table.expiredAtOrBeforeMs(at.timeMs));
    const document = isThere ? found : undefined;
    const parts = document ? bodies.textSequences(range, document) : [];
    const version = document ? stored.versionOf(document) : 0;
    const assertion = { rangeId: stored.rangeId, key, version, table: table.name, parts };
    return { key, document, isHidden: false, assertion };
  };
  try {
    return bodies.isEmpty ? read() : stored.atOneInstant(read);
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'data_corrupted') throw error;
    // That the document is damaged tells that it is there.
    return isIndexed(key, table, range, permitted, signal).then((isSeen) => {
      if (isSeen) throw error;
      return { key, document: undefined, isHidden: true, assertion: undefined };
    });
  }
}

/**
 * Checks the rows of a write to a range. Fails with `forbidden` where the stored document of a key is hidden, and where the
 * document that the write leaves would be. Adds what has to stay as it is until the write is committed to `read`.
 */
export async function checkPermitted(
  filtered: FilteredTable,
  range: IndexedRange,
  frame: DocumentFrame,
  read: ReadAssertion[],
): Promise<void> {
  const rowsOf = new Map<string, number[]>();
  await forEachYielding(frame.rowCount, (row) => {
    const kind = frame.kind(row);
    if (kind !== rowKind.put && kind !== rowKind.delete && kind !== rowKind.transform) return;
    const key = frame.key(row);
    const rows = rowsOf.get(key);
    if (rows) rows.push(row);
    else rowsOf.set(key, [row]);
  });
  for await (const states of storedStates(filtered, range, rowsOf.keys())) {
    for (const { key, isHidden, assertion } of states) {
      if (isHidden) throw notPermitted(key, filtered.table);
      if (assertion) read.push(assertion);
    }
    await checkLeft(filtered, range, frame, states, rowsOf);
  }
}

/** Fails with `forbidden` where a document that the write leaves does not match. */
async function checkLeft(
  { table, permitted, at }: FilteredTable,
  range: IndexedRange,
  frame: DocumentFrame,
  states: readonly StoredState[],
  rowsOf: ReadonlyMap<string, readonly number[]>,
): Promise<void> {
  const rows = states.flatMap(({ key }) => rowsOf.get(key) ?? []);
  const { documents } = await foreseeTransforms(frame, range.stored, table, at, rows);
  const left = states.flatMap(({ key }) => {
    let document: Pick<TransformedDocument, 'body' | 'writtenMs'> | undefined;
    for (const row of rowsOf.get(key) ?? []) {
      const kind = frame.kind(row);
      if (kind === rowKind.put) document = { body: frame.body(row), writtenMs: frame.writtenMs(row) };
      else if (kind === rowKind.delete) document = undefined;
      else document = documents.get(row) ?? document;
    }
    // A document that has expired by then is looked at as well.
    return document ? [{ key, body: document.body, ttlBaseMs: undefined, writtenMs: document.writtenMs }] : [];
  });
  const refused = (await matchIndexed(table.servingIndex, permitted, left)).indexOf(false);
  if (refused >= 0) throw notPermitted(left[refused]?.key ?? '', table);
}

export function notPermitted(key: string, { name }: Table): ServiceError {
  const message = `your row filter for table ${JSON.stringify(name)} does not permit the document ${JSON.stringify(key.slice(0, 64))}, as it is stored or as this write leaves it`;
  return new ServiceError('forbidden', message);
}
