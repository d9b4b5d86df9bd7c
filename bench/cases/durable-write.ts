import type { BenchCase, BenchContext } from '../case.ts';
import { closedLoop, type LoadResult } from '../client/closed-loop.ts';
import { requestBytes } from '../client/http-connection.ts';
import { alternate } from '../measure/alternate.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import type { ChildProcess } from '../processes/child-process.ts';
import { startPeerServer } from '../processes/peer-server.ts';
import { SundewServer } from '../processes/sundew-server.ts';
import { TemporaryDirectory } from '../processes/temporary-directory.ts';
import { zipfBody, zipfDocuments } from '../workloads/zipf-documents.ts';

const clientCounts = [1, 16, 64] as const;
const turnMs = { smoke: 300, full: 1_500, scale: 3_000 } as const;
/** Distinct documents; a turn that needs more of them writes the first ones again. */
const documentCount = { smoke: 10_000, full: 60_000, scale: 120_000 } as const;

const notes = { durability: 'fsync before the answer, all sides', document: 'about 540 bytes' };

export const durableWrite: BenchCase = {
  name: 'durable-write',
  summary: 'one document a request, durable when answered: time and rate at 1, 16 and 64 clients',
  run,
};

async function run(context: BenchContext): Promise<Comparison[]> {
  using directory = new TemporaryDirectory();
  const { placement } = context;
  await using ours = await SundewServer.start({ placement });
  await using append = await startPeerServer('sync-append', { placement, arguments: { directory: directory.path } });
  await using sqlite = await startPeerServer('sqlite-write', { placement, arguments: { directory: directory.path } });
  await ours.createTable('writes');
  const messages = writeMessages('/db/v1/tables/writes/batch', documentCount[context.tier], context.seed);

  for (const side of [ours.process, append, sqlite]) side.suspend();

  let sent = 0;
  const nextMessage = () => messages[sent++ % messages.length] as Uint8Array;
  const durationMs = turnMs[context.tier];
  const load = (side: ChildProcess, clients: number) => () =>
    side.alone(() => closedLoop({ port: side.port, clients, durationMs, nextMessage }));

  await alternate({ ours: load(ours.process, 16), append: load(append, 1), sqlite: load(sqlite, 16) }, 1);
  const comparisons: Comparison[] = [];
  for (const clients of clientCounts) {
    context.progress(`${clients} clients`);
    const besides = { ours: load(ours.process, clients), sqlite: load(sqlite, clients) };
    if (clients > 1) {
      comparisons.push(...besideSqlite(clients, await alternate(besides, context.pairs)));
      continue;
    }
    const results = await alternate({ ...besides, append: load(append, clients) }, context.pairs);
    comparisons.push(besideFloor(results), ...besideSqlite(clients, results));
  }
  return comparisons;
}

const p50 = (side: LoadResult[]) => side.map((result) => result.p50Us);
const rate = (side: LoadResult[]) => side.map((result) => result.perSecond);
const highest = (side: LoadResult[], figure: keyof LoadResult) => Math.max(...side.map((result) => result[figure]));

function besideFloor(results: { ours: LoadResult[]; append: LoadResult[] }): Comparison {
  return compare({
    name: 'p50-1-client-beside-fdatasync',
    unit: 'us',
    ours: p50(results.ours),
    peer: { name: 'fdatasync of 4 KiB behind Bun.serve', values: p50(results.append) },
    aim: { kind: 'at_most', value: 1.5 },
    notes: { ...notes, clients: 1 },
  });
}

function besideSqlite(clients: number, results: { ours: LoadResult[]; sqlite: LoadResult[] }): Comparison[] {
  const suffix = clients === 1 ? '1-client' : `${clients}-clients`;
  const peer = 'bun:sqlite FULL behind Bun.serve';
  const load = { ...notes, clients, clientCpuShareMax: highest(results.ours, 'clientCpuShare') };
  return [
    compare({
      name: `p50-${suffix}-beside-sqlite`,
      unit: 'us',
      ours: p50(results.ours),
      peer: { name: peer, values: p50(results.sqlite) },
      notes: { ...load, oursP99Us: highest(results.ours, 'p99Us'), peerP99Us: highest(results.sqlite, 'p99Us') },
    }),
    compare({
      name: `rate-${suffix}-beside-sqlite`,
      unit: 'writes/s',
      ours: rate(results.ours),
      peer: { name: peer, values: rate(results.sqlite) },
      notes: load,
    }),
  ];
}

function writeMessages(path: string, count: number, seed: number): Uint8Array[] {
  const messages: Uint8Array[] = [];
  for (const document of zipfDocuments(seed)) {
    if (messages.length >= count) break;
    messages.push(requestBytes('POST', path, `{"inserts":{"${document.key}":${zipfBody(document)}}}`));
  }
  return messages;
}
