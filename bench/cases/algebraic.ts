import type { BenchCase, BenchContext } from '../case.ts';
import { expectSuccess, HttpConnection, requestBytes } from '../client/http-connection.ts';
import { alternate } from '../measure/alternate.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { median } from '../measure/statistics.ts';
import { SundewServer } from '../processes/sundew-server.ts';
import { batchBodies } from '../workloads/batch-bodies.ts';
import { ingestBatchSize, ingestOnce } from './ingest-load.ts';

const indexed = { smoke: 20_000, full: 1_000_000, scale: 1_000_000 } as const;
const ingested = { smoke: 5_000, full: 100_000, scale: 100_000 } as const;
const repeats = 100;
/** Round trips before those that count: the code that they run is compiled by then. */
const warmUps = 100;
const pairsMax = 3;
const index = JSON.stringify({ type: 'algebraic', derive_from_schema: true });
const properties = { category: { type: 'string', 'x-service-types': ['keyword'] }, year: { type: 'integer' } };
const schema = {
  default_type: 'd',
  document_schemas: { d: { schema: { type: 'object', properties, additionalProperties: true } } },
};
const queries = [
  { name: 'terms', aggregation: { type: 'terms', field: 'category', size: 100 } },
  { name: 'terms-of-years', aggregation: { type: 'terms', field: 'year', size: 10 } },
  { name: 'stats', aggregation: { type: 'stats', field: 'year' } },
] as const;

export const algebraic: BenchCase = {
  name: 'algebraic',
  summary:
    'terms and stats over every document from counters, beside a visit of all documents; ingest with and without',
  run,
};

async function run(context: BenchContext): Promise<Comparison[]> {
  const { placement, seed } = context;
  await using server = await SundewServer.start({ placement });
  const ingest = await compareIngest(server, context);
  const documents = indexed[context.tier];
  await server.createTable('texts', { schema });
  context.progress(`loading ${documents} documents`);
  await server.load('texts', await batchBodies(documents, ingestBatchSize, { seed, lastSyncLevel: 'full_text' }));
  const path = '/db/v1/tables/texts/indexes/counters';
  const results = await alternate(
    {
      counters: async () => {
        await server.request('POST', path, index);
        return askAll(server.port, documents);
      },
      visit: async () => {
        await server.request('DELETE', path);
        return askAll(server.port, documents);
      },
    },
    Math.min(context.pairs, pairsMax),
  );
  const asked = queries.map(({ name }, at) =>
    compare({
      name,
      unit: 'us',
      ours: results.counters.map((times) => times[at] ?? Number.NaN),
      peer: { name: 'visit of all documents', values: results.visit.map((times) => times[at] ?? Number.NaN) },
      aim: { kind: 'at_most', value: 1 / 50 },
      notes: { documents, withoutAggregation: `${Math.round(median(results.counters.map(last)))} us` },
    }),
  );
  return [...asked, ingest];
}

function last(times: readonly number[]): number {
  return times.at(-1) ?? Number.NaN;
}

/** The median round trip of each aggregation in microseconds, and of a query without one. */
async function askAll(port: number, documents: number): Promise<number[]> {
  const connection = await HttpConnection.open(port);
  const times: number[] = [];
  const asked = [...queries.map(({ aggregation }) => ({ a: aggregation })), {}];
  for (const aggregations of asked) {
    const body = JSON.stringify({ limit: 0, aggregations });
    const message = requestBytes('POST', '/db/v1/tables/texts/query', body);
    const turns: number[] = [];
    for (let repeat = -warmUps; repeat < repeats; repeat += 1) {
      const start = performance.now();
      const response = expectSuccess(await connection.send(message));
      if (repeat >= 0) turns.push((performance.now() - start) * 1_000);
      const text = Buffer.from(response.body).toString('utf8');
      if (!text.includes(`"value":${documents},"relation":"exact"`)) {
        throw new Error(`not all documents: ${text.slice(0, 200)}`);
      }
    }
    times.push(median(turns));
  }
  connection.close();
  return times;
}

/** Loads while somebody asks for aggregations, so that every commit brings the counters up to date. */
async function compareIngest(server: SundewServer, context: BenchContext): Promise<Comparison> {
  const documents = ingested[context.tier];
  const batches = await batchBodies(documents, ingestBatchSize, { seed: context.seed, lastSyncLevel: 'full_text' });
  const load = async (indexes: object) => {
    const asking = new AbortController();
    const loaded = ingestOnce(server, 'load', batches, { schema, indexes }).finally(() => asking.abort());
    const asked = askWhile(server.port, asking.signal);
    const { seconds } = await loaded;
    await asked;
    return documents / seconds;
  };
  // A server that has just started is slower than it will be.
  await load({});
  const results = await alternate(
    {
      counters: () => load({ counters: JSON.parse(index) }),
      plain: () => load({}),
    },
    Math.min(context.pairs, pairsMax),
  );
  return compare({
    name: 'ingest',
    unit: 'docs/s',
    ours: results.counters,
    peer: { name: 'without the index', values: results.plain },
    aim: { kind: 'at_least', value: 0.9 },
    notes: { documents, asked: 'ten aggregations a second meanwhile' },
  });
}

async function askWhile(port: number, signal: AbortSignal): Promise<void> {
  const connection = await HttpConnection.open(port);
  const aggregations = Object.fromEntries(queries.map(({ name, aggregation }) => [name, aggregation]));
  const message = requestBytes('POST', '/db/v1/tables/load/query', JSON.stringify({ limit: 0, aggregations }));
  // The table may not be there yet, or no longer.
  while (!signal.aborted) {
    await connection.send(message);
    await Bun.sleep(100);
  }
  connection.close();
}
