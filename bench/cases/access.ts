import { digestOf, newKeySecret } from '../../src/access/authentication/key-secret.ts';
import type { AccessChange, ApiKeyRecord } from '../../src/storage/catalog/access-records.ts';
import { withOfflineAccess } from '../../src/storage/catalog/offline-access.ts';
import type { BenchCase, BenchContext } from '../case.ts';
import { closedLoop } from '../client/closed-loop.ts';
import { requestBytes } from '../client/http-connection.ts';
import { alternate } from '../measure/alternate.ts';
import { type Comparison, compare } from '../measure/comparison.ts';
import type { ChildProcess } from '../processes/child-process.ts';
import { SundewServer } from '../processes/sundew-server.ts';

const turnMs = { smoke: 250, full: 2_000, scale: 4_000 } as const;
/** The compilers of the runtime work beside the first thousands of requests. */
const warmUpMs = 4_000;
const clients = 32;
const documents = 1_000;
const keyCount = 10_000;
const filterCount = 1_000;
const table = 'texts';

export const access: BenchCase = {
  name: 'access',
  summary: `a lookup and ten hits with ${keyCount} keys and ${filterCount} row filters beside none; a row filter beside a filter`,
  run,
};

const lookupPath = `/db/v1/tables/${table}/lookup/doc:7`;
const queryPath = `/db/v1/tables/${table}/query`;
const tenHits = '{"filter_prefix":"doc:","limit":10}';
const half = { term: { half: 'yes' } };

async function run(context: BenchContext): Promise<Comparison[]> {
  const { placement, tier, pairs } = context;
  await using open = await loaded(context);
  await using guarded = await loaded(context);
  let secrets: Secrets | undefined;
  // Both: a process that has just read its files from disk differs from one that wrote them.
  await open.restart({ placement });
  await guarded.restart({
    placement,
    arguments: ['--auth', 'true'],
    environment: { SUNDEW__AUDIT__FILE: 'none' },
    async prepare(directory) {
      secrets = await fill(directory);
    },
  });
  if (secrets === undefined) throw new Error('the keys were not made');
  const { readers, filtered } = secrets;
  const asked = (filter: object) => JSON.stringify({ filter_query: filter, filter_prefix: 'doc:', limit: 10 });
  const sides = {
    'lookup-open': { server: open, messages: [requestBytes('GET', lookupPath)] },
    'lookup-guarded': {
      server: guarded,
      messages: readers.map((key) => requestBytes('GET', lookupPath, undefined, key)),
    },
    'ten-hits-open': { server: open, messages: [requestBytes('POST', queryPath, tenHits)] },
    'ten-hits-guarded': {
      server: guarded,
      messages: readers.map((key) => requestBytes('POST', queryPath, tenHits, key)),
    },
    'half-asked': {
      server: guarded,
      messages: readers.map((key) => requestBytes('POST', queryPath, asked(half), key)),
    },
    'half-row-filter': { server: guarded, messages: [requestBytes('POST', queryPath, tenHits, filtered)] },
  };
  for (const { process } of [open, guarded]) process.suspend();
  const turns = (durationMs: number) =>
    Object.fromEntries(
      Object.entries(sides).map(([name, { server, messages }]) => [
        name,
        () => server.process.alone(() => measure(server.process, messages, durationMs)),
      ]),
    );
  await alternate(turns(warmUpMs), 1);
  const results = await alternate(turns(turnMs[tier]), pairs);
  const comparison = (name: string, ours: keyof typeof sides, peer: keyof typeof sides, label: string, most: number) =>
    compare({
      name: `server-cpu-${name}`,
      unit: 'us/request',
      ours: results[ours] ?? [],
      peer: { name: label, values: results[peer] ?? [] },
      aim: { kind: 'at_most', value: most },
      notes: { clients, keys: keyCount, rowFilters: filterCount },
    });
  return [
    comparison('lookup', 'lookup-guarded', 'lookup-open', 'without authentication', 1.03),
    comparison('ten-hits', 'ten-hits-guarded', 'ten-hits-open', 'without authentication', 1.03),
    comparison('row-filter', 'half-row-filter', 'half-asked', 'the same filter in the request', 1.3),
  ];
}

async function loaded({ placement }: BenchContext): Promise<SundewServer> {
  const server = await SundewServer.start({ placement });
  await server.createTable(table);
  const inserts = Object.fromEntries(
    Array.from({ length: documents }, (_, at) => [
      `doc:${at}`,
      { title: `Document ${at}`, half: at % 2 === 0 ? 'yes' : 'no', text: 'some words of a document '.repeat(8) },
    ]),
  );
  const body = JSON.stringify({ inserts, sync_level: 'full_index' });
  await server.request('POST', `/db/v1/tables/${table}/batch`, body);
  return server;
}

interface Secrets {
  readonly readers: readonly string[];
  readonly filtered: string;
}

/** Users, keys and row filters, all in one transaction. Returns what stands after `Bearer`. */
async function fill(directory: string): Promise<Secrets> {
  const keys: ApiKeyRecord[] = [];
  const key = (userName: string): string => {
    const { keyId, secret, encoded } = newKeySecret();
    const secretSha256 = digestOf(secret);
    const rest = { permissions: null, rowFilter: null, createdMs: 0, expiresMs: null };
    keys.push({ keyId, name: 'bench', userName, secretSha256, ...rest });
    return encoded;
  };
  const names = ['reader', 'filtered', ...Array.from({ length: filterCount - 1 }, (_, at) => `user-${at}`)];
  const readers = Array.from({ length: keyCount - 1 }, () => key('reader'));
  const filtered = key('filtered');
  const put: AccessChange['put'] = {
    users: names.map((name) => ({ name, passwordHash: null, metadata: '{}', createdMs: 0 })),
    grants: names.map((subject) => ({ subject, resourceType: 'table', resource: table, level: 'read' })),
    rowFilters: names.slice(1).map((subject) => ({ subject, tableName: table, filter: JSON.stringify(half) })),
    apiKeys: keys,
  };
  await withOfflineAccess(directory, (store) => store.change({ put }));
  return { readers, filtered };
}

/** CPU of the server process for one request, in microseconds. */
async function measure(server: ChildProcess, messages: readonly Uint8Array[], durationMs: number): Promise<number> {
  let at = 0;
  const nextMessage = (): Uint8Array => {
    at = (at + 1) % messages.length;
    return messages[at] as Uint8Array;
  };
  const before = server.cpuUs();
  const { requests } = await closedLoop({ port: server.port, clients, durationMs, nextMessage });
  return (server.cpuUs() - before) / requests;
}
