import { join } from 'node:path';
import type { Placement } from '../machine/placement.ts';
import { buildExample, exampleProgram } from '../processes/example-program.ts';
import { peerNumber, runPeerScript } from '../processes/peer-script.ts';
import { TemporaryDirectory } from '../processes/temporary-directory.ts';
import type { TextQuery } from '../workloads/text-queries.ts';

const example = 'bare_tantivy';

/**
 * Documents a second of a bare Tantivy index over a document file, in one process with one indexing thread: with one commit at
 * the end, or with a commit and fsync per 1,000 documents.
 */
export async function bareTantivyIngest(options: {
  file: string;
  commits: 'once' | 'per-batch';
  placement: Placement;
}): Promise<number> {
  const commitEvery = options.commits === 'once' ? [] : ['--commit-every', '1000'];
  const [line] = await run([options.file, ...commitEvery], options.placement);
  return peerNumber(line, 'docs_per_s');
}

/** The median time of each query in microseconds, top ten, in process, over an index of the whole document file. */
export async function bareTantivyQueries(options: {
  file: string;
  queries: readonly TextQuery[];
  placement: Placement;
}): Promise<number[]> {
  using directory = new TemporaryDirectory();
  const queryFile = join(directory.path, 'queries.ndjson');
  const lines = options.queries.map(({ kind, field, words }) => JSON.stringify({ kind, field, text: words.join(' ') }));
  await Bun.write(queryFile, `${lines.join('\n')}\n`);
  const [, ...results] = await run([options.file, queryFile], options.placement);
  return results.map((line) => peerNumber(line, 'p50_micros'));
}

/** The program keeps its index in the temporary directory of its environment, here on the same disk as our data. */
async function run(programArguments: readonly string[], placement: Placement): Promise<Record<string, unknown>[]> {
  using directory = new TemporaryDirectory();
  return await runPeerScript({
    name: example,
    command: [exampleProgram(example), ...programArguments],
    placement,
    environment: { TMPDIR: directory.path },
  });
}

/** Builds the program, which costs nothing when it is built already. */
export async function buildBareTantivy(placement: Placement): Promise<void> {
  await buildExample(example, placement);
}
