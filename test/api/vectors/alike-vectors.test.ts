import { afterAll, beforeAll, describe, expect, test } from 'bun:test';
import { until } from '../../support/fault/until.ts';
import { startTestServer, type TestServer } from '../../support/test-server.ts';
import { distanceOf, type Metric } from '../../support/vectors/vector-oracle.ts';
import { ask, randomNumbers } from '../../support/vectors/vector-recipes.ts';

// Equal and nearly equal vectors are ordinary data: empty texts, footers. They must cost the others nothing.

const dimension = 48;
const rows = 4_000;
const limit = 10;
const seed = 53;
const random = randomNumbers(seed);

interface Row {
  vector: Float32Array;
  isCopy: boolean;
  third: boolean;
}

let server: TestServer;
beforeAll(async () => {
  process.stdout.write(`seed ${seed}\n`);
  server = await startTestServer();
});
afterAll(() => server[Symbol.asyncDispose]());

function draw(): Float32Array {
  const normal = () => Array.from({ length: 6 }, random).reduce((sum, value) => sum + value - 0.5, 0);
  const vector = Float32Array.from({ length: dimension }, normal);
  const length = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
  return vector.map((value) => value / length);
}

/** A share of the rows are copies of one vector, each component of each at most `apart` away. */
function makeRows(share: number, apart: number): Row[] {
  const centre = draw();
  return Array.from({ length: rows }, (_, at) => {
    // The first is a copy and the second is not, whatever the share.
    const isCopy = at === 0 || (at !== 1 && random() < share);
    const vector = isCopy ? centre.map((value) => value + apart * (2 * random() - 1)) : draw();
    return { vector, isCopy, third: at % 3 === 0 };
  });
}

const base64 = (vector: Float32Array) => Buffer.from(vector.buffer).toString('base64');

async function load(table: string, all: Row[]): Promise<void> {
  const dense = { type: 'embeddings', external: true, dimension };
  const indexes = { cosine: { ...dense, distance_metric: 'cosine' }, l2_squared: dense };
  expect(await server.send('POST', `/db/v1/tables/${table}`, { indexes })).toMatchObject({ status: 200 });
  for (let start = 0; start < rows; start += 2_000) {
    const entries = all.slice(start, start + 2_000).map(({ vector, isCopy, third }, at) => {
      const packed = base64(vector);
      return [`r${start + at}`, { isCopy, third, _embeddings: { cosine: packed, l2_squared: packed } }];
    });
    const body = { inserts: Object.fromEntries(entries), sync_level: 'full_index' };
    expect((await server.send('POST', `/db/v1/tables/${table}/batch`, body)).status).toBe(201);
  }
}

const filters: [name: string, request: object, keeps: (row: Row) => boolean][] = [
  ['no filter', {}, () => true],
  ['a third of the rows', { filter_query: { term: { third: true } } }, ({ third }) => third],
  ['the copies alone', { filter_query: { term: { isCopy: true } } }, ({ isCopy }) => isCopy],
  ['the others alone', { filter_query: { term: { isCopy: false } } }, ({ isCopy }) => !isCopy],
];

/** Asks for stored vectors and new ones, at the default effort. */
async function check(table: string, all: Row[], metric: Metric): Promise<void> {
  // Equal distances in single precision.
  const tolerance = metric === 'cosine' ? 3e-7 : 2e-8;
  const stored = [all.findIndex(({ isCopy }) => isCopy), all.findLastIndex(({ isCopy }) => !isCopy), 17, 18, 3_001];
  const queries = [...stored.map((at) => all[at]?.vector ?? draw()), draw(), draw()];
  for (const [name, request, keeps] of filters) {
    let [found, wanted] = [0, 0];
    for (const [at, query] of queries.entries()) {
      const distances = all.map(({ vector }) => distanceOf(metric, [...query], [...vector]));
      const kept = distances.filter((_, row) => keeps(all[row] as Row)).toSorted((a, b) => a - b);
      const count = Math.min(limit, kept.length);
      const body = { embeddings: { [metric]: base64(query) }, fields: [], limit, ...request };
      const { hits } = (await ask(server, table, body)).hits;
      expect(hits).toHaveLength(count);
      const own = distances[stored[at] ?? -1] ?? Number.NaN;
      const nearest = distances[Number(hits[0]?._id.slice(1))] ?? Number.NaN;
      if (at < stored.length && keeps(all[stored[at] ?? -1] as Row))
        expect(nearest).toBeLessThanOrEqual(own + tolerance);
      const worst = (kept[count - 1] ?? 0) + tolerance;
      found += hits.filter(({ _id }) => (distances[Number(_id.slice(1))] ?? Number.NaN) <= worst).length;
      wanted += count;
    }
    expect([table, metric, name, found >= 0.95 * wanted]).toEqual([table, metric, name, true]);
  }
}

describe('vectors that are alike cost the others nothing', () => {
  for (const [kind, apart] of [
    ['equal', 0],
    ['near', 1e-4],
  ] as const) {
    for (const share of [0.001, 0.9, 0.99]) {
      test(`${kind} ones are ${share * 100} % of the rows`, async () => {
        const table = `${kind}${share * 1_000}`;
        const all = makeRows(share, apart);
        await load(table, all);
        for (const metric of ['cosine', 'l2_squared'] as const) await check(table, all, metric);
        // Settled: every row but the last few lies in a graph.
        await until(async () => {
          const body = { embeddings: { cosine: base64(draw()), l2_squared: base64(draw()) }, profile: true };
          const { profile } = await ask(server, table, body);
          return !JSON.stringify(profile).includes('"scan"');
        });
        for (const metric of ['cosine', 'l2_squared'] as const) await check(table, all, metric);
      });
    }
  }
});
