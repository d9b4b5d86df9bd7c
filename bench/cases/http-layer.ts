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
const clients = 32;
const table = 'texts';

/** What is asked of all sides. Only the first asks nothing of the database, so only it measures the layer alone. */
const requests = [
  { name: 'health', message: requestBytes('GET', '/healthz'), elysiaAim: 0.85 },
  { name: 'lookup', message: requestBytes('GET', `/db/v1/tables/${table}/lookup/doc:000000007`), elysiaAim: 0.85 },
  {
    name: 'ten-hits',
    message: requestBytes('POST', `/db/v1/tables/${table}/query`, '{"filter_prefix":"doc:","limit":10}'),
  },
] as const;

export const httpLayer: BenchCase = {
  name: 'http-layer',
  summary: 'our answers over HTTP beside bare Bun.serve and bare Elysia sending the very same bytes, 32 clients',
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
    await using elysia = await startPeerServer('elysia-http', { placement, arguments: { body } });
    for (const side of [ours.process, bare, elysia]) side.suspend();
    const turn = (side: ChildProcess) => () => side.alone(() => measure(side, request.message, turnMs[context.tier]));
    const sides = { ours: turn(ours.process), bare: turn(bare), elysia: turn(elysia) };
    await alternate(sides, 1);
    const results = await alternate(sides, pairs);
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
