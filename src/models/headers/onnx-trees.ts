import type { BoundedFile } from './bounded-file.ts';

/** The attributes of a tree ensemble that say how its nodes hang together. */
export interface TreeAttributes {
  readonly numbers: Map<string, number[]>;
  /** For each node, whether it is a leaf. */
  readonly leaves: boolean[];
}

export const treeAttributeNames = [
  'nodes_treeids',
  'nodes_nodeids',
  'nodes_featureids',
  'nodes_truenodeids',
  'nodes_falsenodeids',
];

/** Evaluators recurse: a tree of real data is nowhere near as deep. */
const depthMax = 1_000;

/**
 * Every branch leads to two nodes of its own tree, every node hangs below one branch at most, all of them below the root,
 * and only features that the input has are read: then every evaluation ends inside the ensemble.
 */
export function checkTrees(file: BoundedFile, { numbers, leaves }: TreeAttributes, features: number | undefined): void {
  const count = leaves.length;
  const column = (name: string): readonly number[] => {
    const values = numbers.get(name) ?? [];
    if (values.length !== count) throw file.error(`has ${values.length} ${name} for ${count} nodes of trees`);
    return values;
  };
  const trees = column('nodes_treeids');
  const nodes = column('nodes_nodeids');
  const read = column('nodes_featureids');
  const whenTrue = column('nodes_truenodeids');
  const whenFalse = column('nodes_falsenodeids');
  const places = new Map<string, number>();
  for (let at = 0; at < count; at += 1) {
    const id = `${trees[at]}/${nodes[at]}`;
    if (places.has(id)) throw file.error(`has the tree node ${id} twice`);
    places.set(id, at);
    const feature = read[at] ?? 0;
    if (!leaves[at] && features !== undefined && (feature < 0 || feature >= features)) {
      throw file.error(`has a tree that reads feature ${feature} of ${features}`);
    }
  }
  const isChild = new Uint8Array(count);
  const child = (at: number, target: number | undefined): number => {
    const place = places.get(`${trees[at]}/${target}`);
    if (place === undefined) throw file.error(`has a tree branch to node ${target}, which does not exist`);
    if (isChild[place] === 1) throw file.error(`has a tree node ${target} below two branches`);
    isChild[place] = 1;
    return place;
  };
  const below = leaves.map((leaf, at) => (leaf ? [] : [child(at, whenTrue[at]), child(at, whenFalse[at])]));
  const roots = leaves.flatMap((_, at) => (isChild[at] === 1 ? [] : [at]));
  if (roots.length !== new Set(trees).size) throw file.error('has a tree with a cycle or with two roots');
  if (reached(file, below, roots) !== count) throw file.error('has tree nodes in a cycle');
}

function reached(file: BoundedFile, below: readonly (readonly number[])[], roots: readonly number[]): number {
  let level: readonly number[] = roots;
  let seen = 0;
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > depthMax) throw file.error(`has a tree deeper than ${depthMax}`);
    seen += level.length;
    level = level.flatMap((at) => below[at] ?? []);
  }
  return seen;
}
