import { limits } from '../../config/limits.ts';
import { MiB } from '../../lib/units.ts';
import type { Hit } from '../execution/hydrate.ts';
import { isAtLeast } from '../execution/index-freshness.ts';
import { type ExecutedQuery, executeQuery } from '../execution/query-executor.ts';
import type { QueryCaller, QueryTarget, RunNativeQuery } from '../execution/query-target.ts';
import type { WholeSearch } from '../inputs/bring-inputs.ts';
import type { NativePlan } from '../plan/native-plan.ts';

interface LeftSearch {
  readonly search: WholeSearch;
  readonly target: QueryTarget;
  readonly run: RunNativeQuery;
  readonly caller: QueryCaller;
}

const windowHitsMin = 16;
const windowHitsMax = 4_096;
/** Hits of the first window where all are wanted: how long their documents are is not known yet. */
const firstHits = 256;
/** Of the documents of a window, as far as those of the window before tell. */
const windowCharsMax = 64 * MiB;

/** The hits of a search in their order, pulled in windows that grow, until there are no more or nobody pulls. */
export class LeftHits {
  readonly #search: LeftSearch;
  #first: Pick<ExecutedQuery, 'aggregations' | 'profile'> | undefined;
  /** Every hit was given out. */
  isExhausted = false;
  /** Not every document was looked at, or hits were left. */
  isPartial = false;
  /** The indexes have shown the same to all windows: hits were neither passed over between two of them nor came newly. */
  isSteady = true;
  damaged = 0;

  constructor(search: LeftSearch) {
    this.#search = search;
  }

  /** Of the first window. */
  get first(): Pick<ExecutedQuery, 'aggregations' | 'profile'> | undefined {
    return this.#first;
  }

  /** `wanted`: hits of the first window; infinite for all hits. */
  async *windows(wanted: number): AsyncGenerator<readonly Hit[]> {
    const seen = new Set<string>();
    const { freshness } = this.#search.target;
    const shown = freshness.shown();
    const base = this.#search.search.plan;
    // Searches by vectors would begin again and again.
    const wantsFirst = wanted === Number.POSITIVE_INFINITY && !base.legs ? firstHits : wanted;
    let size = Math.min(windowHitsMax, Math.max(windowHitsMin, wantsFirst));
    let plan: NativePlan = { ...base, limit: size, offset: 0, ...widened(base, size) };
    for (let isOver = false; !isOver; ) {
      const isFirst = this.#first === undefined;
      const executed = await this.#run(plan);
      this.isSteady &&= isFirst || isAtLeast(shown, freshness.shown());
      // A hit whose neighbours have changed meanwhile may come twice.
      const fresh = executed.hits.filter(({ document }) => !seen.has(document.key));
      for (const { document } of fresh) seen.add(document.key);
      this.isExhausted = executed.hits.length < plan.limit;
      const isTooFar = seen.size >= limits.joinLeftRowsMax || (base.legs && plan.limit >= limits.queryLimitMax);
      this.isPartial ||= executed.isPartial || (!this.isExhausted && isTooFar === true);
      isOver = this.isExhausted || isTooFar === true;
      if (fresh.length > 0) yield fresh;
      size = Math.min(windowHitsMax, size * 4, fittingHits(executed.hits));
      plan = nextWindow(base, plan, executed, size);
    }
  }

  async #run(plan: NativePlan): Promise<ExecutedQuery> {
    const { search, target, run, caller } = this.#search;
    const executed = await executeQuery({ plan, vectors: search.vectors }, target, run, caller);
    const { aggregations, profile } = executed;
    this.#first ??= { aggregations, profile };
    this.damaged = Math.max(this.damaged, executed.damaged);
    return executed;
  }
}

/** The order of a search that names none. */
const byScore: NativePlan['sort'] = [{ field: '_score', desc: true }];

/**
 * Hits go on behind the last one. Behind their number, one would be passed over for each that has gone meanwhile; so those
 * of a search without an order, which is fastest to its first hits, begin once more to have places. Searches by vectors
 * begin again each time and look further.
 */
function nextWindow(base: NativePlan, plan: NativePlan, { hits }: ExecutedQuery, size: number): NativePlan {
  const { aggregations: _, profile: _profile, ...later } = base;
  if (base.legs) {
    const limit = Math.min(limits.queryLimitMax, plan.limit * 2);
    return { ...later, limit, offset: 0, ...widened(base, limit) };
  }
  const place = hits.at(-1)?.place;
  if (place) return { ...later, sort: plan.sort, limit: size, offset: 0, cursor: { ...place, before: false } };
  return { ...later, sort: byScore, limit: size, offset: 0 };
}

/** Hits whose documents fit into a window, if they are as long as these. */
function fittingHits(hits: readonly Hit[]): number {
  const chars = hits.reduce((sum, { document }) => sum + document.text.length, 0);
  return chars === 0 ? windowHitsMax : Math.max(1, Math.floor((windowCharsMax * hits.length) / chars));
}

function widened({ fusion }: NativePlan, limit: number): Pick<NativePlan, 'fusion'> | undefined {
  return fusion && { fusion: { ...fusion, window: Math.max(fusion.window, limit) } };
}
