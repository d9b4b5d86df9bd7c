import type { Caller } from '../../access/principal.ts';
import { limits } from '../../config/limits.ts';
import type { NativeEdgePlace, NativeGraphAnswer, NativeGraphNode } from '../../engine/native-graph.ts';
import type { IndexedRange } from '../../indexing/indexed-range.ts';
import { must } from '../../lib/assert.ts';
import type { Clock } from '../../lib/clock.ts';
import { checkDocumentKey } from '../../protocol/document-key.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { Members } from '../../query/nodes/query-members.ts';
import {
  type NodeFilter,
  type PathRequest,
  readDirection,
  readPaths,
  readTraverse,
  type TraverseRequest,
} from '../../query/request/graph/graph-request.ts';
import type { GraphSearch, NodeSelector, ResultReference } from '../../query/request/graph/graph-searches.ts';
import { type Projection, shownDocument } from '../../query/request/projection/projection.ts';
import type { Table } from '../table.ts';
import type { TableLookup } from '../table-lookup.ts';
import { intervalOf } from '../writes/frame-split.ts';
import { type GraphSearchRequest, OpenGraph, type PartialReason } from './open-graph.ts';
import { type ShownEdge, StoredEdges } from './stored-edges.ts';
import { Visibility } from './visibility.ts';

/** A node of an answer. */
interface ShownNode {
  key: string;
  depth: number;
  distance: number;
  path?: string[];
  path_edges?: ShownEdge[];
  edges?: ShownEdge[];
  document?: unknown;
}

/** A path of an answer. */
interface ShownPath {
  nodes: string[];
  edges: ShownEdge[];
  total_weight: number;
  length: number;
}

/** What one search of a query has found. */
interface GraphSearchResult {
  type: GraphSearch['type'];
  total: number;
  took: number;
  nodes?: ShownNode[];
  paths?: ShownPath[];
  partial?: PartialReason;
}

/** What every answer says of itself. */
interface AnswerHead {
  took: number;
  /** Why the answer lacks something. */
  partial?: PartialReason;
}

/** A graph index that a request searches, with its table's ranges held open. */
interface Searched {
  table: Table;
  ranges: readonly IndexedRange[];
  graph: OpenGraph;
  caller: Caller;
}

/** Searches go around this often until every node that an answer depends on is decided. */
const roundsMax = 6;
const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** Reads the graph indexes of tables. An answer shows every edge that was acknowledged before it was asked for. */
export class GraphService {
  readonly #tables: TableLookup;
  readonly #clock: Clock;

  constructor(tables: TableLookup, clock: Clock) {
    this.#tables = tables;
    this.#clock = clock;
  }

  /**
   * A page of the edges of a node: first those that lead away from it, then by type and by the key of the other end.
   * Fails with `index_not_found` and `invalid_query`.
   */
  async edges(
    tableName: string,
    indexName: string,
    asked: { key: string; direction?: string; type?: string; limit?: number; after?: string },
    caller: Caller,
  ): Promise<AnswerHead & { edges: ShownEdge[]; count: number; total: number; next?: string }> {
    const { key, type, limit = 100 } = asked;
    checkDocumentKey(key);
    const after = asked.after === undefined ? null : readPlace(asked.after);
    const direction = readDirection(asked.direction);
    return this.#searched(tableName, indexName, caller, async (searched) => {
      const request: GraphSearchRequest = {
        search: { edges: { limit, after } },
        starts: [key],
        edge_types: type === undefined ? [] : [type],
        direction,
      };
      const { answer, partial } = await this.#search(searched, request, undefined);
      const found = answer.edges ?? [];
      const last = found.at(-1);
      const next = found.length === limit && last ? placeText(last, key, direction) : undefined;
      const edges = this.#shownEdges(searched, found);
      const head = { edges, count: edges.length, total: answer.total, ...(next === undefined ? {} : { next }) };
      return { ...head, ...partial };
    });
  }

  /** Nodes within some steps of others. Fails with `index_not_found` and `invalid_query`. */
  async traverse(tableName: string, indexName: string, body: Members, caller: Caller) {
    const asked = readTraverse(body);
    return this.#searched(tableName, indexName, caller, async (searched) => {
      const { nodes: results, total, ...partial } = await this.#traverse(searched, asked);
      return { results, count: results.length, total, ...partial };
    });
  }

  async #traverse(
    searched: Searched,
    asked: TraverseRequest,
  ): Promise<{ nodes: ShownNode[]; total: number; partial?: PartialReason }> {
    const { max_depth, max_results, deduplicate_nodes, include_paths, include_edges, starts, edges } = asked;
    const traverse = { max_depth, max_results, deduplicate_nodes, include_paths, include_edges };
    const request: GraphSearchRequest = { search: { traverse }, starts, ...edges };
    const { answer, partial } = await this.#search(searched, request, asked.nodeFilter);
    const nodes = (answer.nodes ?? []).map((node) => this.#shownNode(searched, node, asked.documents));
    return { nodes, total: answer.total, ...partial };
  }

  /** The best paths between two nodes. Fails with `index_not_found` and `invalid_query`. */
  async paths(tableName: string, indexName: string, body: Members, caller: Caller) {
    const asked = readPaths(body);
    const [source, target] = [asked.starts[0], asked.targets[0]];
    return this.#searched(tableName, indexName, caller, async (searched) => {
      const { paths, ...partial } = await this.#paths(searched, asked);
      return { paths, source, target, weight_mode: asked.weight_mode, paths_found: paths.length, ...partial };
    });
  }

  async #paths(searched: Searched, asked: PathRequest): Promise<{ paths: ShownPath[]; partial?: PartialReason }> {
    const { starts, targets, edges, max_depth, weight_mode, k, nodeFilter } = asked;
    const search = { paths: { max_depth, weight_mode, k } };
    const { answer, partial } = await this.#search(searched, { search, starts, targets, ...edges }, nodeFilter);
    const paths = (answer.paths ?? []).map((path) => ({ ...path, edges: this.#shownEdges(searched, path.edges) }));
    return { paths, ...partial };
  }

  /**
   * The graph searches of a query, in the order in which they need each other. `keysOf` names the hits that a reference
   * stands for. Fails with `invalid_query` for an index that is not a graph of the table.
   */
  async searches(
    tableName: string,
    searches: readonly GraphSearch[],
    keysOf: (ref: ResultReference) => readonly string[],
    caller: Caller,
  ): Promise<Record<string, GraphSearchResult>> {
    const results: Record<string, GraphSearchResult> = Object.create(null);
    const found = (ref: ResultReference) => {
      if (ref.kind !== 'graph') return keysOf(ref);
      const { nodes = [], paths = [] } = results[ref.name] ?? {};
      return [...new Set([...nodes.map(({ key }) => key), ...paths.flatMap((path) => path.nodes)])];
    };
    for (const search of searches) {
      const answer = await this.#searched(tableName, search.index, caller, async (searched) => {
        const starts = await this.#selected(searched, search.starts, found);
        if (!('targets' in search)) return this.#traverse(searched, { ...search.asked, starts });
        const targets = await this.#selected(searched, search.targets, found);
        const paths = await this.#paths(searched, { ...search.asked, starts, targets });
        return { ...paths, total: paths.paths.length };
      }).catch((error: unknown) => {
        // A query that names an index that is not there is a bad query.
        if (!(error instanceof ServiceError) || error.code !== 'index_not_found') throw error;
        throw new ServiceError('invalid_query', `graph_searches.${search.name}: ${error.message}`);
      });
      results[search.name] = { type: search.type, ...answer };
    }
    return results;
  }

  async #selected(
    { table, ranges, caller }: Searched,
    { from, filter }: NodeSelector,
    found: (ref: ResultReference) => readonly string[],
  ): Promise<string[]> {
    const keys = 'keys' in from ? from.keys : found(from.ref).slice(0, from.limit);
    if (!filter) return keys.slice();
    const visibility = new Visibility({ table, ranges, clock: this.#clock, caller }, filter);
    await visibility.decide(keys);
    return keys.filter((key) => visibility.isShown(key));
  }

  async #searched<Answer>(
    tableName: string,
    indexName: string,
    caller: Caller,
    run: (searched: Searched) => Promise<Answer>,
  ): Promise<Answer & { took: number }> {
    const started = this.#clock.monotonicMs();
    const table = this.#tables.get(tableName, caller, 'read');
    using lease = await table.lease();
    const index = table.listedIndexes.find(({ name }) => name === indexName);
    if (!index) throw new ServiceError('index_not_found', `table "${table.name}" has no index "${indexName}"`);
    if (index.definition.kind !== 'graph') {
      throw new ServiceError('invalid_query', `the index "${indexName}" is not a graph index`);
    }
    const graph = new OpenGraph({ table, ranges: lease.ranges, clock: this.#clock }, index.definition);
    const answer = await run({ table, ranges: lease.ranges, graph, caller });
    return { ...answer, took: Math.round(this.#clock.monotonicMs() - started) };
  }

  /**
   * Searches as if all nodes were shown, decides on those that the search has met, and searches again until nothing that
   * was met is undecided. So a hidden node is neither found nor walked through.
   */
  async #search(
    { table, ranges, graph, caller }: Searched,
    request: GraphSearchRequest,
    filter: NodeFilter | undefined,
  ): Promise<{ answer: NativeGraphAnswer; partial: { partial?: PartialReason } }> {
    const late = await graph.waitUntilShown(caller.signal);
    const deps = { table, ranges, clock: this.#clock, caller };
    const visibility = new Visibility(deps, filter);
    const partialOf = (answer: NativeGraphAnswer) => {
      const reason = answer.partial ?? late;
      return { answer, partial: reason === undefined ? {} : { partial: reason } };
    };
    if (!visibility.decides) return partialOf(await graph.search(request, caller));
    const ends = [...(request.starts ?? []), ...(request.targets ?? [])];
    await decideEnds(ends, new Visibility(deps), visibility);
    for (let round = 1; ; round += 1) {
      const asked = { nodes_max: limits.graphNodesCheckedMax, reports_nodes: true, hidden: visibility.hidden() };
      const answer = await graph.search({ ...request, ...asked }, caller);
      const undecided = (answer.touched ?? []).filter((key) => !visibility.isKnown(key));
      if (undecided.length === 0) return partialOf(answer);
      if (round < roundsMax) await visibility.decide(undecided);
      else {
        // What nobody has looked at is shown to nobody.
        visibility.hide(undecided);
        const last = await graph.search({ ...request, ...asked, hidden: visibility.hidden() }, caller);
        return partialOf({ ...last, partial: 'nodes' });
      }
    }
  }

  #shownEdges({ table, ranges, graph }: Searched, edges: NativeGraphNode['edges']): ShownEdge[] {
    const stored = new StoredEdges(table, ranges, graph.definition.partId);
    return (edges ?? []).map((edge) => stored.show(edge));
  }

  #shownNode(searched: Searched, node: NativeGraphNode, projection: Projection | undefined): ShownNode {
    const { key, depth, distance, path, path_edges, edges } = node;
    const document = projection && documentOf(searched, key, projection);
    return {
      key,
      depth,
      distance,
      ...(path ? { path } : {}),
      ...(path_edges ? { path_edges: this.#shownEdges(searched, path_edges) } : {}),
      ...(edges ? { edges: this.#shownEdges(searched, edges) } : {}),
      ...(document === undefined ? {} : { document }),
    };
  }
}

/** The ends of a search are named by the caller: a filter of nodes does not concern them. */
async function decideEnds(ends: readonly string[], permitted: Visibility, visibility: Visibility): Promise<void> {
  await permitted.decide(ends);
  visibility.show(ends.filter((key) => permitted.isShown(key)));
  visibility.hide(ends.filter((key) => !permitted.isShown(key)));
}

/** The document of a node; undefined for a node without one. */
function documentOf({ table, ranges }: Searched, key: string, projection: Projection): unknown {
  const range = must(ranges[intervalOf(key, table.ranges)], 'intervals cover every key');
  const stored = range.stored.documents.get(key);
  if (!stored) return undefined;
  const text = decoder.decode(stored.body);
  return JSON.parse(shownDocument(projection, text, { writtenMs: stored.writtenMs, embeddings: undefined }));
}

/** Where a page of edges ends, as a text that the next one is asked for with. */
function placeText(edge: { source: string; target: string; type: string }, key: string, direction: string): string {
  const leadsIn = direction === 'in' || (direction === 'both' && edge.source !== key);
  const place: NativeEdgePlace = [leadsIn, edge.type, leadsIn ? edge.source : edge.target];
  return Buffer.from(JSON.stringify(place)).toString('base64url');
}

function readPlace(text: string): NativeEdgePlace {
  try {
    const place: unknown = JSON.parse(Buffer.from(text, 'base64url').toString());
    const [leadsIn, type, key] = Array.isArray(place) ? place : [];
    if (typeof leadsIn === 'boolean' && typeof type === 'string' && typeof key === 'string')
      return [leadsIn, type, key];
  } catch {
    // What cannot be read is refused below.
  }
  throw new ServiceError('invalid_query', '"after" must be the "next" of an earlier page');
}
