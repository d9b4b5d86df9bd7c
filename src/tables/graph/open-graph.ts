import { limits } from '../../config/limits.ts';
import { isEngineFault, searchFailure } from '../../engine/engine-error.ts';
import {
  type GraphCaller,
  graphBodyInline,
  type NativeGraphAnswer,
  type NativeGraphRequest,
  searchGraph,
} from '../../engine/native-graph.ts';
import type { GraphDefinition } from '../../index-kinds/graph.ts';
import type { IndexedRange } from '../../indexing/indexed-range.ts';
import type { Clock } from '../../lib/clock.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { freshnessOf, hasReplayed, waitUntilReplayed } from '../../query/execution/index-freshness.ts';
import type { Table } from '../table.ts';
import { removedTargetsOf } from './removed-targets.ts';

/** The members of a search beside those that follow from the table and its indexes. */
export type GraphSearchRequest = Omit<NativeGraphRequest, 'range_starts' | 'edges_max' | 'nodes_max' | 'millis_max'> &
  Partial<Pick<NativeGraphRequest, 'edges_max' | 'nodes_max' | 'millis_max'>>;

/** Why an answer lacks something: a bound of the search, or an index that does not show everything yet. */
export type PartialReason = NonNullable<NativeGraphAnswer['partial']> | 'indexing' | 'damaged';

const everything = { edges_max: Number.MAX_SAFE_INTEGER, nodes_max: Number.MAX_SAFE_INTEGER, millis_max: 600_000 };

/** Searches again when an index was closed in between. */
const attemptsMax = 3;

/** The graph index of a name. Fails with `index_not_found`, and with `invalid_query` for an index of another kind. */
export function graphIndexOf({ name: tableName, listedIndexes }: Table, indexName: string): GraphDefinition {
  const index = listedIndexes.find(({ name }) => name === indexName);
  if (!index) throw new ServiceError('index_not_found', `table "${tableName}" has no index "${indexName}"`);
  if (index.definition.kind === 'graph') return index.definition;
  throw new ServiceError('invalid_query', `the index "${indexName}" is not a graph index`);
}

/** A graph index of a table whose ranges are held open. */
export class OpenGraph {
  readonly definition: GraphDefinition;
  readonly #table: Table;
  readonly #ranges: readonly IndexedRange[];
  readonly #clock: Clock;

  constructor(
    { table, ranges, clock }: { table: Table; ranges: readonly IndexedRange[]; clock: Clock },
    definition: GraphDefinition,
  ) {
    this.definition = definition;
    this.#table = table;
    this.#ranges = ranges;
    this.#clock = clock;
  }

  /**
   * Waits for a moment until the index shows everything that was written before; 'indexing' when it does not by then. An
   * answer then holds every edge that was acknowledged, and none of a document that was deleted.
   */
  async waitUntilShown(signal: AbortSignal): Promise<PartialReason | undefined> {
    if (this.#isShown()) return undefined;
    const searched = { ranges: this.#ranges, names: [this.definition.name], clock: this.#clock, caller: { signal } };
    if (!hasReplayed(searched)) await waitUntilReplayed(searched, limits.indexReplayWaitMs);
    const freshness = freshnessOf(searched);
    const isShown = await freshness.waitUntilShown(freshness.heads());
    return isShown && freshness.hasReplayed() ? undefined : 'indexing';
  }

  /** The sequence of each range up to which the index shows every change. */
  shown(): number[] {
    return this.#ranges.map((range) => range.shownBy([this.definition.name]));
  }

  /** The index lacks nothing because it was damaged. */
  get isWhole(): boolean {
    return this.#ranges.every((range) => range.isWhole(this.definition.name));
  }

  /** The index shows everything that was written before. */
  #isShown(): boolean {
    const { name } = this.definition;
    return this.#ranges.every(
      (range) => range.applier(name)?.hasReplayed === true && range.shownBy([name]) >= range.stored.committedHead(),
    );
  }

  /** As `graphBodyInline`; null also while the index does not show everything. */
  inlineBody(request: GraphSearchRequest): string | null {
    if (!this.#isShown() || !this.isWhole) return null;
    try {
      return graphBodyInline(this.#handles(), this.#whole(request), removedTargetsOf(this.#ranges));
    } catch (error) {
      // The search meets the fault as well, and looks for its cause.
      if (isEngineFault(error)) return null;
      throw error;
    }
  }

  /** Fails with `unavailable` while the index is not open, and as `searchGraph`. */
  async search(request: GraphSearchRequest, caller: GraphCaller, attempt = 1): Promise<NativeGraphAnswer> {
    const handles = this.#handles();
    try {
      return await searchGraph(handles, this.#whole(request), removedTargetsOf(this.#ranges), caller);
    } catch (error) {
      // A repair or a drop has closed an index between two looks at it.
      const isOpen = this.#handles().every((handle, at) => handle === handles[at]);
      const isWorthAnother = !isOpen || (isEngineFault(error) && (await this.#searchFailed(caller.signal)));
      if (!isWorthAnother || attempt === attemptsMax) throw searchFailure(error);
      return this.search(request, caller, attempt + 1);
    }
  }

  async #searchFailed(signal: AbortSignal): Promise<boolean> {
    const looks = this.#ranges.map((range) => range.searchFailed(signal, [this.definition.name]));
    return (await Promise.all(looks)).includes(true);
  }

  /** Documents with edges that are gone, `limit` edges at most: expired, or leading to documents that were deleted. */
  gone(
    limit: number,
    expired_at_or_before_ms: number | undefined,
    caller: { readonly signal: AbortSignal },
  ): Promise<NativeGraphAnswer> {
    const search = { sources: { limit } };
    return this.search({ search, direction: 'out', expired_at_or_before_ms, ...everything }, caller);
  }

  /** How many edges there are, and nodes at their ends. */
  async counts(caller: { readonly signal: AbortSignal }): Promise<{ edges: number; nodes: number }> {
    const answer = await this.search({ search: 'count', direction: 'out', ...everything }, caller);
    return { edges: answer.edge_count, nodes: answer.node_count };
  }

  /** Deleted documents, with the sequence of one range up to which edges to them are gone. */
  removedIn(range: number): [target: string, through: number][] {
    return Object.entries(removedTargetsOf(this.#ranges)).map(([target, through]) => [target, through[range] ?? 0]);
  }

  #whole(request: GraphSearchRequest): NativeGraphRequest {
    const { ttlMs } = this.definition;
    return {
      edges_max: limits.graphEdgesSeenMax,
      nodes_max: limits.graphNodesSeenMax,
      millis_max: limits.graphSearchMs,
      ...(ttlMs === undefined ? {} : { expired_at_or_before_ms: this.#clock.nowMs() - ttlMs }),
      ...request,
      range_starts: this.#table.ranges.map(({ startKey }) => startKey),
    };
  }

  #handles(): number[] {
    return this.#ranges.map((range) => {
      const native = range.applier(this.definition.name)?.index;
      if (native) return native.handle;
      const message = `the index "${this.definition.name}" is not open yet; try again shortly`;
      throw new ServiceError('unavailable', message, { retryAfterMs: 500 });
    });
  }
}
