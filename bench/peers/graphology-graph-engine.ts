/** graphology, a graph in memory of this process, answering the commands of `engines/graph-engine-commands.ts`. */
import { serveGraphEngine } from '../engines/graph-engine-commands.ts';
import { installPackage, loadPackage } from '../processes/cached-package.ts';
import { edgesOf } from '../workloads/graph.ts';
import { nodeKey } from '../workloads/random-graph.ts';

interface Graph {
  addNode(key: string): void;
  addEdge(source: string, target: string): void;
  forEachOutNeighbor(node: string, visit: (neighbor: string) => void): void;
}

await installPackage('graphology');
await installPackage('graphology-shortest-path');
const { DirectedGraph } = loadPackage<{ DirectedGraph: new () => Graph }>('graphology');
const { bidirectional } = loadPackage<{
  bidirectional(graph: Graph, source: string, target: string): string[] | null;
}>('graphology-shortest-path');
const graph = new DirectedGraph();

await serveGraphEngine({
  async load(wanted) {
    for (let node = 0; node < wanted.nodes; node += 1) graph.addNode(nodeKey(node));
    for (const [source, target] of edgesOf(wanted)) graph.addEdge(nodeKey(source), nodeKey(target));
  },
  threeHops(start) {
    const known = new Set([nodeKey(start)]);
    let level = [nodeKey(start)];
    for (let depth = 0; depth < 3; depth += 1) {
      const next: string[] = [];
      for (const node of level) {
        graph.forEachOutNeighbor(node, (neighbor) => {
          if (known.has(neighbor)) return;
          known.add(neighbor);
          next.push(neighbor);
        });
      }
      level = next;
    }
    return known.size - 1;
  },
  shortestPath({ start, target }) {
    return (bidirectional(graph, nodeKey(start), nodeKey(target))?.length ?? 0) - 1;
  },
});
