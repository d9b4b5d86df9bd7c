import type { BenchCase, BenchContext } from '../case.ts';
import { closedLoop, type LoadResult } from '../client/closed-loop.ts';
import { requestBytes } from '../client/http-connection.ts';
import { alternate } from '../measure/alternate.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { SundewServer } from '../processes/sundew-server.ts';
import { zipfBody, zipfDocuments } from '../workloads/zipf-documents.ts';

const clientCounts = [1, 16, 64] as const;
const turnMs = { smoke: 200, full: 1_000, scale: 2_000 } as const;
/** Written with a key before the first turn: from 100,000 on every new answer that is kept takes the place of one. */
const writtenBefore = { smoke: 500, full: 105_000, scale: 105_000 } as const;
const documentCount = { smoke: 5_000, full: 60_000, scale: 60_000 } as const;
const warmUpClients = 64;
const warmUpMs = 1_000;
const keyDigits = 12;
const table = 'writes';

export const keyedWrite: BenchCase = {
  name: 'keyed-write',
  summary: 'one document a request with an Idempotency-Key, beside the same without: time, rate and CPU',
  run,
};

interface Turn extends LoadResult {
  /** CPU of the server process for one request. */
  readonly cpuUs: number;
}

async function run({ placement, tier, pairs, seed, progress }: BenchContext): Promise<Comparison[]> {
  await using server = await SundewServer.start({ placement });
  await server.createTable(table);
  const bodies = bodiesOf(documentCount[tier], seed);
  const path = `/db/v1/tables/${table}/batch`;
  const plain = bodies.map((body) => requestBytes('POST', path, body));
  const keyed = new KeyedMessages(
    bodies.map((body) => requestBytes('POST', path, body, { 'idempotency-key': '0'.repeat(keyDigits) })),
  );
  let sent = 0;
  const next = { plain: () => plain[sent++ % plain.length] as Uint8Array, keyed: () => keyed.next() };
  const turn = async (side: keyof typeof next, clients: number, durationMs: number): Promise<Turn> => {
    const before = server.process.cpuUs();
    const load = await closedLoop({ port: server.port, clients, durationMs, nextMessage: next[side] });
    return { ...load, cpuUs: (server.process.cpuUs() - before) / load.requests };
  };
  progress('keys');
  while (keyed.count < writtenBefore[tier]) await turn('keyed', warmUpClients, warmUpMs);
  await turn('plain', warmUpClients, warmUpMs);
  const comparisons: Comparison[] = [];
  for (const clients of clientCounts) {
    progress(`${clients} clients`);
    const sides = {
      keyed: () => turn('keyed', clients, turnMs[tier]),
      plain: () => turn('plain', clients, turnMs[tier]),
    };
    const results = await alternate(sides, pairs);
    comparisons.push(...besidePlain(clients, results));
  }
  return comparisons;
}

function besidePlain(clients: number, { keyed, plain }: { keyed: Turn[]; plain: Turn[] }): Comparison[] {
  const suffix = clients === 1 ? '1-client' : `${clients}-clients`;
  const beside = (name: string, unit: string, of: (turn: Turn) => number) =>
    compare({
      name: `${name}-${suffix}`,
      unit,
      ours: keyed.map(of),
      peer: { name: 'the same without a key', values: plain.map(of) },
      notes: { clients, durability: 'fsync before the answer' },
    });
  return [
    beside('p50', 'us', ({ p50Us }) => p50Us),
    beside('rate', 'writes/s', ({ perSecond }) => perSecond),
    beside('server-cpu', 'us/request', ({ cpuUs }) => cpuUs),
  ];
}

/** Requests that are used again and again, with another key each time. */
class KeyedMessages {
  count = 0;
  readonly #messages: readonly Uint8Array[];
  readonly #at: number;

  constructor(messages: readonly Uint8Array[]) {
    this.#messages = messages;
    this.#at = Buffer.from(messages[0] ?? []).indexOf('0'.repeat(keyDigits));
  }

  next(): Uint8Array {
    const message = this.#messages[this.count % this.#messages.length] as Uint8Array;
    this.count += 1;
    let left = this.count;
    for (let at = this.#at + keyDigits - 1; at >= this.#at; at -= 1) {
      message[at] = 0x30 + (left % 10);
      left = Math.floor(left / 10);
    }
    return message;
  }
}

function bodiesOf(count: number, seed: number): string[] {
  const documents = zipfDocuments(seed)[Symbol.iterator]();
  return Array.from({ length: count }, () => {
    const { value: document } = documents.next();
    return `{"inserts":{"${document.key}":${zipfBody(document)}}}`;
  });
}
