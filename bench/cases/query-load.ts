import type { BenchCase, BenchContext } from '../case.ts';
import { closedLoop, type LoadResult } from '../client/closed-loop.ts';
import { expectSuccess, HttpConnection, requestBytes } from '../client/http-connection.ts';
import { textSpeed } from '../engines/text-speed.ts';
import { alternate } from '../measure/alternate.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { SundewServer } from '../processes/sundew-server.ts';
import { SundewService } from '../processes/sundew-service.ts';
import { type Batch, batchBodies } from '../workloads/batch-bodies.ts';
import { documentFile } from '../workloads/document-file.ts';
import { queryString, type TextQuery, textQueries } from '../workloads/text-queries.ts';
import { ingestBatchSize } from './ingest-load.ts';

const indexed = { smoke: 20_000, full: 100_000, scale: 1_000_000 } as const;
const turnMs = { smoke: 1_000, full: 4_000, scale: 4_000 } as const;
const table = 'texts';
const queriesPerClass = 40;
const manyInFlight = 32;
const pairsMax = 3;
/** Until what runs most often is compiled. */
const warmUpTurns = 2;
/** Documents a second that are written while queries run, and how many come in one request. */
const writtenPerSecond = 5_000;
const writtenBatch = 500;
const writePauseMs = (1_000 * writtenBatch) / writtenPerSecond;
/** Five times what the reference product answers on one connection. */
const twoTermRate = 3_850;

export const queryOverHttp: BenchCase = {
  name: 'query-over-http',
  summary: 'two-term queries over HTTP with 32 in flight beside the same service in process, and on one connection',
  run: runOverHttp,
};

export const queriesUnderIngest: BenchCase = {
  name: 'queries-under-ingest',
  summary: `two-term queries while ${writtenPerSecond} documents a second are written, beside the same without writes`,
  run: runUnderIngest,
};

/** AND and OR of two words of one document. */
function twoTermQueries(documents: number, seed: number): TextQuery[] {
  return textQueries(documents, queriesPerClass, seed).filter(({ class: name }) => name === 'and' || name === 'or');
}

async function load(context: BenchContext, server: SundewServer, batches: readonly Batch[]): Promise<void> {
  await server.createTable(table);
  context.progress('loading');
  await server.load(table, batches);
}

/** The bodies of requests that ask for the titles of the ten best documents. */
function requestsFor(queries: readonly TextQuery[]): string[] {
  return queries.map((query) =>
    JSON.stringify({ full_text_search: { query: queryString(query) }, fields: ['title'], limit: 10 }),
  );
}

function ask(server: SundewServer, requests: readonly string[], clients: number, durationMs: number) {
  const messages = requests.map((body) => requestBytes('POST', `/db/v1/tables/${table}/query`, body));
  const nextMessage = (number: number) => messages[number % messages.length] ?? new Uint8Array();
  return closedLoop({ port: server.port, clients, durationMs, nextMessage });
}

async function runOverHttp(context: BenchContext): Promise<Comparison[]> {
  const { placement, seed, tier } = context;
  const documents = indexed[tier];
  const queries = twoTermQueries(documents, seed);
  const requests = requestsFor(queries);
  const file = await documentFile(documents, seed);
  await using service = await SundewService.start(placement);
  const { server } = service;
  await load(context, server, await batchBodies(documents, ingestBatchSize, { seed, lastSyncLevel: 'full_text' }));
  const durationMs = turnMs[tier];
  const overHttp = (clients: number) => () => service.measured(() => ask(server, requests, clients, durationMs));
  const turn = { table, requests, inFlight: manyInFlight, durationMs };
  const sides = {
    many: overHttp(manyInFlight),
    inProcess: () => service.measured(() => service.ask(turn)),
    one: overHttp(1),
  };
  context.progress('asking');
  await alternate(sides, warmUpTurns);
  const engine = () => textSpeed({ file, queries, filter: [], rounds: 20, placement });
  const results = await alternate({ ...sides, engine }, Math.min(context.pairs, pairsMax));
  const engineRate = (times: readonly { ours: number }[]) =>
    (times.length * 1e6) / times.reduce((sum, { ours }) => sum + ours, 0);
  const notes = { documents, ...SundewService.costs(results.many, results.inProcess) };
  const unit = 'queries/s';
  return [
    compare({
      name: '32-in-flight',
      unit,
      ours: rates(results.many),
      peer: { name: 'the same service in process, 32 in flight', values: rates(results.inProcess) },
      aim: { kind: 'at_least', value: 0.8 },
      notes,
    }),
    compare({
      name: '32-in-flight-beside-engine',
      unit,
      ours: rates(results.many),
      peer: { name: 'the engine alone, without rows', values: results.engine.map(engineRate) },
      notes,
    }),
    compare({
      name: 'one-connection',
      unit,
      ours: rates(results.one),
      aim: { kind: 'at_least', value: twoTermRate },
      notes: { documents, p50Us: Math.min(...results.one.map(({ p50Us }) => p50Us)) },
    }),
  ];
}

function rates(results: readonly { perSecond: number }[]): number[] {
  return results.map(({ perSecond }) => perSecond);
}

async function runUnderIngest(context: BenchContext): Promise<Comparison[]> {
  const { seed, tier } = context;
  const documents = indexed[tier];
  const pairs = Math.min(context.pairs, pairsMax);
  const written = Math.ceil((turnMs[tier] / writePauseMs) * pairs) * writtenBatch;
  const all = await batchBodies(documents + written, writtenBatch, { seed });
  const before = all.slice(0, documents / writtenBatch);
  const rest = all.slice(before.length)[Symbol.iterator]();
  const requests = requestsFor(twoTermQueries(documents, seed));
  await using server = await SundewServer.start({ placement: context.placement });
  await load(context, server, before);
  await ask(server, requests, 1, turnMs[tier]);
  context.progress('asking');
  let writes = 0;
  const underWrites = async () => {
    const turn = ask(server, requests, 1, turnMs[tier]);
    writes += await writeSteadily(server, rest, turn);
    return turn;
  };
  const results = await alternate({ writing: underWrites, quiet: () => ask(server, requests, 1, turnMs[tier]) }, pairs);
  const notes = { documents, written: writes, seconds: (pairs * turnMs[tier]) / 1_000 };
  const beside = (name: string, of: (result: LoadResult) => number, aim?: number) =>
    compare({
      name,
      unit: 'us',
      ours: results.writing.map(of),
      peer: { name: 'without writes', values: results.quiet.map(of) },
      ...(aim === undefined ? {} : { aim: { kind: 'at_most', value: aim } }),
      notes,
    });
  return [beside('p50', ({ p50Us }) => p50Us, 2), beside('p99', ({ p99Us }) => p99Us)];
}

/** Writes at the given pace until `turn` is over; how many documents were written. */
async function writeSteadily(server: SundewServer, batches: Iterator<Batch>, turn: Promise<unknown>): Promise<number> {
  const connection = await HttpConnection.open(server.port);
  let isOver = false;
  const end = turn.then(() => {
    isOver = true;
  });
  let written = 0;
  for (let next = performance.now(); !isOver; next += writePauseMs) {
    const batch = batches.next();
    if (batch.done) break;
    const response = await connection.send(requestBytes('POST', `/db/v1/tables/${table}/batch`, batch.value.body));
    if (response.status !== 503) {
      expectSuccess(response);
      written += batch.value.documents;
    }
    await Promise.race([end, Bun.sleep(Math.max(0, next + writePauseMs - performance.now()))]);
  }
  await end;
  connection.close();
  return written;
}
