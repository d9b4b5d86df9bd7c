import { limits } from '../../config/limits.ts';
import type { IndexedRange } from '../../indexing/indexed-range.ts';
import { type DocumentFrame, rowKind } from '../../lib/document-frame.ts';
import { withOrdinal } from '../../lib/ordinal-bits.ts';
import { hasExpired } from '../../lib/ttl.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { matchIndexed } from '../../query/execution/open-target.ts';
import { IndexedBodies, indexedTextsOf } from '../../query/indexed-bodies.ts';
import type { DocumentPage } from '../../storage/reader/document-store.ts';
import type { MergeWindow, PermittedRows } from '../../storage/write-request.ts';
import { type ScanFilter, scanFilterOf } from '../reads/scan-filter.ts';
import { type FilteredTable, notPermitted } from './permitted-documents.ts';

/**
 * The documents of a merge's window that are there for the writer, which is all that the merge compares with its
 * records and deletes. Fails with `forbidden` where a record has the key of a hidden document or would be one, and with
 * `data_corrupted` where a damaged document may be one of the writer's.
 */
export async function permittedWindow(
  filtered: FilteredTable,
  range: IndexedRange,
  window: MergeWindow,
  frame: DocumentFrame | undefined,
): Promise<PermittedRows> {
  const { table, permitted, at, signal } = filtered;
  const records = await permittedRecords(filtered, frame);
  // Read first: what is read later is as it is at this sequence, or newer.
  const throughSequence = range.head;
  const bodies = new IndexedBodies(indexedTextsOf(table), { hides: true });
  const filter = scanFilterOf(range, { table, plan: permitted, bodies }, signal);
  await filter.ready();
  let ordinals = new Uint8Array();
  for (let fromKey: string | undefined = window.afterKey; fromKey !== undefined; ) {
    const page = readPage(range, bodies, { fromKey, toKey: window.toKey });
    const living = page.documents.filter(
      ({ ttlBaseMs }) => !hasExpired(ttlBaseMs, table.expiredAtOrBeforeMs(at.timeMs)),
    );
    const matches = await filter.matches(living);
    for (const [which, { key, ordinal }] of living.entries()) {
      if (matches[which]) ordinals = withOrdinal(ordinals, ordinal);
      else if (records.has(key)) throw notPermitted(key, table);
    }
    checkDamaged(filtered, page, filter, records);
    fromKey = page.more ? page.lastKey : undefined;
  }
  return { throughSequence, ordinals, withParts: !bodies.isEmpty };
}

/** The keys of the records, all of which match. */
async function permittedRecords(
  { table, permitted }: FilteredTable,
  frame: DocumentFrame | undefined,
): Promise<ReadonlySet<string>> {
  if (!frame) return new Set();
  const rows = Array.from({ length: frame.rowCount }, (_, row) => row).filter((row) => frame.kind(row) === rowKind.put);
  const records = rows.map((row) => {
    return { key: frame.key(row), body: frame.body(row), ttlBaseMs: undefined, writtenMs: frame.writtenMs(row) };
  });
  const refused = (await matchIndexed(table.servingIndex, permitted, records)).indexOf(false);
  if (refused >= 0) throw notPermitted(records[refused]?.key ?? '', table);
  return new Set(records.map(({ key }) => key));
}

function readPage(range: IndexedRange, bodies: IndexedBodies, keys: { fromKey: string; toKey: string | null }) {
  const bounds = { ...keys, fromInclusive: false, toInclusive: true };
  const find = () => range.stored.documents.page(bounds, limits.scanPageRowsMax, limits.scanPageBytesMax);
  return bodies.read(range, find, ({ documents }) => documents);
}

function checkDamaged(
  { table }: FilteredTable,
  { damaged }: DocumentPage,
  filter: ScanFilter,
  records: ReadonlySet<string>,
): void {
  for (const document of damaged) {
    const { key } = document;
    const isSeen = filter.showed(document);
    if (isSeen === false && records.has(key)) throw notPermitted(key, table);
    if (isSeen === false) continue;
    const which = isSeen ? JSON.stringify(key) : 'of the merge, which may be hidden from you or not,';
    throw new ServiceError('data_corrupted', `the stored document ${which} does not match its checksum`);
  }
}
