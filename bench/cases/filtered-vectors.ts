import type { BenchCase, BenchContext } from '../case.ts';
import { VectorEngineProcess } from '../engines/vector-engine-process.ts';
import { alternate } from '../measure/alternate.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { clusteredVectors } from '../workloads/clustered-vectors.ts';
import { exactNeighbours, neighbours } from '../workloads/exact-neighbours.ts';
import type { VectorFilter } from '../workloads/vector-set.ts';
import { comparedRecall, describeCurves, ourEfforts, peerCandidates, recallCurve } from './recall-curve.ts';

const rows = { smoke: 5_000, full: 100_000, scale: 300_000 } as const;
const dimension = 384;
const queries = 200;
const pairsMax = 3;
/** Rows kept of a thousand. */
const kept = [500, 200, 100, 50, 10, 1] as const;
const filters: (VectorFilter | undefined)[] = [
  undefined,
  ...(['independent', 'correlated'] as const).flatMap((field) => kept.map((below) => ({ field, below }))),
];

export const filteredVectors: BenchCase = {
  name: 'filtered-vectors',
  summary: 'ten nearest of the rows that a filter keeps, 50 to 0.1 %, independent of the clusters and along them',
  run,
};

async function run(context: BenchContext): Promise<Comparison[]> {
  const { placement, tier, seed } = context;
  const set = clusteredVectors({ rows: rows[tier], queries, dimension, seed });
  context.progress('exact answers for every filter');
  const truths = exactNeighbours(set, filters);
  await using ours = new VectorEngineProcess('sundew', placement);
  await using zvec = new VectorEngineProcess('zvec', placement);
  context.progress('building ours, then zvec');
  await ours.build({ dense: set });
  await zvec.build({ dense: set });
  context.progress('every filter once, untimed: what an engine remembers of a filter is there afterwards');
  for (const filter of filters) {
    const filtered = filter ? { filter } : {};
    await ours.search({ limit: neighbours, effort: ourEfforts[0], inFlight: 1, rounds: 1, ...filtered });
    await zvec.search({ limit: neighbours, effort: peerCandidates[0], inFlight: 1, rounds: 1, ...filtered });
  }
  context.progress('searching');
  const curves = (engine: VectorEngineProcess, efforts: readonly number[], orBest: boolean) => async () => {
    const found = [];
    for (const [at, filter] of filters.entries()) {
      const filtered = filter ? { filter } : {};
      found.push(await recallCurve({ engine, efforts, truth: truths[at] ?? [], rounds: 1, orBest, ...filtered }));
    }
    return found;
  };
  const results = await alternate(
    { ours: curves(ours, ourEfforts, false), zvec: curves(zvec, peerCandidates, true) },
    Math.min(context.pairs, pairsMax),
  );
  const rates = (side: 'ours' | 'zvec', at: number) => results[side].map((turn) => turn[at]?.perSecond ?? Number.NaN);
  const worst = (side: 'ours' | 'zvec') =>
    results[side].map((turn) => Math.min(...turn.slice(1).map(({ perSecond }) => perSecond)));
  const notes = { rows: set.rows, dimension, queries, recall: comparedRecall };
  const beside = filters.map((filter, at) =>
    compare({
      name: filter ? `${filter.field}-${filter.below / 10}%` : 'unfiltered',
      unit: 'queries/s',
      ours: rates('ours', at),
      peer: { name: 'zvec in process', values: rates('zvec', at) },
      notes: {
        ourCurve: describeCurves(results.ours.flatMap((turn) => turn[at] ?? [])),
        peerCurve: describeCurves(results.zvec.flatMap((turn) => turn[at] ?? [])),
      },
    }),
  );
  const worstOf = (side: 'ours' | 'zvec', aim?: number) =>
    compare({
      name: side === 'ours' ? 'worst-filter' : 'worst-filter-zvec',
      unit: 'queries/s',
      ours: worst(side),
      peer: { name: 'the same without a filter', values: rates(side, 0) },
      ...(aim === undefined ? {} : { aim: { kind: 'at_least', value: aim } }),
      notes,
    });
  return [worstOf('ours', 0.5), worstOf('zvec'), ...beside];
}
