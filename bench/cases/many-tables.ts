import { readdirSync } from 'node:fs';
import type { BenchCase, BenchContext } from '../case.ts';
import { expectSuccess, HttpConnection, requestBytes } from '../client/http-connection.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { SundewServer } from '../processes/sundew-server.ts';

const tables = { smoke: 200, full: 1_000, scale: 10_000 } as const;
const clients = 8;
/** After the looks, before memory at rest is read: what they left is collected by then. */
const restMs = 15_000;

export const manyTables: BenchCase = {
  name: 'many-tables',
  summary:
    'a thousand tables written twice in turn: listing, topology, metrics, memory and descriptors at rest, stop, start, drop',
  run,
};

async function run(context: BenchContext): Promise<Comparison[]> {
  const count = tables[context.tier];
  const names = Array.from({ length: count }, (_, at) => `t${at}`);
  const writeEach = (key: string) => {
    const insert = JSON.stringify({ inserts: { [key]: { title: 'one two three' } } });
    return sendAll(
      server,
      names.map((name) => requestBytes('POST', `/db/v1/tables/${name}/batch`, insert)),
    );
  };
  const ofOne = await residentWithOne(context);
  await using server = await SundewServer.start(context);
  context.progress(`creating and writing ${count} tables`);
  const create = await sendAll(
    server,
    names.map((name) => requestBytes('POST', `/db/v1/tables/${name}`, '{}')),
  );
  const write = await writeEach('a');
  const writeAgain = await writeEach('b');
  const [writing, threads] = [server.process.residentBytes(), server.process.threads()];
  const stopped = performance.now();
  const restarted = await server.restart(context);
  const [stop, start] = [restarted - stopped, performance.now() - restarted];
  const [list, topology, metrics]: number[][] = [[], [], []];
  for (let round = 0; round < context.pairs; round += 1) {
    list?.push(await took(() => server.request('GET', '/db/v1/tables')));
    topology?.push(await took(() => server.request('GET', '/db/v1/cluster')));
    metrics?.push(await took(() => server.metrics()));
  }
  const lookedAt = server.process.residentBytes();
  await Bun.sleep(restMs);
  const descriptors = readdirSync(`/proc/${server.process.pid}/fd`).length;
  const resident = server.process.residentBytes();
  const kilobytesEach = (resident - ofOne) / 1_024 / (count - 1);
  const drop = await sendAll(
    server,
    names.map((name) => requestBytes('DELETE', `/db/v1/tables/${name}`)),
  );
  const notes = { tables: count, clients };
  const atMost = (value: number) => ({ kind: 'at_most', value }) as const;
  return [
    compare({ name: 'list', unit: 'ms', ours: list ?? [], aim: atMost(1_000), notes }),
    compare({ name: 'topology', unit: 'ms', ours: topology ?? [], aim: atMost(1_000), notes }),
    compare({ name: 'metrics', unit: 'ms', ours: metrics ?? [], notes }),
    compare({ name: 'memory-at-rest', unit: 'kB', ours: [kilobytesEach], aim: atMost(20), notes }),
    compare({ name: 'resident-at-rest', unit: 'MiB', ours: [resident / 1_024 / 1_024], notes }),
    compare({ name: 'resident-after-listing', unit: 'MiB', ours: [lookedAt / 1_024 / 1_024], notes }),
    compare({ name: 'descriptors-at-rest', unit: '', ours: [descriptors], aim: atMost(64), notes }),
    compare({ name: 'threads-after-writing', unit: '', ours: [threads], aim: atMost(64), notes }),
    compare({ name: 'memory-after-writing', unit: 'MiB', ours: [writing / 1_024 / 1_024], notes }),
    compare({ name: 'stop-after-writing', unit: 'ms', ours: [stop], aim: atMost(2_000), notes }),
    compare({ name: 'start-after-writing', unit: 'ms', ours: [start], aim: atMost(2_000), notes }),
    compare({ name: 'create', unit: 'ms', ours: [create / count], notes }),
    compare({ name: 'first-write', unit: 'ms', ours: [write / count], notes }),
    compare({ name: 'next-write', unit: 'ms', ours: [writeAgain / count], notes }),
    compare({ name: 'drop', unit: 'ms', ours: [drop / count], notes }),
  ];
}

/** Of a server that has been started with one table and asked for the same: what a second table and all others add to. */
async function residentWithOne(context: BenchContext): Promise<number> {
  await using server = await SundewServer.start(context);
  await server.createTable('one');
  await server.request(
    'POST',
    '/db/v1/tables/one/batch',
    JSON.stringify({ inserts: { a: { title: 'one two three' } } }),
  );
  await server.restart(context);
  for (let round = 0; round < context.pairs; round += 1) {
    await server.request('GET', '/db/v1/tables');
    await server.request('GET', '/db/v1/cluster');
    await server.metrics();
  }
  await Bun.sleep(restMs);
  return server.process.residentBytes();
}

async function took(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

/** Sends the messages over some connections; the milliseconds that all of them took. */
function sendAll(server: SundewServer, messages: Uint8Array[]): Promise<number> {
  const waiting = [...messages];
  return took(() =>
    Promise.all(
      Array.from({ length: clients }, async () => {
        const connection = await HttpConnection.open(server.port);
        for (let message = waiting.shift(); message; message = waiting.shift()) {
          expectSuccess(await connection.send(message));
        }
        connection.close();
      }),
    ),
  );
}
