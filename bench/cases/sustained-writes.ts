import type { BenchCase, BenchContext } from '../case.ts';
import { expectSuccess, HttpConnection, requestBytes } from '../client/http-connection.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { processMemory } from '../measure/process-memory.ts';
import { percentile } from '../measure/statistics.ts';
import { SundewServer } from '../processes/sundew-server.ts';
import { type Batch, batchBodies } from '../workloads/batch-bodies.ts';
import { zipfKey } from '../workloads/zipf-documents.ts';
import { ingestBatchSize } from './ingest-load.ts';

const durationMs = { smoke: 10_000, full: 60_000, scale: 600_000 } as const;
const connectionCount = 8;
const generated = 100_000;
const table = 'sustained';
const path = `/db/v1/tables/${table}/batch`;
const lastWrite = '{"inserts":{"last":{"title":"the last"}},"sync_level":"full_text"}';
const memoryPollMs = 250;
/** After a refusal: a client that honoured `Retry-After` would hide how often it is refused. */
const refusalPauseMs = 20;

export const sustainedWrites: BenchCase = {
  name: 'sustained-writes',
  summary: 'eight connections write batches of 1,000 as fast as they can (scale: ten minutes); how many are refused',
  run,
};

/** The server may use all cores, as it does by default: the client, which does next to nothing, shares them. */
async function run(context: BenchContext): Promise<Comparison[]> {
  const bodies = await batchBodies(generated, ingestBatchSize, { seed: context.seed });
  await using server = await SundewServer.start({ placement: context.placement, role: 'all' });
  await server.createTable(table);
  const result = await writeFor(durationMs[context.tier], server, bodies);
  const notes = {
    connections: connectionCount,
    batch: ingestBatchSize,
    documents: result.documents,
    docsPerSecond: Math.round(result.documents / result.seconds),
    answerP50Ms: Math.round(result.p50Ms),
    foundAfterSeconds: result.foundSeconds,
    anonymousMiB: Math.round(result.anonymousBytes / 2 ** 20),
  };
  const line = (name: string, unit: string, value: number) => compare({ name, unit, ours: [value], notes });
  return [
    compare({
      name: 'refusals',
      unit: 'answers 503',
      ours: [result.refusals],
      aim: { kind: 'at_most', value: 0 },
      notes,
    }),
    line('longest-answer', 'ms', result.longestMs),
    line('resident', 'MiB', result.residentBytesMax / 2 ** 20),
  ];
}

interface SustainedResult {
  documents: number;
  seconds: number;
  refusals: number;
  p50Ms: number;
  longestMs: number;
  residentBytesMax: number;
  /** Of the resident memory at the end, what is no file. */
  anonymousBytes: number;
  /** From the last answer until all is found. */
  foundSeconds: number;
}

async function writeFor(lengthMs: number, server: SundewServer, bodies: readonly Batch[]): Promise<SustainedResult> {
  const connections = await Promise.all(
    Array.from({ length: connectionCount }, () => HttpConnection.open(server.port)),
  );
  const templates = bodies.map(({ body, documents }, at) => new KeyedMessage(body, at * documents, documents));
  const times: number[] = [];
  let [refusals, batches, residentBytesMax] = [0, 0, 0];
  const start = performance.now();
  const end = start + lengthMs;
  const memory = setInterval(() => {
    residentBytesMax = Math.max(residentBytesMax, server.process.residentBytes());
  }, memoryPollMs);
  const send = async (connection: HttpConnection, message: Uint8Array) => {
    for (;;) {
      const sent = performance.now();
      const response = await connection.send(message);
      times.push(performance.now() - sent);
      if (response.status !== 503) return expectSuccess(response);
      refusals += 1;
      await Bun.sleep(refusalPauseMs);
    }
  };
  await Promise.all(
    connections.map(async (connection) => {
      while (performance.now() < end) {
        const template = templates[batches % templates.length];
        if (!template) throw new RangeError('there are no batches to send');
        batches += 1;
        await send(connection, template.of((batches - 1) * ingestBatchSize));
      }
    }),
  );
  const answered = performance.now();
  clearInterval(memory);
  const anonymousBytes = processMemory(server.process.pid, () => false).anonymous;
  for (const connection of connections) connection.close();
  await server.request('POST', path, lastWrite);
  return {
    documents: batches * ingestBatchSize,
    seconds: (answered - start) / 1_000,
    refusals,
    p50Ms: percentile(times, 0.5),
    longestMs: percentile(times, 1),
    residentBytesMax,
    anonymousBytes,
    foundSeconds: (performance.now() - answered) / 1_000,
  };
}

/** A batch that is sent again and again, each time of documents that were not there. */
class KeyedMessage {
  readonly #bytes: Uint8Array;
  /** Where the number of each key begins. */
  readonly #places: number[] = [];

  /** `first`: number of the first key of the batch. */
  constructor(body: Uint8Array, first: number, documents: number) {
    this.#bytes = requestBytes('POST', path, body);
    const bytes = Buffer.from(this.#bytes.buffer, this.#bytes.byteOffset, this.#bytes.byteLength);
    let at = 0;
    for (let number = first; number < first + documents; number += 1) {
      const key = zipfKey(number);
      at = bytes.indexOf(`"${key}":`, at);
      if (at < 0) throw new RangeError(`the batch lacks the key ${key}`);
      this.#places.push(at + 1 + key.indexOf(':') + 1);
    }
  }

  /** The message with keys from `first` on. */
  of(first: number): Uint8Array {
    const message = Buffer.from(this.#bytes);
    for (const [offset, place] of this.#places.entries()) {
      const key = zipfKey(first + offset);
      message.write(key.slice(key.indexOf(':') + 1), place, 'latin1');
    }
    return message;
  }
}
