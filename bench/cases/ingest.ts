import { join } from 'node:path';
import type { BenchCase, BenchContext } from '../case.ts';
import { alternate } from '../measure/alternate.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { bareTantivyIngest, buildBareTantivy } from '../peers/bare-tantivy.ts';
import { peerNumber, runPeerScript } from '../processes/peer-script.ts';
import { SundewServer } from '../processes/sundew-server.ts';
import { TemporaryDirectory } from '../processes/temporary-directory.ts';
import { batchBodies } from '../workloads/batch-bodies.ts';
import { type Corpus, documentFile } from '../workloads/document-file.ts';
import { ingestBatchSize, ingestOnce } from './ingest-load.ts';

const documentCounts = {
  zipf: { smoke: 5_000, full: 100_000, scale: 1_000_000 },
  wordnet: { smoke: 5_000, full: 117_000, scale: 117_000 },
} as const;
const fts5Script = join(import.meta.dir, '..', 'peers', 'fts5-ingest.ts');

export const ingest: BenchCase = {
  name: 'ingest',
  summary: 'durable text ingest over HTTP in batches of 1,000, until searchable, beside bare Tantivy and SQLite FTS5',
  run: (context) => run(context, 'zipf'),
};

export const ingestWordnet: BenchCase = {
  name: 'ingest-wordnet',
  summary: "the same with real text: the definitions of WordNet's 117,791 senses",
  run: (context) => run(context, 'wordnet'),
};

async function run(context: BenchContext, corpus: Corpus): Promise<Comparison[]> {
  const { placement } = context;
  const count = documentCounts[corpus][context.tier];
  context.progress('making the documents');
  const file = await documentFile(count, context.seed, corpus);
  const batches = await batchBodies(count, ingestBatchSize, {
    seed: context.seed,
    corpus,
    lastSyncLevel: 'full_text',
  });
  await using server = await SundewServer.start({ placement });

  let turn = 0;
  let refusals = 0;
  const ours = async () => {
    turn += 1;
    const result = await server.process.alone(() => ingestOnce(server, `ingest-${turn}`, batches));
    refusals += result.refusals;
    return result.documents / result.seconds;
  };
  const fts5 = (mode: 'content' | 'contentless') => async () => {
    using directory = new TemporaryDirectory();
    const options = ['--file', file, '--directory', directory.path, '--mode', mode];
    const [line] = await runPeerScript({
      name: 'fts5',
      command: [process.execPath, fts5Script, ...options],
      placement,
    });
    return peerNumber(line, 'documents') / peerNumber(line, 'seconds');
  };
  await buildBareTantivy(placement);
  const tantivy = (commits: 'once' | 'per-batch') => () => bareTantivyIngest({ file, commits, placement });

  await ours();
  context.progress('measuring');
  const results = await alternate(
    {
      ours,
      tantivy: tantivy('once'),
      tantivyBatches: tantivy('per-batch'),
      fts5: fts5('contentless'),
      fts5Content: fts5('content'),
    },
    context.pairs,
  );
  const notes = {
    documents: count,
    batch: ingestBatchSize,
    durability: 'fsync per batch, clock stops when searchable',
    refusals,
    residentMiB: server.process.residentBytes() / 2 ** 20,
  };
  const beside = (name: string, peer: string, values: number[], aim?: number) =>
    compare({
      name,
      unit: 'docs/s',
      ours: results.ours,
      peer: { name: peer, values },
      ...(aim === undefined ? {} : { aim: { kind: 'at_least', value: aim } }),
      notes,
    });
  return [
    beside(
      'beside-tantivy',
      'bare Tantivy, one thread, one commit',
      results.tantivy,
      corpus === 'zipf' ? 0.85 : undefined,
    ),
    beside('beside-tantivy-batches', 'bare Tantivy, a synced commit per 1,000', results.tantivyBatches),
    beside(
      'beside-fts5',
      'SQLite FTS5 contentless, 1,000 a transaction',
      results.fts5,
      corpus === 'zipf' ? 0.7 : undefined,
    ),
    beside('beside-fts5-content', 'SQLite FTS5 and the documents, 1,000 a transaction', results.fts5Content),
  ];
}
