import type { NativeGraphAnswer } from '../../engine/native-graph.ts';
import type { Table } from '../table.ts';

/** Searches of a graph index since the process began: paths and patterns count as traversals do. */
export interface TraversalCount {
  attempted: number;
  /** Their answer is whole. */
  proven: number;
  /** They have failed. */
  rejected: number;
  /** Their answer lacks something: a bound or an index that was behind has ended them. */
  fallback: number;
  /** Nodes in all answers. */
  result_nodes: number;
}

/** Counts by table and by the incarnation of the index. */
export class TraversalCounts {
  readonly #tables = new WeakMap<Table, Map<number, TraversalCount>>();

  /** Those of one index; they go on counting. */
  of(table: Table, incarnation: number): TraversalCount {
    const counts = this.#tables.get(table) ?? new Map<number, TraversalCount>();
    this.#tables.set(table, counts);
    const count = counts.get(incarnation) ?? { attempted: 0, proven: 0, rejected: 0, fallback: 0, result_nodes: 0 };
    counts.set(incarnation, count);
    return count;
  }
}

/** Counts a search by its outcome. */
export async function counted<Found extends { answer: NativeGraphAnswer; partial: { partial?: string } }>(
  count: TraversalCount,
  search: () => Promise<Found>,
): Promise<Found> {
  count.attempted += 1;
  try {
    const found = await search();
    count[found.partial.partial === undefined ? 'proven' : 'fallback'] += 1;
    count.result_nodes += nodesIn(found.answer);
    return found;
  } catch (error) {
    count.rejected += 1;
    throw error;
  }
}

/** Counts a traversal whose answer is its body. */
export function countBody(count: TraversalCount, body: string): void {
  count.attempted += 1;
  count.proven += 1;
  count.result_nodes += Number(/"count":(\d+),"total":\d+\}$/.exec(body.slice(-64))?.[1] ?? 0);
}

function nodesIn({ nodes, paths, matches }: NativeGraphAnswer): number {
  const onPaths = new Set(paths?.flatMap((path) => path.nodes));
  const bound = new Set(matches?.flatMap((match) => match.nodes.map(({ key }) => key)));
  return (nodes?.length ?? 0) + onPaths.size + bound.size;
}
