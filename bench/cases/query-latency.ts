import type { BenchCase, BenchContext } from '../case.ts';
import { requestBytes } from '../client/http-connection.ts';
import { medianRoundTrips } from '../client/round-trips.ts';
import { alternate } from '../measure/alternate.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { percentile } from '../measure/statistics.ts';
import { bareTantivyQueries, buildBareTantivy } from '../peers/bare-tantivy.ts';
import { SundewServer } from '../processes/sundew-server.ts';
import { batchBodies } from '../workloads/batch-bodies.ts';
import { documentFile } from '../workloads/document-file.ts';
import { queryClasses, queryString, type TextQuery, textQueries } from '../workloads/text-queries.ts';
import { ingestBatchSize } from './ingest-load.ts';

const indexed = { smoke: 20_000, full: 100_000, scale: 1_000_000 } as const;
const queriesPerClass = { smoke: 12, full: 20, scale: 20 } as const;
/** Each query is asked so often in one turn; its median counts. */
const repeats = 5;
/** The peer indexes the whole file again for each turn, and its times vary little. */
const pairsMax = 2;

export const queryLatency: BenchCase = {
  name: 'query-latency',
  summary: 'top ten of AND, OR, phrase and prefix queries over HTTP, one after another, beside bare Tantivy in process',
  run,
};

async function run(context: BenchContext): Promise<Comparison[]> {
  const { placement, seed } = context;
  const documents = indexed[context.tier];
  const queries = textQueries(documents, queriesPerClass[context.tier], seed);
  const file = await documentFile(documents, seed);
  await buildBareTantivy(placement);
  await using server = await SundewServer.start({ placement });
  await server.createTable('texts');
  context.progress(`loading ${documents} documents`);
  await server.load('texts', await batchBodies(documents, ingestBatchSize, { seed, lastSyncLevel: 'full_text' }));
  await askAll(server.port, queries);

  context.progress('asking');
  const results = await alternate(
    {
      ours: () => server.process.alone(() => askAll(server.port, queries)),
      bare: () => bareTantivyQueries({ file, queries, placement }),
    },
    Math.min(context.pairs, pairsMax),
  );
  return queryClasses.map((queryClass) => {
    const of = (times: readonly number[]) => times.filter((_, index) => queries[index]?.class === queryClass);
    const slowest = Math.max(...results.ours.flatMap(of));
    return compare({
      name: queryClass,
      unit: 'us',
      ours: results.ours.map((times) => percentile(of(times), 0.5)),
      peer: { name: 'bare Tantivy in process', values: results.bare.map((times) => percentile(of(times), 0.5)) },
      notes: { documents, queries: queriesPerClass[context.tier], slowestQueryUs: slowest },
    });
  });
}

/** The median round trip of each query in microseconds, in the order of the queries. */
function askAll(port: number, queries: readonly TextQuery[]): Promise<number[]> {
  const messages = queries.map((query) => {
    const request = { full_text_search: { query: queryString(query) }, fields: ['title'], limit: 10 };
    return requestBytes('POST', '/db/v1/tables/texts/query', JSON.stringify(request));
  });
  return medianRoundTrips(port, messages, repeats);
}
