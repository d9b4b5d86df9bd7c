import { join } from 'node:path';
import { digestOf, newKeySecret } from '../../src/access/authentication/key-secret.ts';
import type { AccessChange, ApiKeyRecord } from '../../src/storage/catalog/access-records.ts';
import { withOfflineAccess } from '../../src/storage/catalog/offline-access.ts';
import type { BenchCase, BenchContext } from '../case.ts';
import { burst, openConnections } from '../client/closed-loop.ts';
import { type HttpConnection, requestBytes } from '../client/http-connection.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { mirroredTurns, type PairedCost, pairedCost } from '../measure/paired-turns.ts';
import { freePort } from '../processes/child-process.ts';
import { SundewServer } from '../processes/sundew-server.ts';

/** Rounds of four turns to a pair, and requests to a turn, which then takes a few milliseconds. */
const roundsPerPair = { smoke: 10, full: 150, scale: 150 } as const;
const requestsPerTurn = { lookup: 128, query: 48 } as const;
/** The compilers of the runtime work beside the first thousands of requests. */
const warmUpRequests = { smoke: 500, full: 5_000, scale: 5_000 } as const;
const clients = 32;
const documents = 1_000;
const keyCount = 10_000;
const filterCount = 1_000;
const table = 'texts';
const fewLabel = 'two keys and one row filter';
const script = join(import.meta.dir, '..', 'sundew', 'access-service.ts');

export const access: BenchCase = {
  name: 'access',
  summary: `a lookup and ten hits with ${keyCount} keys and ${filterCount} row filters, beside none and beside few; a row filter`,
  run,
};

const lookupPath = `/db/v1/tables/${table}/lookup/doc:7`;
const queryPath = `/db/v1/tables/${table}/query`;
const tenHits = '{"filter_prefix":"doc:","limit":10}';
const half = { term: { half: 'yes' } };

async function run({ placement, tier, pairs, progress }: BenchContext): Promise<Comparison[]> {
  await using server = await SundewServer.start({ placement });
  await load(server);
  const ports = { open: freePort(), few: freePort() };
  let secrets: Secrets | undefined;
  await server.restart({
    placement,
    program: { script, arguments: (directory, port) => programArguments({ directory, port, ...ports }) },
    async prepare(directory) {
      secrets = await fill(directory);
    },
  });
  if (secrets === undefined) throw new Error('the keys were not made');
  const sides = sidesOf({ guarded: server.port, ...ports }, secrets);
  const cpuUs = () => server.process.cpuUs();
  const comparisons: Comparison[] = [];
  for (const { name, ours, peer, label, most } of compared) {
    progress(name);
    using oursTurns = await Turns.open(sides[ours], cpuUs);
    using peerTurns = await Turns.open(sides[peer], cpuUs);
    const take = { ours: async () => [await oursTurns.take()], peer: async () => [await peerTurns.take()] };
    for (const turns of [oursTurns, peerTurns]) await turns.take(warmUpRequests[tier]);
    const costs: PairedCost[] = [];
    for (let pair = 0; pair < pairs; pair += 1) {
      const sums = await mirroredTurns(take, roundsPerPair[tier]);
      costs.push(pairedCost(sums.ours.flat(), sums.peer.flat()));
    }
    comparisons.push(
      compare({
        name: `server-cpu-${name}`,
        unit: 'us/request',
        ours: costs.map((cost) => cost.ours),
        peer: { name: label, values: costs.map((cost) => cost.peer) },
        ...(most === undefined ? {} : { aim: { kind: 'at_most', value: most } }),
        notes: { clients, keys: keyCount, rowFilters: filterCount },
      }),
    );
  }
  return comparisons;
}

type SideName = (typeof sideNames)[number];
const sideNames = [
  'lookup-open',
  'lookup-guarded',
  'lookup-few',
  'ten-hits-open',
  'ten-hits-guarded',
  'ten-hits-few',
  'half-asked',
  'half-row-filter',
  'half-row-filter-few',
] as const;

const without = 'the same requests, without authentication';
/** The first two say what the others cannot tell apart. */
const compared: readonly { name: string; ours: SideName; peer: SideName; label: string; most?: number }[] = [
  { name: 'lookup-same', ours: 'lookup-open', peer: 'lookup-open', label: 'the same once more' },
  { name: 'ten-hits-same', ours: 'ten-hits-open', peer: 'ten-hits-open', label: 'the same once more' },
  { name: 'lookup', ours: 'lookup-guarded', peer: 'lookup-open', label: without, most: 1.03 },
  { name: 'ten-hits', ours: 'ten-hits-guarded', peer: 'ten-hits-open', label: without, most: 1.03 },
  {
    name: 'row-filter',
    ours: 'half-row-filter',
    peer: 'half-asked',
    label: 'the same filter in the request',
    most: 1.3,
  },
  { name: 'lookup-of-many', ours: 'lookup-guarded', peer: 'lookup-few', label: fewLabel, most: 1.03 },
  { name: 'ten-hits-of-many', ours: 'ten-hits-guarded', peer: 'ten-hits-few', label: fewLabel, most: 1.03 },
  { name: 'row-filter-of-many', ours: 'half-row-filter', peer: 'half-row-filter-few', label: fewLabel, most: 1.03 },
];

interface Side {
  readonly port: number;
  readonly messages: readonly Uint8Array[];
  readonly requestsPerTurn: number;
}

function sidesOf(
  { guarded, open, few }: { readonly guarded: number; readonly open: number; readonly few: number },
  { readers, filtered, fewReader, fewFiltered }: Secrets,
): Record<SideName, Side> {
  const asked = JSON.stringify({ filter_query: half, filter_prefix: 'doc:', limit: 10 });
  const lookups = (port: number, keys: readonly string[]): Side => ({
    port,
    messages: keys.map((key) => requestBytes('GET', lookupPath, undefined, bearer(key))),
    requestsPerTurn: requestsPerTurn.lookup,
  });
  const queries = (port: number, keys: readonly string[], body = tenHits): Side => ({
    port,
    messages: keys.map((key) => requestBytes('POST', queryPath, body, bearer(key))),
    requestsPerTurn: requestsPerTurn.query,
  });
  return {
    // With the keys too: the runtime reads the header whether somebody asks for it or not.
    'lookup-open': lookups(open, readers),
    'lookup-guarded': lookups(guarded, readers),
    'lookup-few': lookups(few, [fewReader]),
    'ten-hits-open': queries(open, readers),
    'ten-hits-guarded': queries(guarded, readers),
    'ten-hits-few': queries(few, [fewReader]),
    'half-asked': queries(guarded, readers, asked),
    'half-row-filter': queries(guarded, [filtered]),
    'half-row-filter-few': queries(few, [fewFiltered]),
  };
}

/** Turns of one side over connections of its own. */
class Turns implements Disposable {
  readonly #side: Side;
  readonly #connections: readonly HttpConnection[];
  readonly #cpuUs: () => number;
  #at = 0;

  private constructor(side: Side, connections: readonly HttpConnection[], cpuUs: () => number) {
    this.#side = side;
    this.#connections = connections;
    this.#cpuUs = cpuUs;
  }

  static async open(side: Side, cpuUs: () => number): Promise<Turns> {
    return new Turns(side, await openConnections(side.port, clients), cpuUs);
  }

  /** CPU of the server process for one of these requests, in microseconds. */
  async take(requests = this.#side.requestsPerTurn): Promise<number> {
    const before = this.#cpuUs();
    await burst(this.#connections, requests, this.#next);
    return (this.#cpuUs() - before) / requests;
  }

  readonly #next = (): Uint8Array => {
    const { messages } = this.#side;
    this.#at = (this.#at + 1) % messages.length;
    return messages[this.#at] as Uint8Array;
  };

  [Symbol.dispose](): void {
    for (const connection of this.#connections) connection.close();
  }
}

function bearer(key: string): Record<string, string> {
  return { authorization: `Bearer ${key}` };
}

function programArguments(values: Readonly<Record<string, string | number>>): string[] {
  return Object.entries(values).flatMap(([name, value]) => [`--${name}`, String(value)]);
}

async function load(server: SundewServer): Promise<void> {
  await server.createTable(table);
  const inserts = Object.fromEntries(
    Array.from({ length: documents }, (_, at) => [
      `doc:${at}`,
      { title: `Document ${at}`, half: at % 2 === 0 ? 'yes' : 'no', text: 'some words of a document '.repeat(8) },
    ]),
  );
  const body = JSON.stringify({ inserts, sync_level: 'full_index' });
  await server.request('POST', `/db/v1/tables/${table}/batch`, body);
}

/** The credential after `Bearer`. */
interface Secrets {
  readonly readers: readonly string[];
  readonly filtered: string;
  readonly fewReader: string;
  readonly fewFiltered: string;
}

/** Users, keys and row filters, all in one transaction. */
async function fill(directory: string): Promise<Secrets> {
  const keys: ApiKeyRecord[] = [];
  const key = (userName: string): string => {
    const { keyId, secret, encoded } = newKeySecret();
    const secretSha256 = digestOf(secret);
    const rest = { permissions: null, rowFilter: null, createdMs: 0, expiresMs: null };
    keys.push({ keyId, name: 'bench', userName, secretSha256, ...rest });
    return encoded;
  };
  const hidden = ['filtered', 'few-filtered', ...Array.from({ length: filterCount - 2 }, (_, at) => `user-${at}`)];
  const names = ['reader', 'few-reader', ...hidden];
  const readers = Array.from({ length: keyCount - 3 }, () => key('reader'));
  const [filtered, fewReader, fewFiltered] = [key('filtered'), key('few-reader'), key('few-filtered')];
  const put: AccessChange['put'] = {
    users: names.map((name) => ({ name, passwordHash: null, metadata: '{}', createdMs: 0 })),
    grants: names.map((subject) => ({ subject, resourceType: 'table', resource: table, level: 'read' })),
    rowFilters: hidden.map((subject) => ({ subject, tableName: table, filter: JSON.stringify(half) })),
    apiKeys: keys,
  };
  await withOfflineAccess(directory, (store) => store.change({ put }));
  return { readers, filtered, fewReader, fewFiltered };
}
