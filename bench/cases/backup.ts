import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { BenchCase, BenchContext } from '../case.ts';
import { HttpConnection, requestBytes } from '../client/http-connection.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { percentile } from '../measure/statistics.ts';
import { untilIdle } from '../measure/until-idle.ts';
import { BackupArchive } from '../processes/backup-archive.ts';
import type { SundewServer } from '../processes/sundew-server.ts';
import { Xorshift32 } from '../workloads/xorshift32.ts';

const documents = { smoke: 5_000, full: 100_000, scale: 1_000_000 } as const;
/** Documents of the table that is restored in a server of its own: enough to show memory that grows with the table. */
const documentsWatched = { smoke: 5_000, full: 300_000, scale: 1_000_000 } as const;
const dimension = 128;
const batchSize = 500;
const words = 'time year people way day man thing woman life child world school state family student group'.split(' ');
const sampleMs = 50;
const MiB = 1_024 * 1_024;

export const backup: BenchCase = {
  name: 'backup',
  summary: 'backups beside `zstd -3`, restores beside `/batch`, increments, memory, and writes meanwhile',
  run,
};

interface Turn {
  loadSeconds: number;
  portable: { seconds: number; bytes: number };
  /** Of the portable backup; undefined where the one in a fresh server has as many documents. */
  restoreSeconds: number | undefined;
  native: { seconds: number; restoreSeconds: number };
  zstdSeconds: number;
  /** Bytes of the backup's lines, of those that `zstd -3` makes of them. */
  sizeRatio: number;
  incrementSeconds: number;
  memoryBytes: number;
  /** 99 of 100 writes take no longer, milliseconds. */
  writes: { idleMs: number; besideMs: number };
}

async function run(context: BenchContext): Promise<Comparison[]> {
  const count = documents[context.tier];
  const turns: (Turn & { restoreSeconds: number })[] = [];
  const restores: WatchedRestore[] = [];
  for (let pair = 0; pair < context.pairs; pair += 1) {
    using archive = new BackupArchive();
    const each = await turn(context, archive, count);
    const watched = await watchedTurn(context, archive, count);
    // Where both have as many documents, the restore in a fresh server is the only one.
    turns.push({ ...each, restoreSeconds: each.restoreSeconds ?? watched.seconds });
    restores.push(watched);
  }
  const rates = (seconds: (turn: (typeof turns)[number]) => number) => turns.map((each) => count / seconds(each));
  const bytesPerSecond = (seconds: (turn: Turn) => number) =>
    turns.map((each) => each.portable.bytes / seconds(each) / MiB);
  const loaded = { name: 'POST /batch until the indexes show it', values: rates((each) => each.loadSeconds) };
  const notes = { documents: count, dimension };
  return [
    compare({
      name: 'portable-backup',
      unit: 'MiB/s',
      ours: bytesPerSecond((each) => each.portable.seconds),
      peer: { name: 'zstd -3 over the same lines in a file', values: bytesPerSecond((each) => each.zstdSeconds) },
      aim: { kind: 'at_least', value: 0.7 },
      notes: { ...notes, bytesOfZstd: turns.map((each) => each.sizeRatio.toFixed(3)).join(', ') },
    }),
    compare({
      name: 'portable-restore',
      unit: 'docs/s',
      ours: rates((each) => each.restoreSeconds),
      peer: loaded,
      aim: { kind: 'at_least', value: 1.5 },
      notes,
    }),
    compare({
      name: 'native-restore',
      unit: 'docs/s',
      ours: rates((each) => each.native.restoreSeconds),
      peer: loaded,
      aim: { kind: 'at_least', value: 5 },
      notes: { ...notes, nativeBackupSeconds: turns.map((each) => each.native.seconds.toFixed(2)).join(', ') },
    }),
    compare({
      name: 'increment-of-one-percent',
      unit: 's',
      ours: turns.map((each) => each.incrementSeconds),
      peer: { name: 'the full backup', values: turns.map((each) => each.portable.seconds) },
      aim: { kind: 'at_most', value: 0.05 },
      notes,
    }),
    compare({
      name: 'memory',
      unit: 'MiB above idle',
      ours: turns.map((each) => each.memoryBytes / MiB),
      aim: { kind: 'at_most', value: 256 },
      notes,
    }),
    compare({
      name: 'memory-of-a-restore',
      unit: 'MiB above the table at rest',
      ours: restores.map((each) => (each.peakBytes - each.restBytes) / MiB),
      aim: { kind: 'at_most', value: 256 },
      notes: {
        ...notes,
        documents: documentsWatched[context.tier],
        atRestMiB: restores.map((each) => Math.round(each.restBytes / MiB)).join(', '),
        seconds: restores.map((each) => each.seconds.toFixed(1)).join(', '),
      },
    }),
    compare({
      name: 'writes-meanwhile',
      unit: 'ms p99',
      ours: turns.map((each) => each.writes.besideMs),
      peer: { name: 'the same without a backup', values: turns.map((each) => each.writes.idleMs) },
      aim: { kind: 'at_most', value: 2 },
      notes,
    }),
  ];
}

const query = { full_text_search: { match: 'time', field: 'text' }, limit: 1 };
const table = { indexes: { v: { type: 'embeddings', external: true, dimension } } };

async function turn(context: BenchContext, archive: BackupArchive, count: number): Promise<Turn> {
  const { progress, seed } = context;
  await using server = await archive.start(context.placement);
  const backUp = (id: string, more?: object) => archive.backUp(server, id, more);
  await server.createTable('t', table);
  await server.createTable('other');
  progress(`${count} documents with vectors`);
  const loadSeconds = await load(server, bodies(0, count, seed));
  // A graph of the vectors is built behind the writes.
  await untilIdle(() => server.process.cpuUs());
  const idleMs = await writesUntil(server, Bun.sleep(2_000));
  const idle = memoryOf(server);
  let portableSeconds = 0;
  const peak = await peakMemory(server, async () => {
    portableSeconds = await seconds(() => backUp('portable'));
  });
  const { lines } = archive;
  const bytes = await unpack(join(archive.path, 'portable'), lines);
  const zstdSeconds = await seconds(() => zstd(lines));
  const sizeRatio = packedBytes(join(archive.path, 'portable')) / statSync(packedPath(lines)).size;
  const besideMs = await writesUntil(server, backUp('beside'));
  await load(server, bodies(0, Math.ceil(count / 100), seed + 1));
  // As the full one, it is not measured beside a graph that is built.
  await untilIdle(() => server.process.cpuUs());
  const incrementSeconds = await seconds(() => backUp('increment', { base_backup_id: 'portable' }));
  const nativeSeconds = await seconds(() => backUp('native', { format: 'native' }));
  await server.dropTable('t');
  progress('restores');
  const restored = async (id: string) => {
    const took = await seconds(() => archive.restore(server, id));
    await server.dropTable('t');
    return took;
  };
  return {
    loadSeconds,
    portable: { seconds: portableSeconds, bytes },
    restoreSeconds: isWatched(context, count) ? undefined : await restored('portable'),
    native: { seconds: nativeSeconds, restoreSeconds: await restored('native') },
    zstdSeconds,
    sizeRatio,
    incrementSeconds,
    memoryBytes: peak - idle,
    writes: { idleMs, besideMs },
  };
}

interface WatchedRestore {
  seconds: number;
  /** The most memory without a file until the server rests, and then. */
  peakBytes: number;
  restBytes: number;
}

/** A portable restore in a server that was just started: one that has worked has memory to spare, which hides the peak. */
async function watchedTurn(context: BenchContext, archive: BackupArchive, archived: number): Promise<WatchedRestore> {
  const count = documentsWatched[context.tier];
  const id = isWatched(context, archived) ? 'portable' : 'watched';
  if (id === 'watched') {
    await using server = await archive.start(context.placement);
    await server.createTable('t', table);
    context.progress(`${count} documents`);
    await server.sendAll(bodies(0, count, context.seed));
    await archive.backUp(server, id);
  }
  await using server = await archive.start(context.placement);
  context.progress('a restore in a fresh server');
  let took = 0;
  const peakBytes = await peakMemory(server, async () => {
    took = await seconds(() => archive.restore(server, id));
    // The indexes are opened, and the last vectors get their graph.
    await server.request('POST', '/db/v1/tables/t/query', JSON.stringify(query));
    await untilIdle(() => server.process.cpuUs());
  });
  return { seconds: took, peakBytes, restBytes: memoryOf(server) };
}

/** Whether the restore in a fresh server has the documents of the load. */
function isWatched({ tier }: BenchContext, count: number): boolean {
  return documentsWatched[tier] === count;
}

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1_000;
}

/** The most memory while the work is done, bytes. */
async function peakMemory(server: SundewServer, work: () => Promise<void>): Promise<number> {
  let peak = memoryOf(server);
  const sampler = setInterval(() => {
    peak = Math.max(peak, memoryOf(server));
  }, sampleMs);
  await work().finally(() => clearInterval(sampler));
  return peak;
}

/** Bytes of memory without a file. Cheap, because it is read while the server is measured. */
function memoryOf(server: SundewServer): number {
  const status = readFileSync(`/proc/${server.process.pid}/status`, 'latin1');
  return Number(/^RssAnon:\s+(\d+) kB/m.exec(status)?.[1]) * 1_024;
}

/** Bodies of `/batch`; the last waits until its documents are shown. */
function* bodies(first: number, count: number, seed: number): Generator<Uint8Array> {
  const random = new Xorshift32(seed);
  const pick = () => words[random.next() % words.length];
  for (let start = first; start < first + count; start += batchSize) {
    const end = Math.min(first + count, start + batchSize);
    const inserts: Record<string, unknown> = {};
    for (let at = start; at < end; at += 1) {
      const v = Array.from({ length: dimension }, () => (random.next() % 20_001) / 10_000 - 1);
      inserts[`k${at}`] = { text: Array.from({ length: 40 }, pick).join(' '), n: at, _embeddings: { v } };
    }
    const level = end === first + count ? { sync_level: 'full_index' } : {};
    yield requestBytes('POST', '/db/v1/tables/t/batch', JSON.stringify({ inserts, ...level }));
  }
}

/**
 * Seconds from the first request to the last answer. The bodies are made before: between requests they would be made in time
 * that does not count, but in which the server indexes.
 */
async function load(server: SundewServer, messages: Generator<Uint8Array>): Promise<number> {
  const made = [...messages];
  return seconds(() => server.sendAll(made));
}

/** The 99th percentile of small writes to another table, one after another, until `end` resolves; milliseconds. */
async function writesUntil(server: SundewServer, end: Promise<unknown>): Promise<number> {
  let isOver = false;
  const over = end.finally(() => {
    isOver = true;
  });
  const connection = await HttpConnection.open(server.port);
  const took: number[] = [];
  for (let n = 0; !isOver; n += 1) {
    const message = requestBytes('POST', '/db/v1/tables/other/batch', `{"inserts":{"k${n % 100}":{"n":${n}}}}`);
    const start = performance.now();
    await connection.send(message);
    took.push(performance.now() - start);
  }
  connection.close();
  await over;
  return percentile(took, 0.99);
}

/** Writes the lines of a backup's only range into one file; returns how many bytes they have. */
async function unpack(folder: string, to: string): Promise<number> {
  const writer = Bun.file(to).writer();
  let bytes = 0;
  for (const name of (readdirSync(folder, { recursive: true }) as string[]).sort()) {
    if (!name.endsWith('.ndjson.zst')) continue;
    const unpacker = Bun.spawn(['zstd', '-dc', join(folder, name)], { stdout: 'pipe' });
    for await (const chunk of unpacker.stdout) {
      writer.write(chunk);
      bytes += chunk.byteLength;
      await writer.flush();
    }
    if ((await unpacker.exited) !== 0) throw new Error('zstd could not read the archive');
  }
  await writer.end();
  return bytes;
}

/** Bytes of the files of lines in a backup's folder. */
function packedBytes(folder: string): number {
  const names = (readdirSync(folder, { recursive: true }) as string[]).filter((name) => name.endsWith('.ndjson.zst'));
  return names.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
}

function packedPath(path: string): string {
  return join(`${path}.out`, 'lines.zst');
}

async function zstd(path: string): Promise<void> {
  mkdirSync(`${path}.out`);
  const packer = Bun.spawn(['zstd', '-3', '-q', '-f', path, '-o', packedPath(path)]);
  if ((await packer.exited) !== 0) throw new Error('zstd failed');
}
