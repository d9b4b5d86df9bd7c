import { Xorshift32 } from './xorshift32.ts';

/** A graph whose nodes have `edgesPerNode` edges to others at random, none of them twice. The same on every machine. */
export interface RandomGraph {
  nodes: number;
  edgesPerNode: number;
  seed: number;
}

/** The key of a node; keys sort as their numbers do. */
export function nodeKey(node: number): string {
  return `document:${String(node).padStart(9, '0')}`;
}

/** The targets of each node in ascending order, one node after another. */
export function targetsOf({ nodes, edgesPerNode, seed }: RandomGraph): Uint32Array {
  const random = new Xorshift32(seed);
  const targets = new Uint32Array(nodes * edgesPerNode);
  for (let node = 0; node < nodes; node += 1) {
    const own = new Set<number>();
    while (own.size < edgesPerNode) own.add(random.below(nodes));
    targets.set(Uint32Array.from(own).sort(), node * edgesPerNode);
  }
  return targets;
}
