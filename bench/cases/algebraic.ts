import { must } from '../../src/lib/assert.ts';
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
    'terms and stats over every document from counters, beside a visit of all of them, in the engine alone and over HTTP; ' +
    'ingest with and without',
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
  const asked = queries.flatMap(({ name }, at) => {
    const valuesOf = (of: (times: RoundTrip) => number): [number[], number[]] => [
      results.counters.map(({ asked }) => of(must(asked[at], 'a round trip of each query'))),
      results.visit.map(({ asked }) => of(must(asked[at], 'a round trip of each query'))),
    ];
    const [engine, engineVisit] = valuesOf(({ engineUs }) => engineUs);
    const [ours, visit] = valuesOf(({ us }) => us);
    const peer = 'visit of all documents';
    const notes = {
      documents,
      healthz: `${Math.round(median(results.counters.map(({ healthzUs }) => healthzUs)))} us`,
      withoutAggregation: `${Math.round(median(results.counters.map(({ bareUs }) => bareUs)))} us`,
    };
    return [
      compare({
        name: `${name}-in-engine`,
        unit: 'us',
        ours: engine,
        peer: { name: peer, values: engineVisit },
        aim: { kind: 'at_most', value: 1 / 50 },
        notes: { documents },
      }),
      // The fixed cost of an answer over HTTP leaves no room for an aim.
      compare({ name, unit: 'us', ours, peer: { name: peer, values: visit }, notes }),
    ];
  });
  return [...asked, ingest];
}

/** Medians in microseconds. */
interface RoundTrip {
  us: number;
  /** The engine's share of it. */
  engineUs: number;
}

interface Asked {
  asked: RoundTrip[];
  /** A query without aggregations. */
  bareUs: number;
  healthzUs: number;
}

async function askAll(port: number, documents: number): Promise<Asked> {
  const connection = await HttpConnection.open(port);
  const ask = async (aggregations: object): Promise<RoundTrip> => {
    const body = (more: object) => JSON.stringify({ limit: 0, aggregations, ...more });
    const message = (more: object) => requestBytes('POST', '/db/v1/tables/texts/query', body(more));
    const us = await medianOf(connection, message({}), (text) => checkTotal(text, documents));
    const engine: number[] = [];
    await medianOf(connection, message({ profile: true }), (text) => engine.push(engineUsOf(text)));
    return { us, engineUs: median(engine) };
  };
  const asked: RoundTrip[] = [];
  for (const { aggregation } of queries) asked.push(await ask({ a: aggregation }));
  const { us: bareUs } = await ask({});
  const healthzUs = await medianOf(connection, requestBytes('GET', '/healthz'), () => undefined);
  connection.close();
  return { asked, bareUs, healthzUs };
}

function checkTotal(text: string, documents: number): void {
  if (text.includes(`"value":${documents},"relation":"exact"`)) return;
  throw new Error(`not all documents: ${text.slice(0, 200)}`);
}

function engineUsOf(text: string): number {
  const { responses } = JSON.parse(text) as { responses: [{ profile: { legs: [{ took_ms: number }] } }] };
  // The engine counts whole microseconds.
  return Math.max(1, responses[0].profile.legs[0].took_ms * 1_000);
}

/** The median round trip of a message; `look` is shown each answer that counts. */
async function medianOf(
  connection: HttpConnection,
  message: Uint8Array,
  look: (text: string) => void,
): Promise<number> {
  const turns: number[] = [];
  for (let repeat = -warmUps; repeat < repeats; repeat += 1) {
    const start = performance.now();
    const response = expectSuccess(await connection.send(message));
    if (repeat < 0) continue;
    turns.push((performance.now() - start) * 1_000);
    look(Buffer.from(response.body).toString('utf8'));
  }
  return median(turns);
}

/** Loads while somebody asks for aggregations, so that every commit brings the counters up to date. */
async function compareIngest(server: SundewServer, context: BenchContext): Promise<Comparison> {
  const documents = ingested[context.tier];
  const batches = await batchBodies(documents, ingestBatchSize, { seed: context.seed, lastSyncLevel: 'full_text' });
  const load = async (indexes: object) => {
    const asking = new AbortController();
    const loaded = ingestOnce(server, 'load', batches, { definition: { schema, indexes } }).finally(() =>
      asking.abort(),
    );
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
