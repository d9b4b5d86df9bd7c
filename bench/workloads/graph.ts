import { type DebianGraph, debianTargets } from './debian-graph.ts';
import { type RandomGraph, targetsOf } from './random-graph.ts';
import { Xorshift32 } from './xorshift32.ts';

/** A graph that searches are measured over. */
export type Graph = RandomGraph | DebianGraph;

/** The edges of a graph, whose nodes are numbers from 0 on. */
export interface Adjacency {
  nodes: number;
  /** Where the targets of each node begin; one more for the end of the last. */
  starts: Uint32Array;
  targets: Uint32Array;
}

export interface NodePair {
  start: number;
  target: number;
}

/** Steps between the nodes of a pair, at most. */
const stepsMax = 6;

export async function adjacencyOf(graph: Graph): Promise<Adjacency> {
  if ('distribution' in graph) return debianTargets();
  const { nodes, edgesPerNode } = graph;
  const starts = Uint32Array.from({ length: nodes + 1 }, (_, node) => node * edgesPerNode);
  return { nodes, starts, targets: targetsOf(graph) };
}

/** Each edge as its source and its target. */
export function* edgesOf({ nodes, starts, targets }: Adjacency): Generator<readonly [source: number, target: number]> {
  for (let source = 0; source < nodes; source += 1) {
    for (const target of targetsIn({ starts, targets }, source)) yield [source, target];
  }
}

export function targetsIn({ starts, targets }: Pick<Adjacency, 'starts' | 'targets'>, node: number): Uint32Array {
  return targets.subarray(starts[node], starts[node + 1]);
}

/**
 * Nodes to begin at and to end at. Of a random graph any two; of another the end of a walk at random from one that leads on, so
 * that there is a path.
 */
export function nodePairs(graph: Graph, adjacency: Adjacency, count: number): NodePair[] {
  const random = new Xorshift32(graph.seed + 1);
  const { nodes } = adjacency;
  if (!('distribution' in graph)) {
    return Array.from({ length: count }, () => ({ start: random.below(nodes), target: random.below(nodes) }));
  }
  const pairs: NodePair[] = [];
  while (pairs.length < count) {
    const start = random.below(nodes);
    let target = start;
    for (let step = 0; step < stepsMax; step += 1) {
      const next = targetsIn(adjacency, target);
      target = next[random.below(next.length)] ?? target;
    }
    if (target !== start) pairs.push({ start, target });
  }
  return pairs;
}
