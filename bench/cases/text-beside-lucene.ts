import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { BenchCase, BenchContext } from '../case.ts';
import { luceneSpeed } from '../engines/lucene-speed.ts';
import { ourTextSpeed } from '../engines/text-speed.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { findJava } from '../processes/java.ts';
import { TemporaryDirectory } from '../processes/temporary-directory.ts';
import { documentFile } from '../workloads/document-file.ts';
import { type ClassedQuery, classedQueries, queryClassNames, tagOf } from '../workloads/query-classes.ts';

const indexed = { smoke: 20_000, full: 100_000, scale: 1_000_000 } as const;
const queriesPerClass = { smoke: 10, full: 20, scale: 20 } as const;
const rounds = { smoke: 40, full: 100, scale: 40 } as const;

export const textBesideLucene: BenchCase = {
  name: 'text-beside-lucene',
  summary: 'top ten of each class of text query, filter and order in the engine alone, beside Lucene 10',
  run,
};

async function run(context: BenchContext): Promise<Comparison[]> {
  const { placement, seed, tier } = context;
  const found = await findJava();
  if ('missing' in found) {
    context.progress(`LEFT OUT: ${found.missing}`);
    return [];
  }
  using directory = new TemporaryDirectory();
  const documents = join(directory.path, 'documents.ndjson');
  const bodies = await writeTagged(await documentFile(indexed[tier], seed), documents, queriesPerClass[tier]);
  const queries = classedQueries(bodies, queriesPerClass[tier], seed);
  const queryFile = join(directory.path, 'queries.ndjson');
  await Bun.write(queryFile, `${queries.map((query) => JSON.stringify(lineOf(query))).join('\n')}\n`);
  const common = { documents, queries: queryFile, rounds: rounds[tier], placement };
  context.progress('Lucene: indexing, then asking as merged and with one segment');
  const lucene = await luceneSpeed({ ...common, java: found.java });
  context.progress('ours: the same');
  const ours = await ourTextSpeed({ ...common, schema: null });
  context.progress('ours, its fields declared as the forms that the Java program gives Lucene');
  const declared = await ourTextSpeed({ ...common, schema: luceneForms });
  const notes = { documents: indexed[tier], queries: queriesPerClass[tier] };
  const times = queryClassNames.flatMap((name) => {
    const of = <Time>(list: readonly Time[]) => list.filter((_, at) => queries[at]?.class === name);
    const beside = (form: 'one' | 'merged', aim: number, { suffix = '', times = ours.queries } = {}) =>
      compare({
        name: `${name}${suffix}`,
        unit: 'us',
        ours: of(times),
        peer: {
          name: form === 'one' ? 'Lucene, one segment' : 'Lucene as merged by itself',
          values: of(lucene.queries).map((each) => each[form]),
        },
        aim: { kind: 'at_most', value: aim },
        notes,
      });
    const compared = [beside('one', 0.85), beside('merged', 0.7, { suffix: '-as-merged' })];
    // Whole strings that begin with the prefix are matches too, where nothing is declared: Lucene's program has none.
    if (!name.startsWith('prefix')) return compared;
    return [...compared, beside('one', 0.85, { suffix: '-as-declared', times: declared.queries })];
  });
  const bytes = (name: string, each: { bytes: number }) =>
    compare({
      name,
      unit: 'B/doc',
      ours: [each.bytes / indexed[tier]],
      peer: { name: 'Lucene, without stored fields', values: [lucene.bytes / indexed[tier]] },
      aim: { kind: 'at_most', value: 1.1 },
      notes,
    });
  return [...times, bytes('bytes', ours), bytes('bytes-as-declared', declared)];
}

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
