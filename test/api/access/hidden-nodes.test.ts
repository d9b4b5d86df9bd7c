import { afterAll, beforeAll, expect, spyOn, test } from 'bun:test';
import { systemClock } from '../../../src/lib/clock.ts';
import type { Database } from '../../../src/server/database/open-database.ts';
import { graphIndexOf, OpenGraph, type PartialReason } from '../../../src/tables/graph/open-graph.ts';
import { SearchedGraph } from '../../../src/tables/graph/searched-graph.ts';
import { TraversalCounts } from '../../../src/tables/graph/traversal-counts.ts';
import { sliceKeys, Visibility } from '../../../src/tables/graph/visibility.ts';
import type { Table } from '../../../src/tables/table.ts';
import { bodyOf, openTestDatabase, testCaller } from '../../support/open-test-database.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';

/** The nodes that a caller under a row filter is shown, where documents change and an index is behind. */

const directory = new TemporaryDirectory();
let database: Database;
const owner = testCaller();
const clock = systemClock;

beforeAll(async () => {
  database = await openTestDatabase(directory.path);
});

afterAll(async () => {
  await database.close();
  directory[Symbol.dispose]();
});

/** A table with a graph `g`, as somebody sees it to whom documents of the team red alone are shown. */
async function redTable(name: string, inserts: object) {
  const { tables } = database.services;
  await tables.create(name, { num_shards: 1, indexes: { g: { type: 'graph' } } }, owner);
  await write(name, inserts);
  const caller = testCaller({ rowFilter: { [name]: { term: { team: 'red' } } } });
  return { table: tables.get(name, owner, 'read') as Table, caller };
}

const write = (table: string, inserts: object) =>
  database.services.writes.batch(table, bodyOf({ inserts, sync_level: 'full_index' }), owner);

const linked = (...targets: string[]) => ({
  team: 'red',
  _edges: { g: { to: targets.map((target) => ({ target })) } },
});

/** An index that shows nothing after a sequence, however long it is waited for. */
class GraphBehind extends OpenGraph {
  readonly #sequence: number;
  waits = 0;

  constructor(of: ConstructorParameters<typeof OpenGraph>[0], sequence: number) {
    super(of, graphIndexOf(of.table, 'g'));
    this.#sequence = sequence;
  }

  override shown(): number[] {
    return [this.#sequence];
  }

  override async waitUntilShown(): Promise<PartialReason | undefined> {
    this.waits += 1;
    return 'indexing';
  }
}

test('a node that changed behind an index hides no other node of a search', async () => {
  const chain = { m1: linked('m2'), m2: linked('m3'), m3: { team: 'red' } };
  const { table, caller } = await redTable('behind', { a: linked('k', 'm1'), k: linked('m3'), ...chain });
  using lease = await table.lease();
  const { ranges } = lease;
  const sequence = ranges[0]?.head ?? 0;
  await write('behind', { k: linked('m2') });
  const graph = new GraphBehind({ table, ranges, clock }, sequence);
  const searched = new SearchedGraph({ table, ranges, clock, caller }, graph, new TraversalCounts().of(table, 1));
  const search = { paths: { max_depth: 5, weight_mode: 'min_hops' as const, k: 0 } };
  const request = { search, starts: ['a'], targets: ['k', 'm3'], direction: 'out' as const };
  const { answer, partial } = await searched.search(() => request, undefined);
  expect(answer.paths?.map(({ nodes }) => nodes)).toEqual([['a', 'm1', 'm2', 'm3']]);
  expect(partial).toEqual({ partial: 'indexing' });
  // The first wait is before the search, the second for the change.
  expect(graph.waits).toBe(2);
});

test('many nodes are looked at again without their bodies, letting others through, and once for each change', async () => {
  const keys = Array.from({ length: 3 * sliceKeys }, (_, at) => `k${at}`);
  const { table, caller } = await redTable('many', Object.fromEntries(keys.map((key) => [key, { team: 'red' }])));
  using lease = await table.lease();
  const { ranges } = lease;
  const visibility = new Visibility({ table, ranges, clock, caller });
  await visibility.decide(keys);
  await write('many', { k7: { team: 'blue' }, other: { team: 'red' } });
  const documents = ranges[0]?.stored.documents;
  if (!documents) throw new Error('a table has a range');
  using bodies = spyOn(documents, 'get');
  using sequences = spyOn(documents, 'sequenceOf');
  const shown = ranges.map(({ head }) => head);
  const looked: number[] = [];
  let isDone = false;
  const others = (async () => {
    while (!isDone) {
      looked.push(sequences.mock.calls.length);
      await new Promise((resolve) => setImmediate(resolve));
    }
  })();
  expect(await visibility.changed(keys, shown)).toEqual(['k7']);
  isDone = true;
  await others;
  expect(looked).toContain(sliceKeys);
  expect(sequences).toHaveBeenCalledTimes(keys.length);
  // The head up to which the others are known to be unchanged was noted.
  expect(await visibility.changed(keys, shown)).toEqual(['k7']);
  expect(sequences).toHaveBeenCalledTimes(keys.length + 1);
  expect(bodies).not.toHaveBeenCalled();
});
