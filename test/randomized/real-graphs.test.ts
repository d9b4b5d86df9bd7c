import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import type { Database } from '../../src/server/database/open-database.ts';
import { runSeed, SeededRandom } from '../support/fault/seeded-random.ts';
import { until } from '../support/fault/until.ts';
import { type PlainEdge, PlainGraph, type PlainMode } from '../support/graph/plain-graph.ts';
import { debianEdges, wordnetEdges } from '../support/graph/real-graphs.ts';
import { edgesOf, nodesWithin } from '../support/graph-answers.ts';
import { bodyOf, openTestDatabase, testCaller } from '../support/open-test-database.ts';
import { TemporaryDirectory } from '../support/temporary-directory.ts';

/** Edges, traversals and paths of two real graphs over three ranges, beside the plainest algorithms over lists of edges. */

const directory = new TemporaryDirectory();
const owner = testCaller();
const seed = runSeed();
const random = new SeededRandom(seed);
const documentsABatch = 2_000;
const timeout = { timeout: 300_000 };
const modes = ['min_hops', 'min_weight', 'max_weight'] as const;
const directions = ['out', 'in', 'both'] as const;
let database: Database;

interface RealGraph {
  name: string;
  edges(): PlainEdge[] | Promise<PlainEdge[]>;
  /** How many edges a path may have, so that the plainest algorithm ends. */
  hops: number;
}

const graphs: RealGraph[] = [
  { name: 'wordnet', edges: wordnetEdges, hops: 7 },
  { name: 'debian', edges: debianEdges, hops: 12 },
];

beforeAll(async () => {
  database = await openTestDatabase(directory.path);
  for (const { name, edges } of graphs) await load(name, await edges());
}, 300_000);

afterAll(async () => {
  await database.close();
  directory[Symbol.dispose]();
});

async function load(table: string, edges: readonly PlainEdge[]): Promise<void> {
  const { tables, indexes, writes, graphs } = database.services;
  await tables.create(table, { num_shards: 3 }, owner);
  await indexes.create(table, 'g', { type: 'graph' }, owner);
  const bySource = [...Map.groupBy(edges, ({ source }) => source)];
  for (let first = 0; first < bySource.length; first += documentsABatch) {
    const inserts = bySource.slice(first, first + documentsABatch).map(([source, own]) => {
      const types = [...Map.groupBy(own, ({ type }) => type)];
      const lists = types.map(([type, list]) => [type, list.map(({ target, weight }) => ({ target, weight }))]);
      return [source, { _edges: { g: Object.fromEntries(lists) } }];
    });
    await writes.batch(table, bodyOf({ inserts: Object.fromEntries(inserts) }), owner);
  }
  await until(async () => (await edgesOf(graphs, table, 'g', { key: 'x' }, owner)).partial === undefined);
}

describe.each(graphs)('the graph of $name', ({ name, edges, hops }) => {
  let plain: PlainGraph;
  let nodes: string[];
  const some = (count: number) => Array.from({ length: count }, () => random.pick(nodes));

  beforeAll(async () => {
    plain = new PlainGraph(await edges());
    nodes = plain.nodes();
  });

  test(
    `holds every edge (seed ${seed})`,
    async () => {
      for (const key of some(150)) {
        for (const direction of ['out', 'in'] as const) {
          const answer = await edgesOf(database.services.graphs, name, 'g', { key, direction, limit: 1_000 }, owner);
          const shown = answer.edges.map(({ source, target, type, weight }) => ({ source, target, type, weight }));
          const expected = plain.edges(key, direction);
          expect(answer.total).toBe(expected.length);
          expect(shown).toEqual(expected.slice(0, 1_000));
        }
      }
    },
    timeout,
  );

  test(
    'is traversed as far as a plain search goes',
    async () => {
      for (const start of some(12)) {
        for (const direction of directions) {
          for (const max_depth of [1, 2, 3]) {
            const asked = { start, direction, max_depth, max_results: 0 };
            const { results, total } = await nodesWithin(database.services.graphs, name, 'g', asked, owner);
            const expected = plain.reached(start, direction, max_depth);
            expect(total).toBe(expected.length);
            expect(results.map(({ key, depth }) => [key, depth])).toEqual(expected.slice(0, 10_000));
          }
        }
      }
    },
    timeout,
  );

  test.each(modes)(
    'has the best path that Bellman and Ford find: %s',
    async (mode) => {
      let found = 0;
      for (const source of some(5)) {
        for (const direction of directions) {
          const target = random.pick(nodes);
          const asked = { source, target, direction, weight_mode: mode, max_depth: hops };
          const { paths } = await database.services.graphs.paths(name, 'g', asked, owner);
          const expected = plain.best(source, target, mode, direction, hops);
          expect(paths.map((path) => costOf(path, mode))).toEqual(expected === undefined ? [] : [expected]);
          for (const path of paths) expect(plain.isPath(path.nodes, direction)).toBe(true);
          found += paths.length;
        }
      }
      expect(found).toBeGreaterThan(0);
    },
    timeout,
  );
});

/** Paths from words up to what all of them are kinds of, and from packages down to what all of them need. */
const ladders = [
  { name: 'wordnet', types: ['hypernym'], target: 'n:00001740', from: (key: string) => key.startsWith('n:') },
  { name: 'debian', types: ['depends'], target: 'libc6', from: () => true },
] as const;

test.each(ladders.flatMap((ladder) => modes.map((mode) => [ladder.name, mode, ladder] as const)))(
  'the graph of %s has the five best paths that a search of every path finds: %s',
  async (name, mode, { types, target, from }) => {
    const all = await (graphs.find((graph) => graph.name === name) as RealGraph).edges();
    const plain = new PlainGraph(all.filter(({ type }) => (types as readonly string[]).includes(type)));
    const sources = plain.sources().filter(from);
    let found = 0;
    for (let left = 8; left > 0; left -= 1) {
      const source = random.pick(sources);
      const depth = name === 'wordnet' ? 20 : 3;
      const asked = { source, target, edge_types: types, weight_mode: mode, k: 5, max_depth: depth };
      const { paths } = await database.services.graphs.paths(name, 'g', asked, owner);
      expect(paths.map((path) => costOf(path, mode))).toEqual(plain.bestPaths(source, target, mode, 5, depth));
      for (const path of paths) expect(new Set(path.nodes).size).toBe(path.nodes.length);
      found += paths.length;
    }
    expect(found).toBeGreaterThan(0);
  },
  timeout,
);

/** What a path comes to in a mode. */
function costOf(path: { length: number; total_weight: number }, mode: PlainMode): number {
  return mode === 'min_hops' ? path.length : path.total_weight;
}
