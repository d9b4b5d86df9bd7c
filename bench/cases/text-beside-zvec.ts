import { join } from 'node:path';
import type { BenchCase, BenchContext } from '../case.ts';
import { textSpeed } from '../engines/text-speed.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { peerNumber, runPeerScript } from '../processes/peer-script.ts';
import { TemporaryDirectory } from '../processes/temporary-directory.ts';
import { documentFile } from '../workloads/document-file.ts';
import { textQueries } from '../workloads/text-queries.ts';

/** zvec takes its time to load documents. */
const indexed = { smoke: 2_000, full: 30_000, scale: 100_000 } as const;
const queriesPerClass = 20;
const repeats = 20;
const peerScript = join(import.meta.dir, '..', 'peers', 'zvec-queries.ts');

export const textBesideZvec: BenchCase = {
  name: 'text-beside-zvec',
  summary: 'top ten of AND and OR queries, both in process, beside zvec',
  run,
};

async function run(context: BenchContext): Promise<Comparison[]> {
  const { placement, seed, tier } = context;
  const documents = indexed[tier];
  const file = await documentFile(documents, seed);
  const queries = textQueries(documents, queriesPerClass, seed).filter(({ kind }) => kind === 'and' || kind === 'or');
  using directory = new TemporaryDirectory();
  const queryFile = join(directory.path, 'queries.ndjson');
  await Bun.write(
    queryFile,
    `${queries.map(({ kind, words }) => JSON.stringify({ kind, text: words.join(' ') })).join('\n')}\n`,
  );
  context.progress('loading zvec and asking it');
  const command = [process.execPath, peerScript, '--file', file, '--queries', queryFile];
  const options = ['--directory', directory.path, '--repeats', String(repeats)];
  const zvec = await runPeerScript({ name: 'zvec', command: [...command, ...options], placement });
  context.progress('asking ours');
  const ours = await textSpeed({ file, queries, filter: [], rounds: repeats, placement });
  return (['and', 'or'] as const).map((kind) => {
    const ofKind = <T>(list: readonly T[]) => list.filter((_, at) => queries[at]?.kind === kind);
    return compare({
      name: kind,
      unit: 'us',
      ours: ofKind(ours).map((time) => time.ours),
      peer: { name: 'zvec', values: ofKind(zvec).map((line) => peerNumber(line, 'p50_micros')) },
      // 1.3 times its speed. Its times hold a call from JavaScript, ours do not: that is a few microseconds.
      aim: { kind: 'at_most', value: 1 / 1.3 },
      notes: { documents, queries: queriesPerClass },
    });
  });
}
