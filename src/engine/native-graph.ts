import { callNative } from './engine-error.ts';
import { nativeAddon } from './native-addon.ts';
import { takeOperation, untilAborted } from './native-query.ts';

/** An edge as answers show it. */
export interface NativeEdge {
  source: string;
  target: string;
  type: string;
  weight: number;
  metadata?: object;
  created_at: string;
  updated_at: string;
}

export interface NativeGraphNode {
  key: string;
  depth: number;
  distance: number;
  path?: string[];
  path_edges?: NativeEdge[];
  edges?: NativeEdge[];
}

/** Place of an edge among those of a node: whether it leads to the node, its type, and its other end. */
export type NativeEdgeCursor = readonly [leadsIn: boolean, type: string, key: string];

/** A search; `native/graph/src/search/request.rs` is its twin and says what the members mean. */
export type NativeGraphSearch =
  | { edges: { limit: number; after: NativeEdgeCursor | null } }
  | {
      traverse: {
        max_depth: number;
        max_results: number;
        deduplicate_nodes: boolean;
        include_paths: boolean;
        include_edges: boolean;
      };
    }
  | { paths: { max_depth: number; weight_mode: WeightMode; k: number } }
  | {
      pattern: {
        elements: readonly NativePatternElement[];
        max_results: number;
        matches_max: number;
        include_paths: boolean;
      };
    }
  | { algorithm: { algorithm: NativeAlgorithm; limit: number; takes_all: boolean } }
  | 'count'
  | { sources: { limit: number } };

/** Something that depends on all edges. */
export type NativeAlgorithm =
  | { pagerank: { damping: number; max_iterations: number; tolerance: number } }
  | 'connected_components'
  | { degree: { outgoing: boolean; incoming: boolean } };

/** How an element of a pattern is reached from the one before it. */
export interface NativePatternEdge {
  types: readonly string[];
  direction: EdgeDirection;
  min_hops: number;
  max_hops: number;
  min_weight: number | undefined;
  max_weight: number | undefined;
}

interface NativePatternElement {
  variable: number;
  edge: NativePatternEdge;
  is_filtered?: boolean;
  rejected?: readonly string[];
}

export type WeightMode = 'min_hops' | 'min_weight' | 'max_weight';
export type EdgeDirection = 'out' | 'in' | 'both';

export interface NativeGraphRequest {
  search: NativeGraphSearch;
  starts?: readonly string[];
  targets?: readonly string[];
  edge_types?: readonly string[];
  direction: EdgeDirection;
  min_weight?: number | undefined;
  max_weight?: number | undefined;
  expired_at_or_before_ms?: number | undefined;
  hidden?: readonly string[];
  range_starts: readonly string[];
  edges_max: number;
  nodes_max: number;
  millis_max: number;
  reports_nodes?: boolean;
}

export interface NativeGraphAnswer {
  nodes?: NativeGraphNode[];
  edges?: NativeEdge[];
  /** The token that asks for the next page of edges. */
  next?: string;
  paths?: { nodes: string[]; edges: NativeEdge[]; total_weight: number; length: number }[];
  matches?: { nodes: NativeGraphNode[]; path?: NativeEdge[] }[];
  /** Of each element of a pattern the nodes that were met, where it is filtered. */
  candidates?: string[][];
  /** The nodes of greatest score. */
  scores?: { key: string; score: number }[];
  /** The largest components, each with its least key. */
  components?: { key: string; nodes: number }[];
  /** Of all nodes, by key: JSON arrays of `[key, value]`. */
  value_pages?: string[];
  algorithm?: { iterations: number; has_converged: boolean; component_count: number };
  sources?: { range: number; key: string; edges: number }[];
  total: number;
  edge_count: number;
  node_count: number;
  /** Which bound ended the search early. */
  partial?: 'edges' | 'nodes' | 'matches' | 'time';
  touched?: string[];
  /** Why the first of the refused edges was, where nodes are reported; the paths are those without such edges. */
  refused?: string;
}

/** The caller of a graph search. */
export interface GraphCaller {
  readonly signal: AbortSignal;
  /** Is given a function that tells how often an algorithm has gone through the graph, as long as it runs. */
  readonly watch?: (iterations: () => number) => void;
}

/**
 * Runs a graph search over the graph index of each range of a table. `removed`: keys of deleted documents, each with the
 * sequence of every range up to which edges to it are gone. Throws `invalid_query`, and `query_timeout` for an aborted signal.
 */
export async function searchGraph(
  handles: number[],
  request: NativeGraphRequest,
  removed: Readonly<Record<string, readonly number[]>>,
  caller: GraphCaller,
): Promise<NativeGraphAnswer> {
  const operation = takeOperation();
  caller.watch?.(() => callNative(() => nativeAddon().graphIterations(operation)));
  const [requestJson, removedJson] = [JSON.stringify(request), JSON.stringify(removed)];
  const started = callNative(() => nativeAddon().graphSearch(handles, requestJson, removedJson, operation));
  const answer = typeof started === 'string' ? started : await untilAborted(operation, started, caller);
  return JSON.parse(answer) as NativeGraphAnswer;
}

/**
 * The body of the answer to a request for edges or a traversal but for the time that it took, where it is whole and found on
 * this thread within some tens of microseconds; otherwise null. Throws `invalid_query`.
 */
export function graphBodyInline(
  handles: number[],
  request: NativeGraphRequest,
  removed: Readonly<Record<string, readonly number[]>>,
): string | null {
  const [requestJson, removedJson] = [JSON.stringify(request), JSON.stringify(removed)];
  return callNative(() => nativeAddon().graphBodyInline(handles, requestJson, removedJson));
}
