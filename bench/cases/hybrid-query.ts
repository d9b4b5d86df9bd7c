import type { BenchCase, BenchContext } from '../case.ts';
import { VectorEngineProcess } from '../engines/vector-engine-process.ts';
import { alternate } from '../measure/alternate.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { recallOf } from '../measure/recall.ts';
import { clusteredVectors } from '../workloads/clustered-vectors.ts';
import { documentFile } from '../workloads/document-file.ts';
import { exactNeighbours, neighbours } from '../workloads/exact-neighbours.ts';
import { textQueries } from '../workloads/text-queries.ts';

const rows = { smoke: 5_000, full: 100_000, scale: 300_000 } as const;
const dimension = 384;
const queries = 200;
const rounds = { smoke: 1, full: 3, scale: 3 } as const;
/** Best hits of each leg that are fused; the legs alone are asked for as many. */
const window = 100;
const effort = 0.5;
const manyInFlight = 32;
const legNames = ['text', 'vector', 'both'] as const;

export const hybridQuery: BenchCase = {
  name: 'hybrid-query',
  summary: 'text and dense vectors fused by rrf in one query in process, beside its own legs alone',
  run,
};

async function run(context: BenchContext): Promise<Comparison[]> {
  const { placement, tier, seed } = context;
  const set = clusteredVectors({ rows: rows[tier], queries, dimension, seed });
  const [truth = []] = exactNeighbours(set);
  const textFile = await documentFile(set.rows, seed);
  const texts = textQueries(set.rows, queries, seed)
    .filter((query) => query.class === 'or')
    .map(({ words }) => words.join(' '));
  await using engine = new VectorEngineProcess('sundew', placement);
  context.progress('building');
  await engine.build({ dense: set, textFile });
  const ask = (legs: (typeof legNames)[number], inFlight: number) => () => {
    const limit = legs === 'both' ? neighbours : window;
    return engine.search({ limit, window, effort, texts, legs, inFlight, rounds: rounds[tier] });
  };
  await ask('both', 1)();
  context.progress('searching');
  const single = await alternate(
    { text: ask('text', 1), vector: ask('vector', 1), both: ask('both', 1) },
    context.pairs,
  );
  const many = await alternate(
    { text: ask('text', manyInFlight), vector: ask('vector', manyInFlight), both: ask('both', manyInFlight) },
    context.pairs,
  );
  const nearest = single.vector.map(({ found }) => found.map((hits) => hits.slice(0, neighbours)));
  const notes = { rows: set.rows, dimension, window, effort, vectorRecall: recallOf(nearest[0] ?? [], truth) };
  const slower = single.text.map(({ p50Us }, turn) => Math.max(p50Us, single.vector[turn]?.p50Us ?? 0));
  return [
    compare({
      name: 'latency',
      unit: 'us',
      ours: single.both.map(({ p50Us }) => p50Us),
      peer: { name: 'the slower leg alone', values: slower },
      aim: { kind: 'at_most', value: 1.15 },
      notes: { ...notes, textP50Us: single.text[0]?.p50Us ?? 0, vectorP50Us: single.vector[0]?.p50Us ?? 0 },
    }),
    compare({
      name: 'rate-32-in-flight',
      unit: 'queries/s',
      ours: many.both.map(({ perSecond }) => perSecond),
      peer: {
        name: 'both legs, one after the other',
        values: many.text.map(({ perSecond }, turn) => 1 / (1 / perSecond + 1 / (many.vector[turn]?.perSecond ?? 0))),
      },
      aim: { kind: 'at_least', value: 0.9 },
      notes,
    }),
  ];
}
