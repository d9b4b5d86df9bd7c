/**
 * Our graph index through the native calls that the server makes, answering
 * the commands of `engines/graph-engine-commands.ts`.
 */
import { join } from 'node:path';
import { type NativeGraphRequest, searchGraph } from '../../src/engine/native-graph.ts';
import { NativeIndex } from '../../src/engine/native-index.ts';
import type { IndexDefinition } from '../../src/index-kinds/all-kinds.ts';
import { must } from '../../src/lib/assert.ts';
import { FrameBuilder, rowKind } from '../../src/lib/document-frame.ts';
import { type Edge, edgesBody } from '../../src/lib/parts/edges-part.ts';
import { serveGraphEngine } from '../engines/graph-engine-commands.ts';
import { type Adjacency, targetsIn } from '../workloads/graph.ts';
import { nodeKey } from '../workloads/random-graph.ts';

const partId = 2;
const commitNodes = 10_000;
const definition: IndexDefinition = {
  kind: 'graph',
  name: 'g',
  incarnation: 1,
  partId,
  memOnly: false,
  ttlMs: undefined,
  edgeTypes: [],
  maxEdges: 0,
};
const common = { direction: 'out', range_starts: [''], edges_max: 1e8, nodes_max: 1e8, millis_max: 600_000 } as const;
const traverse = {
  traverse: { max_depth: 3, max_results: 100, deduplicate_nodes: true, include_paths: false, include_edges: false },
};
const paths = { paths: { max_depth: 50, weight_mode: 'min_hops', k: 1 } } as const;
const caller = { signal: new AbortController().signal };
let index: NativeIndex | undefined;

function search(request: Pick<NativeGraphRequest, 'search' | 'starts' | 'targets'>) {
  return searchGraph([must(index, 'a graph').handle], { ...common, ...request }, {}, caller);
}

await serveGraphEngine({
  async load(graph, directory) {
    index = await NativeIndex.open(join(directory, 'graph'), definition, true);
    await fill(index, graph);
    await index.rest();
    await index.checkpoint();
  },
  async threeHops(start) {
    return (await search({ search: traverse, starts: [nodeKey(start)] })).total;
  },
  async shortestPath({ start, target }) {
    const { paths: found } = await search({ search: paths, starts: [nodeKey(start)], targets: [nodeKey(target)] });
    return found?.[0]?.length ?? -1;
  },
});

async function fill(index: NativeIndex, graph: Adjacency): Promise<void> {
  const edge = (target: number): Edge => ({
    type: 'to',
    target: nodeKey(target),
    origin: 'declared',
    weight: 1,
    createdMs: 1,
    updatedMs: 1,
    since: 0,
    metadata: '',
  });
  for (let first = 0; first < graph.nodes; first += commitNodes) {
    const end = Math.min(first + commitNodes, graph.nodes);
    const frame = new FrameBuilder(commitNodes);
    for (let node = first; node < end; node += 1) {
      const own = targetsIn(graph, node);
      if (own.length === 0) continue;
      const row = frame.append(rowKind.partPut, nodeKey(node), edgesBody(partId, Array.from(own, edge)));
      frame.setOrdinal(row, node);
      frame.setSequence(row, node + 1);
    }
    await index.apply(frame.finish());
    await index.commit(end);
  }
}
