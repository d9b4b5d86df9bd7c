import { limits } from '../../config/limits.ts';
import type { JobHandler, RunningJob } from '../../jobs/job.ts';
import type { Clock } from '../../lib/clock.ts';
import { FrameBuilder, rowKind } from '../../lib/document-frame.ts';
import type { RangeLog } from '../../replication/range-log.ts';
import type { Table } from '../table.ts';

export const ttlRewriteKind = 'ttl-rewrite';

/** Where a rewrite stands. */
export interface TtlRewriteState {
  tableId: number;
  /** The `ttlRewrite` of the table's settings that asked for it; another one has taken its place when they differ. */
  token: string;
  /** The range that is being read; absent before the first page. */
  rangeId?: number;
  /** All documents of that range up to this key are done. */
  afterKey?: string;
}

interface TtlRewriteDeps {
  findTable(tableId: number): Table | undefined;
  log: RangeLog;
  clock: Clock;
  /** Every document has been read: the table's documents expire from now on. */
  finish(table: Table, token: string): Promise<void>;
}

const noOperations = new TextEncoder().encode('{"operations":[],"upsert":false}');

/** Pages after which the position is saved: after a kill at most this many are read again, and nothing is written for them. */
const pagesBetweenSaves = 16;

/**
 * Reads the TTL base of each document again, from the field that a schema change names now. A document is written
 * only when its expiry changes. Until the job has ended nothing of the table expires: by its old base a document might
 * be deleted that lives by the new one.
 */
export class TtlRewrite implements JobHandler {
  readonly kind = ttlRewriteKind;
  readonly #deps: TtlRewriteDeps;

  constructor(deps: TtlRewriteDeps) {
    this.#deps = deps;
  }

  async run({ record, signal, save }: RunningJob): Promise<void> {
    const state = JSON.parse(record.state) as TtlRewriteState;
    const { tableId, token } = state;
    const table = this.#deps.findTable(tableId);
    const isWanted = () => !signal.aborted && !table?.closing.aborted && table?.settings.ttlRewrite === token;
    if (!table || !isWanted()) return;
    const first = Math.max(
      0,
      table.ranges.findIndex(({ rangeId }) => rangeId === state.rangeId),
    );
    for (const { rangeId } of table.ranges.slice(first)) {
      let afterKey: string | undefined = rangeId === state.rangeId ? (state.afterKey ?? '') : '';
      for (let page = 1; afterKey !== undefined; page += 1) {
        if (!isWanted()) return;
        afterKey = await this.#rewritePage(table, rangeId, afterKey);
        if (afterKey !== undefined && page % pagesBetweenSaves === 0) await save({ tableId, token, rangeId, afterKey });
      }
    }
    await this.#deps.finish(table, token);
  }

  /** Returns the key to go on after; undefined at the end of the range. */
  async #rewritePage(table: Table, rangeId: number, afterKey: string): Promise<string | undefined> {
    const { log, clock } = this.#deps;
    using lease = await table.leaseForUpkeep(rangeId);
    const page = lease.range.stored.documents.page(
      { fromKey: afterKey, fromInclusive: false, toKey: null, toInclusive: true },
      limits.scanPageRowsMax,
      limits.scanPageBytesMax,
    );
    if (page.lastKey === undefined) return undefined;
    const frame = new FrameBuilder();
    for (const document of page.documents) frame.append(rowKind.transform, document.key, noOperations);
    const timeMs = clock.nowMs();
    await log.append({
      writes: [{ rangeId, frame: frame.finish(), ttlField: table.ttlField, ttlBasesOnly: true }],
      requestId: ttlRewriteKind,
      timeMs,
      timestamp: new Date(timeMs).toISOString(),
    });
    return page.more ? page.lastKey : undefined;
  }
}
