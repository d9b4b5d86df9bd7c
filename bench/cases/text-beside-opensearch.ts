import { readFileSync } from 'node:fs';
import type { BenchCase, BenchContext } from '../case.ts';
import { closedLoop } from '../client/closed-loop.ts';
import { expectSuccess, requestBytes } from '../client/http-connection.ts';
import type { HttpResponse } from '../client/http-response.ts';
import { alternate } from '../measure/alternate.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { untilIdle } from '../measure/until-idle.ts';
import { findJava } from '../processes/java.ts';
import { OpenSearchServer } from '../processes/opensearch-server.ts';
import { SundewServer } from '../processes/sundew-server.ts';
import { batchBodies } from '../workloads/batch-bodies.ts';
import { documentFile } from '../workloads/document-file.ts';
import { type ClassedQuery, classedQueries } from '../workloads/query-classes.ts';
import { zipfKey } from '../workloads/zipf-documents.ts';
import { ingestBatchSize, ingestOnce, loadOnce } from './ingest-load.ts';

const indexed = { smoke: 10_000, full: 100_000, scale: 1_000_000 } as const;
const turnMs = { smoke: 500, full: 2_000, scale: 4_000 } as const;
const table = 'texts';
const queriesPerClass = 40;
const pairsMax = 3;
/** Until what runs most often is compiled, on both sides. */
const warmUpTurns = 3;
const limit = 10;
/** How far both count what matches. */
const countedMax = 1_000;
const classes = { or: 2.5, 'or-frequent': 2 } as const;
const queryConnections = [1, 8] as const;
const ingestConnections = [1, 4] as const;
const ingestAim = 2;

export const textBesideOpenSearch: BenchCase = {
  name: 'text-beside-opensearch',
  summary: 'two-word queries over HTTP, and documents a second until all are found, beside OpenSearch 2.19',
  run,
};

async function run(context: BenchContext): Promise<Comparison[]> {
  const found = await findJava();
  if ('missing' in found || Bun.which('mvn') === null) {
    context.progress(`LEFT OUT: ${'missing' in found ? found.missing : 'Maven is needed to fetch OpenSearch'}`);
    return [];
  }
  await using server = await SundewServer.start({ placement: context.placement });
  server.process.suspend();
  await using peer = await OpenSearchServer.start(found.java, context.placement);
  peer.process.suspend();
  const ingests = await compareIngest(context, server, peer);
  return [...ingests, ...(await compareQueries(context, server, peer))];
}

async function compareIngest(context: BenchContext, server: SundewServer, peer: OpenSearchServer) {
  const { seed, tier } = context;
  const count = indexed[tier];
  const batches = await batchBodies(count, ingestBatchSize, { seed, lastSyncLevel: 'full_text' });
  const bulks = await bulkMessages(count, seed);
  let turn = 0;
  const sides = (connections: number) => ({
    ours: () =>
      server.process.alone(async () => {
        turn += 1;
        const { seconds } = await ingestOnce(server, `ingest-${turn}`, batches, { connections });
        return count / seconds;
      }),
    peer: () =>
      peer.process.alone(async () => {
        await peer.createIndex(table, mappings);
        const { seconds } = await loadOnce(peer.process.port, bulks, connections, expectAllTaken);
        await peer.request('DELETE', `/${table}`);
        return count / seconds;
      }),
  });
  const comparisons: Comparison[] = [];
  context.progress('ingest');
  await alternate(sides(1), 1);
  for (const connections of ingestConnections) {
    const results = await alternate(sides(connections), Math.min(context.pairs, pairsMax));
    comparisons.push(
      compare({
        name: `ingest-${connections}`,
        unit: 'docs/s',
        ours: results.ours,
        peer: { name: 'OpenSearch, the last request with refresh', values: results.peer },
        aim: { kind: 'at_least', value: ingestAim },
        notes: { documents: count, batch: ingestBatchSize, connections, durability: 'fsync a request on both sides' },
      }),
    );
  }
  return comparisons;
}

async function compareQueries(context: BenchContext, server: SundewServer, peer: OpenSearchServer) {
  const { seed, tier } = context;
  const count = indexed[tier];
  context.progress('loading, and merging to one segment');
  await server.process.alone(async () => {
    await server.createTable(table);
    await server.load(table, await batchBodies(count, ingestBatchSize, { seed, lastSyncLevel: 'full_text' }));
    await untilIdle(() => server.process.cpuUs());
  });
  const bulks = await bulkMessages(count, seed);
  await peer.process.alone(async () => {
    await peer.createIndex(table, mappings);
    await loadOnce(peer.process.port, bulks, 1, expectAllTaken);
    await peer.request('POST', `/${table}/_forcemerge?max_num_segments=1`);
    await peer.request('POST', `/${table}/_refresh`);
    await untilIdle(() => peer.process.cpuUs());
  });
  const bodies = readFileSync(await documentFile(count, seed), 'utf8').split('\n', queriesPerClass);
  const queries = classedQueries(bodies.map(bodyOf), queriesPerClass, seed);
  const comparisons: Comparison[] = [];
  for (const [name, aim] of Object.entries(classes)) {
    const ofClass = queries.filter((query) => query.class === name);
    const messages = { ours: ofClass.map(ourMessage), peer: ofClass.map(peerMessage) };
    for (const clients of queryConnections) {
      const ask = (of: { process: SundewServer['process'] }, list: readonly Uint8Array[]) => () =>
        of.process.alone(() => askFor(of.process.port, list, clients, turnMs[tier]));
      const sides = { ours: ask(server, messages.ours), peer: ask(peer, messages.peer) };
      context.progress(`asking: ${name}, ${clients} connections`);
      await alternate(sides, warmUpTurns);
      const results = await alternate(sides, Math.min(context.pairs, pairsMax));
      const p50 = (list: readonly { p50Us: number }[]) => Math.round(Math.min(...list.map(({ p50Us }) => p50Us)));
      comparisons.push(
        compare({
          name: `${name}-${clients}`,
          unit: 'queries/s',
          ours: results.ours.map(({ perSecond }) => perSecond),
          peer: { name: 'OpenSearch, one segment', values: results.peer.map(({ perSecond }) => perSecond) },
          aim: { kind: 'at_least', value: aim },
          notes: { documents: count, connections: clients, p50Us: p50(results.ours), peerP50Us: p50(results.peer) },
        }),
      );
    }
  }
  return comparisons;
}

function askFor(port: number, messages: readonly Uint8Array[], clients: number, durationMs: number) {
  const nextMessage = (number: number) => messages[number % messages.length] ?? new Uint8Array();
  return closedLoop({ port, clients, durationMs, nextMessage });
}

/** The fields that our mapping makes of the documents by itself: texts with English stems, a number, an exact string. */
const mappings = {
  properties: {
    title: { type: 'text', analyzer: 'english' },
    body: { type: 'text', analyzer: 'english' },
    year: { type: 'long' },
    category: { type: 'keyword' },
  },
};

function bodyOf(line: string): string {
  return (JSON.parse(line) as { body: string }).body;
}

function ourMessage({ words }: ClassedQuery): Uint8Array {
  const query = words.map((word) => `body:${word}`).join(' OR ');
  const body = { full_text_search: { query }, fields: ['title'], limit };
  return requestBytes('POST', `/db/v1/tables/${table}/query`, JSON.stringify(body));
}

/** Only answers of size 0 are kept by its cache of requests, so that each of these is searched for. */
function peerMessage({ words }: ClassedQuery): Uint8Array {
  const query = { match: { body: { query: words.join(' '), operator: 'or' } } };
  const body = { query, size: limit, _source: ['title'], track_total_hits: countedMax };
  return requestBytes('POST', `/${table}/_search`, JSON.stringify(body));
}

/** Requests of as many documents as ours have; the last one is answered when all are found. */
async function bulkMessages(count: number, seed: number): Promise<Uint8Array[]> {
  const lines = readFileSync(await documentFile(count, seed), 'utf8').split('\n', count);
  const starts = Array.from({ length: Math.ceil(count / ingestBatchSize) }, (_, at) => at * ingestBatchSize);
  return starts.map((start) => {
    const batch = lines.slice(start, start + ingestBatchSize);
    const body = batch.map((line, at) => `{"index":{"_id":"${zipfKey(start + at)}"}}\n${line}\n`).join('');
    const isLast = start + ingestBatchSize >= count;
    return requestBytes('POST', `/${table}/_bulk${isLast ? '?refresh=true' : ''}`, body);
  });
}

function expectAllTaken(response: HttpResponse): void {
  const { body } = expectSuccess(response);
  const isTaken = Buffer.from(body).toString('utf8', 0, 100).includes('"errors":false');
  if (!isTaken) throw new Error(`a document was not taken: ${Buffer.from(body).toString('utf8', 0, 400)}`);
}
