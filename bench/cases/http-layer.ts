import { Database } from 'bun:sqlite';
import { join } from 'node:path';
import type { BenchCase, BenchContext } from '../case.ts';
import { closedLoop } from '../client/closed-loop.ts';
import { expectSuccess, HttpConnection, requestBytes } from '../client/http-connection.ts';
import { alternate } from '../measure/alternate.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import type { ChildProcess } from '../processes/child-process.ts';
import { startPeerServer } from '../processes/peer-server.ts';
import { SundewServer } from '../processes/sundew-server.ts';
import { TemporaryDirectory } from '../processes/temporary-directory.ts';
import { batchBodies } from '../workloads/batch-bodies.ts';

const turnMs = { smoke: 250, full: 1_000, scale: 2_000 } as const;
/** The compilers of the runtime work beside the first thousands of requests; what they take is no part of a turn. */
const warmUpMs = 4_000;
const clients = 32;
const table = 'texts';
const key = 'doc:000000007';

/**
 * The requests to all sides. Bare Bun.serve sends the very same bytes without asking anything of a database; so does bare
 * Elysia, but for the lookup, where it reads the same bytes from SQLite by the same key.
 */
const requests = [
  { name: 'health', message: requestBytes('GET', '/healthz'), elysia: 'elysia-http', elysiaAim: 0.85 },
  {
    name: 'lookup',
    message: requestBytes('GET', `/db/v1/tables/${table}/lookup/${key}`),
    elysia: 'elysia-lookup',
    elysiaAim: 0.85,
  },
  {
    name: 'ten-hits',
    elysia: 'elysia-http',
    message: requestBytes('POST', `/db/v1/tables/${table}/query`, '{"filter_prefix":"doc:","limit":10}'),
  },
] as const;

export const httpLayer: BenchCase = {
  name: 'http-layer',
  summary: 'our answers over HTTP beside bare Bun.serve and bare Elysia, 32 clients',
  run,
};

async function run(context: BenchContext): Promise<Comparison[]> {
  const { placement, pairs } = context;
  using directory = new TemporaryDirectory();
  await using ours = await SundewServer.start({ placement });
  await ours.createTable(table);
  await ours.load(table, await batchBodies(1_000, 1_000, { seed: context.seed, lastSyncLevel: 'full_text' }));

  const comparisons: Comparison[] = [];
  for (const request of requests) {
    context.progress(request.name);
    const body = join(directory.path, `${request.name}.json`);
    ours.process.resume();
    const bytes = await answerOf(ours.port, request.message);
    await Bun.write(body, bytes);
    await using bare = await startPeerServer('bare-http', { placement, arguments: { body } });
    const database = join(directory.path, `${request.name}.db`);
    if (request.elysia === 'elysia-lookup') writeDocuments(database, bytes);
    const told = request.elysia === 'elysia-lookup' ? { database } : { body };
    await using elysia = await startPeerServer(request.elysia, { placement, arguments: told });
    for (const side of [ours.process, bare, elysia]) side.suspend();
    const turn = (side: ChildProcess, ms: number) => () => side.alone(() => measure(side, request.message, ms));
    const sides = (ms: number) => ({ ours: turn(ours.process, ms), bare: turn(bare, ms), elysia: turn(elysia, ms) });
    await alternate(sides(warmUpMs), 1);
    const results = await alternate(sides(turnMs[context.tier]), pairs);
    const notes = {
      clients,
      answerBytes: bytes.length,
      clientCpuShareMax: Math.max(...results.bare.map((result) => result.clientCpuShare)),
    };
    const elysiaAim = 'elysiaAim' in request ? { aim: { kind: 'at_least', value: request.elysiaAim } as const } : {};
    const rate = (side: Turn[]) => side.map((result) => result.perSecond);
    const cost = (side: Turn[]) => side.map((result) => result.serverCpuUs);
    const peers = [
      { suffix: '', peer: 'bare Bun.serve', turns: results.bare, aim: {} },
      { suffix: '-elysia', peer: 'bare Elysia with two hooks', turns: results.elysia, aim: elysiaAim },
    ];
    for (const { suffix, peer, turns, aim } of peers) {
      comparisons.push(
        compare({
          name: `rate-${request.name}${suffix}`,
          unit: 'requests/s',
          ours: rate(results.ours),
          peer: { name: peer, values: rate(turns) },
          ...aim,
          notes,
        }),
        compare({
          name: `server-cpu-${request.name}${suffix}`,
          unit: 'us/request',
          ours: cost(results.ours),
          peer: { name: peer, values: cost(turns) },
          notes,
        }),
      );
    }
  }
  return comparisons;
}

/** As many documents as our table has, all with this body. */
function writeDocuments(path: string, body: Uint8Array): void {
  using database = new Database(path);
  database.run('CREATE TABLE documents (key TEXT PRIMARY KEY, body BLOB) WITHOUT ROWID');
  const insert = database.query('INSERT INTO documents VALUES (?, ?)');
  for (let n = 0; n < 1_000; n += 1) insert.run(`doc:${String(n).padStart(9, '0')}`, body);
}

interface Turn {
  perSecond: number;
  /** CPU of the server process for one request: the figure that holds when the client is the limit of the rate. */
  serverCpuUs: number;
  clientCpuShare: number;
}

async function measure(server: ChildProcess, message: Uint8Array, durationMs: number): Promise<Turn> {
  const before = server.cpuUs();
  const load = await closedLoop({ port: server.port, clients, durationMs, nextMessage: () => message });
  return {
    perSecond: load.perSecond,
    serverCpuUs: (server.cpuUs() - before) / load.requests,
    clientCpuShare: load.clientCpuShare,
  };
}

async function answerOf(port: number, message: Uint8Array): Promise<Uint8Array> {
  const connection = await HttpConnection.open(port);
  const response = expectSuccess(await connection.send(message));
  connection.close();
  return response.body;
}
