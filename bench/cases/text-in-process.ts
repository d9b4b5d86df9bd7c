import type { BenchCase, BenchContext } from '../case.ts';
import { textSpeed } from '../engines/text-speed.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { documentFile } from '../workloads/document-file.ts';
import { queryClasses, textQueries } from '../workloads/text-queries.ts';

const indexed = { smoke: 20_000, full: 100_000, scale: 1_000_000 } as const;
const queriesPerClass = { smoke: 10, full: 20, scale: 20 } as const;
const rounds = { smoke: 20, full: 40, scale: 20 } as const;
/** One of the 75 years that documents are spread over evenly. */
const onePercent = [{ kind: 'range', field: 'year', gte: 1950, lt: 1951 }];
/** 0.95 of bare Tantivy's speed, as a ratio of times. */
const besideTantivy = { kind: 'at_most', value: 1 / 0.95 } as const;

export const textInProcess: BenchCase = {
  name: 'text-in-process',
  summary: 'top ten of AND, OR, phrase and prefix queries in the engine alone, beside bare Tantivy in the same process',
  run,
};

export const filterOnePercent: BenchCase = {
  name: 'filter-1-percent',
  summary: 'OR queries under a filter that keeps 1 of 75 documents, beside the same without it, in the engine alone',
  run: runFiltered,
};

/** The sides alternate inside the program; a pair is a query. */
async function speeds(context: BenchContext) {
  const { placement, seed, tier } = context;
  const documents = indexed[tier];
  const queries = textQueries(documents, queriesPerClass[tier], seed);
  context.progress(`indexing ${documents} documents twice, then asking`);
  const file = await documentFile(documents, seed);
  const times = await textSpeed({ file, queries, filter: onePercent, rounds: rounds[tier], placement });
  return queries.map(({ class: queryClass }, at) => {
    const time = times[at];
    if (time === undefined) throw new Error('the program answered fewer queries than it was given');
    return { queryClass, ...time };
  });
}

async function run(context: BenchContext): Promise<Comparison[]> {
  const times = await speeds(context);
  const notes = { documents: indexed[context.tier], queries: queriesPerClass[context.tier] };
  return queryClasses.flatMap((queryClass) => {
    const of = times.filter((time) => time.queryClass === queryClass);
    const beside = (name: string, ours: number[]) =>
      compare({
        name,
        unit: 'us',
        ours,
        peer: { name: 'bare Tantivy', values: of.map(({ bare }) => bare) },
        aim: besideTantivy,
        notes,
      });
    return [
      beside(
        queryClass,
        of.map(({ ours }) => ours),
      ),
      beside(
        `${queryClass}-uncounted`,
        of.map(({ uncounted }) => uncounted),
      ),
    ];
  });
}

async function runFiltered(context: BenchContext): Promise<Comparison[]> {
  const times = await speeds(context);
  return (['or', 'or-4'] as const).map((queryClass) => {
    const of = times.filter((time) => time.queryClass === queryClass);
    return compare({
      name: queryClass,
      unit: 'us',
      ours: of.map(({ filtered }) => filtered),
      peer: { name: 'without the filter', values: of.map(({ ours }) => ours) },
      aim: { kind: 'at_most', value: 1 },
      notes: { documents: indexed[context.tier], queries: queriesPerClass[context.tier] },
    });
  });
}
