import { afterAll, beforeAll, expect, test } from 'bun:test';
import type { Caller } from '../../src/access/principal.ts';
import { readGraphSearches } from '../../src/query/request/graph/graph-searches.ts';
import type { Database } from '../../src/server/database/open-database.ts';
import { runSeed, SeededRandom } from '../support/fault/seeded-random.ts';
import { until } from '../support/fault/until.ts';
import { AdjacencyMap, type ModelEdge } from '../support/graph/adjacency-map.ts';
import { edgesOf, nodesWithin } from '../support/graph/graph-answers.ts';
import type { ModelElement } from '../support/graph/plain-matches.ts';
import { bodyOf, openTestDatabase, testCaller } from '../support/open-test-database.ts';
import { TemporaryDirectory } from '../support/temporary-directory.ts';

/**
 * Random writes of documents with edges, with the database opened again in between: tables of 1, 3 and 20 ranges answer
 * as a plain map does, and alike.
 */

const rangeCounts = [1, 3, 20] as const;
const rounds = 12;
const writesPerRound = 12;
const directory = new TemporaryDirectory();
const seed = runSeed();
const random = new SeededRandom(seed);
const owner = testCaller();
const model = new AdjacencyMap();
const colours = new Map<string, string>();
let database: Database;

/** Keys all over the key space, so that edges lead from range to range. */
const keys = Array.from({ length: 24 }, (_, at) => String.fromCharCode(33 + at * 3) + 'é'.repeat(at % 3));
const tableOf = (ranges: number) => `t${ranges}`;

beforeAll(async () => {
  database = await openTestDatabase(directory.path);
  for (const ranges of rangeCounts) {
    await database.services.tables.create(tableOf(ranges), { num_shards: ranges }, owner);
    await database.services.indexes.create(tableOf(ranges), 'g', { type: 'graph' }, owner);
  }
});

afterAll(async () => {
  await database.close();
  directory[Symbol.dispose]();
});

function randomEdges(): Omit<ModelEdge, 'source'>[] {
  const edges = new Map<string, Omit<ModelEdge, 'source'>>();
  for (let left = random.between(0, 5); left > 0; left -= 1) {
    const edge = { target: random.pick(keys), type: random.pick(['a', 'b']), weight: random.between(1, 8) / 8 };
    edges.set(`${edge.type} ${edge.target}`, edge);
  }
  return [...edges.values()];
}

function wireEdges(edges: readonly Omit<ModelEdge, 'source'>[]): object {
  const ofType = (type: string) =>
    edges.flatMap((edge) => (edge.type === type ? [{ target: edge.target, weight: edge.weight }] : []));
  return { g: { a: ofType('a'), b: ofType('b') } };
}

/** One request, done to the model and answered as a body. */
function randomBatch(): object {
  const inserts: Record<string, object> = {};
  const deletes: string[] = [];
  for (let left = random.between(1, 4); left > 0; left -= 1) {
    const key = random.pick(keys);
    if (key in inserts || deletes.includes(key)) continue;
    if (random.chance(0.25)) {
      deletes.push(key);
      continue;
    }
    const edges = random.chance(0.75) ? randomEdges() : undefined;
    const colour = random.pick(['red', 'green']);
    inserts[key] = { colour, ...(edges ? { _edges: wireEdges(edges) } : {}) };
  }
  for (const [key, document] of Object.entries(inserts)) {
    const { colour, _edges } = document as {
      colour: string;
      _edges?: { g: Record<string, Omit<ModelEdge, 'source'>[]> };
    };
    const given =
      _edges && Object.entries(_edges.g).flatMap(([type, edges]) => edges.map((edge) => ({ ...edge, type })));
    model.put(key, given);
    colours.set(key, colour);
  }
  // Edges that the batch itself gives to what it deletes are gone with it.
  for (const key of deletes) {
    model.delete(key);
    colours.delete(key);
  }
  if (Object.keys(inserts).length === 0 && deletes.length === 0) return { deletes: ['nobody'] };
  return { inserts, deletes };
}

/** The answers of a table to a search from every key, without what depends on the moment. */
async function answersOf(ranges: number, rowFilter?: object): Promise<object> {
  const { graphs } = database.services;
  const table = tableOf(ranges);
  const caller = rowFilter ? testCaller({ rowFilter: { [table]: [rowFilter] } }) : owner;
  const answers: Record<string, unknown> = {};
  await until(async () => (await edgesOf(graphs, table, 'g', { key: 'x' }, caller)).partial === undefined);
  for (const key of keys) {
    for (const direction of ['out', 'in'] as const) {
      const { edges } = await edgesOf(graphs, table, 'g', { key, direction, limit: 1_000 }, caller);
      answers[`${direction} ${key}`] = edges.map(({ source, target, type, weight }) => ({
        source,
        target,
        type,
        weight,
      }));
      const found = await nodesWithin(
        graphs,
        table,
        'g',
        { start: key, direction, max_depth: 3, include_paths: true },
        caller,
      );
      expect(found.total).toBe(found.results.length);
      answers[`reached ${direction} ${key}`] = found.results.map(({ key, depth }) => [key, depth]);
      answers[`ways ${direction} ${key}`] = found.results.map(({ path, distance }) => [path, distance]);
    }
    const asked = { source: key, target: keys[7], weight_mode: 'min_weight', max_depth: 4 };
    const { paths } = await graphs.paths(table, 'g', asked, caller);
    answers[`sum ${key}`] = paths[0] && paths[0].total_weight + 0;
    const best = await graphs.paths(table, 'g', { ...asked, k: 4 }, caller);
    answers[`paths ${key}`] = best.paths.map(({ nodes, total_weight }) => [nodes, total_weight]);
    for (const name of Object.keys(patterns)) answers[`${name} ${key}`] = await matchesOf(table, key, name, caller);
  }
  return answers;
}

/** Patterns as the model takes them. */
const patterns: Readonly<Record<string, readonly ModelElement[]>> = {
  triangle: [{ alias: 'x' }, { alias: 'y' }, { alias: 'z' }, { alias: 'x' }],
  sibling: [{ alias: 'x' }, { alias: 'y', types: ['a'], direction: 'in' }, { alias: 'z', types: ['b'] }],
  far: [{ alias: 'x' }, { alias: 'y', types: ['a'], direction: 'both', minHops: 1, maxHops: 3 }],
};

async function matchesOf(table: string, key: string, name: string, caller: Caller): Promise<string[]> {
  const pattern = (patterns[name] ?? []).map(({ alias, types, direction, minHops, maxHops }, at) => {
    const edge = { types, direction, min_hops: minHops, max_hops: maxHops };
    return { alias, ...(at === 0 ? {} : { edge }) };
  });
  const search = {
    type: 'pattern',
    index_name: 'g',
    start_nodes: { keys: [key] },
    pattern,
    params: { max_results: 0 },
  };
  const searches = readGraphSearches({ graph_searches: { found: search } }) ?? [];
  const {
    shown: { found },
  } = await database.services.graphs.searches(table, searches, () => [], caller);
  // An alias that comes again is shown once: its hops are those of the first time.
  const matches = (found?.matches ?? []).map(({ bindings }) =>
    Object.values(bindings)
      .map((node, at, nodes) => `${node.key}:${node.depth - (nodes[at - 1]?.depth ?? 0)}`)
      .join(' '),
  );
  expect(matches.length).toBe(found?.total ?? -1);
  return matches.sort();
}

/** The expected answer of `matchesOf`. */
function expectedMatches(key: string, name: string, isShown: (key: string) => boolean): string[] {
  const elements = patterns[name] ?? [];
  const aliases = new Set(elements.map(({ alias }) => alias)).size;
  const found = model.matches(key, elements, isShown).map((match) => match.split(' ').slice(0, aliases).join(' '));
  return found.sort();
}

function expectedAnswers(isShown = (_: string) => true): object {
  const answers: Record<string, unknown> = {};
  for (const key of keys) {
    for (const direction of ['out', 'in'] as const) {
      const seen = ({ source, target }: ModelEdge) => isShown(source) && isShown(target);
      answers[`${direction} ${key}`] = model.of(key, direction).filter(seen);
      answers[`reached ${direction} ${key}`] = model.reached(key, direction, 3, isShown);
    }
    for (const name of Object.keys(patterns)) answers[`${name} ${key}`] = expectedMatches(key, name, isShown);
  }
  return answers;
}

test(
  `graphs over 1, 3 and 20 ranges answer as a plain map does (seed ${seed})`,
  async () => {
    for (let round = 0; round < rounds; round += 1) {
      for (let write = 0; write < writesPerRound; write += 1) {
        const body = randomBatch();
        for (const ranges of rangeCounts) await database.services.writes.batch(tableOf(ranges), bodyOf(body), owner);
      }
      if (random.chance(0.4)) {
        await database.close();
        database = await openTestDatabase(directory.path);
      }
      if (random.chance(0.4)) await database.edgeSweeper.sweep();
      const [one, ...others] = await Promise.all(rangeCounts.map((ranges) => answersOf(ranges)));
      for (const other of others) expect(other).toEqual(one as object);
      expect(one).toMatchObject(expectedAnswers());
      for (const key of keys) {
        const sum = model.leastSum(key, keys[7] as string, 4);
        expect((one as Record<string, unknown>)[`sum ${key}`]).toEqual(sum);
      }
      const isRed = (key: string) => colours.get(key) === 'red';
      const filtered = await Promise.all(rangeCounts.map((ranges) => answersOf(ranges, { term: { colour: 'red' } })));
      for (const answers of filtered) expect(answers).toMatchObject(expectedAnswers(isRed));
    }
  },
  { timeout: 300_000 },
);
