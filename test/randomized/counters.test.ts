import { expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ChildServer } from '../support/fault/child-server.ts';
import { runSeed, SeededRandom } from '../support/fault/seeded-random.ts';
import { type JsonDocument, WireClient } from '../support/fault/wire-client.ts';

/**
 * Over random writes, kills and rebuilds a table with an algebraic index answers aggregations from its counters, and as a
 * plain map of the documents says; and to the last bit as it does without the index.
 */

const seed = runSeed();
const random = new SeededRandom(seed);
const rounds = Number(process.env.SUNDEW_COUNTER_ROUNDS ?? 12);
const tables = { one: 1, three: 3 };
const schema = {
  default_type: 'd',
  document_schemas: {
    d: {
      schema: {
        type: 'object',
        properties: {
          n: { type: 'number' },
          tag: { type: 'string', 'x-service-types': ['keyword'] },
          inner: { type: 'object', properties: { flag: { type: 'boolean' } } },
          days: { type: 'array', items: { type: 'string', format: 'date' } },
        },
      },
    },
  },
};
const paths = ['n', 'tag', 'inner.flag', 'days'];
const aggregations = Object.fromEntries(
  paths.flatMap((field) => [
    [`${field} terms`, { type: 'terms', field, size: 100 }],
    // Others are declared without numbers.
    ...(['n', 'days'].includes(field) ? [[`${field} stats`, { type: 'stats', field }]] : []),
    [`${field} count`, { type: 'count', field }],
    [`${field} cardinality`, { type: 'cardinality', field }],
  ]),
);

interface Result {
  hits: { total: { value: number; relation: string } };
  aggregations: Record<string, { value?: number; buckets?: { key: unknown; doc_count: number }[] }>;
  profile: { algebraic?: { aggregation: string; fallback?: string }[] };
}

const number = () =>
  random.pick([-0, 2 ** 53, -(2 ** 53) + 1, 0.1 * random.between(0, 9), random.between(0, 5), 1e120]);

function randomDocument(): JsonDocument {
  return JSON.parse(
    JSON.stringify({
      ...(random.chance(0.8) ? { n: random.chance(0.2) ? [number(), number()] : number() } : {}),
      ...(random.chance(0.8) ? { tag: random.pick(['red', 'green', 'blue', 'grey']) } : {}),
      ...(random.chance(0.5) ? { inner: { flag: random.chance(0.5) } } : {}),
      ...(random.chance(0.5) ? { days: [`2024-0${random.between(1, 9)}-01`, `2024-0${random.between(1, 9)}-01`] } : {}),
    }),
  );
}

/** Value -> number of documents that have it. */
function termsOf(documents: Iterable<JsonDocument>, path: string): Map<unknown, number> {
  const counts = new Map<unknown, number>();
  for (const document of documents) {
    const value = path.split('.').reduce<unknown>((at, name) => (at as JsonDocument | undefined)?.[name], document);
    for (const each of new Set([value ?? []].flat())) counts.set(each, (counts.get(each) ?? 0) + 1);
  }
  return counts;
}

async function compare(wire: WireClient, table: string, documents: Map<string, JsonDocument>): Promise<void> {
  const ask = async (more: object) => {
    const body = { limit: 0, profile: true, aggregations, ...more };
    const answer = await wire.expect(200, 'POST', `/db/v1/tables/${table}/query`, body);
    return (answer.body as unknown as { responses: [Result] }).responses[0];
  };
  // A condition that all documents meet makes the engine visit them.
  const [counted, visited] = [await ask({}), await ask({ exclusion_query: { term: { tag: 'no such' } } })];
  expect(counted.hits.total).toEqual({ value: documents.size, relation: 'exact' });
  expect(JSON.stringify(counted.aggregations)).toBe(JSON.stringify(visited.aggregations));
  expect(counted.profile.algebraic?.filter(({ fallback }) => fallback !== undefined)).toEqual([]);
  expect(visited.profile.algebraic?.every(({ fallback }) => fallback !== undefined)).toBe(true);
  for (const path of ['n', 'tag', 'inner.flag']) {
    const wanted = termsOf(documents.values(), path);
    const buckets = counted.aggregations[`${path} terms`]?.buckets ?? [];
    expect(new Map(buckets.map(({ key, doc_count }) => [key, doc_count]))).toEqual(wanted);
    expect(counted.aggregations[`${path} cardinality`]?.value).toBe(wanted.size);
  }
}

test(`counters are right after writes, kills and rebuilds (seed ${seed})`, async () => {
  const directory = mkdtempSync(join(tmpdir(), 'sundew-counters-'));
  const dataDir = join(directory, 'data');
  let server = await ChildServer.start({ dataDir });
  const models = new Map(Object.keys(tables).map((name) => [name, new Map<string, JsonDocument>()]));
  try {
    const indexes = { counters: { type: 'algebraic', derive_from_schema: true } };
    for (const [name, num_shards] of Object.entries(tables)) {
      await new WireClient(server.url).createTable(name, { num_shards, schema, indexes });
    }
    for (let round = 0; round < rounds; round += 1) {
      const wire = new WireClient(server.url);
      for (const [name, documents] of models) {
        const keys = () => `${random.pick(['!', 'M', 'k', '~', '中'])}${random.between(0, 30)}`;
        const inserts = Object.fromEntries(Array.from({ length: 25 }, () => [keys(), randomDocument()]));
        const deletes = [...new Set(Array.from({ length: 8 }, keys))].filter((key) => !(key in inserts));
        const answer = await wire.batch(name, { inserts, deletes, sync_level: 'full_text' });
        expect(answer.status).toBe(201);
        for (const [key, document] of Object.entries(inserts)) documents.set(key, document);
        for (const key of deletes) documents.delete(key);
        await compare(wire, name, documents);
      }
      if (random.chance(0.3)) {
        await server.kill();
        server = await ChildServer.start({ dataDir });
      }
      if (random.chance(0.2)) {
        const wire = new WireClient(server.url);
        await wire.expect(204, 'DELETE', '/db/v1/tables/one/indexes/counters');
        await wire.expect(201, 'POST', '/db/v1/tables/one/indexes/counters', indexes.counters);
      }
      for (const [name, documents] of models) await compare(new WireClient(server.url), name, documents);
    }
  } finally {
    await server.kill();
    rmSync(directory, { recursive: true, force: true });
  }
}, 300_000);
