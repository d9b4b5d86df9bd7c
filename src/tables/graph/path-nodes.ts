import { must } from '../../lib/assert.ts';
import type { Projection } from '../../query/request/projection/projection.ts';
import type { ShownPath } from './graph-results.ts';
import { type SearchedGraph, type ShownNode, shownNode } from './searched-graph.ts';

/**
 * The nodes of paths, each once, as the first path that has it comes to it: `depth` in edges, `distance` as the sum of
 * their weights. The end of a path has the path beside it, and its edges with metadata as `evidence`.
 */
export async function nodesOfPaths(
  searched: SearchedGraph,
  paths: readonly ShownPath[],
  documents: Projection | undefined,
): Promise<ShownNode[]> {
  const nodes = new Map<string, ShownNode>();
  for (const { nodes: keys, edges } of paths) {
    let distance = 0;
    for (const [depth, key] of keys.entries()) {
      if (depth > 0) distance += must(edges[depth - 1], 'an edge before each node').weight;
      if (!nodes.has(key)) nodes.set(key, { key, depth, distance });
    }
    const end = must(nodes.get(keys.at(-1) ?? ''), 'a path without nodes');
    if (end.path) continue;
    const evidence = edges.filter(({ metadata }) => metadata !== undefined);
    Object.assign(end, { depth: edges.length, distance, path: keys, path_edges: edges });
    if (evidence.length > 0) end.evidence = { path_edges: evidence };
  }
  const found = [...nodes.values()];
  const bodies = await searched.documentsOf(found, documents);
  return found.map((node) => shownNode(node, bodies));
}
