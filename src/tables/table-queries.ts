import type { Caller } from '../access/principal.ts';
import { limits } from '../config/limits.ts';
import { scanJson } from '../engine/json-scan.ts';
import { highlightDocuments, matchDocuments } from '../engine/native-query.ts';
import { mappedSchemaOf } from '../index-kinds/all-kinds.ts';
import type { OpenRange } from '../indexing/open-range.ts';
import { must } from '../lib/assert.ts';
import type { Clock } from '../lib/clock.ts';
import { inSlices } from '../lib/in-slices.ts';
import { skipSpace } from '../lib/json-text.ts';
import { errorCodes } from '../protocol/error-codes.ts';
import { ServiceError, withDetails } from '../protocol/service-error.ts';
import type { HighlightPlan } from '../query/highlight-request.ts';
import type { Hit } from '../query/hydrate.ts';
import {
  freshnessOf,
  hasReplayed,
  type SearchedIndexes,
  waitUntilReplayed,
  waitUntilShown,
} from '../query/index-freshness.ts';
import { type NativePlan, textPlan } from '../query/native-plan.ts';
import type { CursorSeal } from '../query/page-cursor.ts';
import { type ExecutedQuery, executeQuery } from '../query/query-executor.ts';
import { type PlannedQuery, planQuery, queryTable } from '../query/query-plan.ts';
import { splitQueryRequests } from '../query/query-requests.ts';
import { renderQueryResult } from '../query/query-result.ts';
import type { HydratedDocument, QueryCaller, QueryTarget, RunNativeQuery } from '../query/query-target.ts';
import { type FramedDocument, framesOf } from './document-frames.ts';
import { synonymsOf } from './document-schema.ts';
import { ShownVectors } from './shown-vectors.ts';
import type { Table, TableIndex } from './table.ts';
import type { TableLookup } from './table-lookup.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true });
const encoder = new TextEncoder();

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

export interface TableQueriesParts {
  tables: TableLookup;
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
export type CallerOfQueries = Caller & Pick<QueryCaller, 'isAlone'>;

interface OpenTarget extends QueryTarget {
  /** The indexes that were taken are still those that serve. */
  isOpen(): boolean;
}

/** Answers query requests: one body, one or many queries. */
export class TableQueries {
  readonly #parts: TableQueriesParts;

  constructor(parts: TableQueriesParts) {
    this.#parts = parts;
  }

  /**
   * Runs the queries of a body and returns each result as JSON text, in order. A single query that fails, fails the
   * request; among several, a failed one answers in its place.
   */
  async run(pathTable: string | undefined, body: Uint8Array, caller: CallerOfQueries): Promise<string[]> {
    const requests = await readRequests(body);
    const [only] = requests;
    if (requests.length === 1) return [await this.#one(only, pathTable, caller)];
    const results: Promise<string>[] = [];
    const start = (index: number) => results.push(this.#oneOfSeveral(requests[index], pathTable, caller));
    await inSlices(requests.length, start, 1);
    return Promise.all(results);
  }

  async #oneOfSeveral(request: unknown, pathTable: string | undefined, caller: CallerOfQueries): Promise<string> {
    const started = this.#parts.clock.monotonicMs();
    try {
      return await this.#one(request, pathTable, caller);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      // The answer as a whole succeeds, and nothing else would log it.
      if (error.status >= 500) this.#parts.onFailedAmongSeveral(error, caller.requestId);
      return renderFailure(error, this.#parts.clock.monotonicMs() - started);
    }
  }

  async #one(request: unknown, pathTable: string | undefined, caller: CallerOfQueries): Promise<string> {
    try {
      return await this.#answer(request, pathTable, caller);
    } catch (error) {
      this.#parts.onFailure();
      throw withDetails(error, { table: tableOf(request, pathTable) });
    }
  }

  async #answer(
    request: unknown,
    pathTable: string | undefined,
    caller: CallerOfQueries,
    attempt = 1,
  ): Promise<string> {
    const { clock } = this.#parts;
    const started = clock.monotonicMs();
    const table = this.#parts.tables.get(queryTable(request, pathTable), caller, 'read');
    const nowMs = clock.nowMs();
    const synonyms = synonymsOf(table.settings.schema);
    const indexes = table.indexes.map(({ definition }) => definition);
    const { name, ttlDurationMs } = table;
    const planned = planQuery(request, { name, ttlDurationMs, nowMs, synonyms, indexes });
    const scope = { table: table.name, sort: planned.plan.sort };
    if (planned.cursor) planned.plan.cursor = this.#parts.cursors.open(scope, planned.cursor);
    const plannedAt = clock.monotonicMs();
    using lease = await table.lease();
    const target = await this.#target(table, lease.ranges, { planned, nowMs, caller });
    const { plan } = planned;
    plan.timeout_ms = Math.min(plan.timeout_ms ?? Number.POSITIVE_INFINITY, this.#parts.queryTimeoutMs);
    let executed: ExecutedQuery;
    try {
      executed = await executeQuery({ plan, vectors: planned.vectors }, target, this.#parts.run, caller);
    } catch (error) {
      // A schema change, a drop or a repair has closed an index between two looks at it: those that are there now answer.
      if (target.isOpen() || attempt === attemptsMax) throw error;
      return this.#answer(request, pathTable, caller, attempt + 1);
    }
    const stored = lease.ranges.map((range) => range.stored);
    const vectors = await ShownVectors.of(planned.projection, table.indexes)?.ofHits(executed.hits, stored);
    if (vectors && vectors.damaged.size > 0) executed = withoutDamaged(executed, vectors.damaged);
    const documents = executed.hits.map((hit) => hit.document);
    const highlights = planned.highlight && (await target.highlight(plan, planned.highlight, documents));
    const finished = clock.monotonicMs();
    const report = {
      table: table.name,
      planMs: plannedAt - started,
      searchMs: finished - plannedAt,
      tookMs: finished - started,
      request,
    };
    this.#parts.onQuery(report);
    return renderQueryResult(executed, {
      table: table.name,
      projection: planned.projection,
      tookMs: report.tookMs,
      highlights,
      embeddings: vectors?.shown,
      seal: (values, at) => this.#parts.cursors.seal(scope, values, at),
      profile: planned.profile ? profileOf(executed, lease.ranges.length, report) : undefined,
    });
  }

  async #target(
    table: Table,
    ranges: readonly OpenRange[],
    { planned, nowMs, caller }: { planned: PlannedQuery; nowMs: number; caller: CallerOfQueries },
  ): Promise<OpenTarget> {
    const legNames = (planned.plan.legs ?? []).map((leg) => leg.name);
    const searchedBy = (index: TableIndex): SearchedIndexes => {
      return { ranges, names: [index.name, ...legNames], clock: this.#parts.clock, signal: caller.signal };
    };
    let index = table.servingIndex;
    for (;;) {
      await waitForIndexes(searchedBy(index), planned.waitForIndexMs);
      if (index.name === table.servingIndex.name) break;
      // Another index has taken over meanwhile.
      index = table.servingIndex;
    }
    const searched = searchedBy(index);
    const { names } = searched;
    const handles = () => names.flatMap((name) => ranges.map((range) => range.applier(name)?.index?.handle));
    const taken = handles();
    return {
      isOpen: () => handles().every((handle, at) => handle === taken[at]),
      tableName: table.name,
      freshness: freshnessOf(searched),
      expiredAtOrBeforeMs: table.expiredAtOrBeforeMs(nowMs),
      ranges: ranges.map((range) => ({
        rangeId: range.rangeId,
        handle: handleOf(range, index.name, table),
        documents: (ordinals) => range.stored.documents.byOrdinals(ordinals),
      })),
      vectorHandles: legNames.flatMap((name) => ranges.map((range) => handleOf(range, name, table))),
      highlight: (plan, wanted, documents) => highlightStored(table, plan, wanted, documents),
      recheck: (plan, documents) => matchStored(table, plan, inBytes(documents)),
    };
  }
}

/** Waits as the request says; an index that was just opened is otherwise waited for until it has replayed its tail. */
async function waitForIndexes(searched: SearchedIndexes, waitMs: number | undefined): Promise<void> {
  if (waitMs === undefined) {
    if (!hasReplayed(searched)) await waitUntilReplayed(searched, limits.indexReplayWaitMs);
    return;
  }
  const heads = searched.ranges.map(({ head }) => head);
  await waitUntilShown(searched, heads, waitMs);
}

/** The page without hits of which a vector that it shows is damaged. */
function withoutDamaged(executed: ExecutedQuery, damaged: ReadonlySet<Hit>): ExecutedQuery {
  const hits = executed.hits.filter((hit) => !damaged.has(hit));
  return { ...executed, hits, damaged: executed.damaged + damaged.size };
}

/** Which of the stored documents match the plan, by the table's own mapping and analyzers. */
export async function matchStored(
  table: Table,
  plan: NativePlan,
  documents: Iterable<FramedDocument>,
): Promise<boolean[]> {
  const matches: boolean[] = [];
  const planJson = JSON.stringify({ ...plan, offset: 0, limit: 0, sort: [] });
  for (const frame of framesOf(documents)) {
    for (const matched of await matchDocuments(mappedSchemaOf(table.servingIndex.definition), planJson, frame))
      matches.push(matched === 1);
  }
  return matches;
}

/** The fragments of each document that the plan asks for, by the table's own mapping and analyzers. */
async function highlightStored(
  table: Table,
  plan: NativePlan,
  wanted: HighlightPlan,
  documents: readonly HydratedDocument[],
): Promise<string[]> {
  const highlights: string[] = [];
  const { aggregations: _, cursor: _cursor, ...asked } = textPlan(plan);
  const planJson = JSON.stringify({ ...asked, offset: 0, limit: 0, sort: [] });
  for (const frame of framesOf(inBytes(documents))) {
    const rows = await highlightDocuments(
      mappedSchemaOf(table.servingIndex.definition),
      planJson,
      JSON.stringify(wanted),
      frame,
    );
    for (const row of rows) highlights.push(JSON.stringify(row));
  }
  return highlights;
}

function* inBytes(documents: readonly HydratedDocument[]): Generator<FramedDocument> {
  for (const { key, ttlBaseMs, text } of documents) yield { key, ttlBaseMs, body: encoder.encode(text) };
}

/** For the log: the table that a request names, if it does. */
function tableOf(request: unknown, pathTable: string | undefined): string | undefined {
  const named = typeof request === 'object' && request !== null && 'table' in request ? request.table : undefined;
  return pathTable ?? (typeof named === 'string' ? named : undefined);
}

/** Handle of an index in the native engine. */
function handleOf(range: OpenRange, indexName: string, table: Table): number {
  const native = range.applier(indexName)?.index;
  if (native) return native.handle;
  const message = `The index "${indexName}" of table ${JSON.stringify(table.name)} is not open yet. Try again shortly.`;
  throw new ServiceError('unavailable', message, { retryAfterMs: 500 });
}

async function readRequests(body: Uint8Array): Promise<unknown[]> {
  let text: string;
  try {
    text = utf8.decode(body);
  } catch {
    throw new ServiceError('invalid_json', 'The body is not valid UTF-8.');
  }
  // Nearly always it is one object: then there is nothing to cut.
  const mayBeOne = body.byteLength <= limits.queryBytesMax && text[skipSpace(text, 0)] === '{';
  if (mayBeOne && isJson(body)) return [JSON.parse(text)];
  const texts = splitQueryRequests(text);
  const requests: unknown[] = [];
  const read = (index: number) => {
    const request = must(texts[index], 'a text for each request');
    scanJson(texts.length === 1 ? body : encoder.encode(request));
    requests.push(JSON.parse(request));
  };
  await inSlices(texts.length, read, 1);
  return requests;
}

function isJson(bytes: Uint8Array): boolean {
  try {
    scanJson(bytes);
    return true;
  } catch (error) {
    if (error instanceof ServiceError) return false;
    throw error;
  }
}

function renderFailure(error: ServiceError, tookMs: number): string {
  return JSON.stringify({
    hits: { total: { value: 0, relation: 'exact' }, hits: [], max_score: 0 },
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
