import { type Caller, requireTable } from '../access/principal.ts';
import { isEngineFault, searchFailure } from '../engine/engine-error.ts';
import { textLegName } from '../index-kinds/full-text.ts';
import { must } from '../lib/assert.ts';
import { type Clock, pause } from '../lib/clock.ts';
import { forEachYielding } from '../lib/concurrency/yield-to-event-loop.ts';
import { errorCodes } from '../protocol/error-codes.ts';
import { ServiceError, withDetails } from '../protocol/service-error.ts';
import { type ProviderConfig, shownProviderConfig } from '../provider-config/provider-config.ts';
import { type FindProvider, rerankHits } from './after/rerank.ts';
import { explainChunks } from './execution/explain-chunks.ts';
import { amongNodes, pageAlone, withNodes } from './execution/graph-expansion.ts';
import { bringGraphLegs, type GraphFound } from './execution/graph-legs.ts';
import type { Hit } from './execution/hydrate.ts';
import { openTarget } from './execution/open-target.ts';
import type { CursorScope } from './execution/page-cursor.ts';
import { type ExecutedQuery, executeQuery } from './execution/query-executor.ts';
import { renderQueryResult } from './execution/query-result.ts';
import type { QueryCaller, QueryTarget, RunNativeQuery } from './execution/query-target.ts';
import { executeForeign, type ForeignQuery, nameOfSource, readForeignQuery } from './foreign/foreign-query.ts';
import { type FindForeign, openForeign } from './foreign/open-foreign.ts';
import { bringInputs, type InputSources, type WholeSearch } from './inputs/bring-inputs.ts';
import { executeJoin } from './join/execute-join.ts';
import type { JoinPlan } from './join/join-plan.ts';
import { openRights } from './join/open-rights.ts';
import { isObject } from './nodes/query-members.ts';
import { planContextOf } from './plan/plan-context.ts';
import { type AfterSearch, type PlannedQuery, planQuery, queryTable } from './plan/query-plan.ts';
import { QueryDeadline } from './query-deadline.ts';
import {
  beginsAtHits,
  type GraphSearch,
  type ResultReference,
  searchesOfLegs,
} from './request/graph/graph-searches.ts';
import { requireModelsOf } from './request/model-access.ts';
import { PartProjection } from './request/projection/part-projection.ts';
import { readQueryRequests } from './request/query-requests.ts';
import type { SearchableTable, SearchableTables } from './searchable-table.ts';
import { type StageMs, StageTimes, stageMembers } from './stage-times.ts';

/** Searches of one query when the indexes that it began with are closed under it. */
const attemptsMax = 3;

/** The report of a finished query for metrics and the slow-query log. */
export interface QueryReport {
  table: string;
  stages: StageMs;
  tookMs: number;
  /** The query as it was asked, without credentials. */
  request: unknown;
}

/** Of a request that searches graphs alone. */
const noHits: ExecutedQuery = {
  hits: [],
  total: 0,
  totalIsExact: true,
  isPartial: false,
  damaged: 0,
  maxScore: 0,
  aggregations: undefined,
  profile: undefined,
};

interface QueryServiceDeps extends InputSources {
  /** Runs graph searches of a query beside those of `earlier`; `keysOf` names the hits that a reference stands for. */
  searchGraphs(
    table: string,
    searches: readonly GraphSearch[],
    keysOf: (ref: ResultReference) => readonly string[],
    caller: Caller,
    earlier?: GraphFound,
  ): Promise<GraphFound>;
  tables: SearchableTables;
  run: RunNativeQuery;
  clock: Clock;
  /** The client of rerankers; undefined where the database was opened without models. */
  provider: FindProvider | undefined;
  /** Tables of databases elsewhere; undefined where the database was opened without connections. */
  foreign: FindForeign | undefined;
  queryTimeoutMs: number;
  onQuery(report: QueryReport): void;
  onFailure(): void;
  /** One query of several has failed for a reason of the server's, which its answer says in its place. */
  onFailedAmongSeveral(error: ServiceError, requestId: string | undefined): void;
}

/** A caller of queries, and whether it is alone. */
type ServiceCaller = Caller & Pick<QueryCaller, 'isAlone' | 'holdAnswer'>;

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
   * Runs the queries of a body and returns each result as pieces of JSON text, in order. A single query that fails, fails
   * the request; among several, a failed one answers in its place.
   */
  async run(pathTable: string | undefined, body: Uint8Array, caller: ServiceCaller): Promise<string[][]> {
    const requests = await readQueryRequests(body);
    const [only] = requests;
    if (requests.length === 1) return [await this.#one(only, pathTable, caller)];
    const results: Promise<string[]>[] = [];
    const start = (index: number) => {
      const result = this.#oneOfSeveral(requests[index], pathTable, caller);
      // It is waited for when all have begun: one that fails before that must not end the process.
      result.catch(() => undefined);
      results.push(result);
    };
    await forEachYielding(requests.length, start, 1);
    return Promise.all(results);
  }

  async #oneOfSeveral(request: unknown, pathTable: string | undefined, caller: ServiceCaller): Promise<string[]> {
    const started = this.#deps.clock.monotonicMs();
    try {
      return await this.#one(request, pathTable, caller);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      // The answer as a whole succeeds, and nothing else would log it.
      if (error.status >= 500) this.#deps.onFailedAmongSeveral(error, caller.requestId);
      return [renderFailure(error, this.#deps.clock.monotonicMs() - started)];
    }
  }

  async #one(request: unknown, pathTable: string | undefined, caller: ServiceCaller): Promise<string[]> {
    try {
      // An address names a table of this database.
      const foreign = pathTable === undefined ? readForeignQuery(request) : undefined;
      if (foreign) return await this.#answerForeign(foreign, request, caller);
      return await this.#answerOrWait(request, pathTable, caller);
    } catch (error) {
      this.#deps.onFailure();
      throw withDetails(error, { table: tableOf(request, pathTable) });
    }
  }

  /** A query that the engine refuses because the text index is still to come waits for that, as long as the request says. */
  async #answerOrWait(request: unknown, pathTable: string | undefined, caller: ServiceCaller): Promise<string[]> {
    const { clock, queryTimeoutMs } = this.#deps;
    using deadline = new QueryDeadline(clock, queryTimeoutMs, caller);
    const attempt: Attempt = { number: 1, deadline };
    try {
      return await this.#answer(request, pathTable, caller, attempt);
    } catch (error) {
      if (!attempt.mayWait || !(error instanceof ServiceError) || error.code !== 'unavailable') throw error;
      const { table, ms } = attempt.mayWait;
      await deadline.waiting(async (msMax) => {
        const done = new AbortController();
        const signal = AbortSignal.any([caller.signal, done.signal]);
        await Promise.race([table.textServes(signal), pause(clock, Math.min(ms, msMax), signal)]);
        done.abort();
      });
    }
    return this.#answer(request, pathTable, caller, { number: 1, deadline });
  }

  async #answer(
    request: unknown,
    pathTable: string | undefined,
    caller: ServiceCaller,
    attempt: Attempt,
  ): Promise<string[]> {
    const { clock } = this.#deps;
    const times = new StageTimes(clock);
    const table = this.#deps.tables.get(queryTable(request, pathTable), caller, 'read');
    const nowMs = clock.nowMs();
    const { textIndex } = table;
    const asked = planQuery(request, planContextOf(table, caller, nowMs));
    if (asked.plan.text_index_comes && asked.waitForIndexMs !== undefined) {
      attempt.mayWait = { table, ms: asked.waitForIndexMs };
    }
    checkReranker(asked, table.name, caller);
    this.#checkTemplate(asked);
    const { deadline } = attempt;
    if (asked.plan.timeout_ms !== undefined) deadline.limitTo(asked.plan.timeout_ms);
    times.end('plan');
    const cursor = cursorScopeOf(asked);
    const brought = await this.#bring(asked, { table, cursor, caller, deadline, times });
    const legs = await this.#searchLegs(asked, table.name, caller);
    using lease = await table.lease();
    const search = legs ? await bringGraphLegs(brought, asked.graphs ?? [], legs, { table, ...lease }) : brought;
    const planned: PlannedQuery = { ...asked, plan: search.plan };
    const leased = { table, ranges: lease.ranges, clock, caller, deadline };
    const target = await openTarget(leased, planned, nowMs);
    // Words were dropped, or came, since it was planned what compares them.
    const again = () => {
      attempt.number += 1;
      return this.#answer(request, pathTable, caller, attempt);
    };
    if (table.textIndex !== textIndex && attempt.number < attemptsMax) return again();
    const { schema } = table.settings;
    const searched = { search, target, run: deadline.inTime(this.#deps.run), caller, deadline, schema };
    // A schema change, a drop or a repair has closed an index between two looks at it: those that are there now answer.
    const failed = async (error: unknown) => {
      const isClosed = !target.isOpen();
      const isWorthAnother = isClosed || (isEngineFault(error) && (await target.searchFailed()));
      if (isWorthAnother && attempt.number < attemptsMax) return again();
      throw isClosed && !(error instanceof ServiceError) ? changedAgain(error) : searchFailure(error);
    };
    let executed: ExecutedQuery;
    let found = legs;
    try {
      if (planned.expansion === 'intersection') {
        found = await this.#searchAll(searched, planned, legs);
        searched.search = amongNodes(search, found);
      }
      executed = await this.#execute(searched, planned, nowMs);
    } catch (error) {
      return await failed(error);
    }
    times.end('search');
    if (search.plan.explain) explainChunks(executed.hits, table);
    if (planned.after) {
      executed = await this.#rerank(executed, planned.after, caller, deadline);
      times.end('rerank');
    }
    const graphs = await this.#searchGraphs(planned, executed, caller, found);
    if (planned.expansion === 'union' && graphs) {
      try {
        executed = await withNodes(executed, graphs.shownKeys(), search, searched);
      } catch (error) {
        return await failed(error);
      }
    }
    const judged = planned.plan.row_filter === undefined ? undefined : target.bodies;
    const parts = await this.#shownParts(planned, table)?.ofHits(executed.hits, lease.ranges, judged);
    const page = await finishPage(executed, planned, target, parts);
    times.end('search');
    const { stages, tookMs } = times;
    this.#deps.onQuery({ table: table.name, stages, tookMs, request: withoutCredentials(request) });
    return renderQueryResult(page.executed, {
      table: table.name,
      projection: planned.projection,
      tookMs,
      highlights: page.highlights,
      parts: parts?.shown,
      seal: (values, at) => this.#deps.cursors.seal(cursor, values, at),
      failedOver: search.failedOver,
      graphs: graphs && JSON.stringify(graphs.shown),
      profile: planned.profile ? profileOf(executed, planned, lease.ranges.length, stages) : undefined,
    });
  }

  async #answerForeign(query: ForeignQuery, request: unknown, caller: ServiceCaller): Promise<string[]> {
    const times = new StageTimes(this.#deps.clock);
    const table = nameOfSource(query.source);
    using rows = await openForeign(query.source, query, { foreign: this.#deps.foreign, caller });
    times.end('plan');
    const executed = await executeForeign(query, rows, caller.signal);
    times.end('search');
    const { stages, tookMs } = times;
    this.#deps.onQuery({ table, stages, tookMs, request });
    const seal = () => '';
    return renderQueryResult(executed, { table: queryTable(request), projection: query.projection, tookMs, seal });
  }

  async #execute(searched: Searched, { join, hasHits }: PlannedQuery, nowMs: number): Promise<ExecutedQuery> {
    if (!hasHits) return noHits;
    const { search, target, run, caller } = searched;
    const executed = join ? await this.#join(searched, join, nowMs) : await executeQuery(search, target, run, caller);
    // A leg has not seen all of its nodes.
    return search.isWhole === false ? { ...executed, totalIsExact: false, isPartial: true } : executed;
  }

  /** The graph searches whose nodes take part in the hits; undefined where there are none. */
  async #searchLegs(
    { graphs = [] }: PlannedQuery,
    table: string,
    caller: ServiceCaller,
  ): Promise<GraphFound | undefined> {
    const searches = searchesOfLegs(graphs);
    if (searches.length === 0) return undefined;
    return this.#deps.searchGraphs(table, searches, () => [], caller);
  }

  /** All graph searches, before the hits that are to be among their nodes. */
  async #searchAll(searched: Searched, planned: PlannedQuery, legs: GraphFound | undefined): Promise<GraphFound> {
    const { search, target, run, caller } = searched;
    const fromHits = planned.graphs?.some(beginsAtHits) === true;
    const page = fromHits ? await executeQuery(pageAlone(search), target, run, caller) : noHits;
    return must(await this.#searchGraphs(planned, page, caller, legs), 'an expansion without graph searches');
  }

  async #searchGraphs(
    { graphs, table }: PlannedQuery,
    { hits }: ExecutedQuery,
    caller: ServiceCaller,
    earlier: GraphFound | undefined,
  ): Promise<GraphFound | undefined> {
    if (!graphs) return undefined;
    const foundBy = (leg: string) => hits.filter(({ legScores }) => legScores === undefined || legScores.has(leg));
    const keysOf = (ref: ResultReference) => {
      const found =
        ref.kind === 'embeddings' ? foundBy(ref.index) : ref.kind === 'full_text' ? foundBy(textLegName) : hits;
      // A hit that is joined to several rows is several, and a row without one has no key.
      return [...new Set(found.map(({ document }) => document.key))].filter((key) => key !== '');
    };
    return this.#deps.searchGraphs(table, graphs, keysOf, caller, earlier);
  }

  async #join(searched: Searched, join: JoinPlan, nowMs: number): Promise<ExecutedQuery> {
    using opened = new DisposableStack();
    const { tables, foreign, clock } = this.#deps;
    const { run, caller, deadline } = searched;
    const profile = searched.search.plan.profile === true;
    const rights = await openRights(join, opened, { tables, foreign, run, clock, caller, deadline, nowMs, profile });
    return await executeJoin({ ...searched, plan: join, rights, clock });
  }

  #shownParts({ projection, plan }: PlannedQuery, { indexes, artifacts }: SearchableTable): PartProjection | undefined {
    const { templates } = this.#deps;
    return PartProjection.of(projection, { indexes, artifacts, templates, hides: plan.row_filter !== undefined });
  }

  /** Before anything is searched. */
  #checkTemplate({ after }: PlannedQuery): void {
    if (after && 'template' in after.rerank.source) this.#deps.templates.check(after.rerank.source.template);
  }

  async #bring(planned: PlannedQuery, { table, cursor, caller, deadline, times }: BroughtFor): Promise<WholeSearch> {
    const search = await bringInputs(planned, this.#deps, {
      table,
      cursor,
      caller,
      signal: () => deadline.signal(),
    });
    if (planned.inputs.semantic) times.end('embed');
    search.plan.timeout_ms = deadline.leftMs;
    return search;
  }

  async #rerank(
    executed: ExecutedQuery,
    after: AfterSearch,
    caller: ServiceCaller,
    deadline: QueryDeadline,
  ): Promise<ExecutedQuery> {
    const { provider: find, templates, media } = this.#deps;
    if (find) return rerankHits(executed, after, { find, templates, media }, { caller, signal: deadline.signal() });
    throw new ServiceError('not_implemented', '"reranker" needs models, and the database was opened without any');
  }
}

/** An attempt at a query, of which there are several where indexes change meanwhile. */
interface Attempt {
  number: number;
  /** Of all of them. */
  readonly deadline: QueryDeadline;
  /** The text index of the table is still to come, and how long the query waits for it if it needs words. */
  mayWait?: { readonly table: SearchableTable; readonly ms: number };
}

/** A search that is ready to run. */
type Searched = Omit<Parameters<typeof executeJoin>[0], 'plan' | 'rights' | 'caller' | 'clock'> & {
  caller: ServiceCaller;
};

/** A cursor goes on with the same joins only. */
function cursorScopeOf({ table, plan, join }: PlannedQuery): CursorScope {
  return { table: join ? JSON.stringify([table, join.scope]) : table, sort: plan.sort };
}

/** The services that bring inputs. */
interface BroughtFor {
  table: SearchableTable;
  cursor: CursorScope;
  caller: ServiceCaller;
  deadline: QueryDeadline;
  times: StageTimes;
}

/** Naming a model needs the grant to use it; naming a stored credential, that to change the table. */
function checkReranker({ after }: PlannedQuery, table: string, caller: Caller): void {
  if (!after) return;
  requireModelsOf(caller, [after.rerank.config]);
  if (refersToCredentials(after.rerank.config)) requireTable(caller, table, 'admin');
}

function refersToCredentials({ apiKey, signing }: ProviderConfig): boolean {
  const values = [apiKey, signing?.accessKeyId, signing?.secretAccessKey, signing?.sessionToken];
  return values.some((value) => value?.includes('${'));
}

function withoutCredentials(request: unknown): unknown {
  if (!isObject(request) || !isObject(request.reranker)) return request;
  return { ...request, reranker: shownProviderConfig(request.reranker) };
}

/** The parts of the page beside its documents. Hits of which something damaged was found leave the page. */
async function finishPage(
  executed: ExecutedQuery,
  { plan, highlight }: PlannedQuery,
  target: QueryTarget,
  parts: { damaged: ReadonlySet<Hit> } | undefined,
): Promise<{ executed: ExecutedQuery; highlights: string[] | undefined }> {
  const shown = parts && parts.damaged.size > 0 ? withoutDamaged(executed, parts.damaged) : executed;
  const documents = shown.hits.map((hit) => hit.document);
  return { executed: shown, highlights: highlight && (await target.highlight(plan, highlight, documents)) };
}

/** The page without hits of which a part that it shows is damaged. */
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

function profileOf(
  { profile, reranked }: ExecutedQuery,
  { after }: PlannedQuery,
  rangeCount: number,
  stages: StageMs,
): string {
  const model = after?.rerank.config.model;
  return JSON.stringify({
    shards: { total: rangeCount, successful: rangeCount, failed: 0 },
    stages: stageMembers(stages),
    ...(profile === undefined ? {} : JSON.parse(profile)),
    ...(after && {
      reranker: { model, documents_reranked: reranked ?? 0, duration_ms: Math.round(stages.rerank ?? 0) },
    }),
  });
}

/** Each attempt has met an index that was closed under it. */
function changedAgain(cause: unknown): ServiceError {
  const message = 'the indexes were replaced again and again while they were searched; send the query again shortly';
  return new ServiceError('unavailable', message, { cause, retryAfterMs: 500 });
}
