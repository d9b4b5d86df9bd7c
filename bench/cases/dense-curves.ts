import type { BenchCase, BenchContext } from '../case.ts';
import { VectorEngineProcess } from '../engines/vector-engine-process.ts';
import { alternate } from '../measure/alternate.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { clusteredVectors } from '../workloads/clustered-vectors.ts';
import { exactNeighbours } from '../workloads/exact-neighbours.ts';
import type { VectorSet } from '../workloads/vector-set.ts';
import { wordVectors } from '../workloads/word-vectors.ts';
import { comparedRecall, describeCurves, ourEfforts, peerCandidates, recallCurve } from './recall-curve.ts';

const wordRows = { smoke: 20_000, full: Number.POSITIVE_INFINITY, scale: Number.POSITIVE_INFINITY } as const;
const wordQueries = { smoke: 200, full: 500, scale: 500 } as const;
const clusteredShapes = {
  smoke: [{ rows: 5_000, dimension: 384 }],
  full: [
    { rows: 20_000, dimension: 384 },
    { rows: 100_000, dimension: 768 },
  ],
  scale: [
    { rows: 100_000, dimension: 384 },
    { rows: 100_000, dimension: 768 },
    { rows: 300_000, dimension: 768 },
  ],
} as const;
const clusteredQueries = 200;
/** Times that all queries are asked at each point of a curve. */
const rounds = { smoke: 1, full: 2, scale: 2 } as const;

export const denseWords: BenchCase = {
  name: 'dense-words',
  summary:
    'ten nearest of word vectors (100 dimensions, cosine) in process, beside hnswlib, usearch and zvec at equal recall',
  async run(context) {
    const { tier } = context;
    context.progress('reading the word vectors');
    return compareEngines(context, 'words', await wordVectors(wordRows[tier], wordQueries[tier]));
  },
};

export const denseClustered: BenchCase = {
  name: 'dense-clustered',
  summary: 'the same with clustered vectors of 384 and 768 dimensions',
  async run(context) {
    const comparisons: Comparison[] = [];
    for (const shape of clusteredShapes[context.tier]) {
      const set = clusteredVectors({ ...shape, queries: clusteredQueries, seed: context.seed });
      comparisons.push(...(await compareEngines(context, `${shape.dimension}d-${shape.rows}`, set)));
    }
    return comparisons;
  },
};

async function compareEngines(context: BenchContext, name: string, set: VectorSet): Promise<Comparison[]> {
  const { placement, tier } = context;
  context.progress(`${name}: exact answers for ${set.queries} queries over ${set.rows} rows`);
  const [truth = []] = exactNeighbours(set);
  await using ours = new VectorEngineProcess('sundew', placement);
  await using hnswlib = new VectorEngineProcess('hnswlib', placement);
  await using usearch = new VectorEngineProcess('usearch', placement);
  await using zvec = new VectorEngineProcess('zvec', placement);
  context.progress(`${name}: building ours, then zvec, hnswlib and usearch`);
  const ourBuild = await ours.build({ dense: set });
  const zvecBuild = await zvec.build({ dense: set });
  await hnswlib.build({ dense: set });
  await usearch.build({ dense: set });
  context.progress(`${name}: searching`);
  const curve = (engine: VectorEngineProcess, efforts: readonly number[]) => () =>
    recallCurve({ engine, efforts, truth, rounds: rounds[tier] });
  const sides = {
    ours: curve(ours, ourEfforts),
    hnswlib: curve(hnswlib, peerCandidates),
    usearch: curve(usearch, peerCandidates),
    zvec: curve(zvec, peerCandidates),
  };
  // An index that was just built is read from its files for the first time.
  await alternate(sides, 1);
  const results = await alternate(sides, context.pairs);
  const rates = (curves: readonly { perSecond: number }[]) => curves.map(({ perSecond }) => perSecond);
  const notes = { rows: set.rows, dimension: set.dimension, queries: set.queries, recall: comparedRecall };
  const beside = (peer: 'hnswlib' | 'usearch' | 'zvec', aim?: number) =>
    compare({
      name: `${name}-beside-${peer}`,
      unit: 'queries/s',
      ours: rates(results.ours),
      peer: { name: `${peer} in process`, values: rates(results[peer]) },
      ...(aim === undefined ? {} : { aim: { kind: 'at_least', value: aim } }),
      notes: { ...notes, ourCurve: describeCurves(results.ours), peerCurve: describeCurves(results[peer]) },
    });
  const build = compare({
    name: `${name}-build`,
    unit: 'vectors/s',
    ours: [set.rows / ourBuild.seconds],
    peer: { name: 'zvec, insert and optimize', values: [set.rows / zvecBuild.seconds] },
    aim: { kind: 'at_least', value: 1.2 },
    notes: { ...notes, turns: 1, recallOfBoth: 'see the curves beside zvec' },
  });
  return [beside('hnswlib', 1.3), beside('usearch', 1), beside('zvec'), build];
}
