import type { BenchCase, BenchContext } from '../case.ts';
import { closedLoop } from '../client/closed-loop.ts';
import { expectSuccess, HttpConnection, requestBytes } from '../client/http-connection.ts';
import { alternate } from '../measure/alternate.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { processMemory } from '../measure/process-memory.ts';
import { recallOf } from '../measure/recall.ts';
import { untilIdle } from '../measure/until-idle.ts';
import { SundewServer } from '../processes/sundew-server.ts';
import { clusteredVectors } from '../workloads/clustered-vectors.ts';
import { exactNeighbours, neighbours } from '../workloads/exact-neighbours.ts';
import { vectorBatches, vectorIndexName, vectorQueries, vectorTable } from '../workloads/vector-requests.ts';
import type { VectorSet } from '../workloads/vector-set.ts';
import { ingestBatchSize } from './ingest-load.ts';
import { vectorAnswers } from './vector-answers.ts';

/** The scale tier takes 3 GB for the rows of the set, twice as much for the table, and 24 GiB of memory to be quick. */
const large = { smoke: 10_000, full: 100_000, scale: 1_000_000 } as const;
const small = { smoke: 2_000, full: 10_000, scale: 10_000 } as const;
const dimension = 768;
const queries = 50;
const roundMs = { smoke: 500, full: 2_000, scale: 5_000 } as const;
/** Of a million vectors: anonymous pages and those of graphs. The float rows are pages of files, which the kernel may drop. */
const memoryAimGb = 1.05;

export const vectorScale: BenchCase = {
  name: 'vector-scale',
  summary: 'a large table of 768 dimensions: memory, first query after a start, p50 beside a small table',
  run,
};

async function run(context: BenchContext): Promise<Comparison[]> {
  const { placement, tier, seed, pairs } = context;
  const sets = {
    small: clusteredVectors({ rows: small[tier], queries, dimension, seed }),
    large: clusteredVectors({ rows: large[tier], queries, dimension, seed }),
  };
  context.progress('exact answers');
  const [truth = []] = exactNeighbours(sets.large);
  // Graphs are built on all cores; measured afterwards is one query at a time.
  await using server = await SundewServer.start({ placement, role: 'all' });
  const loadSeconds: Record<string, number> = {};
  for (const [table, set] of Object.entries(sets)) {
    context.progress(`loading ${set.rows} vectors`);
    const start = performance.now();
    await server.createTable(table, vectorTable(set));
    await server.load(table, vectorBatches(set, ingestBatchSize));
    loadSeconds[table] = ((await untilIdle(() => server.process.cpuUs())) - start) / 1_000;
  }

  const messages = { small: queriesOf('small', sets.small), large: queriesOf('large', sets.large) };
  context.progress('first queries after a start');
  const firstMs: number[] = [];
  for (let turn = 0; turn < pairs; turn += 1) {
    await server.restart({ placement, role: 'all' });
    firstMs.push(await firstQuery(server.port, messages.large[turn % queries]));
  }
  context.progress('asking');
  const recall = recallOf(await vectorAnswers(server.port, messages.large), truth);
  const ask = (table: 'small' | 'large') => () => {
    const nextMessage = (number: number) => messages[table][number % queries] ?? new Uint8Array();
    return closedLoop({ port: server.port, clients: 1, durationMs: roundMs[tier], nextMessage });
  };
  const results = await alternate({ large: ask('large'), small: ask('small') }, pairs);
  const { anonymous, mapped } = processMemory(server.process.pid, isGraph);
  const rows = sets.large.rows;
  const notes = { rows, dimension, recall, loadSeconds: loadSeconds.large ?? 0 };
  return [
    compare({
      name: 'first-query',
      unit: 'ms',
      ours: firstMs,
      aim: { kind: 'at_most', value: 300 },
      notes: { ...notes, since: 'the server is ready' },
    }),
    compare({
      name: 'memory',
      unit: 'GB',
      ours: [(anonymous + mapped) / 1e9],
      // A smaller set says nothing about a million: the process itself is most of it.
      ...(tier === 'scale' ? { aim: { kind: 'at_most', value: memoryAimGb } } : {}),
      notes: { ...notes, anonymousGb: anonymous / 1e9, graphGb: mapped / 1e9, of: 'the whole server, restarted' },
    }),
    compare({
      name: 'growth-of-p50',
      unit: 'us',
      ours: results.large.map(({ p50Us }) => p50Us),
      peer: { name: `ours with ${sets.small.rows} rows`, values: results.small.map(({ p50Us }) => p50Us) },
      aim: { kind: 'at_most', value: 2.5 },
      notes,
    }),
  ];
}

function queriesOf(table: string, set: VectorSet): Uint8Array[] {
  const path = `/db/v1/tables/${table}/query`;
  return vectorQueries(set, neighbours).map((body) => requestBytes('POST', path, body));
}

async function firstQuery(port: number, message: Uint8Array = new Uint8Array()): Promise<number> {
  const connection = await HttpConnection.open(port);
  const start = performance.now();
  expectSuccess(await connection.send(message));
  const elapsed = performance.now() - start;
  connection.close();
  return elapsed;
}

/** Files of the vector index, but for its float rows. */
function isGraph(path: string): boolean {
  return path.includes(`/indexes/${vectorIndexName}@`) && !path.endsWith('.rows');
}
