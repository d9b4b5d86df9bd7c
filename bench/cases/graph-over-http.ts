import { join } from 'node:path';
import type { BenchCase, BenchContext } from '../case.ts';
import { closedLoop } from '../client/closed-loop.ts';
import { HttpConnection, requestBytes } from '../client/http-connection.ts';
import { alternate } from '../measure/alternate.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { median } from '../measure/statistics.ts';
import { untilIdle } from '../measure/until-idle.ts';
import { peerNumber } from '../processes/peer-script.ts';
import { SundewServer } from '../processes/sundew-server.ts';
import { graphBatches } from '../workloads/graph-batches.ts';
import { nodeKey, type RandomGraph } from '../workloads/random-graph.ts';

const nodes = { smoke: 5_000, full: 100_000, scale: 1_000_000 } as const;
const hubEdges = { smoke: 20_000, full: 1_000_000, scale: 1_000_000 } as const;
const edgesPerNode = 10;
const batchSize = 1_000;
const lanes = 2;
const turnMs = { smoke: 300, full: 2_000, scale: 2_000 } as const;
const warmUpMs = 2_000;
const pages = 20;
/** Seconds. */
const checkpointWaitsMax = 90;
const table = 'nodes';
const path = `/db/v1/tables/${table}`;
const prober = join(import.meta.dir, '..', 'client', 'health-prober.ts');

export const graphOverHttp: BenchCase = {
  name: 'graph-over-http',
  summary:
    'edges in batches over HTTP, their bytes, one hop beside a lookup, three hops and the event loop, pages of a hub',
  run,
};

async function run(context: BenchContext): Promise<Comparison[]> {
  const { tier, seed, placement, pairs } = context;
  const graph: RandomGraph = { nodes: nodes[tier], edgesPerNode, seed };
  await using server = await SundewServer.start({ placement });
  await createTable(server);
  context.progress('ingest');
  const ingested = await probed(context, server, () => ingest(server, graph));
  await untilIdle(() => server.process.cpuUs());
  const edges = graph.nodes * edgesPerNode;
  const notes = { nodes: graph.nodes, edges };
  // An index that rests is merged, and written when the server stops.
  await server.restart({ placement });
  const bytes = await settledBytes(server);
  context.progress('one hop');
  const hop = `${path}/indexes/g/edges?key=${nodeKey(7)}`;
  const traverse = requestBytes(
    'POST',
    `${path}/indexes/g/traverse`,
    JSON.stringify({ start: nodeKey(7), max_depth: 1 }),
  );
  const sides = {
    lookup: ask(server, requestBytes('GET', `${path}/lookup/${nodeKey(7)}`)),
    edges: ask(server, requestBytes('GET', hop)),
    traverse: ask(server, traverse),
  };
  const turns = (durationMs: number) => ({
    lookup: () => sides.lookup(durationMs),
    edges: () => sides.edges(durationMs),
    traverse: () => sides.traverse(durationMs),
  });
  await alternate(turns(warmUpMs), 1);
  const hops = await alternate(turns(turnMs[tier]), pairs);
  const beside = (name: string, ours: readonly { p50Us: number; cpuUs: number }[], of: 'p50Us' | 'cpuUs') =>
    compare({
      name: of === 'p50Us' ? name : `server-cpu-${name}`,
      unit: 'us',
      ours: ours.map((turn) => turn[of]),
      peer: { name: 'lookup', values: hops.lookup.map((turn) => turn[of]) },
      aim: { kind: 'at_most', value: 1.2 },
      notes,
    });
  context.progress('three hops beside /healthz');
  const far = await probed(context, server, () => threeHops(server, graph, turnMs[tier] * 3));
  context.progress(`a hub of ${hubEdges[tier]} edges`);
  const hub = await pagesOfHub(server, hubEdges[tier]);
  return [
    compare({
      name: 'ingest',
      unit: 'edges/s',
      ours: [edges / ingested.result],
      aim: { kind: 'at_least', value: 300_000 },
      notes: { ...notes, documentsABatch: batchSize },
    }),
    compare({ name: 'bytes', unit: 'B/edge', ours: [bytes / edges], aim: { kind: 'at_most', value: 24 }, notes }),
    beside('edges-of-a-node', hops.edges, 'p50Us'),
    beside('edges-of-a-node', hops.edges, 'cpuUs'),
    beside('one-hop', hops.traverse, 'p50Us'),
    beside('one-hop', hops.traverse, 'cpuUs'),
    compare({ name: 'three-hops', unit: 'us', ours: [far.result], notes }),
    loopDelay('loop-during-ingest', ingested),
    loopDelay('loop-during-three-hops', far),
    compare({ name: 'page-of-a-hub', unit: 'ms', ours: hub, notes: { edges: hubEdges[tier], limit: 100 } }),
  ];
}

async function createTable(server: SundewServer): Promise<void> {
  await server.createTable(table, { num_shards: 1 });
  await server.request('POST', `${path}/indexes/g`, '{"type":"graph"}');
}

/** Seconds from the first byte sent until every edge is durable and shown by the index. */
async function ingest(server: SundewServer, graph: RandomGraph): Promise<number> {
  const messages = graphBatches(graph, batchSize).map(({ body }) => requestBytes('POST', `${path}/batch`, body));
  const last = messages.pop();
  const start = performance.now();
  let next = 0;
  const lane = function* () {
    for (let message = messages[next++]; message; message = messages[next++]) yield message;
  };
  await Promise.all(Array.from({ length: lanes }, () => server.sendAll(lane())));
  if (last) await server.sendAll([last]);
  return (performance.now() - start) / 1_000;
}

interface CheckpointStatus {
  disk_usage: number;
  checkpoint_replay_tail_sequence_count: number;
}

/** Bytes of the index files, once they hold everything. */
async function settledBytes(server: SundewServer): Promise<number> {
  // A range at rest is opened by it.
  await server.request('GET', `${path}/indexes/g/edges?key=${nodeKey(7)}`);
  for (let waits = 0; waits < checkpointWaitsMax; waits += 1) {
    const answer = (await server.request('GET', `${path}/indexes/g`)) as { status: CheckpointStatus };
    const { disk_usage: bytes, checkpoint_replay_tail_sequence_count: behind } = answer.status;
    if (behind === 0 && bytes > 0) return bytes;
    await Bun.sleep(1_000);
  }
  throw new Error('the graph index has no checkpoint of everything');
}

function ask(server: SundewServer, message: Uint8Array) {
  return async (durationMs: number): Promise<{ p50Us: number; cpuUs: number }> => {
    const before = server.process.cpuUs();
    const load = await closedLoop({ port: server.port, clients: 1, durationMs, nextMessage: () => message });
    return { p50Us: load.p50Us, cpuUs: (server.process.cpuUs() - before) / load.requests };
  };
}

/** The median time of a traversal of three hops, four of them under way. */
async function threeHops(server: SundewServer, graph: RandomGraph, durationMs: number): Promise<number> {
  const messages = Array.from({ length: 50 }, (_, at) => {
    const body = { start: nodeKey((at * 7919) % graph.nodes), max_depth: 3 };
    return requestBytes('POST', `${path}/indexes/g/traverse`, JSON.stringify(body));
  });
  const nextMessage = (number: number) => messages[number % messages.length] as Uint8Array;
  return (await closedLoop({ port: server.port, clients: 4, durationMs, nextMessage })).p50Us;
}

/** Milliseconds of each of some pages, one after another, of the edges that lead to one node. */
async function pagesOfHub(server: SundewServer, edges: number): Promise<number[]> {
  const bodies: Uint8Array[] = [];
  for (let first = 0; first < edges; first += batchSize) {
    const inserts = Array.from({ length: Math.min(batchSize, edges - first) }, (_, at) => {
      return `"fan:${first + at}":{"_edges":{"g":{"likes":[{"target":"hub"}]}}}`;
    });
    const level = first + batchSize >= edges ? ',"sync_level":"full_index"' : '';
    bodies.push(requestBytes('POST', `${path}/batch`, Buffer.from(`{"inserts":{${inserts.join(',')}}${level}}`)));
  }
  await server.sendAll(bodies);
  await untilIdle(() => server.process.cpuUs());
  const connection = await HttpConnection.open(server.port);
  const times: number[] = [];
  let after = '';
  for (let page = 0; page < pages; page += 1) {
    const start = performance.now();
    const response = await connection.send(
      requestBytes('GET', `${path}/indexes/g/edges?key=hub&direction=in&limit=100${after}`),
    );
    times.push(performance.now() - start);
    const { next, total } = JSON.parse(Buffer.from(response.body).toString()) as { next?: string; total?: number };
    if (total !== edges) throw new Error(`the hub has ${total} edges, not ${edges}`);
    after = `&after=${next}`;
  }
  connection.close();
  return [median(times)];
}

interface Probed {
  result: number;
  max: number;
  p99: number;
  samples: number;
}

/** Runs `work` while another process asks for `/healthz` every 2 ms. */
async function probed({ placement }: BenchContext, server: SundewServer, work: () => Promise<number>): Promise<Probed> {
  const command = [process.execPath, prober, '--port', String(server.port)];
  const child = Bun.spawn(placement.command('client', command), { stdin: 'pipe', stdout: 'pipe', stderr: 'inherit' });
  const result = await work();
  child.stdin.end();
  const line = JSON.parse(await new Response(child.stdout).text()) as Record<string, unknown>;
  return {
    result,
    max: peerNumber(line, 'max'),
    p99: peerNumber(line, 'p99'),
    samples: peerNumber(line, 'samples'),
  };
}

function loopDelay(name: string, { max, p99, samples }: Probed): Comparison {
  return compare({
    name,
    unit: 'ms',
    ours: [max],
    aim: { kind: 'at_most', value: 20 },
    notes: { samples, p99Ms: Math.round(p99 * 100) / 100 },
  });
}
