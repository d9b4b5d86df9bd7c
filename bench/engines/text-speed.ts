import { join } from 'node:path';
import type { Placement } from '../machine/placement.ts';
import { buildExample, exampleProgram } from '../processes/example-program.ts';
import { peerNumber, runPeerScript } from '../processes/peer-script.ts';
import { TemporaryDirectory } from '../processes/temporary-directory.ts';
import type { TextQuery } from '../workloads/text-queries.ts';
import { TextEngineProcess } from './text-engine-process.ts';

const example = 'text_speed';

/** The median times of one query in microseconds, both sides in one process, in turns. */
export interface TextSpeed {
  ours: number;
  /** Ours without counting matches, as Tantivy's own collector does not. */
  uncounted: number;
  bare: number;
  /** Ours under the filter. */
  filtered: number;
}

/** Times for each query over the engine alone: no HTTP, no JavaScript, no stored documents. */
export async function textSpeed(options: {
  file: string;
  queries: readonly TextQuery[];
  /** Conditions of a plan, for every query. */
  filter: readonly unknown[];
  rounds: number;
  placement: Placement;
}): Promise<TextSpeed[]> {
  const { file, queries, filter, rounds, placement } = options;
  await buildExample(example, placement);
  using directory = new TemporaryDirectory();
  const queryFile = join(directory.path, 'queries.ndjson');
  const lines = queries.map(({ class: queryClass, kind, field, words }) =>
    JSON.stringify({ class: queryClass, kind, field, text: words.join(' '), filter }),
  );
  await Bun.write(queryFile, `${lines.join('\n')}\n`);
  const [, ...results] = await runPeerScript({
    name: example,
    command: [exampleProgram(example), file, queryFile, '--rounds', String(rounds)],
    placement,
    environment: { TMPDIR: directory.path },
  });
  return results.map((line) => ({
    ours: peerNumber(line, 'ours_us'),
    uncounted: peerNumber(line, 'uncounted_us'),
    bare: peerNumber(line, 'bare_us'),
    filtered: peerNumber(line, 'filtered_us'),
  }));
}

/** One index of ours alone. The files are given; without a table's `schema` every form of a value is indexed. */
export async function startOurText(options: {
  documents: string;
  queries: string;
  schema: object | null;
  placement: Placement;
}): Promise<TextEngineProcess> {
  const { documents, queries, schema, placement } = options;
  await buildExample(example, placement);
  const ours = [exampleProgram(example), documents, queries, '--ours-only', '--schema', JSON.stringify(schema)];
  return TextEngineProcess.start({ name: example, command: () => ours, placement });
}
