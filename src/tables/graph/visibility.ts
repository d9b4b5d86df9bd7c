import type { Caller } from '../../access/principal.ts';
import type { IndexedRange } from '../../indexing/indexed-range.ts';
import { must } from '../../lib/assert.ts';
import type { Clock } from '../../lib/clock.ts';
import { yieldToEventLoop } from '../../lib/concurrency/yield-to-event-loop.ts';
import { hasExpired } from '../../lib/ttl.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { IndexedBodies, indexedTextsOf } from '../../query/indexed-bodies.ts';
import type { NativePlan } from '../../query/plan/native-plan.ts';
import { planFilter } from '../../query/plan/query-plan.ts';
import { readRowFilters } from '../../query/plan/row-filter.ts';
import type { NodeFilter } from '../../query/request/graph/graph-request.ts';
import { synonymsOf } from '../../query/request/synonyms.ts';
import type { StoredDocument } from '../../storage/reader/document-store.ts';
import { type ScanFilter, scanFilterOf } from '../reads/scan-filter.ts';
import type { Table } from '../table.ts';
import { intervalOf } from '../writes/frame-split.ts';

interface VisibilityDeps {
  table: Table;
  /** All of the table. */
  ranges: readonly IndexedRange[];
  clock: Clock;
  caller: Caller;
}

/** A document as a node was decided on by it. */
interface DecidedDocument {
  /** Position of its range. */
  readonly at: number;
  /** Of the range, before it was last seen that this is the document. */
  readonly head: number;
  readonly sequence: number;
}

/** Keys that are looked up in one go. */
export const sliceKeys = 128;

/**
 * Which nodes a search may walk through. A document that has expired, or that the caller's row filter hides, is not there;
 * a key without a document is a node, but one that no filter can let through.
 */
export class Visibility {
  readonly #deps: VisibilityDeps;
  readonly #filter: NodeFilter | undefined;
  readonly #plan: NativePlan | undefined;
  readonly #filters: ScanFilter[];
  readonly #bodies: IndexedBodies;
  readonly #decided = new Map<string, boolean>();
  /** Under a row filter, the documents of nodes that are shown, as they were decided on. */
  readonly #permitted = new Map<string, DecidedDocument>();

  constructor(deps: VisibilityDeps, filter?: NodeFilter) {
    const { table, ranges, clock, caller } = deps;
    const { ttlDurationMs, textIndex } = table;
    const [synonyms, rowFilters] = [synonymsOf(table.settings.schema), readRowFilters(caller, table.name)];
    const context = { ttlDurationMs, nowMs: clock.nowMs(), synonyms, textIndex, rowFilters };
    const plan = planFilter(filter?.filter_query, context);
    this.#deps = deps;
    this.#bodies = new IndexedBodies(indexedTextsOf(table), { hides: plan?.row_filter !== undefined });
    this.#filter = filter;
    this.#plan = plan;
    this.#filters = plan
      ? ranges.map((range) => scanFilterOf(range, { table, plan, bodies: this.#bodies }, caller.signal))
      : [];
  }

  /** False: every node is shown. */
  get decides(): boolean {
    const { table } = this.#deps;
    return this.#plan !== undefined || table.ttlDurationMs !== undefined || this.#filter?.filter_prefix !== undefined;
  }

  isKnown(key: string): boolean {
    return this.#decided.has(key);
  }

  get decidedCount(): number {
    return this.#decided.size;
  }

  /** The keys decided on so far that are not shown. */
  hidden(): string[] {
    return [...this.#decided].flatMap(([key, isShown]) => (isShown ? [] : [key]));
  }

  isShown(key: string): boolean {
    return this.#decided.get(key) !== false;
  }

  /** Nothing is said of these nodes: they count as hidden. */
  hide(keys: readonly string[]): void {
    for (const key of keys) this.#decided.set(key, false);
  }

  /** Those of these nodes that `permitted` shows are shown, whatever the filter says of them. */
  showAs(permitted: Visibility, keys: readonly string[]): void {
    for (const key of keys) {
      if (!permitted.isShown(key)) continue;
      this.#decided.set(key, true);
      const document = permitted.#permitted.get(key);
      if (document) this.#permitted.set(key, document);
    }
  }

  /**
   * Those of the shown nodes of which an index that showed every change up to `shown`, a sequence for each range, may
   * have had edges of another version than the one that was decided on, which may be hidden. Fails as `decide`.
   */
  async changed(keys: Iterable<string>, shown: readonly number[]): Promise<string[]> {
    const changed: string[] = [];
    const unsure: string[] = [];
    for (const key of this.#permitted.size === 0 ? [] : keys) {
      const decided = this.#permitted.get(key);
      if (!decided || !this.isShown(key)) continue;
      if (decided.sequence > (shown[decided.at] ?? 0)) changed.push(key);
      else if (this.#deps.ranges[decided.at]?.head !== decided.head) unsure.push(key);
    }
    await this.#inSlices(unsure, async (slice) => {
      for (const key of slice) if (!this.#isSame(key)) changed.push(key);
    });
    return changed;
  }

  /** The document of a node is still the one that it was decided on by, which is noted as of now. */
  #isSame(key: string): boolean {
    const decided = must(this.#permitted.get(key), 'a node that was decided on');
    const range = must(this.#deps.ranges[decided.at], 'intervals cover every key');
    const { head } = range;
    const isSame = range.stored.documents.sequenceOf(key) === decided.sequence;
    if (isSame) this.#permitted.set(key, { ...decided, head });
    return isSame;
  }

  /** Decides on nodes. Fails with `query_timeout` when nobody waits for the answer any more. */
  decide(keys: readonly string[]): Promise<void> {
    return this.#inSlices(keys, (slice) => this.#decide(slice));
  }

  async #inSlices(keys: readonly string[], look: (slice: readonly string[]) => Promise<void>): Promise<void> {
    for (let start = 0; start < keys.length; start += sliceKeys) {
      if (this.#deps.caller.signal.aborted) throw new ServiceError('query_timeout', 'the graph search was given up');
      await look(keys.slice(start, start + sliceKeys));
      await yieldToEventLoop();
    }
  }

  async #decide(keys: readonly string[]): Promise<void> {
    const { table, ranges, clock } = this.#deps;
    const expiredAtOrBefore = table.expiredAtOrBeforeMs(clock.nowMs());
    await this.#ready(keys);
    const found: StoredDocument[][] = ranges.map(() => []);
    const heads = ranges.map(({ head }) => head);
    for (const key of keys) {
      const at = intervalOf(key, table.ranges);
      const document = this.#documentOf(must(ranges[at], 'intervals cover every key'), key);
      const fits = this.#filter?.filter_prefix === undefined || key.startsWith(this.#filter.filter_prefix);
      this.#decided.set(key, fits && document === undefined && this.#plan === undefined);
      if (document && fits && !hasExpired(document.ttlBaseMs, expiredAtOrBefore)) found[at]?.push(document);
    }
    for (const [at, documents] of (await this.#letThrough(found)).entries()) {
      for (const { key, sequence } of documents) {
        this.#decided.set(key, true);
        if (this.#plan?.row_filter) this.#permitted.set(key, { at, head: heads[at] ?? 0, sequence });
      }
    }
  }

  /**
   * The documents of nodes that are shown, each as it was decided on: what has changed since a search may be hidden by now.
   * Fails with `data_corrupted`.
   */
  async documents(keys: readonly string[]): Promise<StoredDocument[]> {
    const { table, ranges, clock } = this.#deps;
    const expiredAtOrBefore = table.expiredAtOrBeforeMs(clock.nowMs());
    await this.#ready(keys);
    const found: StoredDocument[][] = ranges.map(() => []);
    for (const key of keys) {
      const at = intervalOf(key, table.ranges);
      const document = this.#bodies.get(must(ranges[at], 'intervals cover every key'), key);
      if (document && !hasExpired(document.ttlBaseMs, expiredAtOrBefore)) found[at]?.push(document);
    }
    return (await this.#letThrough(found)).flat();
  }

  /** Has the filters of the ranges of these keys ready: documents are read after that. */
  async #ready(keys: readonly string[]): Promise<void> {
    const { ranges } = this.#deps.table;
    for (const at of new Set(keys.map((key) => intervalOf(key, ranges)))) await this.#filters[at]?.ready();
  }

  /** Those of the documents of each range that the filters let through. */
  async #letThrough(found: readonly StoredDocument[][]): Promise<StoredDocument[][]> {
    const permitted: StoredDocument[][] = [];
    for (const [at, documents] of found.entries()) {
      const matches = this.#plan && (await must(this.#filters[at], 'a filter a range').matches(documents));
      permitted.push(matches ? documents.filter((_, which) => matches[which]) : documents);
    }
    return permitted;
  }

  /** A damaged document matches nothing. */
  #documentOf(range: IndexedRange, key: string): StoredDocument | undefined {
    try {
      return this.#bodies.get(range, key);
    } catch (error) {
      if (error instanceof ServiceError && error.code === 'data_corrupted') return undefined;
      throw error;
    }
  }
}
