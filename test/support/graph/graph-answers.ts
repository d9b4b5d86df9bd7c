import type { NativeEdge } from '../../../src/engine/native-graph.ts';
import type { GraphService } from '../../../src/tables/graph/graph-service.ts';
import type { ShownNode } from '../../../src/tables/graph/searched-graph.ts';

interface Answer {
  total: number;
  partial?: string;
}

/** The answer of `GraphService.edges`. */
export async function edgesOf(
  graphs: GraphService,
  ...asked: Parameters<GraphService['edges']>
): Promise<Answer & { edges: NativeEdge[]; next?: string }> {
  return JSON.parse(await graphs.edges(...asked));
}

/** The answer of `GraphService.traverse`. */
export async function nodesWithin(
  graphs: GraphService,
  ...asked: Parameters<GraphService['traverse']>
): Promise<Answer & { results: ShownNode[] }> {
  return JSON.parse(await graphs.traverse(...asked));
}
