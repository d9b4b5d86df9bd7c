import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { compareKeys } from '../../src/lib/key-order.ts';
import { readGraphSearches } from '../../src/query/request/graph/graph-searches.ts';
import type { Database } from '../../src/server/database/open-database.ts';
import { runSeed, SeededRandom } from '../support/fault/seeded-random.ts';
import { until } from '../support/fault/until.ts';
import { edgesOf, nodesWithin } from '../support/graph/graph-answers.ts';
import { type PlainEdge, PlainGraph, type PlainMode } from '../support/graph/plain-graph.ts';
import type { ModelElement } from '../support/graph/plain-matches.ts';
import { debianEdges, wordnetEdges } from '../support/graph/real-graphs.ts';
import { bodyOf, openTestDatabase, testCaller } from '../support/open-test-database.ts';
import { TemporaryDirectory } from '../support/temporary-directory.ts';

/**
 * Edges, traversals, paths, patterns and algorithms of two real graphs over three
 * ranges, beside the plainest algorithms over lists of edges.
 */

const directory = new TemporaryDirectory();
const owner = testCaller();
const seed = runSeed();
const random = new SeededRandom(seed);
const documentsABatch = 2_000;
/** Nodes and components that the answer of an algorithm shows. */
const shownMax = 1_000;
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
          // Most nodes of a real graph reach few others, so that five random pairs may all be without a path.
          const near = direction === 'both' ? plain.reached(source, direction, 4).map(([key]) => key) : nodes;
          const target = random.pick(near);
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

/** Asks for an algorithm and waits for what it has found. */
async function computed(table: string, body: object) {
  const { graphAlgorithms } = database.services;
  const { job_id } = await graphAlgorithms.submit(table, 'g', { limit: shownMax, ...body }, owner);
  let job = graphAlgorithms.get(table, 'g', job_id, owner);
  await until(async () => {
    job = graphAlgorithms.get(table, 'g', job_id, owner);
    return job.phase !== 'queued' && job.phase !== 'running';
  }, 120_000);
  expect(job).toMatchObject({ phase: 'succeeded' });
  return job.result ?? { node_count: 0, edge_count: 0 };
}

describe.each(graphs)('algorithms over the whole graph of $name', ({ name, edges }) => {
  let plain: PlainGraph;

  beforeAll(async () => {
    plain = new PlainGraph(await edges());
  });

  test(
    'give every node the rank that plain rounds over all nodes give it',
    async () => {
      const rounds = 12;
      const asked = { algorithm: 'pagerank', damping: 0.85, max_iterations: rounds, tolerance: 0 };
      const { nodes = [], node_count } = await computed(name, asked);
      const ranks = plain.ranks(0.85, rounds);
      expect(node_count).toBe(ranks.size);
      expect(nodes.length).toBe(Math.min(shownMax, ranks.size));
      const furthest = Math.max(...nodes.map(({ key, score }) => Math.abs(score - (ranks.get(key) ?? 0)) / score));
      expect(furthest).toBeLessThan(1e-9);
      const greatest = [...ranks.values()].sort((left, right) => right - left).slice(0, nodes.length);
      for (const [at, { score }] of nodes.entries())
        expect(Math.abs(score / (greatest[at] ?? 0) - 1)).toBeLessThan(1e-9);
    },
    timeout,
  );

  test(
    'find what hangs together, and count the edges of nodes',
    async () => {
      const sizes = [...plain.components()].map(([key, nodes]) => ({ key, nodes }));
      sizes.sort((left, right) => right.nodes - left.nodes || compareKeys(left.key, right.key));
      const { components, component_count } = await computed(name, { algorithm: 'connected_components' });
      expect(component_count).toBe(sizes.length);
      expect(components).toEqual(sizes.slice(0, shownMax));
      for (const direction of directions) {
        const { nodes = [] } = await computed(name, { algorithm: 'degree', direction });
        const all = plain.nodes().map((key) => ({ key, score: plain.degree(key, direction) }));
        all.sort((left, right) => right.score - left.score || compareKeys(left.key, right.key));
        expect(nodes).toEqual(all.slice(0, nodes.length));
      }
    },
    timeout,
  );
});

/** Patterns by the types of edges that a graph has. */
const patternsOf: Readonly<Record<string, readonly (readonly ModelElement[])[]>> = {
  wordnet: [
    // Two kinds of one thing, and the parts of what a kind is of.
    [{ alias: 'x' }, { alias: 'kind', types: ['hypernym'] }, { alias: 'y', types: ['hypernym'], direction: 'in' }],
    [{ alias: 'x' }, { alias: 'kind', types: ['hypernym'], maxHops: 3 }, { alias: 'part', types: ['part_meronym'] }],
    [{ alias: 'x' }, { alias: 'y' }, { alias: 'x' }],
  ],
  debian: [
    [{ alias: 'x' }, { alias: 'y' }, { alias: 'z' }, { alias: 'x' }],
    [{ alias: 'x' }, { alias: 'y', minHops: 2, maxHops: 2 }],
  ],
};

test.each(graphs)(
  'patterns over the graph of $name bind what trying every way binds',
  async ({ name, edges }) => {
    const plain = new PlainGraph(await edges());
    const sources = plain.sources();
    let found = 0;
    for (const elements of patternsOf[name] ?? []) {
      for (let left = 15; left > 0; left -= 1) {
        const key = random.pick(sources);
        const expected = plain.matches(key, elements).map((match) => shownAliases(match, elements));
        const matches = await matchesOf(name, key, elements);
        expect({ key, elements, matches }).toEqual({ key, elements, matches: expected.sort() });
        found += matches.length;
      }
    }
    expect(found).toBeGreaterThan(0);
  },
  timeout,
);

async function matchesOf(table: string, key: string, elements: readonly ModelElement[]): Promise<string[]> {
  const pattern = elements.map(({ alias, types, direction, minHops, maxHops }, at) => {
    return { alias, ...(at === 0 ? {} : { edge: { types, direction, min_hops: minHops, max_hops: maxHops } }) };
  });
  const start_nodes = { keys: [key] };
  const search = { type: 'pattern', index_name: 'g', start_nodes, pattern, params: { max_results: 0 } };
  const searches = readGraphSearches({ graph_searches: { found: search } }) ?? [];
  const { shown } = await database.services.graphs.searches(table, searches, () => [], owner);
  expect(shown.found?.partial).toBeUndefined();
  const matches = (shown.found?.matches ?? []).map(({ bindings }) =>
    Object.values(bindings)
      .map((node, at, nodes) => `${node.key}:${node.depth - (nodes[at - 1]?.depth ?? 0)}`)
      .join(' '),
  );
  return matches.sort();
}

/** A match without the elements whose alias was there before: an answer shows each once. */
function shownAliases(match: string, elements: readonly ModelElement[]): string {
  return match
    .split(' ')
    .slice(0, new Set(elements.map(({ alias }) => alias)).size)
    .join(' ');
}

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

/** The total of a path in a mode. */
function costOf(path: { length: number; total_weight: number }, mode: PlainMode): number {
  return mode === 'min_hops' ? path.length : path.total_weight;
}
