import type { BenchCase, BenchContext } from '../case.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { SundewServer } from '../processes/sundew-server.ts';
import { batchBodies } from '../workloads/batch-bodies.ts';
import { queryString, textQueries } from '../workloads/text-queries.ts';
import { ingestBatchSize } from './ingest-load.ts';

const indexed = { smoke: 20_000, full: 100_000, scale: 1_000_000 } as const;

export const firstQuery: BenchCase = {
  name: 'first-query',
  summary: 'from the start of a process on a loaded table to the answer of its first query',
  run,
};

async function run(context: BenchContext): Promise<Comparison[]> {
  const { placement, seed, tier, pairs } = context;
  const documents = indexed[tier];
  await using server = await SundewServer.start({ placement });
  await server.createTable('texts');
  context.progress(`loading ${documents} documents`);
  await server.load('texts', await batchBodies(documents, ingestBatchSize, { seed, lastSyncLevel: 'full_text' }));
  const [query] = textQueries(documents, 1, seed);
  if (query === undefined) throw new Error('no query');
  const body = JSON.stringify({ full_text_search: { query: queryString(query) }, limit: 10 });
  const times: number[] = [];
  for (let turn = 0; turn < pairs; turn += 1) {
    const started = await server.restart({ placement });
    await server.request('POST', '/db/v1/tables/texts/query', body);
    times.push(performance.now() - started);
  }
  const notes = { documents };
  return [compare({ name: 'answered', unit: 'ms', ours: times, aim: { kind: 'at_most', value: 120 }, notes })];
}
