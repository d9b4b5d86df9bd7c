import type { BenchCase, BenchContext } from '../case.ts';
import { expectSuccess, HttpConnection, requestBytes } from '../client/http-connection.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { percentile } from '../measure/statistics.ts';
import { SundewServer } from '../processes/sundew-server.ts';
import { batchBodies } from '../workloads/batch-bodies.ts';
import { queryClasses, textQueries } from '../workloads/text-queries.ts';
import { ingestBatchSize } from './ingest-load.ts';

const indexed = { smoke: 20_000, full: 100_000, scale: 1_000_000 } as const;
const queriesPerClass = { smoke: 40, full: 300, scale: 300 } as const;

export const queryLatency: BenchCase = {
  name: 'query-latency',
  summary: 'top ten of AND, OR, phrase and prefix queries over HTTP, one after another',
  run,
};

async function run(context: BenchContext): Promise<Comparison[]> {
  const documents = indexed[context.tier];
  await using server = await SundewServer.start({ placement: context.placement });
  await server.createTable('texts');
  context.progress(`loading ${documents} documents`);
  await server.load(
    'texts',
    await batchBodies(documents, ingestBatchSize, { seed: context.seed, lastSyncLevel: 'full_text' }),
  );
  const queries = textQueries(documents, queriesPerClass[context.tier], context.seed);
  const messages = queries.map((query) => ({
    class: query.class,
    message: requestBytes(
      'POST',
      '/db/v1/tables/texts/query',
      JSON.stringify({ full_text_search: { query: query.text }, fields: ['title'], limit: 10 }),
    ),
  }));

  const connection = await HttpConnection.open(server.port);
  const p50 = new Map<string, number[]>();
  const p99 = new Map<string, number[]>();
  for (let round = 0; round <= context.pairs; round += 1) {
    const times = new Map<string, number[]>();
    for (const { class: queryClass, message } of messages) {
      const start = performance.now();
      expectSuccess(await connection.send(message));
      push(times, queryClass, (performance.now() - start) * 1_000);
    }
    if (round === 0) continue; // the first round warms up
    for (const [queryClass, values] of times) {
      push(p50, queryClass, percentile(values, 0.5));
      push(p99, queryClass, percentile(values, 0.99));
    }
  }
  connection.close();
  return queryClasses.map((queryClass) =>
    compare({
      name: queryClass,
      unit: 'us',
      ours: p50.get(queryClass) ?? [],
      notes: { documents, queries: queriesPerClass[context.tier], p99Us: Math.max(...(p99.get(queryClass) ?? [])) },
    }),
  );
}

function push(lists: Map<string, number[]>, name: string, value: number): void {
  const list = lists.get(name);
  if (list) list.push(value);
  else lists.set(name, [value]);
}
