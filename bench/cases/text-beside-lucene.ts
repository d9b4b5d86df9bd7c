import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { BenchCase, BenchContext } from '../case.ts';
import { type LuceneForm, startLucene } from '../engines/lucene-speed.ts';
import type { TextEngineProcess } from '../engines/text-engine-process.ts';
import { startOurText } from '../engines/text-speed.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { mirroredTurns, pairedCost } from '../measure/paired-turns.ts';
import { findJava } from '../processes/java.ts';
import { TemporaryDirectory } from '../processes/temporary-directory.ts';
import { documentFile } from '../workloads/document-file.ts';
import { type ClassedQuery, classedQueries, queryClassNames, tagOf } from '../workloads/query-classes.ts';

const indexed = { smoke: 20_000, full: 100_000, scale: 1_000_000 } as const;
const queriesPerClass = { smoke: 10, full: 20, scale: 20 } as const;
/** The compilers of the runtime work beside the first rounds. */
const warmUpRounds = { smoke: 40, full: 100, scale: 10 } as const;
/** Laps of two turns a side, and rounds over all queries to a turn: a fraction of a second, some at a million documents. */
const laps = { smoke: 4, full: 20, scale: 6 } as const;
const roundsPerTurn = { smoke: 5, full: 5, scale: 2 } as const;

export const textBesideLucene: BenchCase = {
  name: 'text-beside-lucene',
  summary: 'top ten of each class of text query, filter and order in the engine alone, beside Lucene 10',
  run,
};

async function run(context: BenchContext): Promise<Comparison[]> {
  const { placement, seed, tier, documents = indexed[tier] } = context;
  const found = await findJava();
  if ('missing' in found) {
    context.progress(`LEFT OUT: ${found.missing}`);
    return [];
  }
  using directory = new TemporaryDirectory();
  const documentsPath = join(directory.path, 'documents.ndjson');
  const bodies = await writeTagged(await documentFile(documents, seed), documentsPath, queriesPerClass[tier]);
  const queries = classedQueries(bodies, queriesPerClass[tier], seed);
  const queryFile = join(directory.path, 'queries.ndjson');
  await Bun.write(queryFile, `${queries.map((query) => JSON.stringify(lineOf(query))).join('\n')}\n`);
  const common = { documents: documentsPath, queries: queryFile, placement };
  context.progress('Lucene is indexing');
  await using lucene = await startLucene({ ...common, java: found.java });
  context.progress('ours is indexing');
  await using ours = await startOurText({ ...common, schema: null });
  context.progress('ours is indexing, with fields declared as the forms that the Java program gives Lucene');
  await using declared = await startOurText({ ...common, schema: luceneForms });
  const times = await askInTurns(context, { lucene, ours, declared });
  const notes = {
    documents,
    queries: queriesPerClass[tier],
    segments: ours.segments,
    segmentsOfLuceneAsMerged: lucene.segments,
  };
  const compared = queryClassNames.flatMap((name) => {
    const beside = (form: LuceneForm, aim: number, { suffix = '', side = times.ours } = {}) => {
      const ofClass = queries.flatMap((query, at) => (query.class === name ? [at] : []));
      const costs = ofClass.map((at) => pairedCost(figure(side, at), figure(times[form], at)));
      return compare({
        name: `${name}${suffix}`,
        unit: 'us',
        ours: costs.map((cost) => cost.ours),
        peer: {
          name: form === 'one' ? 'Lucene, one segment' : 'Lucene as merged by itself',
          values: costs.map((cost) => cost.peer),
        },
        aim: { kind: 'at_most', value: aim },
        notes,
      });
    };
    const both = [beside('one', 0.85), beside('merged', 0.7, { suffix: '-as-merged' })];
    // Whole strings that begin with the prefix are matches too, where nothing is declared: Lucene's program has none.
    if (!name.startsWith('prefix')) return both;
    return [...both, beside('one', 0.85, { suffix: '-as-declared', side: times.declared })];
  });
  const bytes = (name: string, each: { bytes: number }) =>
    compare({
      name,
      unit: 'B/doc',
      ours: [each.bytes / documents],
      peer: { name: 'Lucene, without stored fields', values: [lucene.bytes / documents] },
      aim: { kind: 'at_most', value: 1.1 },
      notes,
    });
  return [...compared, bytes('bytes', ours), bytes('bytes-as-declared', declared)];
}

/** By lap, the time of each query: the sum of two turns. */
async function askInTurns(
  { tier, progress }: BenchContext,
  engines: Record<'lucene' | 'ours' | 'declared', TextEngineProcess>,
): Promise<Record<LuceneForm | 'ours' | 'declared', number[][]>> {
  const { lucene, ours, declared } = engines;
  const sides = (rounds: number) => ({
    one: () => lucene.ask(rounds, 'one'),
    merged: () => lucene.ask(rounds, 'merged'),
    ours: () => ours.ask(rounds),
    declared: () => declared.ask(rounds),
  });
  progress('warming up');
  await mirroredTurns(sides(Math.ceil(warmUpRounds[tier] / 2)), 1);
  progress('asking in turns');
  return mirroredTurns(sides(roundsPerTurn[tier]), laps[tier]);
}

/** Of one query, by lap. */
const figure = (laps: readonly (readonly number[])[], at: number) => laps.map((lap) => lap[at] ?? Number.NaN);

const typed = (type: string, form: string) => ({ type, 'x-service-types': [form] });

/** A text field of Lucene has no values to order by. */
const wordsOnly = { ...typed('string', 'text'), 'x-service-doc-values': false };

const luceneForms = {
  default_type: 'document',
  document_schemas: {
    document: {
      schema: {
        type: 'object',
        properties: {
          title: wordsOnly,
          body: wordsOnly,
          year: typed('integer', 'numeric'),
          category: typed('string', 'keyword'),
          tag: typed('string', 'keyword'),
        },
      },
    },
  },
};

/** The input of both programs: members of a plan for ours, plain members for the other. */
function lineOf({ class: queryClass, kind, words, filter, sort }: ClassedQuery): Record<string, unknown> {
  const line = { class: queryClass, kind, field: 'body', text: words.join(' ') };
  const ordered = sort === undefined ? {} : { sort: [{ field: sort, desc: true }], sort_field: sort };
  if (filter === undefined) return { ...line, ...ordered };
  if ('tag' in filter) {
    const condition = { kind: 'term', field: 'tag', value: filter.tag };
    return { ...line, ...ordered, filter: [condition], filter_keyword: filter.tag };
  }
  const condition = { kind: 'range', field: 'year', gte: filter.from, lt: filter.end };
  return { ...line, ...ordered, filter: [condition], filter_from: filter.from, filter_end: filter.end };
}

/** Copies the documents, each with a tag; returns the bodies of some, evenly apart. */
async function writeTagged(from: string, to: string, bodyCount: number): Promise<string[]> {
  const lines = createInterface({ input: createReadStream(from) });
  const writer = Bun.file(to).writer({ highWaterMark: 4 << 20 });
  const bodies: string[] = [];
  let number = 0;
  for await (const line of lines) {
    writer.write(`${line.slice(0, -1)},"tag":"${tagOf(number)}"}\n`);
    if (number % 997 === 0 && bodies.length < bodyCount) bodies.push((JSON.parse(line) as { body: string }).body);
    number += 1;
    if (number % 10_000 === 0) await writer.flush();
  }
  await writer.end();
  return bodies;
}
