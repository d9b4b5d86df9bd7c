import type { BenchCase, BenchContext } from '../case.ts';
import { alternate } from '../measure/alternate.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { SundewServer } from '../processes/sundew-server.ts';
import { batchBodies } from '../workloads/batch-bodies.ts';
import { ingestBatchSize, ingestOnce } from './ingest-load.ts';

const sizes = {
  smoke: { small: 5_000, large: 30_000 },
  full: { small: 10_000, large: 300_000 },
  scale: { small: 10_000, large: 1_000_000 },
} as const;

/** A large load takes long and measures itself thirty times over; three pairs are enough for it in the long tiers. */
const pairsMax = { smoke: 2, full: 3, scale: 3 } as const;

export const ingestGrowth: BenchCase = {
  name: 'ingest-growth',
  summary: 'cost of ingesting one document in a large load against a small one, merges and the last commit included',
  run,
};

async function run(context: BenchContext): Promise<Comparison[]> {
  const { small, large } = sizes[context.tier];
  const options = { seed: context.seed, lastSyncLevel: 'full_text' };
  const smallBatches = await batchBodies(small, ingestBatchSize, options);
  const largeBatches = await batchBodies(large, ingestBatchSize, options);
  await using server = await SundewServer.start({ placement: context.placement });
  await ingestOnce(server, 'warm-up', smallBatches);

  let turn = 0;
  let refusals = 0;
  const side = (batches: typeof smallBatches) => async () => {
    turn += 1;
    const result = await ingestOnce(server, `growth-${turn}`, batches);
    refusals += result.refusals;
    return (result.seconds / result.documents) * 1e6;
  };
  const results = await alternate(
    { large: side(largeBatches), small: side(smallBatches) },
    Math.min(context.pairs, pairsMax[context.tier]),
  );
  return [
    compare({
      name: 'cost-per-document',
      unit: 'us/doc',
      ours: results.large,
      peer: { name: `a load of ${small.toLocaleString('en-US')}`, values: results.small },
      aim: { kind: 'at_most', value: 1.3 },
      notes: { documents: large, refusals, residentMiB: server.process.residentBytes() / 2 ** 20 },
    }),
  ];
}
