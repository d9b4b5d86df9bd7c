import type { Caller } from '../access/principal.ts';
import type { Clock } from '../lib/clock.ts';
import { forEachYielding } from '../lib/yield-to-event-loop.ts';
import { errorCodes } from '../protocol/error-codes.ts';
import { ServiceError, withDetails } from '../protocol/service-error.ts';
import type { Hit } from './execution/hydrate.ts';
import { openTarget } from './execution/open-target.ts';
import type { CursorScope, CursorSeal } from './execution/page-cursor.ts';
import { type ExecutedQuery, executeQuery } from './execution/query-executor.ts';
import { renderQueryResult } from './execution/query-result.ts';
import type { QueryCaller, QueryTarget, RunNativeQuery } from './execution/query-target.ts';
import type { NativePlan } from './plan/native-plan.ts';
import { type PlanContext, type PlannedQuery, planQuery, queryTable } from './plan/query-plan.ts';
import { readRowFilters } from './plan/row-filter.ts';
import { readQueryRequests } from './request/query-requests.ts';
import { synonymsOf } from './request/synonyms.ts';
import { VectorProjection } from './request/vector-projection.ts';
import type { SearchableTable, SearchableTables } from './searchable-table.ts';

/** Searches of one query when the indexes that it began with are closed under it. */
const attemptsMax = 3;

/** What a finished query tells to metrics and the slow-query log. */
export interface QueryReport {
  table: string;
  planMs: number;
  searchMs: number;
  tookMs: number;
  /** The query as it was asked. */
  request: unknown;
}

interface QueryServiceDeps {
  tables: SearchableTables;
  run: RunNativeQuery;
  clock: Clock;
  cursors: CursorSeal;
  queryTimeoutMs: number;
  onQuery(report: QueryReport): void;
  onFailure(): void;
  /** One query of several has failed for a reason of the server's, which its answer says in its place. */
  onFailedAmongSeveral(error: ServiceError, requestId: string | undefined): void;
}

/** A caller of queries, and whether it is alone. */
type ServiceCaller = Caller & Pick<QueryCaller, 'isAlone'>;

/**
 * Answers query requests: one body, one or many queries. A query goes through stages: it is planned without I/O, the
 * inputs that its plan wants are brought, the engine searches, the page found is completed, and the answer is rendered.
 */
export class QueryService {
  readonly #deps: QueryServiceDeps;

  constructor(deps: QueryServiceDeps) {
    this.#deps = deps;
  }

  /**
   * Runs the queries of a body and returns each result as JSON text, in order. A single query that fails, fails the
   * request; among several, a failed one answers in its place.
   */
  async run(pathTable: string | undefined, body: Uint8Array, caller: ServiceCaller): Promise<string[]> {
    const requests = await readQueryRequests(body);
    const [only] = requests;
    if (requests.length === 1) return [await this.#one(only, pathTable, caller)];
    const results: Promise<string>[] = [];
    const start = (index: number) => results.push(this.#oneOfSeveral(requests[index], pathTable, caller));
    await forEachYielding(requests.length, start, 1);
    return Promise.all(results);
  }

  async #oneOfSeveral(request: unknown, pathTable: string | undefined, caller: ServiceCaller): Promise<string> {
    const started = this.#deps.clock.monotonicMs();
    try {
      return await this.#one(request, pathTable, caller);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      // The answer as a whole succeeds, and nothing else would log it.
      if (error.status >= 500) this.#deps.onFailedAmongSeveral(error, caller.requestId);
      return renderFailure(error, this.#deps.clock.monotonicMs() - started);
    }
  }

  async #one(request: unknown, pathTable: string | undefined, caller: ServiceCaller): Promise<string> {
    try {
      return await this.#answer(request, pathTable, caller);
    } catch (error) {
      this.#deps.onFailure();
      throw withDetails(error, { table: tableOf(request, pathTable) });
    }
  }

  async #answer(request: unknown, pathTable: string | undefined, caller: ServiceCaller, attempt = 1): Promise<string> {
    const { clock } = this.#deps;
    const started = clock.monotonicMs();
    const table = this.#deps.tables.get(queryTable(request, pathTable), caller, 'read');
    const nowMs = clock.nowMs();
    const planned = planQuery(request, planContextOf(table, caller, nowMs));
    const scope: CursorScope = { table: table.name, sort: planned.plan.sort };
    const plan = this.#withInputs(planned, scope);
    const plannedAt = clock.monotonicMs();
    using lease = await table.lease();
    const target = await openTarget({ table, ranges: lease.ranges, clock, signal: caller.signal }, planned, nowMs);
    let executed: ExecutedQuery;
    try {
      executed = await executeQuery({ plan, vectors: planned.vectors }, target, this.#deps.run, caller);
    } catch (error) {
      // A schema change, a drop or a repair has closed an index between two looks at it: those that are there now answer.
      if (target.isOpen() || attempt === attemptsMax) throw error;
      return this.#answer(request, pathTable, caller, attempt + 1);
    }
    const stored = lease.ranges.map((range) => range.stored);
    const vectors = await VectorProjection.of(planned.projection, table.indexes)?.ofHits(executed.hits, stored);
    const page = await finishPage(executed, planned, target, vectors);
    const finished = clock.monotonicMs();
    const report = {
      table: table.name,
      planMs: plannedAt - started,
      searchMs: finished - plannedAt,
      tookMs: finished - started,
      request,
    };
    this.#deps.onQuery(report);
    return renderQueryResult(page.executed, {
      table: table.name,
      projection: planned.projection,
      tookMs: report.tookMs,
      highlights: page.highlights,
      embeddings: vectors?.shown,
      seal: (values, at) => this.#deps.cursors.seal(scope, values, at),
      profile: planned.profile ? profileOf(executed, lease.ranges.length, report) : undefined,
    });
  }

  /** The plan with what only the server can bring into it. */
  #withInputs({ plan, inputs }: PlannedQuery, scope: CursorScope): NativePlan {
    const timeoutMs = Math.min(plan.timeout_ms ?? Number.POSITIVE_INFINITY, this.#deps.queryTimeoutMs);
    const whole: NativePlan = { ...plan, timeout_ms: timeoutMs };
    if (inputs.cursor) whole.cursor = this.#deps.cursors.open(scope, inputs.cursor);
    return whole;
  }
}

/** What planning needs to know of the table and of who asks. */
function planContextOf(table: SearchableTable, caller: Caller, nowMs: number): PlanContext {
  const { name, ttlDurationMs, hasTextIndex, settings, listedIndexes } = table;
  return {
    name,
    ttlDurationMs,
    nowMs,
    synonyms: synonymsOf(settings.schema),
    indexes: listedIndexes.map(({ definition }) => definition),
    hasTextIndex,
    rowFilters: readRowFilters(caller, name),
  };
}

/** What is shown of the page beside its documents. Hits of which something damaged was found leave the page. */
async function finishPage(
  executed: ExecutedQuery,
  { plan, highlight }: PlannedQuery,
  target: QueryTarget,
  vectors: { damaged: ReadonlySet<Hit> } | undefined,
): Promise<{ executed: ExecutedQuery; highlights: string[] | undefined }> {
  const shown = vectors && vectors.damaged.size > 0 ? withoutDamaged(executed, vectors.damaged) : executed;
  const documents = shown.hits.map((hit) => hit.document);
  return { executed: shown, highlights: highlight && (await target.highlight(plan, highlight, documents)) };
}

/** The page without hits of which a vector that it shows is damaged. */
function withoutDamaged(executed: ExecutedQuery, damaged: ReadonlySet<Hit>): ExecutedQuery {
  const hits = executed.hits.filter((hit) => !damaged.has(hit));
  return { ...executed, hits, damaged: executed.damaged + damaged.size };
}

/** For the log: the table that a request names, if it does. */
function tableOf(request: unknown, pathTable: string | undefined): string | undefined {
  const named = typeof request === 'object' && request !== null && 'table' in request ? request.table : undefined;
  return pathTable ?? (typeof named === 'string' ? named : undefined);
}

function renderFailure(error: ServiceError, tookMs: number): string {
  return JSON.stringify({
    hits: { total: { value: 0, relation: 'gte' }, hits: [], max_score: 0 },
    took: Math.round(tookMs),
    status: errorCodes[error.code][0],
    code: error.code,
    error: error.message,
  });
}

function profileOf({ profile }: ExecutedQuery, rangeCount: number, report: QueryReport): string {
  const shards = { total: rangeCount, successful: rangeCount, failed: 0 };
  const stages = { plan_ms: report.planMs, search_ms: report.searchMs };
  return JSON.stringify({ shards, stages, ...(profile === undefined ? {} : JSON.parse(profile)) });
}
