import { afterAll, beforeAll, expect, test } from 'bun:test';
import type { Database } from '../../../src/server/database/open-database.ts';
import { bodyOf, openTestDatabase, testCaller } from '../../support/open-test-database.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';

const directory = new TemporaryDirectory();
let database: Database;
const owner = testCaller();
const red = { term: { team: 'red' } };

beforeAll(async () => {
  database = await openTestDatabase(directory.path);
});

afterAll(async () => {
  await database.close();
  directory[Symbol.dispose]();
});

const edgesTo = (...to: object[]) => ({ _edges: { g: { to } } });

test('a weight of an edge to a hidden document neither refuses a path nor is told', async () => {
  const { tables, writes, graphs } = database.services;
  await tables.create('weights', { num_shards: 2, indexes: { g: { type: 'graph' } } }, owner);
  const inserts = {
    a: { team: 'red', ...edgesTo({ target: 'b', weight: 0.5 }) },
    b: { team: 'red', ...edgesTo({ target: 'c', weight: 0.5 }) },
    c: { team: 'red' },
    hidden: { team: 'blue', ...edgesTo({ target: 'c', weight: 7 }) },
  };
  await writes.batch('weights', bodyOf({ inserts, sync_level: 'full_index' }), owner);
  const caller = testCaller({ rowFilter: { weights: red } });
  const asked = { source: 'c', target: 'a', direction: 'both', weight_mode: 'max_weight' };
  const found = await graphs.paths('weights', 'g', asked, caller);
  expect(found.paths.map(({ nodes }) => nodes)).toEqual([['c', 'b', 'a']]);
  await expect(graphs.paths('weights', 'g', asked, owner)).rejects.toThrow('from "hidden" to "c" has the weight 7');
  // One that the caller sees refuses it still.
  await writes.batch(
    'weights',
    bodyOf({ inserts: { d: { team: 'red', ...edgesTo({ target: 'c', weight: 3 }) } } }),
    owner,
  );
  await expect(graphs.paths('weights', 'g', asked, caller)).rejects.toThrow('from "d" to "c" has the weight 3');
});

test('weights of edges to many hidden documents refuse no path over documents that are shown', async () => {
  const { tables, writes, graphs } = database.services;
  await tables.create('heavy', { num_shards: 2, indexes: { g: { type: 'graph' } } }, owner);
  const steps = Array.from({ length: 16 }, (_, at) => at);
  const inserts = Object.fromEntries(
    steps.flatMap((at) => [
      [`k${at}`, { team: 'red', ...edgesTo({ target: `k${at + 1}`, weight: 0.5 }) }],
      [`hidden${at}`, { team: 'blue', ...edgesTo({ target: `k${at}`, weight: 7 }) }],
    ]),
  );
  await writes.batch(
    'heavy',
    bodyOf({ inserts: { ...inserts, k16: { team: 'red' } }, sync_level: 'full_index' }),
    owner,
  );
  const asked = { source: 'k0', target: 'k16', direction: 'both', weight_mode: 'max_weight', max_depth: 20 };
  for (const k of [undefined, 3]) {
    const found = await graphs.paths('heavy', 'g', { ...asked, k }, testCaller({ rowFilter: { heavy: red } }));
    expect(found).not.toHaveProperty('partial');
    expect(found.paths.map(({ nodes }) => nodes)).toEqual([[...steps, 16].map((at) => `k${at}`)]);
  }
});

test('no reader is shown an edge of a document that was hidden, while it changes to and fro', async () => {
  const { tables, writes, graphs } = database.services;
  await tables.create('flips', { num_shards: 2, indexes: { g: { type: 'graph' } } }, owner);
  const keys = Array.from({ length: 12 }, (_, at) => `k${at}`);
  const write = (team: string) => {
    const to = keys.map((target) => ({ target, metadata: { team } }));
    const inserts = Object.fromEntries(keys.map((key) => [key, { team, ...edgesTo(...to) }]));
    return writes.batch('flips', bodyOf({ inserts }), owner);
  };
  const caller = testCaller({ rowFilter: { flips: red } });
  const shown: string[] = [];
  const look = async () => {
    shown.push(await graphs.edges('flips', 'g', { key: 'k0', direction: 'both' }, caller));
    const walk = { start: 'k1', max_depth: 2, include_paths: true, include_edges: true };
    shown.push(await graphs.traverse('flips', 'g', walk, caller));
  };
  await write('red');
  for (let round = 0; round < 60; round += 1) {
    await Promise.all([look(), write(round % 2 === 0 ? 'blue' : 'red'), look()]);
  }
  await look();
  expect(shown.filter((answer) => answer.includes('blue'))).toEqual([]);
  expect(shown.some((answer) => answer.includes('"team":"red"'))).toBe(true);
}, 120_000);
