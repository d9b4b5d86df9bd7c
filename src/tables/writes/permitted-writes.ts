import type { Caller } from '../../access/principal.ts';
import type { IndexedRange } from '../../indexing/indexed-range.ts';
import { must } from '../../lib/assert.ts';
import { readFrame } from '../../lib/document-frame.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { permittedRows } from '../../query/plan/permitted-rows.ts';
import { changedSinceRead } from '../../storage/evaluation/row-evaluation.ts';
import type { RangeId, RangeWrite, ReadAssertion } from '../../storage/write-request.ts';
import type { TableLookup } from '../table-lookup.ts';
import { checkPermitted, type FilteredTable, storedStates } from './permitted-documents.ts';
import { permittedWindow } from './permitted-window.ts';
import type { TableWrites } from './table-writes.ts';

/**
 * The writes of a caller that sees only some documents of a table, which are all that it may write: the stored document of a key
 * has to be one of them, where there is one, and so has the document that the write leaves. The writer has no engine that could
 * match them, so they are matched before the commit, and the commit has to find them as they were then.
 */
export class PermittedWrites implements Disposable {
  readonly #filtered: ReadonlyMap<string, FilteredTable>;
  readonly #leases: DisposableStack;

  private constructor(filtered: ReadonlyMap<string, FilteredTable>, leases: DisposableStack) {
    this.#filtered = filtered;
    this.#leases = leases;
  }

  /** Undefined where the caller sees every document of the tables that the write names. */
  static async open(
    parts: readonly TableWrites[],
    readSet: readonly ReadAssertion[],
    how: { readonly tables: TableLookup; readonly caller: Caller; readonly at: FilteredTable['at'] },
  ): Promise<PermittedWrites | undefined> {
    const { tables, caller, at } = how;
    using leases = new DisposableStack();
    const written = new Map(parts.map((part) => [part.table.name, part]));
    const filtered = new Map<string, FilteredTable>();
    for (const name of new Set([...written.keys(), ...readSet.flatMap(({ table }) => table ?? [])])) {
      const table = written.get(name)?.table ?? tables.get(name, caller, 'read');
      const permitted = permittedRows(table, caller, at.timeMs);
      if (!permitted) continue;
      const { ranges } = written.get(name)?.lease ?? leases.use(await table.lease());
      filtered.set(name, { table, ranges, permitted, at, signal: caller.signal });
    }
    return filtered.size === 0 ? undefined : new PermittedWrites(filtered, leases.move());
  }

  /**
   * The writes as the caller may do them, and what the commit has to find as it is now: in place of the versions that the caller
   * has read, and beside them, those of the documents that the write was judged by. Fails with `forbidden`, and with
   * `transaction_conflict` where the caller has read another version than it sees now; to it a hidden document is not there.
   */
  async check(
    parts: readonly TableWrites[],
    readSet: readonly ReadAssertion[],
  ): Promise<{ parts: readonly TableWrites[]; read: ReadAssertion[] }> {
    const read = readSet.filter(({ table }) => !this.#filtered.has(table ?? ''));
    for (const filtered of this.#filtered.values()) {
      const own = readSet.filter(({ table }) => table === filtered.table.name);
      for (const [rangeId, items] of Map.groupBy(own, (item) => item.rangeId)) {
        await checkReadSet(filtered, rangeOf(filtered, rangeId), items, read);
      }
    }
    const permitted: TableWrites[] = [];
    for (const part of parts) {
      const filtered = this.#filtered.get(part.table.name);
      const writes: RangeWrite[] = [];
      for (const write of part.writes) writes.push(filtered ? await checkWrite(filtered, write, read) : write);
      permitted.push({ ...part, writes });
    }
    return { parts: permitted, read };
  }

  /** Whether a commit has found another state than `check`, which has to judge the write again. */
  isStale(error: unknown): boolean {
    if (!(error instanceof ServiceError) || error.code !== 'transaction_conflict') return false;
    const { table, key } = error.details ?? {};
    return typeof table === 'string' && this.#filtered.has(table) && key !== undefined;
  }

  /** The failure of a commit as the caller may be told of it: the document that has changed may be hidden. */
  shown(error: unknown): unknown {
    if (!this.isStale(error)) return error;
    return new ServiceError('transaction_conflict', 'documents that the write depends on keep changing; send it again');
  }

  [Symbol.dispose](): void {
    this.#leases[Symbol.dispose]();
  }
}

/** Adds what the write was judged by to `read`; a merge has it with itself. */
async function checkWrite(filtered: FilteredTable, write: RangeWrite, read: ReadAssertion[]): Promise<RangeWrite> {
  const range = rangeOf(filtered, write.rangeId);
  const frame = write.frame && readFrame(write.frame);
  if (write.merge) {
    const permitted = await permittedWindow(filtered, range, write.merge, frame);
    return { ...write, merge: { ...write.merge, permitted } };
  }
  if (frame) await checkPermitted(filtered, range, frame, read);
  return write;
}

/** Adds what the versions were compared with to `read`. Fails with `transaction_conflict` where the caller sees another one. */
async function checkReadSet(
  filtered: FilteredTable,
  range: IndexedRange,
  items: readonly ReadAssertion[],
  read: ReadAssertion[],
): Promise<void> {
  const itemsOf = Map.groupBy(items, ({ key }) => key);
  for await (const states of storedStates(filtered, range, itemsOf.keys())) {
    for (const { key, document, assertion } of states) {
      const seen = document ? range.stored.versionOf(document) : 0;
      const other = itemsOf.get(key)?.find(({ version }) => version !== seen);
      if (other) throw changedSinceRead(other, seen);
      if (assertion) read.push(assertion);
    }
  }
}

function rangeOf({ ranges }: FilteredTable, rangeId: RangeId): IndexedRange {
  return must(
    ranges.find((range) => range.rangeId === rangeId),
    'a document of a range of its table',
  );
}
