import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ChildServer } from '../support/fault/child-server.ts';
import { type JsonDocument, WireClient } from '../support/fault/wire-client.ts';

setDefaultTimeout(120_000);

let directory: string;
let server: ChildServer;
let wire: WireClient;
const spread = ['!k', 'k', '~k'];

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'sundew-concurrency-'));
  server = await ChildServer.start({ dataDir: join(directory, 'data') });
  wire = new WireClient(server.url);
  await wire.createTable('one', { num_shards: 3 });
  await wire.createTable('two', { num_shards: 3 });
});

afterAll(async () => {
  await server.kill();
  rmSync(directory, { recursive: true, force: true });
});

const clients = Array.from({ length: 25 }, (_, i) => i);

test('25 clients that increment one counter lose nothing', async () => {
  const operations = [{ op: '$inc', path: '$.n', value: 1 }];
  await Promise.all(
    clients.map(async () => {
      for (let i = 0; i < 20; i += 1) {
        const answer = await wire.batch('one', { transforms: [{ key: 'counter', operations, upsert: true }] });
        expect(answer.status).toBe(201);
      }
    }),
  );
  expect((await wire.lookup('one', 'counter'))?.document).toHaveProperty('n', 500);
});

test('writers of the same six documents in two tables leave those of one of them', async () => {
  const inserts = (writer: number) => Object.fromEntries(spread.map((key) => [key, { writer }]));
  for (let round = 0; round < 10; round += 1) {
    await Promise.all(
      clients.map(async (client) => {
        const writer = round * 100 + client;
        const answer = await wire.multiBatch({ one: { inserts: inserts(writer) }, two: { inserts: inserts(writer) } });
        expect(answer.status).toBe(201);
      }),
    );
    const writers = new Set<unknown>();
    for (const table of ['one', 'two']) {
      for (const key of spread) writers.add((await wire.lookup(table, key))?.document.writer);
    }
    expect(writers.size).toBe(1);
  }
});

test('a part that cannot be written keeps all the others from being written', async () => {
  const before = await Promise.all(spread.map((key) => wire.lookup('one', key)));
  const good = { inserts: Object.fromEntries(spread.map((key) => [key, { writer: 'bad' }])) };
  const answers = [
    await wire.multiBatch({ one: good, two: { inserts: { '': {} } } }),
    await wire.multiBatch({ one: good, missing: { inserts: { a: {} } } }),
    await wire.multiBatch({ one: good, two: { inserts: { a: { _embeddings: { i: [1] } } } } }),
    await wire.commit([{ table: 'two', key: '!k', version: '1' }], { one: good }),
  ];
  expect(answers.map(({ status }) => status)).toEqual([400, 404, 400, 409]);
  expect(answers.at(-1)?.body).toMatchObject({ status: 'aborted', conflict: { table: 'two', key: '!k' } });
  expect(await Promise.all(spread.map((key) => wire.lookup('one', key)))).toEqual(before);
});

test('commits that read before they write lose no increment over three ranges and two tables', async () => {
  const places = ['one', 'two'].flatMap((table) => spread.map((key) => ({ table, key: `${key}-occ` })));
  const tablesOf = (n: number) => {
    const of = (table: string): Record<string, JsonDocument> =>
      Object.fromEntries(places.filter((place) => place.table === table).map(({ key }) => [key, { n }]));
    return { one: { inserts: of('one') }, two: { inserts: of('two') } };
  };
  let committed = 0;
  await Promise.all(
    clients.slice(0, 8).map(async () => {
      for (let tries = 0; tries < 15; tries += 1) {
        const reads = await Promise.all(places.map(({ table, key }) => wire.lookup(table, key)));
        const readSet = places.map((place, i) => ({ ...place, version: reads[i]?.version ?? '0' }));
        const answer = await wire.commit(readSet, tablesOf(Number(reads[0]?.document.n ?? 0) + 1));
        expect([200, 409]).toContain(answer.status);
        if (answer.status === 200) committed += 1;
      }
    }),
  );
  expect(committed).toBeGreaterThan(0);
  for (const { table, key } of places) expect((await wire.lookup(table, key))?.document).toHaveProperty('n', committed);
});
