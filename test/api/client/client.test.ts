import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test';
import { connect, type SundewClient, SundewError, type Table, type Transaction } from '../../../src/client/client.ts';
import { type EmbeddedDatabase, open } from '../../../src/embedded.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

const schema = {
  enforce_types: true,
  document_schemas: {
    recipe: {
      schema: {
        type: 'object',
        required: ['title'],
        properties: {
          title: { type: 'string' },
          minutes: { type: 'integer' },
          tags: { type: 'array', items: { type: 'string' } },
        },
      },
    },
  },
} as const;

interface Recipe {
  readonly title: string;
  readonly minutes?: number;
  readonly tags?: readonly string[];
}

const recipes: Record<string, Recipe> = {
  'bread:rye': { title: 'Dark rye bread', minutes: 180, tags: ['bread'] },
  'soup:leek': { title: 'Leek soup', minutes: 35, tags: ['soup', 'green'] },
  'soup:miso': { title: 'Miso soup with tofu', minutes: 10, tags: ['soup'] },
};

const directory = new TemporaryDirectory();
let server: TestServer;
let embedded: EmbeddedDatabase;
beforeAll(async () => {
  server = await startTestServer();
  embedded = await open(directory.path, { settings: { 'storage.reserve': 0 } });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await embedded.close();
  directory[Symbol.dispose]();
});

const told = async (work: Promise<unknown>): Promise<SundewError> => {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(SundewError);
  return error as SundewError;
};

async function all<T>(values: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const value of values) found.push(value);
  return found;
}

describe.each([
  ['over HTTP', (): SundewClient => connect(server.url)],
  ['in this process', (): SundewClient => embedded],
] as const)('a client %s', (_name, clientOf) => {
  const filled = async (): Promise<Table<Recipe>> => {
    const table = clientOf().table<Recipe>('recipes');
    await table.create({});
    await table.batch({ inserts: recipes, sync_level: 'full_text' });
    return table;
  };
  afterEach(async () => {
    const db = clientOf();
    for (const { name } of await db.tables()) await db.table(name).drop();
  });

  test('creates tables, whose documents have the shape of their schema', async () => {
    const db = clientOf();
    const table = await db.createTable('recipes', { schema, num_shards: 2 });
    await table.put('soup:miso', { title: 'Miso soup', tags: ['soup'] });
    const found = await table.get('soup:miso');
    expect(found?.tags?.map((tag) => tag.toUpperCase())).toEqual(['SOUP']);
    expect((await db.tables()).map(({ name }) => name)).toEqual(['recipes']);
    expect(Object.keys((await table.status()).shards)).toHaveLength(2);
    // @ts-expect-error a title is a text
    const wrong = await told(table.put('soup:leek', { title: 5 }));
    expect([wrong.code, wrong.status, wrong.retryable]).toEqual(['validation_failed', 400, false]);
    expect(wrong.message).toContain('/title');
  });

  test('reads, writes and deletes by key', async () => {
    const table = await filled();
    expect(await table.get('soup:miso')).toEqual(recipes['soup:miso'] as never);
    expect(await table.get('soup:none')).toBeUndefined();
    for (const key of ['a/b', 'ä ?#%', '...', '%2e%2e']) {
      await table.put(key, { title: key });
      expect(await table.get(key)).toEqual({ title: key });
      await table.delete(key);
      expect(await table.get(key)).toBeUndefined();
    }
    expect((await told(table.get('..'))).message).toContain('read it by a scan');
    const missing = await told(clientOf().table('none').get('a'));
    expect([missing.code, missing.status]).toEqual(['table_not_found', 404]);
    expect(missing.requestId).toBeTruthy();
  });

  test('queries, and goes through all hits', async () => {
    const table = await filled();
    const { hits } = await table.query({
      full_text_search: { match: 'soup', field: 'title' },
      filter_query: { range: { minutes: { lt: 30 } } },
      fields: ['title'],
    });
    expect(hits.total).toEqual({ value: 1, relation: 'exact' });
    expect(hits.hits[0]?._source?.title).toBe('Miso soup with tofu');
    const many = Object.fromEntries(Array.from({ length: 250 }, (_, at) => [`n:${at}`, { title: 'noodle' }]));
    await table.batch({ inserts: many, sync_level: 'full_text' });
    const noodles = { full_text_search: { match: 'noodle', field: 'title' }, fields: [] } as const;
    const keys = (await all(table.hits(noodles))).map(({ _id }) => _id);
    expect(keys).toEqual(Object.keys(many).sort());
    expect(await all(table.hits({ ...noodles, limit: 120 }))).toHaveLength(120);
    expect((await told(table.query({ full_text_search: { query: 'title:[' } }))).code).toBe('invalid_query');
  });

  test('scans in the order of the keys, as far as it is asked', async () => {
    const table = await filled();
    const scanned = await all(table.scan());
    expect(Object.fromEntries(scanned.map(({ key, document }) => [key, document]))).toEqual(recipes);
    expect(scanned.map(({ key }) => key)).toEqual(Object.keys(recipes));
    expect(await all(table.scan({ fields: [], limit: 1 }))).toEqual([{ key: 'bread:rye', document: {} }]);
    await table.put('own', { title: 'its own key', key: 'own' } as Recipe);
    expect(await all(table.scan({ from: 'own', inclusive_from: true, to: 'own' }))).toEqual([
      { key: 'own', document: { title: 'its own key', key: 'own' } as Recipe },
    ]);
    await table.delete('own');
    expect(await all(table.scan({ from: 'soup:', fields: ['minutes'], limit: 1 }))).toEqual([
      { key: 'soup:leek', document: { minutes: 35 } },
    ]);
    for await (const { key } of table.scan()) {
      expect(key).toBe('bread:rye');
      break;
    }
  });

  test('writes without end in batches', async () => {
    const table = await filled();
    await using writer = table.writer({ keysMax: 100, sync_level: 'full_text' });
    for (let at = 0; at < 1_050; at++) await writer.put(`w:${at}`, { title: `number ${at % 7}` });
    await writer.put('w:0', { title: 'last' });
    await writer.delete('w:1');
    await writer.flush();
    expect(writer.written).toBeWithin(1_050, 1_053);
    const { hits } = await table.query({ count: true, full_text_search: { prefix: 'number', field: 'title' } });
    expect(hits.total.value).toBe(1_048);
    expect([await table.get('w:0'), await table.get('w:1')]).toEqual([{ title: 'last' }, undefined]);
    const broken = clientOf().table('none').writer({ keysMax: 1 });
    await broken.put('a', {});
    expect((await told(broken.flush())).code).toBe('table_not_found');
    expect((await told(broken.put('b', {}))).code).toBe('table_not_found');
  });

  test('commits what was read, or says that it has changed', async () => {
    const table = await filled();
    const read = await table.getVersioned('soup:miso');
    const commit = {
      read_set: [{ table: 'recipes', key: 'soup:miso', version: read?.version ?? '' }],
      tables: { recipes: { inserts: { 'soup:miso': { title: 'Miso' } } } },
    };
    expect(await clientOf().commit(commit)).toMatchObject({ status: 'committed' });
    const late = await told(clientOf().commit(commit));
    expect([late.code, late.status, late.retryable]).toEqual(['transaction_conflict', 409, true]);
  });

  describe('in a transaction', () => {
    const accounts = async () => {
      const table = clientOf().table<{ balance: number }>('accounts');
      await table.create({});
      await table.batch({ inserts: { ann: { balance: 100 }, bob: { balance: 0 } } });
      return table;
    };
    const balances = async (table: Awaited<ReturnType<typeof accounts>>) =>
      Promise.all(['ann', 'bob'].map(async (key) => (await table.get(key))?.balance));

    test('writers that get in the way of one another begin again, and none of their writes is lost', async () => {
      const table = await accounts();
      const writers = 8;
      let runs = 0;
      const allHaveRead = Promise.withResolvers<void>();
      const transfer = () =>
        clientOf().transaction(
          async (transaction) => {
            const held = transaction.table(table);
            const [ann, bob] = [await held.get('ann'), await held.get('bob')];
            runs += 1;
            if (runs === writers) allHaveRead.resolve();
            await allHaveRead.promise;
            await held.put('ann', { balance: (ann?.balance ?? 0) - 5 });
            await held.put('bob', { balance: (bob?.balance ?? 0) + 5 });
          },
          { attempts: 1_000 },
        );
      await Promise.all(Array.from({ length: writers }, transfer));
      expect(await balances(table)).toEqual([60, 40]);
      expect(runs).toBeGreaterThan(writers);
    });

    test('its result is returned; it sees its own changes, and nobody else does before the commit', async () => {
      const table = await accounts();
      const seen = await clientOf().transaction(async (transaction) => {
        const held = transaction.table<{ balance: number }>('accounts');
        await held.stage({
          transforms: [{ key: 'bob', operations: [{ op: '$inc', path: '$.balance', value: 7 }] }],
          deletes: ['ann'],
        });
        return [await held.get('ann'), await held.get('bob'), await table.get('bob')];
      });
      expect(seen).toEqual([undefined, { balance: 7 }, { balance: 0 }]);
      expect(await balances(table)).toEqual([undefined, 7]);
    });

    test('what throws writes nothing, and what throws in a savepoint is forgotten alone', async () => {
      const table = await accounts();
      const reason = new Error('not enough');
      const put = (transaction: Transaction, balance: number) => transaction.table(table).put('ann', { balance });
      const failed = clientOf().transaction(async (transaction) => {
        await put(transaction, 1);
        throw reason;
      });
      expect(await failed.catch((error: unknown) => error)).toBe(reason);
      expect(await balances(table)).toEqual([100, 0]);
      await clientOf().transaction(async (transaction) => {
        await put(transaction, 2);
        const inner = transaction.savepoint(async () => {
          await put(transaction, 3);
          throw reason;
        });
        expect(await inner.catch((error: unknown) => error)).toBe(reason);
      });
      expect(await balances(table)).toEqual([2, 0]);
      expect(await clientOf().request('GET', '/db/v1/transactions')).toMatchObject({ lease_held_count: 0 });
    });

    test('gives up after the attempts that it is given', async () => {
      const table = await accounts();
      let runs = 0;
      const hopeless = clientOf().transaction(
        async (transaction) => {
          runs += 1;
          await transaction.table(table).get('ann');
          await table.put('ann', { balance: runs });
          await transaction.table(table).put('bob', { balance: runs });
        },
        { attempts: 3 },
      );
      expect((await told(hopeless)).code).toBe('transaction_conflict');
      expect([runs, await balances(table)]).toEqual([3, [3, 0]]);
    });
  });

  test('waits for an index, and is told how far it is', async () => {
    const table = await filled();
    const taste = table.index('taste');
    await taste.create({ type: 'embeddings', external: true, dimension: 3 });
    const told_: number[] = [];
    await taste.ready({ onProgress: ({ share }) => told_.push(share) });
    expect(told_.at(-1)).toBe(1);
    expect((await taste.get()).status.readiness).toMatchObject({ complete: true });
    await taste.drop();
    expect((await told(taste.ready())).code).toBe('index_not_found');
  });

  test('gives up what is aborted, with the reason', async () => {
    const table = await filled();
    const leaving = new AbortController();
    const reason = new Error('changed my mind');
    leaving.abort(reason);
    const { signal } = leaving;
    const attempts = [table.get('a', { signal }), table.query({}, { signal }), all(table.scan({}, { signal }))];
    for (const attempt of attempts) expect(await attempt.catch((error: unknown) => error)).toBe(reason);
    const later = new AbortController();
    const scan = table.scan({}, { signal: later.signal });
    await scan.next();
    later.abort(reason);
    const rest = await all(scan).catch((error: unknown) => error);
    expect(rest).toBe(reason);
  });

  test('asks any other route', async () => {
    const status = await clientOf().request<{ health: string }>('GET', '/db/v1/status');
    expect(status.health).toBe('healthy');
    const none = await told(clientOf().request('POST', '/db/v1/nothing', {}));
    expect([none.code, none.status]).toEqual(['not_found', 404]);
  });
});
