import type { Caller } from '../../access/principal.ts';
import { limits } from '../../config/limits.ts';
import type { NativeEdgeCursor } from '../../engine/native-graph.ts';
import type { Clock } from '../../lib/clock.ts';
import { readBase64 } from '../../lib/text/base64.ts';
import { checkDocumentKey } from '../../protocol/document-key.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { Members } from '../../query/nodes/query-members.ts';
import {
  type PathRequest,
  readDirection,
  readPaths,
  readTraverse,
  type TraverseRequest,
} from '../../query/request/graph/graph-request.ts';
import type { GraphSearch, ResultReference } from '../../query/request/graph/graph-searches.ts';
import type { Table, TableLease } from '../table.ts';
import type { TableLookup } from '../table-lookup.ts';
import { GraphResults, type ShownPath } from './graph-results.ts';
import { matchPattern } from './match-pattern.ts';
import { type GraphSearchRequest, graphIndexOf, OpenGraph, type PartialReason } from './open-graph.ts';
import { nodesOfPaths } from './path-nodes.ts';
import { SearchedGraph, type ShownNode, shownNode } from './searched-graph.ts';
import type { TraversalCounts } from './traversal-counts.ts';

/** Reads the graph indexes of tables. An answer shows every edge that was acknowledged before it was asked for. */
export class GraphService {
  readonly #tables: TableLookup;
  readonly #clock: Clock;
  readonly #counts: TraversalCounts;

  constructor(tables: TableLookup, clock: Clock, counts: TraversalCounts) {
    this.#tables = tables;
    this.#clock = clock;
    this.#counts = counts;
  }

  /**
   * A page of the edges of a node as JSON: first those that lead away from it, then by type and by the key of the other end.
   * At once where it is short and nothing is waited for, as a lookup. Fails with `index_not_found` and `invalid_query`.
   */
  edges(
    tableName: string,
    indexName: string,
    asked: { key: string; direction?: string; type?: string; limit?: number; after?: string },
    caller: Caller,
  ): string | Promise<string> {
    const { key, type, limit = 100 } = asked;
    checkDocumentKey(key);
    const after = asked.after === undefined ? null : readEdgeCursor(asked.after);
    const request: GraphSearchRequest = {
      search: { edges: { limit, after } },
      starts: [key],
      edge_types: type === undefined ? [] : [type],
      direction: readDirection(asked.direction),
    };
    return (
      this.#inlineBody(tableName, indexName, request, caller) ??
      this.#body(tableName, indexName, caller, async (searched) => {
        const { answer, partial } = await searched.edges(request);
        const { edges = [], total, next } = answer;
        return { edges, count: edges.length, total, ...(next === undefined ? {} : { next }), ...partial };
      })
    );
  }

  /** Nodes within some steps of others, as `edges`. Fails with `index_not_found` and `invalid_query`. */
  traverse(tableName: string, indexName: string, body: Members, caller: Caller): string | Promise<string> {
    const asked = readTraverse(body);
    const isPlain = asked.documents === undefined && asked.nodeFilter === undefined;
    return (
      (isPlain ? this.#inlineBody(tableName, indexName, traversal(asked), caller) : null) ??
      this.#body(tableName, indexName, caller, async (searched) => {
        const { nodes: results, total, ...partial } = await this.#traverse(searched, asked);
        return { results, count: results.length, total, ...partial };
      })
    );
  }

  async #traverse(
    searched: SearchedGraph,
    asked: TraverseRequest,
  ): Promise<{ nodes: ShownNode[]; total: number; partial?: PartialReason }> {
    const { answer, partial } = await searched.search(() => traversal(asked), asked.nodeFilter);
    const found = answer.nodes ?? [];
    const documents = await searched.documentsOf(found, asked.documents);
    const nodes = found.map((node) => shownNode(node, documents));
    return { nodes, total: answer.total, ...partial };
  }

  /** The best paths between two nodes. Fails with `index_not_found` and `invalid_query`. */
  async paths(tableName: string, indexName: string, body: Members, caller: Caller) {
    const asked = readPaths(body);
    const [source, target] = [asked.starts[0], asked.targets[0]];
    const answer = await this.#searched(tableName, indexName, caller, async (searched) => {
      const { paths, ...partial } = await this.#paths(searched, asked);
      return { paths, source, target, weight_mode: asked.weight_mode, paths_found: paths.length, ...partial };
    });
    return { ...answer, search_time_ms: answer.took };
  }

  async #paths(searched: SearchedGraph, asked: PathRequest): Promise<{ paths: ShownPath[]; partial?: PartialReason }> {
    const { starts, targets, edges, max_depth, weight_mode, k, nodeFilter } = asked;
    const search = { paths: { max_depth, weight_mode, k } };
    const request = { search, starts, targets, ...edges };
    const { answer, partial } = await searched.search(() => request, nodeFilter);
    return { paths: answer.paths ?? [], ...partial };
  }

  /**
   * Runs graph searches of a query, in the order in which they need each other, beside those in `results`, which have been
   * run already. `keysOf` names the hits that a reference stands for. Fails with `invalid_query` for an index that is not a
   * graph of the table.
   */
  async searches(
    tableName: string,
    searches: readonly GraphSearch[],
    keysOf: (ref: ResultReference) => readonly string[],
    caller: Caller,
    results = new GraphResults(),
  ): Promise<GraphResults> {
    const found = (ref: ResultReference) => (ref.kind === 'graph' ? results.keysOf(ref.name) : keysOf(ref));
    for (const search of searches) {
      if (search.name in results.shown) continue;
      const answer = await this.#searched(tableName, search.index, caller, async (searched) => {
        const starts = await searched.selected(search.starts, found);
        if (search.type === 'pattern') return matchPattern(searched, search.asked, starts);
        if (!('targets' in search)) {
          const asked = { ...search.asked, starts };
          const takesAll = search.takesAll || search.leg !== undefined;
          return takesAll ? this.#all(searched, asked, search.name, results) : this.#traverse(searched, asked);
        }
        const targets = await searched.selected(search.targets, found);
        const answer = await this.#paths(searched, { ...search.asked, starts, targets });
        const nodes = await nodesOfPaths(searched, answer.paths, search.asked.documents);
        return { nodes, ...answer, total: answer.paths.length };
      }).catch((error: unknown) => {
        // A query that names an index that is not there is a bad query.
        if (!(error instanceof ServiceError) || error.code !== 'index_not_found') throw error;
        throw new ServiceError('invalid_query', `graph_searches.${search.name}: ${error.message}`);
      });
      results.shown[search.name] = { type: search.type, ...answer };
    }
    return results;
  }

  /** A traversal whose nodes are all wanted, whether they are shown or not. */
  async #all(searched: SearchedGraph, asked: TraverseRequest, name: string, results: GraphResults) {
    const { answer, partial } = await searched.search(
      () => traversal({ ...asked, max_results: limits.graphResultsMax }),
      asked.nodeFilter,
    );
    const all = answer.nodes ?? [];
    const isWhole = partial.partial === undefined && all.length === answer.total;
    results.reached.set(name, { nodes: all, isWhole });
    const shown = all.slice(0, asked.max_results);
    const documents = await searched.documentsOf(shown, asked.documents);
    const nodes = shown.map((node) => shownNode(node, documents));
    return { nodes, total: answer.total, ...partial };
  }

  /** Null where the answer has to be waited for, or nodes to be decided on. */
  #inlineBody(tableName: string, indexName: string, request: GraphSearchRequest, caller: Caller): string | null {
    const started = this.#clock.monotonicMs();
    const table = this.#tables.get(tableName, caller, 'read');
    const lease = table.leaseOpen();
    if (lease === undefined) return null;
    using held = lease;
    const body = this.#open(table, held, indexName, caller).inlineBody(request);
    // An object without its end.
    return body && `${body.slice(0, -1)},"took":${this.#tookSince(started)}}`;
  }

  async #body(
    tableName: string,
    indexName: string,
    caller: Caller,
    run: (searched: SearchedGraph) => Promise<object>,
  ): Promise<string> {
    return JSON.stringify(await this.#searched(tableName, indexName, caller, run));
  }

  async #searched<Answer>(
    tableName: string,
    indexName: string,
    caller: Caller,
    run: (searched: SearchedGraph) => Promise<Answer>,
  ): Promise<Answer & { took: number }> {
    const started = this.#clock.monotonicMs();
    const table = this.#tables.get(tableName, caller, 'read');
    using lease = await table.lease();
    const answer = await run(this.#open(table, lease, indexName, caller));
    return { ...answer, took: this.#tookSince(started) };
  }

  #open(table: Table, { ranges }: TableLease, indexName: string, caller: Caller): SearchedGraph {
    const definition = graphIndexOf(table, indexName);
    const graph = new OpenGraph({ table, ranges, clock: this.#clock }, definition);
    const count = this.#counts.of(table, definition.incarnation);
    return new SearchedGraph({ table, ranges, clock: this.#clock, caller }, graph, count);
  }

  #tookSince(startedMs: number): number {
    return Math.round(this.#clock.monotonicMs() - startedMs);
  }
}

function traversal(asked: TraverseRequest): GraphSearchRequest {
  const { max_depth, max_results, deduplicate_nodes, include_paths, include_edges, starts, edges } = asked;
  const traverse = { max_depth, max_results, deduplicate_nodes, include_paths, include_edges };
  return { search: { traverse }, starts, ...edges };
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Where a page begins. `as_text` in `native/graph` writes it. */
function readEdgeCursor(text: string): NativeEdgeCursor {
  try {
    const cursor: unknown = JSON.parse(utf8.decode(readBase64(text) ?? new Uint8Array()));
    const [leadsIn, type, key] = Array.isArray(cursor) ? cursor : [];
    if (typeof leadsIn === 'boolean' && typeof type === 'string' && typeof key === 'string')
      return [leadsIn, type, key];
  } catch {
    // A value that cannot be read is refused below.
  }
  throw new ServiceError('invalid_query', '"after" must be the "next" of an earlier page');
}
