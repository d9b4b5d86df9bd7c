import { afterAll, beforeAll, expect, test } from 'bun:test';
import type { Database } from '../../src/server/database/open-database.ts';
import { runSeed, SeededRandom } from '../support/fault/seeded-random.ts';
import { bodyOf, openTestDatabase, testCaller } from '../support/open-test-database.ts';
import { TemporaryDirectory } from '../support/temporary-directory.ts';

/** For random rows and row filters, SQL shows a caller with the filter the rows that a scan with the filter finds. */

const words = ['amber', 'birch', 'cedar', 'dune'];
const filterRounds = 12;
const directory = new TemporaryDirectory();
const seed = runSeed();
const random = new SeededRandom(seed);
let database: Database;

function randomRow(): object {
  return {
    ...(random.chance(0.8) ? { tag: random.pick(words) } : {}),
    ...(random.chance(0.7) ? { n: random.between(0, 9) } : {}),
    ...(random.chance(0.5) ? { flag: random.chance(0.5) } : {}),
  };
}

function randomFilter(depth = 2): { [member: string]: unknown } {
  const kind = depth === 0 ? random.between(0, 2) : random.between(0, 4);
  if (kind === 0) return { term: { tag: random.pick(words) } };
  if (kind === 1) return { range: { n: { gte: random.between(0, 9) } } };
  if (kind === 2) return { term: { flag: random.chance(0.5) } };
  const two = [randomFilter(depth - 1), randomFilter(depth - 1)];
  return kind === 3 ? { bool: { must: two } } : { bool: { must_not: two } };
}

async function write(change: object): Promise<void> {
  await database.services.writes.batch('rows', bodyOf(change), testCaller());
}

beforeAll(async () => {
  database = await openTestDatabase(directory.path);
  const tag = { type: 'string', 'x-service-types': ['keyword'] };
  const properties = { tag, n: { type: 'integer' }, flag: { type: 'boolean' } };
  const schema = { storage_mode: 'relational', document_schemas: { row: { schema: { type: 'object', properties } } } };
  await database.services.tables.create('rows', { num_shards: 3, schema } as object, testCaller());
  await write({
    inserts: Object.fromEntries(Array.from({ length: 300 }, (_, at) => [`${at % 36}k${at}`, randomRow()])),
  });
});

afterAll(async () => {
  await database.close();
  directory[Symbol.dispose]();
});

test('SQL under a row filter shows what a scan with it finds, of rows that were just written too', async () => {
  for (let round = 0; round < filterRounds; round += 1) {
    const filter = round === 0 ? { match_none: {} } : randomFilter();
    const caller = testCaller({ rowFilter: { rows: filter } });
    await write({ inserts: { [`${random.between(0, 35)}k`]: randomRow(), [`m${round}`]: randomRow() } });
    const found: string[] = [];
    for await (const page of await database.services.documents.scan('rows', { filter_query: filter }, testCaller())) {
      found.push(...page.map((line) => (JSON.parse(line) as { _id: string })._id));
    }
    const { rows } = await database.services.sql.run({ sql: 'SELECT _id FROM rows' }, caller);
    const shown = (JSON.parse(rows) as [string][]).map(([key]) => key);
    expect({ seed, filter, shown: shown.sort() }).toEqual({ seed, filter, shown: found.sort() });
  }
}, 120_000);
