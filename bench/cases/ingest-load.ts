import { expectSuccess, HttpConnection, requestBytes } from '../client/http-connection.ts';
import type { HttpResponse } from '../client/http-response.ts';
import type { SundewServer } from '../processes/sundew-server.ts';
import type { Batch } from '../workloads/batch-bodies.ts';

export const ingestBatchSize = 1_000;

/** Batches in flight unless told otherwise: the next one is on its way while the last is being written. */
const lanes = 2;

export interface IngestResult {
  documents: number;
  /** From the first byte sent until every document is durable and visible to search. */
  seconds: number;
  /** Answers 503 that had to be waited out: the server asked for a slower pace. */
  refusals: number;
}

/**
 * Loads the batches into a fresh table through the public route and drops it. The last batch must carry
 * `sync_level: full_text` (with vectors `full_index`), so that the clock stops when the whole load is searchable.
 */
export async function ingestOnce(
  server: SundewServer,
  table: string,
  batches: readonly Batch[],
  { definition = {}, connections = lanes }: { definition?: object; connections?: number } = {},
): Promise<IngestResult> {
  await server.createTable(table, definition);
  const path = `/db/v1/tables/${table}/batch`;
  const messages = batches.map((batch) => requestBytes('POST', path, batch.body));
  const { seconds, refusals } = await loadOnce(server.port, messages, connections, expectSuccess);
  await server.dropTable(table);
  return { documents: batches.reduce((sum, batch) => sum + batch.documents, 0), seconds, refusals };
}

/**
 * Sends the messages over several connections, the last one when all others are answered; returns how long it took. `check`
 * throws for an answer that is not a success. A 503 is waited out and sent again.
 */
export async function loadOnce(
  port: number,
  messages: readonly Uint8Array[],
  connectionCount: number,
  check: (response: HttpResponse) => unknown,
): Promise<{ seconds: number; refusals: number }> {
  const connections = await Promise.all(Array.from({ length: connectionCount }, () => HttpConnection.open(port)));
  let refusals = 0;
  const send = async (connection: HttpConnection, message: Uint8Array) => {
    let response = await connection.send(message);
    while (response.status === 503) {
      refusals += 1;
      await Bun.sleep(20);
      response = await connection.send(message);
    }
    check(response);
  };
  const [last, rest] = [messages.at(-1), messages.slice(0, -1)];
  const start = performance.now();
  let next = 0;
  await Promise.all(
    connections.map(async (connection) => {
      for (let message = rest[next++]; message; message = rest[next++]) await send(connection, message);
    }),
  );
  const first = connections[0];
  if (last && first) await send(first, last);
  const seconds = (performance.now() - start) / 1_000;
  for (const connection of connections) connection.close();
  return { seconds, refusals };
}
