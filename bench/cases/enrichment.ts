import { specOfModel } from '../../src/model-host/model-spec.ts';
import type { BenchCase, BenchContext } from '../case.ts';
import { closedLoop } from '../client/closed-loop.ts';
import { requestBytes } from '../client/http-connection.ts';
import { alternate } from '../measure/alternate.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { openModelPool } from '../processes/model-pool.ts';
import { modelsDirectory, pulledModel } from '../processes/pulled-model.ts';
import { SundewServer } from '../processes/sundew-server.ts';
import { Xorshift32 } from '../workloads/xorshift32.ts';

/** Texts of one turn of the throughput, and texts whose backfill lasts longer than the windows that are measured beside it. */
const embedded = { smoke: 256, full: 2_048, scale: 8_192 } as const;
const besides = { smoke: 20_000, full: 100_000, scale: 400_000 } as const;
const windowMs = { smoke: 500, full: 2_000, scale: 4_000 } as const;
/** Documents of the backfill whose memory is measured. */
const many = { smoke: 10_000, full: 100_000, scale: 1_000_000 } as const;
const modelName = 'all-minilm-l6-v2';
const textWords = 96;
const words = 'time year people way day man thing woman life child world school state family student group'.split(' ');
const settings = { threads: 0, contextTokensMax: 256, parallelSequences: 1 };
/** Texts in one request of the follower: `enrichmentBatchItems`. */
const batchItems = 64;
const pollMs = 20;

export const enrichment: BenchCase = {
  name: 'enrichment',
  summary:
    'a managed index filled in the background: rate beside the bare embedder, writes and queries meanwhile, memory, resumption',
  run,
};

async function run(context: BenchContext): Promise<Comparison[]> {
  const model = await pulledModel('embedders', modelName);
  await using server = await SundewServer.start({
    placement: context.placement,
    arguments: ['--models-dir', modelsDirectory],
  });
  const rate = await throughput(context, server, model);
  const beside = await whileFilling(context, server);
  return [rate, ...beside, ...(await filledByMany(context))];
}

const byModel = { type: 'embeddings', field: 'text', embedder: { provider: 'service', model: modelName } };
const byWords = { type: 'embeddings', field: 'text', embedder: { provider: 'mock', model: 'words', dimensions: 16 } };

function textsOf(count: number, seed: number): string[] {
  const random = new Xorshift32(seed);
  const text = () => Array.from({ length: textWords }, () => words[random.next() % words.length]).join(' ');
  return Array.from({ length: count }, (_, at) => `${at} ${text()}`);
}

async function fill(server: SundewServer, table: string, texts: readonly string[]): Promise<void> {
  await server.createTable(table);
  const messages = Array.from({ length: Math.ceil(texts.length / 500) }, (_, batch) => {
    const entries = texts.slice(batch * 500, (batch + 1) * 500).map((text, at) => [`${batch}-${at}`, { text }]);
    return requestBytes(
      'POST',
      `/db/v1/tables/${table}/batch`,
      JSON.stringify({ inserts: Object.fromEntries(entries) }),
    );
  });
  await server.sendAll(messages);
}

const addIndex = (server: SundewServer, table: string, config: object) =>
  server.request('POST', `/db/v1/tables/${table}/indexes/meaning`, JSON.stringify(config));
const dropIndex = (server: SundewServer, table: string) =>
  server.request('DELETE', `/db/v1/tables/${table}/indexes/meaning`);

interface Details {
  status: { readiness: { complete: boolean }; source_coverage: { failed: number }; backfill_progress: number };
}

async function untilProgress(server: SundewServer, table: string, share: number): Promise<void> {
  for (;;) {
    const answer = await server.request('GET', `/db/v1/tables/${table}/indexes/meaning`);
    const { readiness, source_coverage: coverage, backfill_progress: progress } = (answer as Details).status;
    if (coverage.failed > 0) throw new Error('a text could not be embedded');
    if (share < 1 ? progress >= share : readiness.complete) return;
    await Bun.sleep(pollMs);
  }
}

/** From the creation of the index over documents that are there until it is complete, beside the model alone. */
async function throughput(
  { tier, pairs, seed, progress }: BenchContext,
  server: SundewServer,
  model: Awaited<ReturnType<typeof pulledModel>>,
): Promise<Comparison> {
  const texts = textsOf(embedded[tier], seed);
  await fill(server, 'rated', texts);
  const spec = specOfModel(
    { ...model, manifest: { ...model.manifest, context_length: settings.contextTokensMax } },
    settings,
  );
  const pool = openModelPool();
  const perSecond = async (work: () => Promise<void>) => {
    const start = performance.now();
    await work();
    return (texts.length / (performance.now() - start)) * 1_000;
  };
  const bare = async () => {
    for (let at = 0; at < texts.length; at += batchItems) {
      await pool.run(spec, 'embed', { texts: texts.slice(at, at + batchItems), truncate: undefined });
    }
  };
  const ours = async () => {
    await addIndex(server, 'rated', byModel);
    await untilProgress(server, 'rated', 1);
  };
  try {
    progress(`${texts.length} texts of ${textWords} words`);
    // Both models are loaded before anything is measured.
    await pool.run(spec, 'embed', { texts: texts.slice(0, 1), truncate: undefined });
    await ours();
    const turn = async () => {
      await dropIndex(server, 'rated');
      return await perSecond(ours);
    };
    const results = await alternate({ ours: turn, bare: () => perSecond(bare) }, pairs);
    return compare({
      name: 'throughput',
      unit: 'texts/s',
      ours: results.ours,
      peer: { name: 'the same model in a child process, alone', values: results.bare },
      aim: { kind: 'at_least', value: 0.9 },
      notes: { texts: texts.length, words: textWords, model: modelName },
    });
  } finally {
    await pool.stop();
  }
}

/** Writes and queries of another table while a backfill runs, beside the same with nothing else going on. */
async function whileFilling(context: BenchContext, server: SundewServer): Promise<Comparison[]> {
  const { tier, pairs, seed, progress } = context;
  await fill(server, 'asked', textsOf(5_000, seed + 1));
  await fill(server, 'filled', textsOf(besides[tier], seed + 2));
  let number = 0;
  const write = () => {
    number += 1;
    return requestBytes(
      'POST',
      '/db/v1/tables/asked/batch',
      `{"inserts":{"new${number % 500}":{"text":"note ${number}"}},"sync_level":"write"}`,
    );
  };
  const query = () => {
    number += 1;
    const text = `${words[number % words.length]} ${words[(number * 7) % words.length]}`;
    return requestBytes(
      'POST',
      '/db/v1/query',
      JSON.stringify({ table: 'asked', full_text_search: { match: text, field: 'text' } }),
    );
  };
  const loop = (nextMessage: () => Uint8Array) =>
    closedLoop({ port: server.port, clients: 1, durationMs: windowMs[tier], nextMessage });
  const measured = async () => ({ write: (await loop(write)).p50Us / 1_000, query: (await loop(query)).p99Us / 1_000 });
  const filling = async () => {
    await addIndex(server, 'filled', byModel);
    await untilProgress(server, 'filled', Number.MIN_VALUE);
    const result = await measured();
    await dropIndex(server, 'filled');
    return result;
  };
  progress('writes and queries beside a backfill');
  await measured();
  const { idle, busy } = await alternate({ idle: measured, busy: filling }, pairs);
  const side = (name: 'write' | 'query', atMost: number, unitName: string) =>
    compare({
      name: unitName,
      unit: 'ms',
      ours: busy.map((each) => each[name]),
      peer: { name: 'the same server, idle', values: idle.map((each) => each[name]) },
      aim: { kind: 'at_most', value: atMost },
      notes: { clients: 1, model: modelName },
    });
  await server.dropTable('filled');
  return [side('write', 1.1, 'write-p50'), side('query', 3, 'query-p99')];
}

/** A backfill of many documents by an embedder that costs nothing: its memory, and how soon it goes on after a kill. */
async function filledByMany({ tier, seed, placement, progress }: BenchContext): Promise<Comparison[]> {
  const count = many[tier];
  progress(`${count} documents by an embedder that costs nothing`);
  await using server = await SundewServer.start({ placement });
  await fill(server, 'many', textsOf(count, seed + 3));
  await addIndex(server, 'many', byWords);
  await untilProgress(server, 'many', 0.25);
  const early = server.process.residentBytes();
  const resumed = await resumption(server, { placement });
  await untilProgress(server, 'many', 1);
  const late = server.process.residentBytes();
  const mebibytes = (bytes: number) => Math.round(bytes / 1_024 / 1_024);
  const notes = { documents: count, early_MiB: mebibytes(early), late_MiB: mebibytes(late) };
  return [
    compare({
      name: 'memory',
      unit: 'MiB',
      ours: [mebibytes(late)],
      peer: { name: 'at a quarter', values: [mebibytes(early)] },
      aim: { kind: 'at_most', value: 1.25 },
      notes,
    }),
    compare({
      name: 'resume',
      unit: 'ms',
      ours: [resumed],
      aim: { kind: 'at_most', value: 1_000 },
      notes: { documents: count },
    }),
  ];
}

/** Milliseconds from a start that is ready until the first text is embedded, with nobody asking for the table. */
async function resumption(server: SundewServer, options: { placement: BenchContext['placement'] }): Promise<number> {
  await server.restart(options);
  const ready = performance.now();
  for (;;) {
    const metrics = await server.metrics();
    const count = Number(/^sundew_enriched_texts_total(?:\{\})? (\d+)/m.exec(metrics)?.[1] ?? 0);
    if (count > 0) return performance.now() - ready;
    if (performance.now() - ready > 30_000) throw new Error('the backfill does not go on');
    await Bun.sleep(5);
  }
}
