import { afterAll, beforeAll, expect, test } from 'bun:test';
import type { Database } from '../../src/server/database/open-database.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { runSeed, SeededRandom } from '../support/fault/seeded-random.ts';
import { until } from '../support/fault/until.ts';
import { edgesOf } from '../support/graph/graph-answers.ts';
import { bodyOf, openTestDatabase, testCaller } from '../support/open-test-database.ts';
import { TemporaryDirectory } from '../support/temporary-directory.ts';

/**
 * Edges of a field and of an artifact under every way to change a document (puts, transforms, merges, deletions and returns),
 * with an expiry, and with the database opened again in between: tables of 1, 3 and 20 ranges answer as a plain map does.
 */

const rangeCounts = [1, 3, 20] as const;
const rounds = 15;
const changesPerRound = 8;
const ttlMs = 10_000;
const keys = Array.from({ length: 10 }, (_, at) => String.fromCharCode(35 + at * 9));
const directory = new TemporaryDirectory();
const clock = new FakeClock();
const seed = runSeed();
const random = new SeededRandom(seed);
const owner = testCaller();
/** Documents: target -> when its edge was created. */
const model = new Map<string, Map<string, number>>();
/** The documents. */
const documents = new Map<string, { near: readonly string[]; n?: number }>();
let database: Database;

interface Variant {
  readonly source: 'field' | 'artifact';
  /** Then edges to deleted documents are swept at once, since their times are kept until then. */
  readonly expires: boolean;
}

let variant: Variant = { source: 'field', expires: false };

const tableOf = (ranges: number) => `${variant.source}-${variant.expires ? 'short' : 'long'}${ranges}`;
const open = () => openTestDatabase(directory.path, { clock });

beforeAll(async () => {
  database = await open();
});

async function createTables(): Promise<void> {
  model.clear();
  for (const ranges of rangeCounts) {
    await database.services.tables.create(tableOf(ranges), { num_shards: ranges }, owner);
    const ttl = variant.expires ? { ttl_duration: '10s' } : {};
    const edges =
      variant.source === 'field'
        ? { edge_types: [{ name: 'near', field: 'near' }] }
        : { artifact: { name: 'facts', kind: 'asset', field: 'near' } };
    const config = { type: 'graph', ...ttl, ...edges };
    await database.services.indexes.create(tableOf(ranges), 'g', config, owner);
  }
}

afterAll(async () => {
  await database.close();
  directory[Symbol.dispose]();
});

/** The value of the field for these neighbours: their keys, or what an extractor would have found. */
function fieldOf(near: readonly string[]): unknown {
  if (variant.source === 'field') return near;
  const entities = ['self', ...near].map((text) => ({ label: 'key', text, score: 1 }));
  const relations = near.map((_, at) => ({
    type: 'near',
    source: { entity_index: 0 },
    target: { entity_index: at + 1 },
  }));
  return JSON.stringify({ entities, relations });
}

const someKeys = () => keys.filter(() => random.chance(0.25));

/** An edge that is given again keeps its creation, unless it has expired. */
function put(key: string, near: readonly string[], n?: number): void {
  const held = model.get(key);
  const nowMs = clock.nowMs();
  const created = (target: string) => {
    const before = held?.get(target);
    return before !== undefined && (!variant.expires || before > nowMs - ttlMs) ? before : nowMs;
  };
  model.set(key, new Map(near.map((target) => [target, created(target)])));
  documents.set(key, { near, ...(n === undefined ? {} : { n }) });
}

function remove(key: string): void {
  if (!model.delete(key)) return;
  for (const edges of model.values()) edges.delete(key);
}

type Change = (table: string) => Promise<unknown>;

function randomChange(): Change {
  const { writes } = database.services;
  // Edges of artifacts are made behind the commit.
  const synced = variant.source === 'artifact' ? { sync_level: 'full_index' } : {};
  const batch =
    (body: object): Change =>
    (table) =>
      writes.batch(table, bodyOf({ ...body, ...synced }), owner);
  const key = random.pick(keys);
  const near = someKeys();
  switch (random.between(0, 4)) {
    case 0:
      remove(key);
      return batch({ deletes: [key] });
    case 1: {
      // A transform that leaves the field as it was leaves its edges as they are; those of an artifact are made again.
      const held = documents.get(key);
      const makesEdges = variant.source === 'artifact' || `${held?.near}` !== `${near}`;
      if (held && model.has(key) && makesEdges) put(key, near, held.n);
      return batch({ transforms: [{ key, operations: [{ op: '$set', path: '$.near', value: fieldOf(near) }] }] });
    }
    case 2: {
      // The window ends at the last record: what lies before it and is no record goes.
      const last = Math.max(keys.indexOf(key), 1);
      const kept = keys.slice(0, last + 1).filter((_, at) => at === last || random.chance(0.6));
      const gone = keys.slice(0, last).filter((each) => !kept.includes(each) && model.has(each));
      const neighbours = Object.fromEntries(kept.map((each) => [each, someKeys()]));
      gone.forEach(remove);
      // An equal record writes nothing: what its artifact is made of has not changed.
      const isEqual = (key: string, near: readonly string[]) =>
        model.has(key) && JSON.stringify(documents.get(key)) === JSON.stringify({ near });
      for (const [each, near] of Object.entries(neighbours))
        if (variant.source === 'field' || !isEqual(each, near)) put(each, near);
      // Also the edges that the merge itself gives to what it deletes.
      for (const edges of model.values()) for (const key of gone) edges.delete(key);
      const records = Object.fromEntries(kept.map((each) => [each, { near: fieldOf(neighbours[each] ?? []) }]));
      return (table) => writes.merge(table, bodyOf({ records, ...synced }), owner);
    }
    default: {
      const n = random.between(0, 9);
      put(key, near, n);
      return batch({ inserts: { [key]: { near: fieldOf(near), n } } });
    }
  }
}

function expectedAnswers(): object {
  const bound = clock.nowMs() - ttlMs;
  const arrows = [...model].flatMap(([source, edges]) =>
    [...edges].flatMap(([target, createdMs]) =>
      !variant.expires || createdMs > bound ? [[source, target] as const] : [],
    ),
  );
  const sorted = (shown: string[]) => shown.sort((left, right) => (left < right ? -1 : 1));
  const of = (key: string) => ({
    out: sorted(arrows.flatMap(([source, target]) => (source === key ? [target] : []))),
    in: sorted(arrows.flatMap(([source, target]) => (target === key ? [source] : []))),
  });
  return Object.fromEntries(keys.map((key) => [key, of(key)]));
}

function edgesFrom(ranges: number, key: string, direction: 'out' | 'in') {
  return edgesOf(database.services.graphs, tableOf(ranges), 'g', { key, direction, limit: 1_000 }, owner);
}

async function answersOf(ranges: number): Promise<object> {
  const endsOf = async (key: string, direction: 'out' | 'in'): Promise<string[]> => {
    let ends: string[] = [];
    // Just opened, an index may not have read everything yet.
    await until(async () => {
      const { edges, partial } = await edgesFrom(ranges, key, direction);
      ends = edges.map(({ source, target }) => (direction === 'out' ? target : source));
      return partial === undefined;
    });
    return ends;
  };
  const answers: Record<string, object> = {};
  for (const key of keys) answers[key] = { out: await endsOf(key, 'out'), in: await endsOf(key, 'in') };
  return answers;
}

test.each([
  ['a field', { source: 'field', expires: false }],
  ['a field, which expire,', { source: 'field', expires: true }],
  ['an artifact', { source: 'artifact', expires: false }],
  ['an artifact, which expire,', { source: 'artifact', expires: true }],
] as const)(
  `edges of %s follow every change of their documents (seed ${seed})`,
  async (_, asked) => {
    variant = asked;
    await createTables();
    for (let round = 0; round < rounds; round += 1) {
      for (let left = changesPerRound; left > 0; left -= 1) {
        const change = randomChange();
        for (const ranges of rangeCounts) await change(tableOf(ranges));
        if (variant.expires) await database.edgeSweeper.sweep();
        clock.jump(random.between(1, 900));
      }
      if (random.chance(0.3)) {
        await database.close();
        database = await open();
      }
      if (random.chance(0.4)) await database.edgeSweeper.sweep();
      const expected = expectedAnswers();
      for (const ranges of rangeCounts)
        expect({ ranges, ...(await answersOf(ranges)) }).toEqual({ ranges, ...expected });
    }
  },
  { timeout: 300_000 },
);
