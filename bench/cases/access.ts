import { join } from 'node:path';
import { digestOf, newKeySecret } from '../../src/access/authentication/key-secret.ts';
import type { AccessChange, ApiKeyRecord } from '../../src/storage/catalog/access-records.ts';
import { withOfflineAccess } from '../../src/storage/catalog/offline-access.ts';
import type { BenchCase, BenchContext } from '../case.ts';
import { closedLoop } from '../client/closed-loop.ts';
import { requestBytes } from '../client/http-connection.ts';
import { alternate } from '../measure/alternate.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import { type ChildProcess, freePort } from '../processes/child-process.ts';
import { SundewServer } from '../processes/sundew-server.ts';

/** Short turns, and several to a pair: what else the machine does then falls on all sides. The CPU clock ticks every 10 ms. */
const turnMs = { smoke: 250, full: 1_000, scale: 1_000 } as const;
const turnsPerPair = 4;
/** The compilers of the runtime work beside the first thousands of requests. */
const warmUpMs = 4_000;
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

async function run({ placement, tier, pairs }: BenchContext): Promise<Comparison[]> {
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
  const { readers, filtered, fewReader, fewFiltered } = secrets;
  const guarded = server.port;
  const asked = JSON.stringify({ filter_query: half, filter_prefix: 'doc:', limit: 10 });
  const lookups = (keys: readonly string[]) => keys.map((key) => requestBytes('GET', lookupPath, undefined, key));
  const queries = (keys: readonly string[], body = tenHits) =>
    keys.map((key) => requestBytes('POST', queryPath, body, key));
  const sides = {
    // With the keys too: the runtime reads the header whether somebody asks for it or not.
    'lookup-open': { port: ports.open, messages: lookups(readers) },
    'lookup-guarded': { port: guarded, messages: lookups(readers) },
    'lookup-few': { port: ports.few, messages: lookups([fewReader]) },
    'ten-hits-open': { port: ports.open, messages: queries(readers) },
    'ten-hits-guarded': { port: guarded, messages: queries(readers) },
    'ten-hits-few': { port: ports.few, messages: queries([fewReader]) },
    'half-asked': { port: guarded, messages: queries(readers, asked) },
    'half-row-filter': { port: guarded, messages: queries([filtered]) },
    'half-row-filter-few': { port: ports.few, messages: queries([fewFiltered]) },
  };
  const turns = (durationMs: number) =>
    Object.fromEntries(
      Object.entries(sides).map(([name, side]) => [name, () => measure(server.process, side, durationMs)]),
    );
  await alternate(turns(warmUpMs), 1);
  const results = await alternate(turns(turnMs[tier]), pairs * turnsPerPair);
  const comparison = (name: string, ours: keyof typeof sides, peer: keyof typeof sides, label: string, most: number) =>
    compare({
      name: `server-cpu-${name}`,
      unit: 'us/request',
      ours: results[ours] ?? [],
      peer: { name: label, values: results[peer] ?? [] },
      aim: { kind: 'at_most', value: most },
      notes: { clients, keys: keyCount, rowFilters: filterCount },
    });
  const without = 'the same requests, without authentication';
  return [
    comparison('lookup', 'lookup-guarded', 'lookup-open', without, 1.03),
    comparison('ten-hits', 'ten-hits-guarded', 'ten-hits-open', without, 1.03),
    comparison('row-filter', 'half-row-filter', 'half-asked', 'the same filter in the request', 1.3),
    comparison('lookup-of-many', 'lookup-guarded', 'lookup-few', fewLabel, 1.03),
    comparison('ten-hits-of-many', 'ten-hits-guarded', 'ten-hits-few', fewLabel, 1.03),
    comparison('row-filter-of-many', 'half-row-filter', 'half-row-filter-few', fewLabel, 1.03),
  ];
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

interface Side {
  readonly port: number;
  readonly messages: readonly Uint8Array[];
}

/** CPU of the server process for one request, in microseconds. */
async function measure(server: ChildProcess, { port, messages }: Side, durationMs: number): Promise<number> {
  let at = 0;
  const nextMessage = (): Uint8Array => {
    at = (at + 1) % messages.length;
    return messages[at] as Uint8Array;
  };
  const before = server.cpuUs();
  const { requests } = await closedLoop({ port, clients, durationMs, nextMessage });
  return (server.cpuUs() - before) / requests;
}
