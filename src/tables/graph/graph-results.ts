import type { NativeEdge, NativeGraphNode } from '../../engine/native-graph.ts';
import type { GraphSearch } from '../../query/request/graph/graph-searches.ts';
import type { ShownMatch } from './match-pattern.ts';
import type { PartialReason } from './open-graph.ts';
import type { ShownNode } from './searched-graph.ts';

/** A path of an answer. */
export interface ShownPath {
  nodes: string[];
  edges: NativeEdge[];
  total_weight: number;
  length: number;
}

/** The result of one search of a query. */
interface GraphSearchResult {
  type: GraphSearch['type'];
  total: number;
  took: number;
  nodes?: ShownNode[];
  paths?: ShownPath[];
  matches?: ShownMatch[];
  partial?: PartialReason;
}

/** A node that a search has found, from the nearest on. */
type ReachedNode = Pick<NativeGraphNode, 'key' | 'depth' | 'distance'>;

/** The nodes of a search, also those that are not shown, and whether there are no more. */
interface Reached {
  nodes: ReachedNode[];
  isWhole: boolean;
}

/** The results of the graph searches of a query. */
export class GraphResults {
  readonly shown: Record<string, GraphSearchResult> = Object.create(null);
  /** Of the traversals that take all of their nodes. */
  readonly reached = new Map<string, Reached>();

  /** The keys of the nodes that a search shows. */
  keysOf(name: string): string[] {
    const { nodes = [], paths = [], matches = [] } = this.shown[name] ?? {};
    const bound = matches.flatMap(({ bindings }) => Object.values(bindings));
    const keys = [...nodes, ...bound].map(({ key }) => key);
    return [...new Set([...keys, ...paths.flatMap((path) => path.nodes)])];
  }

  /** The keys of the nodes that the searches show, in their order. */
  shownKeys(): string[] {
    return [...new Set(Object.keys(this.shown).flatMap((name) => this.keysOf(name)))];
  }

  /** The keys of all nodes of the searches, and whether there are no more. */
  allKeys(): { keys: string[]; isWhole: boolean } {
    const keys = new Set<string>();
    let isWhole = true;
    for (const [name, { partial, matches, total }] of Object.entries(this.shown)) {
      const reached = this.reached.get(name);
      for (const key of reached?.nodes.map((node) => node.key) ?? this.keysOf(name)) keys.add(key);
      isWhole &&= partial === undefined && reached?.isWhole !== false && (matches?.length ?? total) === total;
    }
    return { keys: [...keys], isWhole };
  }
}
