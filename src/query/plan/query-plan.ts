import { limits } from '../../config/limits.ts';
import type { IndexDefinition } from '../../index-kinds/all-kinds.ts';
import { queryRequest } from '../../protocol/database/query.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import { readAggregations } from '../aggregations/aggregation-request.ts';
import type { RequestedCursor } from '../execution/page-cursor.ts';
import { type JoinPlan, planJoin } from '../join/join-plan.ts';
import { NamedFilters } from '../nodes/named-filters.ts';
import { QueryBudget } from '../nodes/query-budget.ts';
import { shapeNestingMax } from '../nodes/query-geo-nodes.ts';
import {
  checkMembers,
  invalidQuery,
  isObject,
  type Members,
  member,
  readBoolean,
  readInteger,
  readString,
} from '../nodes/query-members.ts';
import { readQueryNode } from '../nodes/query-nodes.ts';
import { type Expansion, readExpansion } from '../request/graph/expansion-request.ts';
import { checkReferences, type GraphSearch, isLeg, readGraphSearches } from '../request/graph/graph-searches.ts';
import { type HighlightPlan, readHighlight } from '../request/highlight-request.ts';
import { compileProjection, type Projection } from '../request/projection/projection.ts';
import { readPage } from '../request/query-page.ts';
import { type RerankPlan, readReranker } from '../request/reranker-request.ts';
import type { Synonyms } from '../request/synonyms.ts';
import { tolerateTypos } from '../request/typo-tolerance.ts';
import { defaultLimit, readSearchedIndexes, readVectorSearch, type SemanticSearch } from '../request/vector-search.ts';
import type { TextIndexState } from '../searchable-table.ts';
import { expandCriteria, readCriteria, synonymExpansion } from './criteria.ts';
import type { NativePlan } from './native-plan.ts';
import { matchAll, type PlanNode } from './plan-nodes.ts';
import { requireAlike, restrictRows } from './row-filter.ts';

/** The facts about a table that a plan needs. */
export interface PlanContext {
  name: string;
  /** TTL of documents; undefined when they do not expire. */
  ttlDurationMs?: number | undefined;
  /** Wall time, milliseconds since 1970. */
  nowMs: number;
  /** The synonyms of the table. */
  synonyms?: Synonyms;
  /** The indexes that vectors can be searched in. */
  indexes?: readonly IndexDefinition[];
  /** Names of the indexes that make vectors of texts. */
  embedders?: ReadonlySet<string>;
  /** Whether words can be searched for; they can unless given. */
  textIndex?: TextIndexState;
  /** Names of the full-text indexes that a request may choose. */
  textIndexes?: ReadonlySet<string>;
  /** The one of them that answers where none is chosen. */
  servingIndex?: string;
  /** Paths of which counters are kept; undefined for a table without an algebraic index. */
  countedPaths?: readonly string[] | undefined;
  /** The row filters of the caller: all must match. */
  rowFilters?: readonly PlanNode[];
}

/** The inputs of a plan that planning cannot know; they are brought before the search. */
interface PlanInputs {
  /** A cursor still to be opened. */
  cursor: RequestedCursor | undefined;
  semantic: SemanticSearch | undefined;
}

/** The steps between the hits of the search and the page. */
export interface AfterSearch {
  rerank: RerankPlan;
  /** The page that is cut from the reranked hits. */
  limit: number;
  offset: number;
}

export interface PlannedQuery {
  table: string;
  plan: NativePlan;
  /** The full-text index that is searched; undefined for the one that answers where none is chosen. */
  textIndex: string | undefined;
  /** Query vectors of the plan's legs, one after another; empty without legs. */
  vectors: Uint8Array;
  inputs: PlanInputs;
  /** Undefined where the hits of the search are the page. */
  after: AfterSearch | undefined;
  /** The joins of the hits; the page is then one of joined rows. */
  join: JoinPlan | undefined;
  /** Searches of graphs, in the order in which they need each other. */
  graphs: GraphSearch[] | undefined;
  /** How their nodes and the hits come together; undefined where both are answered apart. */
  expansion: Expansion | undefined;
  /** False where the request searches graphs alone: it has no hits. */
  hasHits: boolean;
  /** The marks in the documents of the page. */
  highlight: HighlightPlan | undefined;
  projection: Projection;
  profile: boolean;
  /** How long the query waits for what was written before it, in milliseconds; undefined where the request does not say. */
  waitForIndexMs: number | undefined;
}

/** Members of the interface whose part of the product does not exist yet, and what to call it. */
const notBuiltMembers: ReadonlyMap<string, string> = new Map([
  ['analyses', 'Analysis of result vectors'],
  ['tree_search', 'Tree search'],
  ['document_renderer', 'Rendering documents'],
]);

/** Members by any of which a request asks for hits, where it also searches graphs. */
const membersOfHits = [
  ...['full_text_search', 'query', 'semantic_search', 'embeddings', 'filter_query', 'exclusion_query', 'filter_prefix'],
  ...['limit', 'offset', 'count', 'order_by', 'aggregations', 'facets', 'join', 'search_after', 'search_before'],
];

const builtMembers = Object.keys(queryRequest.properties);
const knownMembers = [...builtMembers, ...notBuiltMembers.keys()];

/** Nodes inside each other in a plan; the engine's JSON reader stops at twice as many levels. */
const planNestingMax = 60;
const where = 'query request';
const noVectors = new Uint8Array(0);
const noPage = { limit: 0, offset: 0 };
const noEmbedders: ReadonlySet<string> = new Set();

/**
 * The table that a request is about: `pathTable` from the address, or the member `table`. Both may be given when
 * they agree.
 */
export function queryTable(request: unknown, pathTable?: string): string {
  if (!isObject(request)) throw new ServiceError('invalid_query', 'a query request must be a JSON object');
  const named = readString(request, 'table', where);
  if (pathTable !== undefined) {
    if (named === undefined || named === pathTable) return pathTable;
    throw invalidQuery(where, `"table" is "${named.slice(0, 64)}", but the address says "${pathTable}"`);
  }
  if (named === undefined || named === '') throw invalidQuery(where, '"table" must name a table');
  return named;
}

/**
 * Turns a request into what the engine runs and how its page is rendered. Reads nothing but its arguments.
 * Fails with `invalid_query`, `limit_exceeded`, or `not_implemented` naming the member, and with `query_timeout` when a
 * request that is fine otherwise gives no time to search in.
 */
export function planQuery(request: unknown, context: PlanContext): PlannedQuery {
  if (!isObject(request)) throw new ServiceError('invalid_query', 'a query request must be a JSON object');
  checkMembers(request, knownMembers, where);
  for (const [name, what] of notBuiltMembers) {
    if (member(request, name) === undefined) continue;
    throw new ServiceError('not_implemented', `${what} ("${name}") is not built yet`);
  }
  const table = queryTable(request, context.name);
  const { asked, criteria, typos, aggregations } = readConditions(request, context);
  const countOnly = readBoolean(request, 'count', where) ?? false;
  const vectorIndexes = { all: context.indexes ?? [], embedders: context.embedders ?? noEmbedders };
  const searched = readSearchedIndexes(request, vectorIndexes);
  const graphs = readGraphSearches(request);
  const graphLegs = (graphs ?? []).filter(isLeg).map(({ name }) => name);
  // A pruner needs scores: where nothing else scores, every match has that of `match_all`.
  if (searched.searched.length + graphLegs.length === 0 && member(request, 'pruner') !== undefined)
    criteria.query ??= matchAll;
  const hasText = criteria.query !== undefined;
  const page = readPage(request, where, defaultLimit(searched, hasText));
  const vectorSearch = readVectorSearch(request, searched, { page, hasText, countOnly, graphLegs });
  const { join, fields, sort } = planJoin(request, page, countOnly);
  const rerank = readReranker(request, { page, semanticText: searched.semantic?.text, scored: asked });
  const window = countOnly ? noPage : rerank ? { limit: rerank.candidates, offset: 0 } : page;
  const timeoutMs = readInteger(request, 'timeout_ms', { min: 0, max: Number.MAX_SAFE_INTEGER }, where);
  const keyPrefix = readString(request, 'filter_prefix', where);
  const explain = readExplain(request, page.limit);
  const profile = readBoolean(request, 'profile', where) ?? false;
  const { query, filter, exclusion } = criteria;
  // Members one by one where most queries have none: spreading empty objects took half of the time of a plan.
  const plan: NativePlan = {
    filter,
    exclusion,
    limit: window.limit,
    offset: window.offset,
    sort,
    // Joined rows are counted, not the hits that they are joined to.
    count_only: countOnly && !join,
    // A search that does not score has no top to stop at, and users of filters want the number.
    exact_total: !vectorSearch && ((countOnly && !join) || query === undefined || query.kind === 'match_all'),
    total_exact_up_to: limits.totalExactUpTo,
  };
  if (query) plan.query = typos ? tolerateTypos(query) : query;
  if (keyPrefix) plan.key_prefix = keyPrefix;
  if (explain && !countOnly) plan.explain = explain;
  if (vectorSearch) Object.assign(plan, vectorSearch.plan);
  if (profile) plan.profile = profile;
  const textIndex = readTextIndex(request, context, searched.textIndex);
  if (textIndex !== undefined && textIndex !== context.servingIndex) requireAlike(textIndex, context.rowFilters ?? []);
  restrict(plan, textIndex === undefined ? context : { ...context, textIndex: 'serving' });
  if (aggregations) plan.aggregations = aggregations;
  if (aggregations && context.countedPaths) plan.counted_paths = context.countedPaths;
  if (timeoutMs !== undefined) Object.assign(plan, { timeout_ms: timeoutMs, allows_partial: true });
  checkPlanNesting(plan);
  const hasHits =
    graphs === undefined || graphLegs.length > 0 || membersOfHits.some((name) => member(request, name) !== undefined);
  checkReferences(graphs ?? [], {
    searched: searched.searched.map(({ index }) => index.name),
    showsHits: hasHits && !countOnly && page.limit > 0,
  });
  const expansion = readExpansion(request, graphs, { page, countOnly, hasHits });
  const planned: PlannedQuery = {
    table,
    plan,
    textIndex,
    vectors: vectorSearch?.vectors ?? noVectors,
    inputs: { cursor: page.cursor, semantic: searched.semantic },
    after: rerank && { rerank, limit: page.limit, offset: page.offset },
    join,
    // Hits are looked for among all nodes, shown or not.
    graphs: expansion === 'intersection' ? graphs?.map((search) => ({ ...search, takesAll: true })) : graphs,
    expansion,
    hasHits,
    highlight: readHighlight(request, page.limit),
    projection: compileProjection(fields),
    profile,
    waitForIndexMs: readInteger(request, 'wait_for_index_ms', { min: 0, max: limits.indexWaitMsMax }, where),
  };
  if (timeoutMs === 0) throw new ServiceError('query_timeout', '"timeout_ms" is 0: no time was given to search');
  return planned;
}

/**
 * The full-text index that the request chooses, which may be `among` its
 * indexes; undefined for the one that answers otherwise.
 */
function readTextIndex(request: Members, { textIndexes }: PlanContext, among: string | undefined): string | undefined {
  const name = readString(request, 'full_text_index', where) ?? among;
  if (among !== undefined && name !== among) {
    throw invalidQuery(where, `"full_text_index" and "indexes" name two full-text indexes: leave "${among}" out`);
  }
  if (name === undefined || textIndexes?.has(name)) return name;
  throw invalidQuery(where, `"full_text_index": the table has no full-text index "${name.slice(0, 64)}"`);
}

/**
 * The conditions of the request on documents, and the aggregations over those
 * that match. `asked`: what scores, before synonyms.
 */
function readConditions(request: Members, { synonyms, nowMs }: PlanContext) {
  const budget = new QueryBudget();
  const filters = new NamedFilters(member(request, 'with'), readQueryNode);
  const typos = readBoolean(request, 'typo_tolerance', where) ?? false;
  const expand = synonymExpansion(synonyms, budget);
  const read = readCriteria(request, budget, filters);
  const criteria = expandCriteria(read, expand);
  const aggregations = readAggregations(request, { nowMs, budget, filters });
  for (const background of aggregations?.backgrounds ?? []) {
    if (background.filter) background.filter = expand(background.filter);
  }
  filters.checkUnused({ where: 'with', depth: 0, budget, filters });
  return { asked: read.query, criteria, typos, aggregations };
}

/**
 * A plan that says which documents match a node and may be seen, without scores, pages or order: scans and other filters.
 * Undefined when that is all of them.
 */
export function planFilter(node: unknown, context: Omit<PlanContext, 'name'>): NativePlan | undefined {
  if (node === undefined && (context.rowFilters ?? []).length === 0) return undefined;
  const budget = new QueryBudget();
  const expand = synonymExpansion(context.synonyms, budget);
  const scope = { where: 'filter_query', depth: 0, budget };
  const plan: NativePlan = {
    filter: node === undefined ? [] : [expand(readQueryNode(node, scope))],
    exclusion: [],
    limit: 0,
    offset: 0,
    sort: [],
    count_only: true,
    exact_total: true,
    total_exact_up_to: limits.totalExactUpTo,
  };
  restrict(plan, context);
  checkPlanNesting(plan);
  return plan;
}

/** The members of a plan that the table and the caller determine, never the request. */
function restrict(plan: NativePlan, context: Omit<PlanContext, 'name'>): void {
  const { textIndex = 'serving', rowFilters = [], ttlDurationMs, nowMs } = context;
  if (textIndex !== 'serving') plan.has_text_index = false;
  if (textIndex === 'coming') plan.text_index_comes = true;
  if (ttlDurationMs !== undefined) plan.expired_at_or_before_ms = Math.floor(nowMs - ttlDurationMs);
  restrictRows(plan, rowFilters);
}

function readExplain(request: Members, limit: number): boolean {
  const explain = readBoolean(request, 'explain', where) ?? false;
  if (explain && limit > limits.explainHitsMax) {
    throw new ServiceError('limit_exceeded', `explain: a page has at most ${limits.explainHitsMax} hits`);
  }
  return explain;
}

function checkPlanNesting(plan: NativePlan): void {
  if (plan.query) checkNodeNesting(plan.query);
  plan.row_filter?.forEach(checkNodeNesting);
  plan.filter.forEach(checkNodeNesting);
  plan.exclusion.forEach(checkNodeNesting);
  for (const { filter } of plan.aggregations?.backgrounds ?? []) if (filter) checkNodeNesting(filter);
}

function checkNodeNesting(node: PlanNode): void {
  if (nesting(node) <= planNestingMax) return;
  throw new ServiceError('limit_exceeded', `a query nests at most ${planNestingMax} levels of AND, OR and NOT`);
}

function nesting(node: PlanNode): number {
  // Half of its levels of JSON: a bool takes two.
  if (node.kind === 'geo_shape') return shapeNestingMax / 2;
  if (node.kind !== 'bool') return 0;
  let deepest = 0;
  for (const clauses of [node.must, node.should, node.must_not, node.filter]) {
    for (const clause of clauses) deepest = Math.max(deepest, nesting(clause));
  }
  return deepest + 1;
}
