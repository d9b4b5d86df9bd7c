import { describe, expect, test } from 'bun:test';
import { BackupPlace } from '../../support/backup-place.ts';
import { restore } from '../../support/restore-jobs.ts';
import type { TestServer } from '../../support/test-server.ts';

const text = { type: 'string', 'x-service-types': ['keyword'] };
const schemaOf = (properties: object, more: object = {}) => ({
  ...more,
  document_schemas: { row: { schema: { type: 'object', properties } } },
});
const relational = (properties: object) => schemaOf(properties, { storage_mode: 'relational' });

/** Tables that have everything a backup has to bring, and what is asked of them. */
async function make(server: TestServer): Promise<void> {
  const create = async (name: string, body: object) =>
    expect((await server.send('POST', `/db/v1/tables/${name}`, { num_shards: 3, ...body })).status).toBe(200);
  const indexes = {
    near: { type: 'embeddings', external: true, dimension: 2 },
    terms: { type: 'embeddings', external: true, sparse: true },
    counters: { type: 'algebraic', derive_from_schema: true },
    g: { type: 'graph' },
  };
  await create('things', { indexes, schema: schemaOf({ n: { type: 'number' }, tag: text }) });
  await create('authors', { schema: relational({ email: { ...text, unique: true } }) });
  await create('books', { schema: relational({ author: { ...text, references: { table: 'authors' } } }) });
  const inserts = { a: thing(1, 'm'), m: thing(2, 'z'), z: thing(3, 'a') };
  await write(server, 'things', { inserts });
  await write(server, 'authors', { inserts: { ada: { email: 'ada@x' }, zoe: { email: 'zoe@x' } } });
  await write(server, 'books', { inserts: { b: { author: 'ada' } } });
}

const thing = (n: number, target: string) => ({
  n,
  tag: n % 2 ? 'odd' : 'even',
  _embeddings: { near: [n, 1], terms: { indices: [n], values: [n] } },
  _edges: { g: { to: [{ target, weight: n }] } },
});

async function write(server: TestServer, table: string, body: object): Promise<void> {
  const answer = await server.send('POST', `/db/v1/tables/${table}/batch`, { ...body, sync_level: 'full_index' });
  expect([table, answer.status]).toEqual([table, 201]);
}

/** All of it, as clients see it. */
async function seen(server: TestServer): Promise<unknown> {
  const body = async (method: string, path: string, request?: object) =>
    (await server.send<Record<string, unknown>>(method, `/db/v1/tables/${path}`, request)).body;
  const things = await Promise.all(
    ['a', 'm', 'z', 'new'].map((key) => body('GET', `things/lookup/${key}?fields=n,_embeddings`)),
  );
  const hits = async (request: object) =>
    (
      (await body('POST', 'things/query', request)) as { responses: [{ hits: { hits: { _id: string }[] } }] }
    ).responses[0].hits.hits.map(({ _id }) => _id);
  const aggregations = { tags: { type: 'terms', field: 'tag' }, n: { type: 'stats', field: 'n' } };
  const counted = (await body('POST', 'things/query', { limit: 0, profile: true, aggregations })) as {
    responses: [{ aggregations: object; profile: { algebraic: object } }];
  };
  const [{ aggregations: found, profile }] = counted.responses;
  return {
    things,
    near: await hits({ embeddings: { near: [3, 1] }, indexes: ['near'], limit: 2 }),
    terms: await hits({ embeddings: { terms: { indices: [5], values: [1] } }, indexes: ['terms'], limit: 2 }),
    found,
    fromCounters: profile.algebraic,
    edges: await Promise.all(
      ['a', 'm', 'z', 'new'].map(async (key) => {
        const { edges } = await body('GET', `things/indexes/g/edges?key=${key}&direction=both`);
        return edges;
      }),
    ),
  };
}

describe.each([
  ['portable', false],
  ['portable', true],
  ['native', false],
  ['native', true],
])('a restore of the format "%s", through an increment: %p', (format, isIncrement) => {
  test('brings vectors, sparse vectors, edges, counters, and the rules between tables', async () => {
    using place = new BackupPlace();
    let expected: unknown;
    {
      await using server = await place.server();
      await make(server);
      const backUp = async (id: string, more: object) => {
        const request = { backup_id: id, location: place.location, ...more };
        expect((await server.send('POST', '/db/v1/backup', request)).body).toMatchObject({ status: 'completed' });
      };
      if (isIncrement) await backUp('full', { format });
      await write(server, 'things', { inserts: { new: thing(5, 'a'), m: thing(4, 'a') }, deletes: ['z'] });
      await write(server, 'authors', { inserts: { eve: { email: 'eve@x' } } });
      await write(server, 'books', { inserts: { c: { author: 'eve' } } });
      await backUp('b', isIncrement ? { format, base_backup_id: 'full' } : { format });
      expected = await seen(server);
    }
    await using server = await place.server();
    expect(await restore(server, { backup_id: 'b', location: place.location })).toMatchObject({ phase: 'succeeded' });
    expect(await seen(server)).toEqual(expected);
    expect(expected).toMatchObject({ near: expect.any(Array), terms: ['new'], found: { n: { count: 3 } } });
    const refused = async (table: string, body: object) =>
      expect((await server.send('POST', `/db/v1/tables/${table}/batch`, body)).body).toMatchObject({
        code: 'constraint_violation',
      });
    await refused('authors', { inserts: { other: { email: 'eve@x' } } });
    await refused('authors', { deletes: ['ada'] });
    await refused('authors', { deletes: ['eve'] });
    await refused('books', { inserts: { d: { author: 'nobody' } } });
    await write(server, 'books', { inserts: { d: { author: 'zoe' } } });
    await refused('authors', { deletes: ['zoe'] });
  });
});
