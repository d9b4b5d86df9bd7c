import { isEngineFault, searchFailure } from '../../engine/engine-error.ts';
import type { IndexedRange } from '../../indexing/indexed-range.ts';
import { must } from '../../lib/assert.ts';
import type { Clock } from '../../lib/clock.ts';
import { yieldToEventLoop } from '../../lib/concurrency/yield-to-event-loop.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { DocumentPage, StoredDocument } from '../../storage/reader/document-store.ts';
import { matchStored, type OpenTarget, openTarget } from '../execution/open-target.ts';
import { executeQuery } from '../execution/query-executor.ts';
import type { QueryCaller, QueryTarget, RunNativeQuery } from '../execution/query-target.ts';
import { IndexedBodies, indexedTextsOf } from '../indexed-bodies.ts';
import type { NativePlan } from '../plan/native-plan.ts';
import { matchAll, type PlanNode } from '../plan/plan-nodes.ts';
import type { QueryDeadline } from '../query-deadline.ts';
import type { SearchableTable } from '../searchable-table.ts';
import { nodeOfValues } from './exact-form.ts';
import { inSlices } from './in-slices.ts';
import type { RightRow } from './joined-row.ts';
import type { RightSide } from './right-side.ts';
import { RowBudget } from './row-budget.ts';

interface RightTableDeps {
  readonly table: SearchableTable;
  readonly lease: Disposable & { readonly ranges: readonly IndexedRange[] };
  /** The conditions on rows and the row filters of the caller; undefined for all. */
  readonly filter: NativePlan | undefined;
  readonly keyPrefix: string | undefined;
  readonly limit: number | undefined;
  readonly run: RunNativeQuery;
  readonly clock: Clock;
  readonly caller: QueryCaller;
  readonly deadline: QueryDeadline;
}

/** Rows of a table that are all read before any hit is looked for. */
const fewRows = 256;
const pageRows = 1_024;
/** Rows that are read by their keys at a time. */
const sliceKeys = 64;
/** Values of one search, which is run again for each page of its rows. */
const sliceValues = 1_000;
/** Searches of one lookup when the index that it began with is closed under it. */
const attemptsMax = 3;
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** The right side of a join that is a table of this database. */
export class RightTable implements RightSide {
  readonly #deps: RightTableDeps;
  readonly #expiredAtOrBeforeMs: number | undefined;
  readonly #bodies: IndexedBodies;
  #searched: OpenTarget | undefined;
  isCurrent = true;

  constructor(deps: RightTableDeps) {
    this.#deps = deps;
    this.#bodies = new IndexedBodies(indexedTextsOf(deps.table), { hides: deps.filter?.row_filter !== undefined });
    this.#expiredAtOrBeforeMs = deps.table.expiredAtOrBeforeMs(deps.clock.nowMs());
  }

  get rows(): number {
    const { lease } = this.#deps;
    return lease.ranges.reduce((rows, { stored }) => rows + stored.info().documents, 0);
  }

  async few(max: number): Promise<RightRow[] | undefined> {
    const { filter, keyPrefix, limit } = this.#deps;
    if (this.rows <= fewRows) return this.all();
    if (limit !== undefined || (filter === undefined && keyPrefix === undefined)) return undefined;
    const rows = await this.#byNode(matchAll, max + 1);
    return rows.length > max ? undefined : rows;
  }

  /** As the rows are stored, whatever indexes show. */
  async all(): Promise<RightRow[]> {
    const { lease, keyPrefix = '', limit = Number.POSITIVE_INFINITY, caller } = this.#deps;
    const budget = new RowBudget();
    const rows: RightRow[] = [];
    for (const range of lease.ranges) {
      const { stored } = range;
      let from: { key: string; inclusive: boolean } | undefined = { key: keyPrefix, inclusive: true };
      while (from && rows.length < limit) {
        caller.signal.throwIfAborted();
        const bounds = { fromKey: from.key, fromInclusive: from.inclusive, toKey: null, toInclusive: true };
        const page: DocumentPage = this.#bodies.read(
          range,
          () => stored.documents.page(bounds),
          ({ documents }) => documents,
        );
        if (page.damaged.length > 0) throw damagedRow();
        const isPast = page.lastKey !== undefined && !page.lastKey.startsWith(keyPrefix);
        for (const row of await this.#matching(page.documents)) budget.add(row, rows);
        from = page.more && !isPast && page.lastKey !== undefined ? { key: page.lastKey, inclusive: false } : undefined;
        await yieldToEventLoop();
      }
    }
    return rows.slice(0, Math.min(limit, rows.length));
  }

  byKeys(keys: readonly string[]): Promise<RightRow[]> | undefined {
    if (this.#deps.limit !== undefined) return undefined;
    return inSlices(keys, sliceKeys, (slice) => this.#byKeys(slice));
  }

  async #byKeys(keys: readonly string[]): Promise<RightRow[]> {
    await yieldToEventLoop();
    const { lease, table } = this.#deps;
    const documents = keys.flatMap((key) => this.#documentOf(lease.ranges[table.rangeOf(key)], key) ?? []);
    return this.#matching(documents);
  }

  byValues(field: string, values: readonly (string | number | boolean)[]): Promise<RightRow[]> | undefined {
    const { limit, table } = this.#deps;
    const nodeOf = (some: typeof values) => nodeOfValues(table.settings.schema, field, some);
    if (limit !== undefined || nodeOf(values) === undefined) return undefined;
    return inSlices(values, sliceValues, (slice) => this.#byNode(must(nodeOf(slice), 'an index that has all values')));
  }

  /** `max`: rows that are enough. */
  async #byNode(node: PlanNode, max = Number.POSITIVE_INFINITY): Promise<RightRow[]> {
    const plan = this.#planOf(node);
    for (let attempt = 1; ; attempt += 1) {
      const target = await this.#target(plan);
      try {
        return await this.#search(plan, target, max);
      } catch (error) {
        // A schema change, or a repair, has closed an index between two looks at it.
        const isWorthAnother = !target.isOpen() || (isEngineFault(error) && (await target.searchFailed()));
        if (!isWorthAnother || attempt === attemptsMax) throw searchFailure(error);
      }
    }
  }

  /** The index, which shows what was committed when the join first asked it, or is not current. */
  async #target(plan: NativePlan): Promise<OpenTarget> {
    if (this.#searched?.isOpen()) return this.#searched;
    const { table, lease, clock, caller, deadline } = this.#deps;
    const searched = { table, ranges: lease.ranges, clock, caller, deadline };
    const asked = { plan, textIndex: undefined, waitForIndexMs: undefined };
    const target = await openTarget(searched, asked, clock.nowMs());
    // Rows that an index does not show yet would be missing from the join.
    if (!(await target.freshness.waitUntilShown(target.freshness.heads()))) this.isCurrent = false;
    this.#searched = target;
    return target;
  }

  async #search(asked: NativePlan, target: QueryTarget, max: number): Promise<RightRow[]> {
    const { run, caller } = this.#deps;
    const plan = { ...asked, limit: Math.min(pageRows, max) };
    const budget = new RowBudget();
    const rows: RightRow[] = [];
    for (;;) {
      const { hits, isPartial, damaged } = await executeQuery({ plan, vectors: noVectors }, target, run, caller);
      if (damaged > 0) throw damagedRow();
      if (isPartial) this.isCurrent = false;
      for (const { document } of hits) budget.add(document, rows);
      const place = hits.at(-1)?.place;
      if (hits.length < plan.limit || rows.length >= max || !place) return rows;
      plan.cursor = { ...place, before: false };
    }
  }

  #planOf(node: PlanNode): NativePlan {
    const { filter, keyPrefix } = this.#deps;
    return {
      exclusion: [],
      total_exact_up_to: 0,
      ...filter,
      filter: [...(filter?.filter ?? []), node],
      ...(keyPrefix ? { key_prefix: keyPrefix } : {}),
      ...(this.#expiredAtOrBeforeMs === undefined ? {} : { expired_at_or_before_ms: this.#expiredAtOrBeforeMs }),
      count_only: false,
      exact_total: false,
      limit: 0,
      offset: 0,
      sort: [{ field: '_id', desc: false }],
    };
  }

  async #matching(documents: readonly StoredDocument[]): Promise<RightRow[]> {
    const { table, filter, keyPrefix = '' } = this.#deps;
    const bound = this.#expiredAtOrBeforeMs;
    const living = documents.filter(
      ({ key, ttlBaseMs }) =>
        key.startsWith(keyPrefix) && (bound === undefined || ttlBaseMs === undefined || ttlBaseMs > bound),
    );
    const matches = filter && living.length > 0 ? await matchStored(table, filter, living, this.#bodies) : undefined;
    const shown = matches ? living.filter((_, at) => matches[at]) : living;
    return shown.map(({ key, body, writtenMs }) => ({ key, text: decoder.decode(body), writtenMs }));
  }

  #documentOf(range: IndexedRange | undefined, key: string): StoredDocument | undefined {
    try {
      return range && this.#bodies.get(range, key);
    } catch (error) {
      throw error instanceof ServiceError && error.code === 'data_corrupted' ? damagedRow() : error;
    }
  }

  [Symbol.dispose](): void {
    this.#deps.lease[Symbol.dispose]();
  }
}

const noVectors = new Uint8Array(0);

/** Whether a damaged row would be joined cannot be told; of a hidden one not even that it is there. */
function damagedRow(): ServiceError {
  return new ServiceError('data_corrupted', 'join: a stored document of the right table does not match its checksum');
}
