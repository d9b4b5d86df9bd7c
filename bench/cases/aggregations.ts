import { join } from 'node:path';
import type { BenchCase, BenchContext } from '../case.ts';
import { expectSuccess, HttpConnection, requestBytes } from '../client/http-connection.ts';
import { alternate } from '../measure/alternate.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { median } from '../measure/statistics.ts';
import { peerNumber, runPeerScript } from '../processes/peer-script.ts';
import { SundewServer } from '../processes/sundew-server.ts';
import { aggregationQueries } from '../workloads/aggregation-queries.ts';
import { batchBodies } from '../workloads/batch-bodies.ts';
import { documentFile } from '../workloads/document-file.ts';
import { ingestBatchSize } from './ingest-load.ts';

const indexed = { smoke: 20_000, full: 100_000, scale: 1_000_000 } as const;
/** Each aggregation is asked so often in one turn; its median counts. */
const repeats = 15;
const pairsMax = 3;
const peerScript = join(import.meta.dir, '..', 'peers', 'duckdb-aggregations.ts');

export const aggregations: BenchCase = {
  name: 'aggregations',
  summary: 'terms, stats and histogram over every document over HTTP, beside DuckDB in process',
  run,
};

async function run(context: BenchContext): Promise<Comparison[]> {
  const { placement, seed } = context;
  const documents = indexed[context.tier];
  const file = await documentFile(documents, seed);
  await using server = await SundewServer.start({ placement });
  await server.createTable('texts');
  context.progress(`loading ${documents} documents`);
  await server.load('texts', await batchBodies(documents, ingestBatchSize, { seed, lastSyncLevel: 'full_text' }));
  await askAll(server.port, documents);

  context.progress('asking');
  const command = [process.execPath, peerScript, '--file', file, '--repeats', String(repeats)];
  const results = await alternate(
    {
      ours: () => server.process.alone(() => askAll(server.port, documents)),
      duckdb: async () => (await runPeerScript({ name: 'DuckDB', command, placement }))[0],
    },
    Math.min(context.pairs, pairsMax),
  );
  return aggregationQueries.map(({ name }, index) =>
    compare({
      name,
      unit: 'us',
      ours: results.ours.map((times) => times[index] ?? Number.NaN),
      peer: { name: 'DuckDB in process', values: results.duckdb.map((line) => peerNumber(line, name)) },
      notes: { documents },
    }),
  );
}

/** The median round trip of each aggregation in microseconds. */
async function askAll(port: number, documents: number): Promise<number[]> {
  const connection = await HttpConnection.open(port);
  const times: number[] = [];
  for (const { aggregations } of aggregationQueries) {
    const message = requestBytes('POST', '/db/v1/tables/texts/query', JSON.stringify({ limit: 0, aggregations }));
    const turns: number[] = [];
    for (let repeat = 0; repeat < repeats; repeat += 1) {
      const start = performance.now();
      const response = expectSuccess(await connection.send(message));
      turns.push((performance.now() - start) * 1_000);
      checkTotal(response.body, documents);
    }
    times.push(median(turns));
  }
  connection.close();
  return times;
}

/** An aggregation over a part of the documents would be quick for nothing. */
function checkTotal(body: Uint8Array, documents: number): void {
  const text = Buffer.from(body).toString('utf8');
  if (!text.includes(`"value":${documents},"relation":"exact"`))
    throw new Error(`not all documents: ${text.slice(0, 200)}`);
}
