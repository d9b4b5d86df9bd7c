import type { BenchCase, BenchContext } from '../case.ts';
import { closedLoop } from '../client/closed-loop.ts';
import { requestBytes } from '../client/http-connection.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { SundewServer } from '../processes/sundew-server.ts';
import { batchBodies } from '../workloads/batch-bodies.ts';
import { ingestBatchSize } from './ingest-load.ts';

const indexed = { smoke: 20_000, full: 200_000, scale: 1_000_000 } as const;
const roundMs = { smoke: 400, full: 2_000, scale: 4_000 } as const;
const idleBeforeMs = { smoke: 300, full: 1_500, scale: 3_000 } as const;

export const visibleWrite: BenchCase = {
  name: 'visible-write',
  summary: 'one document with sync_level full_text on a large index at idle: time until it is durable and searchable',
  run,
};

async function run(context: BenchContext): Promise<Comparison[]> {
  const documents = indexed[context.tier];
  const batches = await batchBodies(documents, ingestBatchSize, { seed: context.seed, lastSyncLevel: 'full_text' });
  await using server = await SundewServer.start({ placement: context.placement });
  await server.createTable('texts');
  context.progress(`loading ${documents} documents`);
  await server.load('texts', batches);

  const body = 'a new document that somebody will look for at once, written while nothing else is going on';
  let number = 0;
  const nextMessage = () => {
    number += 1;
    const insert = `{"inserts":{"new:${number}":{"title":"note ${number}","body":"${body}"}},"sync_level":"full_text"}`;
    return requestBytes('POST', '/db/v1/tables/texts/batch', insert);
  };
  const p50: number[] = [];
  const p99: number[] = [];
  for (let round = 0; round < context.pairs; round += 1) {
    await Bun.sleep(idleBeforeMs[context.tier]);
    const result = await closedLoop({ port: server.port, clients: 1, durationMs: roundMs[context.tier], nextMessage });
    p50.push(result.p50Us / 1_000);
    p99.push(result.p99Us / 1_000);
  }
  const notes = { indexedDocuments: documents, clients: 1 };
  return [
    compare({ name: 'p50', unit: 'ms', ours: p50, aim: { kind: 'at_most', value: 4 }, notes }),
    compare({ name: 'p99', unit: 'ms', ours: p99, notes }),
  ];
}
