import { encode } from '@msgpack/msgpack';
import type { BenchCase, BenchContext } from '../case.ts';
import { closedLoop } from '../client/closed-loop.ts';
import { requestBytes } from '../client/http-connection.ts';
import { alternate } from '../measure/alternate.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { SundewServer } from '../processes/sundew-server.ts';
import { clusteredVectors } from '../workloads/clustered-vectors.ts';
import { readRows } from '../workloads/vector-set.ts';

const turnMs = { smoke: 500, full: 2_000, scale: 4_000 } as const;
const rows = 200;
const dimension = 384;
const table = 'vectors';
const packedType = 'application/msgpack';

export const msgpack: BenchCase = {
  name: 'msgpack',
  summary: 'writes and queries with vectors of 384 dimensions in MessagePack beside JSON, one client',
  run,
};

async function run(context: BenchContext): Promise<Comparison[]> {
  const { placement, tier, seed, pairs } = context;
  await using server = await SundewServer.start({ placement });
  const index = { type: 'embeddings', external: true, dimension, distance_metric: 'cosine' };
  await server.createTable(table, { indexes: { dense: index } });
  const vectors = readRows(clusteredVectors({ rows, queries: 1, dimension, seed }), 0, rows);
  const batch = (form: (vector: Float32Array) => unknown) => ({
    inserts: Object.fromEntries(
      Array.from({ length: rows }, (_, at) => [
        `doc:${at}`,
        {
          title: `Document ${at}`,
          _embeddings: { dense: form(vectors.subarray(at * dimension, (at + 1) * dimension)) },
        },
      ]),
    ),
  });
  const writePath = `/db/v1/tables/${table}/batch`;
  const queryPath = `/db/v1/tables/${table}/query`;
  const query = { full_text_search: { match_all: {} }, fields: ['title', '_embeddings'], limit: 50 };
  const messages = {
    'write-packed': packed(writePath, batch(bytesOf)),
    'write-numbers': requestBytes('POST', writePath, JSON.stringify(batch((vector) => Array.from(vector)))),
    'write-base64': requestBytes(
      'POST',
      writePath,
      JSON.stringify(batch((vector) => bytesOf(vector).toString('base64'))),
    ),
    'read-packed': packed(queryPath, query),
    'read-json': requestBytes('POST', queryPath, JSON.stringify(query)),
  };
  await server.sendAll([messages['write-packed']]);
  const turn = (message: Uint8Array) => async () => {
    const before = server.process.cpuUs();
    const options = { port: server.port, clients: 1, durationMs: turnMs[tier], nextMessage: () => message };
    const { requests, perSecond } = await closedLoop(options);
    return { perSecond, cpuUs: (server.process.cpuUs() - before) / requests };
  };
  const sides = Object.fromEntries(Object.entries(messages).map(([name, message]) => [name, turn(message)]));
  await alternate(sides, 1);
  const results = await alternate(sides, pairs);
  const comparison = (ours: keyof typeof messages, peer: keyof typeof messages, label: string) => {
    const rate = (side: string) => (results[side] ?? []).map(({ perSecond }) => perSecond);
    return compare({
      name: `rate-${ours}-beside-${peer}`,
      unit: 'requests/s',
      ours: rate(ours),
      peer: { name: label, values: rate(peer) },
      notes: { ourBytes: messages[ours].length, peerBytes: messages[peer].length, rows },
    });
  };
  return [
    comparison('write-packed', 'write-numbers', 'JSON, vectors as numbers'),
    comparison('write-packed', 'write-base64', 'JSON, vectors in base64'),
    comparison('read-packed', 'read-json', 'JSON'),
  ];
}

function bytesOf(vector: Float32Array): Buffer {
  return Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength);
}

function packed(path: string, value: unknown): Uint8Array {
  const body = encode(value);
  const lines = [`POST ${path} HTTP/1.1`, 'host: 127.0.0.1', `content-type: ${packedType}`, `accept: ${packedType}`];
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\ncontent-length: ${body.length}\r\n\r\n`), body]);
}
