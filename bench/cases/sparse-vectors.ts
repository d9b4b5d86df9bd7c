import type { BenchCase, BenchContext } from '../case.ts';
import { VectorEngineProcess } from '../engines/vector-engine-process.ts';
import { alternate } from '../measure/alternate.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { recallOf } from '../measure/recall.ts';
import { neighbours } from '../workloads/exact-neighbours.ts';
import { type SparseSet, sparseTruth } from '../workloads/sparse-vectors.ts';
import { describeCurves, peerCandidates, recallCurve } from './recall-curve.ts';

const small = { smoke: 2_000, full: 20_000, scale: 20_000 } as const;
/** The larger set beside the small one: what ten times the rows cost. */
const growth = 10;
const queries = 200;
const rounds = { smoke: 1, full: 5, scale: 5 } as const;
/** Ours is exact; equal scores may stand in another order. */
const exactRecall = 0.995;

export const sparseVectors: BenchCase = {
  name: 'sparse-vectors',
  summary: 'ten best of sparse vectors with 90 entries in process, beside zvec, and with ten times the rows',
  run,
};

async function run(context: BenchContext): Promise<Comparison[]> {
  const { placement, tier, seed } = context;
  const set: SparseSet = { rows: small[tier], queries, seed };
  const large: SparseSet = { ...set, rows: set.rows * growth };
  context.progress('exact answers');
  const truth = sparseTruth(set);
  const largeTruth = sparseTruth(large);
  await using ours = new VectorEngineProcess('sundew', placement);
  await using oursLarge = new VectorEngineProcess('sundew', placement);
  await using zvec = new VectorEngineProcess('zvec', placement);
  context.progress('building ours, ours with ten times the rows, then zvec');
  const build = await ours.build({ sparse: set });
  await oursLarge.build({ sparse: large });
  const zvecBuild = await zvec.build({ sparse: set });
  context.progress('searching');
  const exact = (engine: VectorEngineProcess, wanted: readonly number[][]) => async () => {
    const answer = await engine.search({ limit: neighbours, effort: 1, inFlight: 1, rounds: rounds[tier] });
    const recall = recallOf(answer.found, wanted);
    if (recall < exactRecall) throw new Error(`recall ${recall} of an exact index`);
    return answer;
  };
  const peer = () => recallCurve({ engine: zvec, efforts: peerCandidates, truth, rounds: rounds[tier], orBest: true });
  const results = await alternate(
    { ours: exact(ours, truth), large: exact(oursLarge, largeTruth), zvec: peer },
    context.pairs,
  );
  const exponents = results.large.map(({ p50Us }, turn) => {
    return Math.log(p50Us / (results.ours[turn]?.p50Us ?? Number.NaN)) / Math.log(growth);
  });
  const notes = { rows: set.rows, queries, entries: '60 to 120, queries 10 to 40' };
  return [
    compare({
      name: 'beside-zvec',
      unit: 'queries/s',
      ours: results.ours.map(({ perSecond }) => perSecond),
      peer: { name: 'zvec in process at recall 0.95', values: results.zvec.map(({ perSecond }) => perSecond) },
      aim: { kind: 'at_least', value: 5 },
      notes: { ...notes, recall: 'ours exact', peerCurve: describeCurves(results.zvec) },
    }),
    compare({
      name: 'growth',
      unit: 'exponent of the time by the rows',
      ours: exponents,
      aim: { kind: 'at_most', value: 0.95 },
      notes: {
        ...notes,
        largeRows: large.rows,
        p50Us: results.ours[0]?.p50Us ?? 0,
        largeP50Us: results.large[0]?.p50Us ?? 0,
      },
    }),
    compare({
      name: 'build',
      unit: 'vectors/s',
      ours: [set.rows / build.seconds],
      peer: { name: 'zvec, insert and optimize', values: [set.rows / zvecBuild.seconds] },
      notes,
    }),
  ];
}
