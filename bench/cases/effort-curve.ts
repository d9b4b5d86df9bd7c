import type { BenchCase, BenchContext } from '../case.ts';
import { VectorEngineProcess } from '../engines/vector-engine-process.ts';
import { alternate } from '../measure/alternate.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { recallOf } from '../measure/recall.ts';
import { clusteredVectors, hardQueries } from '../workloads/clustered-vectors.ts';
import { exactNeighbours, neighbours } from '../workloads/exact-neighbours.ts';

const rows = { smoke: 5_000, full: 100_000, scale: 300_000 } as const;
/** Few enough that the greatest effort compares all of them by their codes. */
const scannedRows = 20_000;
const dimension = 384;
const queries = 200;
const efforts = [0.5, 0.6, 0.7, 0.8, 0.9, 1] as const;

export const effortCurve: BenchCase = {
  name: 'effort-curve',
  summary: 'ten nearest for queries far from all rows, by effort; and the speed of a scan of codes',
  run,
};

async function run({ placement, tier, seed, pairs, progress }: BenchContext): Promise<Comparison[]> {
  const set = hardQueries(clusteredVectors({ rows: rows[tier], queries, dimension, seed }), seed);
  const scanned = hardQueries(clusteredVectors({ rows: scannedRows, queries, dimension, seed }), seed);
  progress('exact answers');
  const [truth = []] = exactNeighbours(set);
  await using engine = new VectorEngineProcess('sundew', placement);
  await using scanning = new VectorEngineProcess('sundew', placement);
  progress('building');
  await engine.build({ dense: set });
  await scanning.build({ dense: scanned });
  progress('searching');
  const asked = (process: VectorEngineProcess, effort: number) => () =>
    process.search({ limit: neighbours, effort, inFlight: 1, rounds: 1 });
  const turns = await alternate(
    {
      ...Object.fromEntries(efforts.map((effort) => [`effort-${effort}`, asked(engine, effort)])),
      scan: asked(scanning, 1),
    },
    pairs,
  );
  const notes = { rows: set.rows, dimension, queries };
  const curve = Object.entries(turns).flatMap(([name, answers]) => {
    if (name === 'scan') return [];
    const recall = Math.max(...answers.map(({ found }) => recallOf(found, truth)));
    return [compare({ name, unit: 'us', ours: answers.map(({ p50Us }) => p50Us), notes: { ...notes, recall } })];
  });
  const gigabytes = turns.scan?.map(({ p50Us }) => (scannedRows * dimension) / p50Us / 1_000) ?? [];
  return [
    ...curve,
    compare({
      name: 'scan',
      unit: 'GB/s of codes, rescoring included',
      ours: gigabytes,
      aim: { kind: 'at_least', value: 10 },
      notes: { rows: scannedRows, dimension, queries },
    }),
  ];
}
