import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { BackupPlace } from '../support/backup-place.ts';
import { runSeed, SeededRandom } from '../support/fault/seeded-random.ts';
import { restore } from '../support/restore-jobs.ts';
import type { TestServer } from '../support/test-server.ts';

/**
 * Random writes, deletions, repeated insertions and changes of indexes between backups, each full or with what has changed
 * since any earlier one: a restore gives back every document byte for byte, its vectors, edges and counters as they were, over
 * the table that has gone on and on another server, which is restored over again and again.
 */

setDefaultTimeout(240_000);

const rounds = 60;
const seed = runSeed();
const random = new SeededRandom(seed);
const place = new BackupPlace();
/** The state of the table at each backup. */
const taken = new Map<string, unknown>();
let server: TestServer;

const keys = [
  'a',
  'same',
  'z',
  '0',
  '~',
  'a,"document":{}',
  'back\\slash',
  'quote"',
  ' ',
  '%2F..',
  'a/b',
  '\u2028',
  'e\u0301',
  'é',
  '😀',
  '{"id":1}',
  'k'.repeat(1_024),
  ...Array.from({ length: 20 }, (_, n) => `k${n}`),
];
/** Members of documents as they are written. */
const members = [
  '"n":1',
  '"n":-0.0',
  '"n":0.1000',
  '"n":9007199254740992',
  '"n":5e-324',
  '"n":1E+2',
  '"n":null',
  '"tag":""',
  '"tag":"odd"',
  '"tag":"a,\\"document\\":{}}"',
  '"tag":"\\u0000\\u2028\\ud83d\\ude00\u2028😀"',
  '"document":{"document":{"id":1,"deleted":true}}',
  '"deep":[[[[[[[[{"":{"":[]}}]]]]]]]]',
  '"parts":{"1":"AAAA"},\t"key" : "x"',
  `"long":"${'x'.repeat(70_000)}"`,
];

function randomText(): string {
  const chosen = members.filter(() => random.chance(0.15));
  const named = new Map(chosen.map((each) => [each.slice(0, each.indexOf(':')), each]));
  const vectors: string[] = [];
  if (hasVectors && random.chance(0.6)) vectors.push(`"v":[${random.between(1, 9)},1,-0.5]`);
  if (random.chance(0.4)) vectors.push(`"s":{"indices":[${random.between(0, 99)}],"values":[0.25]}`);
  if (vectors.length > 0) named.set('_embeddings', `"_embeddings":{${vectors.join(',')}}`);
  if (random.chance(0.3)) {
    const target = JSON.stringify(random.pick(keys));
    named.set('_edges', `"_edges":{"g":{"to":[{"target":${target},"weight":${random.between(1, 9)}}]}}`);
  }
  return `{${[...named.values()].join(',')}}`;
}

let hasVectors = true;
const vectorIndex = { type: 'embeddings', external: true, dimension: 3 };
const path = '/db/v1/tables/rows';

async function create(): Promise<void> {
  const text = { type: 'string', 'x-service-types': ['keyword'] };
  const properties = { n: { type: 'number' }, tag: text };
  const schema = { ttl: { duration: '24h' }, document_schemas: { row: { schema: { type: 'object', properties } } } };
  const indexes = {
    v: vectorIndex,
    s: { type: 'embeddings', external: true, sparse: true },
    counters: { type: 'algebraic', derive_from_schema: true },
    g: { type: 'graph' },
  };
  expect((await server.send('POST', path, { num_shards: 3, indexes, schema })).status).toBe(200);
}

async function textOf(from: TestServer, method: string, at: string, body?: object): Promise<string> {
  const response = await fetch(`${from.url}${at}`, { method, ...(body && { body: JSON.stringify(body) }) });
  return `${response.status} ${await response.text()}`;
}

/** All of the table, as clients see it; without what another moment or another place of it would change. */
async function stateOf(from: TestServer): Promise<unknown> {
  const documents: Record<string, unknown> = {};
  for (const key of keys) {
    const id = encodeURIComponent(key);
    const lookup = await textOf(from, 'GET', `${path}/lookup/${id}?fields=*,_embeddings`);
    const { body } = await from.send<{ edges?: object[] }>('GET', `${path}/indexes/g/edges?key=${id}&direction=both`);
    documents[key] = { lookup, edges: body.edges };
  }
  const aggregations = { tags: { type: 'terms', field: 'tag' }, n: { type: 'stats', field: 'n' } };
  const counted = await from.send<{ responses: { hits: { total: object }; aggregations: object }[] }>(
    'POST',
    `${path}/query`,
    { full_text_search: { match_all: {} }, limit: 0, aggregations },
  );
  const found = counted.body.responses.map((each) => [each.hits.total, each.aggregations]);
  const names = (await from.send<{ name: string }[]>('GET', `${path}/indexes`)).body;
  return { documents, found, names: JSON.stringify(names).includes('"v"') };
}

async function change(): Promise<void> {
  const inserts = keys.filter(() => random.chance(0.2)).map((key) => `${JSON.stringify(key)}:${randomText()}`);
  const deletes = keys.filter(
    (key) => random.chance(0.15) && !inserts.some((each) => each.startsWith(JSON.stringify(key))),
  );
  // A batch of nothing is refused.
  if (inserts.length + deletes.length === 0) return;
  const body = `{"inserts":{${inserts.join(',')}},"deletes":${JSON.stringify(deletes)},"sync_level":"full_index"}`;
  const { status, body: answer } = await server.send('POST', `${path}/batch`, body);
  expect([status, answer]).toEqual([201, answer]);
}

async function changeIndex(): Promise<void> {
  const answer = hasVectors
    ? await server.send('DELETE', `${path}/indexes/v?keep_vectors=${random.chance(0.5)}`)
    : await server.send('POST', `${path}/indexes/v`, vectorIndex);
  expect(answer.status).toBeLessThan(300);
  hasVectors = !hasVectors;
}

async function backUp(): Promise<void> {
  const id = `b${taken.size}`;
  const base = random.chance(0.7) && taken.size > 0 ? random.pick([...taken.keys()]) : undefined;
  const format = random.pick(['portable', 'native']);
  const request = { backup_id: id, location: place.location, format, ...(base && { base_backup_id: base }) };
  expect((await server.send('POST', '/db/v1/backup', request)).body).toMatchObject({ status: 'completed' });
  taken.set(id, await stateOf(server));
}

async function expectRestored(into: TestServer, id: string): Promise<void> {
  const job = await restore(into, { backup_id: id, location: place.location, restore_mode: 'overwrite' });
  expect([id, job]).toMatchObject([id, { phase: 'succeeded' }]);
  expect([id, await stateOf(into)]).toEqual([id, taken.get(id)]);
}

beforeAll(async () => {
  server = await place.server({ file: 'indexing: {checkpoint_interval: 1s}\n' });
  await create();
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  place[Symbol.dispose]();
});

test(`every backup gives back what was there at its time (seed ${seed})`, async () => {
  for (let round = 0; round < rounds; round += 1) {
    const chance = random.next();
    if (chance < 0.55) await change();
    else if (chance < 0.6) await changeIndex();
    else if (chance < 0.85 || taken.size === 0) await backUp();
    else {
      const id = random.pick([...taken.keys()]);
      await expectRestored(server, id);
      hasVectors = (taken.get(id) as { names: boolean }).names;
    }
  }
  await using other = await place.server();
  for (const id of taken.keys()) await expectRestored(other, id);
});
