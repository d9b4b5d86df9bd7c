import type { Batch } from './batch-bodies.ts';
import { nodeKey, type RandomGraph, targetsOf } from './random-graph.ts';

/** Ready request bodies for `POST .../batch`: `batchSize` documents each, with their edges in the index `g`. */
export function graphBatches(graph: RandomGraph, batchSize: number): Batch[] {
  const targets = targetsOf(graph);
  const batches: Batch[] = [];
  for (let first = 0; first < graph.nodes; first += batchSize) {
    const end = Math.min(graph.nodes, first + batchSize);
    const inserts: string[] = [];
    for (let node = first; node < end; node += 1) {
      const own = targets.subarray(node * graph.edgesPerNode, (node + 1) * graph.edgesPerNode);
      const edges = Array.from(own, (target) => `{"target":"${nodeKey(target)}"}`).join(',');
      inserts.push(`"${nodeKey(node)}":{"number":${node},"_edges":{"g":{"to":[${edges}]}}}`);
    }
    const level = end === graph.nodes ? ',"sync_level":"full_index"' : '';
    batches.push({ body: Buffer.from(`{"inserts":{${inserts.join(',')}}${level}}`), documents: end - first });
  }
  return batches;
}
