import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test';
import { table as grant, startGuardedServer } from '../../support/access.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { type Answer, startTestServer, type TestServer } from '../../support/test-server.ts';

setDefaultTimeout(120_000);

const root = '/db/v1/transactions';
type Body = Record<string, unknown>;

/** A transaction over HTTP. */
class Transaction {
  readonly id: string;
  readonly #server: TestServer;

  constructor(server: TestServer, id: string) {
    this.#server = server;
    this.id = id;
  }

  static async begin(server: TestServer, body?: object): Promise<Transaction> {
    const { status, body: begun } = await server.send('POST', `${root}/begin`, body);
    expect(status).toBe(201);
    return new Transaction(server, String(begun.transaction_id));
  }

  send(step: string, body?: unknown): Promise<Answer<Body>> {
    return this.#server.send('POST', `${root}/${this.id}/${step}`, body);
  }

  async read(table: string, key: string): Promise<unknown> {
    const { status, body } = await this.send('read', { table, key });
    expect(status).toBe(200);
    return (body.snapshot as { document: unknown }).document;
  }

  async status(): Promise<Body> {
    return (await this.#server.send('GET', `${root}/${this.id}`)).body;
  }
}

let server: TestServer;
let tables = 0;

beforeAll(async () => {
  server = await startTestServer();
});

afterAll(() => server[Symbol.asyncDispose]());

async function newTable(settings: object = {}): Promise<string> {
  tables += 1;
  const name = `t${tables}`;
  expect((await server.send('POST', `/db/v1/tables/${name}`, settings)).status).toBeLessThan(300);
  return name;
}

async function stored(table: string, key: string): Promise<unknown> {
  const { status, body } = await server.send('GET', `/db/v1/tables/${table}/lookup/${encodeURIComponent(key)}`);
  return status === 404 ? undefined : body;
}

const put = (table: string, inserts: object) => server.send('POST', `/db/v1/tables/${table}/batch`, { inserts });

describe('a transaction', () => {
  test('is seen by nobody else before its commit, and whole after it, over tables and ranges', async () => {
    const [one, two] = [await newTable({ num_shards: 3 }), await newTable()];
    await put(one, { b: { n: 1 }, x: { n: 1 } });
    const transaction = await Transaction.begin(server, { sync_level: 'full_text' });
    expect(await transaction.read(one, 'b')).toEqual({ n: 1 });
    expect((await transaction.send('write', { table: one, key: 'b', document: { n: 2 } })).body).toEqual({
      status: 'staged',
      transaction_id: transaction.id,
    });
    await transaction.send('delete', { table: one, key: 'x' });
    const more = { tables: { [two]: { inserts: { z: { n: 3 } } } } };
    expect((await transaction.send('stage', more)).status).toBe(200);
    expect([await stored(one, 'b'), await stored(one, 'x'), await stored(two, 'z')]).toEqual([
      { n: 1 },
      { n: 1 },
      undefined,
    ]);
    const commit = await transaction.send('commit');
    expect(commit).toMatchObject({ status: 200, body: { status: 'committed', transaction_id: transaction.id } });
    expect(commit.body.tables).toEqual({
      [one]: { inserted: 1, deleted: 1, transformed: 0 },
      [two]: { inserted: 1, deleted: 0, transformed: 0 },
    });
    expect([await stored(one, 'b'), await stored(one, 'x'), await stored(two, 'z')]).toEqual([
      { n: 2 },
      undefined,
      { n: 3 },
    ]);
    const found = await server.send('POST', '/db/v1/query', { table: two, filter_query: { term: 3, field: 'n' } });
    expect(found.body).toMatchObject({ responses: [{ hits: { total: { value: 1 } } }] });
  });

  test('reads what it has staged', async () => {
    const table = await newTable();
    await put(table, { a: { n: 1 }, b: { n: 1 } });
    const transaction = await Transaction.begin(server);
    const increment = (key: string, upsert = false) => ({
      tables: { [table]: { transforms: [{ key, operations: [{ op: '$inc', path: 'n', value: 5 }], upsert }] } },
    });
    await transaction.send('stage', increment('a'));
    await transaction.send('stage', increment('a'));
    expect(await transaction.read(table, 'a')).toEqual({ n: 11 });
    await transaction.send('delete', { table, key: 'b' });
    expect(await transaction.read(table, 'b')).toBeNull();
    await transaction.send('stage', increment('b'));
    expect(await transaction.read(table, 'b')).toBeNull();
    await transaction.send('stage', increment('b', true));
    expect(await transaction.read(table, 'b')).toEqual({ n: 5 });
    await transaction.send('write', { table, key: 'c', document: { n: 1 } });
    await transaction.send('stage', increment('c'));
    expect(await transaction.read(table, 'c')).toEqual({ n: 6 });
    expect((await transaction.send('commit')).status).toBe(200);
    expect([await stored(table, 'a'), await stored(table, 'b'), await stored(table, 'c')]).toEqual([
      { n: 11 },
      { n: 5 },
      { n: 6 },
    ]);
  });

  test('reads a staged document without its vectors and edges, as it will be stored', async () => {
    const table = await newTable({
      indexes: { v: { type: 'embeddings', external: true, dimension: 2 }, g: { type: 'graph' } },
    });
    const transaction = await Transaction.begin(server);
    const document = { n: 1, _embeddings: { v: [1, 2] }, _edges: { g: { next: [{ target: 'b' }] } } };
    await transaction.send('write', { table, key: 'a', document });
    expect(await transaction.read(table, 'a')).toEqual({ n: 1 });
    const transforms = [{ key: 'a', operations: [{ op: '$inc', path: 'n', value: 1 }] }];
    await transaction.send('stage', { tables: { [table]: { transforms } } });
    expect(await transaction.read(table, 'a')).toEqual({ n: 2 });
    expect((await transaction.send('commit')).status).toBe(200);
    expect(await stored(table, 'a')).toEqual({ n: 2 });
  });

  test('writes a document again that it has deleted before, without the vectors and edges of the old one', async () => {
    const embedder = { provider: 'mock', model: 'words', dimensions: 8 };
    const indexes = {
      v: { type: 'embeddings', external: true, dimension: 2 },
      g: { type: 'graph' },
      made: { type: 'embeddings', field: 'text', embedder },
    };
    const table = await newTable({ num_shards: 2, indexes });
    const to = (target: string) => ({ g: { next: [{ target }] } });
    const lookup = async (key: string) =>
      (await server.send<Body>('GET', `/db/v1/tables/${table}/lookup/${key}?fields=*,_embeddings`)).body;
    const neighbours = async (key: string) => {
      const search = { type: 'neighbors', index_name: 'g', start_nodes: { keys: [key] } };
      const { body } = await server.send('POST', `/db/v1/tables/${table}/query`, {
        limit: 0,
        graph_searches: { near: search },
      });
      const [response] = body.responses as [{ graph_results: { near: { nodes: { key: string }[] } } }];
      return response.graph_results.near.nodes.map((node) => node.key);
    };
    await put(table, {
      a: { text: 'plum', _embeddings: { v: [1, 2] }, _edges: to('z') },
      z: { _edges: to('a') },
    });
    const transaction = await Transaction.begin(server, { sync_level: 'enrichments' });
    await transaction.send('delete', { table, key: 'a' });
    await transaction.send('write', { table, key: 'a', document: { text: 'plum' } });
    await transaction.send('write', {
      table,
      key: 'b',
      document: { n: 1, _embeddings: { v: [3, 4] }, _edges: to('a') },
    });
    await transaction.send('write', { table, key: 'b', document: { n: 2 } });
    expect((await transaction.send('commit')).body.tables).toEqual({
      [table]: { inserted: 2, deleted: 1, transformed: 0 },
    });
    expect(await lookup('b')).toEqual({ n: 2, _embeddings: { v: [3, 4] } });
    const { _embeddings, ...others } = await lookup('a');
    expect(others).toEqual({ text: 'plum' });
    expect(Object.keys(_embeddings as object)).toEqual(['made']);
    expect([await neighbours('a'), await neighbours('z'), await neighbours('b')]).toEqual([[], [], ['a']]);
  });

  test('keeps documents as they are spelled', async () => {
    const table = await newTable();
    const transaction = await Transaction.begin(server);
    const body = `{"key":"a\\u002fb","document":{"2":1.0,"1":[ 1e2 ]},"table":"${table}"}`;
    expect((await transaction.send('write', body)).status).toBe(200);
    const url = `${server.url}${root}/${transaction.id}/read`;
    const read = await fetch(url, { method: 'POST', body: JSON.stringify({ table, key: 'a/b' }) });
    expect(await read.text()).toContain('"document":{"2":1.0,"1":[ 1e2 ]}}');
    await transaction.send('commit');
    const lookup = await fetch(`${server.url}/db/v1/tables/${table}/lookup/a%2Fb`);
    expect(await lookup.text()).toBe('{"2":1.0,"1":[ 1e2 ]}');
  });

  test('aborts when a document that it has read was changed by another', async () => {
    const table = await newTable();
    await put(table, { a: { n: 1 } });
    const [first, second] = [await Transaction.begin(server), await Transaction.begin(server)];
    for (const each of [first, second]) {
      await each.read(table, 'a');
      await each.read(table, 'missing');
      await each.send('write', { table, key: 'a', document: { n: 2 } });
    }
    expect((await first.send('commit')).status).toBe(200);
    const late = await second.send('commit');
    expect(late.status).toBe(409);
    expect(late.body).toMatchObject({
      status: 'aborted',
      transaction_id: second.id,
      conflict: { table, key: 'a', kind: 'version_mismatch', retryable: true },
    });
    const { expected_version, current_version } = late.body.conflict as Record<string, string>;
    expect(Number(current_version)).toBeGreaterThan(Number(expected_version));
    expect(await second.status()).toMatchObject({ code: 'transaction_not_found' });
  });

  test('that has read that there is no document aborts once there is one', async () => {
    const table = await newTable();
    const transaction = await Transaction.begin(server);
    expect(await transaction.read(table, 'new')).toBeNull();
    await put(table, { new: { n: 1 } });
    expect((await transaction.send('commit')).status).toBe(409);
  });

  test('hears at a read that what it has read before, or the given version, is over', async () => {
    const table = await newTable();
    await put(table, { a: { n: 1 } });
    const transaction = await Transaction.begin(server);
    expect((await transaction.send('read', { table, key: 'a', version: '0' })).body).toMatchObject({
      status: 'conflict',
      conflict: { table, key: 'a', expected_version: '0' },
    });
    await transaction.read(table, 'a');
    await put(table, { a: { n: 2 } });
    expect((await transaction.send('read', { table, key: 'a' })).status).toBe(409);
    expect((await transaction.send('commit')).status).toBe(409);
  });

  test('commits once, however often that is asked for', async () => {
    const table = await newTable();
    await put(table, { a: { n: 1 } });
    const transaction = await Transaction.begin(server);
    await transaction.send('stage', {
      tables: { [table]: { transforms: [{ key: 'a', operations: [{ op: '$inc', path: 'n', value: 1 }] }] } },
    });
    const answers = await Promise.all([1, 2, 3].map(() => transaction.send('commit')));
    for (const { status, body } of answers) expect([status, body]).toEqual([200, answers[0]?.body as Body]);
    expect(await stored(table, 'a')).toEqual({ n: 2 });
    for (const step of ['abort', 'savepoints']) {
      expect((await transaction.send(step)).body).toMatchObject({ code: 'transaction_ended' });
    }
    expect(await transaction.status()).toMatchObject({ lease_state: 'none' });
  });

  test('that has nothing staged commits, and one that was aborted is gone', async () => {
    const empty = await Transaction.begin(server);
    expect((await empty.send('commit')).body).toEqual({
      status: 'committed',
      transaction_id: empty.id,
      tables: {},
    });
    const table = await newTable();
    const aborted = await Transaction.begin(server);
    await aborted.send('write', { table, key: 'a', document: {} });
    expect((await aborted.send('abort')).body).toEqual({ status: 'aborted', transaction_id: aborted.id });
    expect((await aborted.send('commit')).body).toMatchObject({ code: 'transaction_not_found' });
    expect(await stored(table, 'a')).toBeUndefined();
  });
});

describe('savepoints', () => {
  test('bring back what was staged, and later ones then mean the same place', async () => {
    const table = await newTable();
    const transaction = await Transaction.begin(server);
    const write = (n: number) => transaction.send('write', { table, key: 'a', document: { n } });
    await write(1);
    expect((await transaction.send('savepoints')).body).toEqual({
      status: 'active',
      transaction_id: transaction.id,
      savepoint_id: 1,
    });
    await write(2);
    expect((await transaction.send('savepoints')).body).toMatchObject({ savepoint_id: 2 });
    await write(3);
    await transaction.send('write', { table, key: 'b', document: {} });
    expect((await transaction.send('savepoints/2/rollback')).body).toMatchObject({ status: 'rolled_back' });
    expect([await transaction.read(table, 'a'), await transaction.read(table, 'b')]).toEqual([{ n: 2 }, null]);
    await transaction.send('savepoints/1/rollback');
    expect(await transaction.read(table, 'a')).toEqual({ n: 1 });
    await write(4);
    expect((await transaction.send('savepoints/2/rollback')).status).toBe(200);
    expect(await transaction.status()).toMatchObject({ savepoint_ids: [1, 2], staged_write_count: 1 });
    await transaction.send('commit');
    expect(await stored(table, 'a')).toEqual({ n: 1 });
  });

  test('are at most 64', async () => {
    const transaction = await Transaction.begin(server);
    for (let at = 0; at < 64; at += 1) expect((await transaction.send('savepoints')).status).toBe(200);
    const { status, body } = await transaction.send('savepoints');
    expect([status, body.code]).toEqual([409, 'savepoint_limit_reached']);
    expect(await transaction.status()).toMatchObject({ savepoint_count: 64, remaining_savepoints: 0 });
    expect((await transaction.send('savepoints/65/rollback')).body).toMatchObject({ code: 'savepoint_not_found' });
    expect((await transaction.send('savepoints/x/rollback')).status).toBe(400);
  });
});

describe('what is refused', () => {
  test('is refused where it is staged, and nothing of it stays', async () => {
    const schema = {
      default_type: 'd',
      enforce_types: true,
      document_schemas: { d: { schema: { type: 'object', properties: { n: { type: 'integer' } } } } },
    };
    const table = await newTable({ schema });
    const transaction = await Transaction.begin(server);
    const refused: [string, unknown, string][] = [
      ['write', { table: 'nowhere', key: 'a', document: {} }, 'table_not_found'],
      ['write', { table, key: '', document: {} }, 'invalid_key'],
      ['write', { table, key: 'a', document: [] }, 'invalid_request'],
      ['write', { table, key: 'a', dokument: {}, document: {} }, 'invalid_request'],
      ['write', { table, key: 'a', document: { n: 'one' } }, 'validation_failed'],
      ['write', `{"table":"${table}","key":"a","document":{"n":1e400}}`, 'number_out_of_range'],
      ['delete', { table: 'nowhere', key: 'a' }, 'table_not_found'],
      ['read', { table: 'nowhere', key: 'a' }, 'table_not_found'],
      ['read', { table, key: '' }, 'invalid_key'],
      ['stage', { tables: { [table]: { inserts: { a: {} }, deletes: ['a'] } } }, 'conflicting_operations'],
      ['stage', { tables: { [table]: { inserts: { a: {}, b: { n: 'x' } } } } }, 'validation_failed'],
      ['stage', { read_set: [{ table, key: 'a', version: 'x' }] }, 'invalid_request'],
      ['stage', { tables: {}, sync_level: 'later' }, 'invalid_request'],
    ];
    for (const [step, body, code] of refused) expect((await transaction.send(step, body)).body).toMatchObject({ code });
    expect(await transaction.status()).toMatchObject({
      staged_write_count: 0,
      staged_read_count: 0,
      staged_table_count: 0,
    });
    expect((await server.send('GET', `${root}/nothex`)).status).toBe(400);
    expect((await server.send('POST', `${root}/${'0'.repeat(32)}/commit`)).body).toMatchObject({
      code: 'transaction_not_found',
    });
    expect((await server.send('POST', `${root}/begin`, { sync_level: 'soon' })).status).toBe(400);
  });

  test('a status tells what is staged', async () => {
    const table = await newTable();
    await put(table, { a: {} });
    const transaction = await Transaction.begin(server);
    await transaction.read(table, 'a');
    await transaction.send('stage', {
      read_set: [{ table, key: 'b', version: '0' }],
      tables: { [table]: { inserts: { c: {} }, deletes: ['d'], transforms: [{ key: 'e', operations: [] }] } },
      sync_level: 'full_index',
    });
    expect(await transaction.status()).toMatchObject({
      transaction_id: transaction.id,
      owner_node_id: 1,
      lease_state: 'held',
      sync_level: 'full_index',
      staged_table_count: 1,
      staged_read_count: 2,
      staged_write_count: 2,
      staged_delete_count: 1,
      read_snapshot_count: 1,
      savepoint_count: 0,
      savepoint_limit: 64,
      durable: false,
      tables: [{ table, writes: 2, deletes: 1 }],
      read_snapshots: [{ table, key: 'a' }],
    });
  });
});

test('a transaction that nobody uses is lost with its lease, and cleaned up', async () => {
  const clock = new FakeClock();
  await using idle = await startTestServer({ clock, set: { '--port': '0' } });
  await idle.send('POST', '/db/v1/tables/t');
  const [used, lost] = [await Transaction.begin(idle), await Transaction.begin(idle)];
  await clock.advance(40_000);
  await used.send('write', { table: 't', key: 'a', document: {} });
  await clock.advance(40_000);
  const list = await idle.send('GET', root);
  expect(list.body).toMatchObject({ session_count: 2, lease_held_count: 1, lease_expired_count: 1 });
  expect((await lost.send('write', { table: 't', key: 'b', document: {} })).body).toMatchObject({
    code: 'transaction_lease_lost',
  });
  expect((await lost.send('commit')).status).toBe(409);
  expect((await idle.send('POST', `${root}/cleanup?cutoff_ns=1`)).body).toEqual({ removed: 0, cutoff_ns: 1 });
  expect((await idle.send('POST', `${root}/cleanup`)).body).toMatchObject({ removed: 1 });
  expect(await lost.status()).toMatchObject({ code: 'transaction_not_found' });
  expect((await used.send('commit')).status).toBe(200);
  await clock.advance(180_000);
  expect((await idle.send('GET', root)).body).toMatchObject({ session_count: 0 });
});

test('transactions are bounded in number; the lost and the ended make room', async () => {
  const clock = new FakeClock();
  const file = 'transactions:\n  max_open: 10\n';
  await using small = await startTestServer({ clock, file });
  const begin = () => small.send('POST', `${root}/begin`);
  for (let at = 0; at < 10; at += 1) expect((await begin()).status).toBe(201);
  expect((await begin()).body).toMatchObject({ code: 'too_many_transactions', retryable: true });
  await clock.advance(61_000);
  expect((await begin()).status).toBe(201);
  expect((await small.send('GET', root)).body).toMatchObject({ session_count: 1 });
});

test('a transaction belongs to its credential, and is allowed what that is', async () => {
  await using guarded = await startGuardedServer();
  await guarded.asAdmin('POST', '/db/v1/tables/t');
  const writer = await guarded.user('writer', [grant('t', 'write'), grant('t', 'read')]);
  const reader = await guarded.user('reader', [grant('t', 'read')]);
  const key = await guarded.key('writer');
  const begun = await guarded.as(writer, 'POST', `${root}/begin`);
  const path = `${root}/${begun.body.transaction_id}`;
  const write = { table: 't', key: 'a', document: {} };
  for (const other of [reader, key.credential]) {
    expect((await guarded.as(other, 'GET', path)).body).toMatchObject({ code: 'transaction_not_found' });
    expect((await guarded.as(other, 'POST', `${path}/write`, write)).status).toBe(404);
    expect((await guarded.as(other, 'POST', `${path}/commit`)).status).toBe(404);
    expect((await guarded.as(other, 'GET', root)).body).toMatchObject({ session_count: 0 });
  }
  expect((await guarded.as(writer, 'POST', `${path}/write`, write)).status).toBe(200);
  const begunByKey = await guarded.as(key.credential, 'POST', `${root}/begin`);
  const ofKey = `${root}/${begunByKey.body.transaction_id}`;
  const otherKey = await guarded.key('writer');
  for (const other of [writer, otherKey.credential]) expect((await guarded.as(other, 'GET', ofKey)).status).toBe(404);
  expect((await guarded.as(key.credential, 'GET', ofKey)).status).toBe(200);
  const own = await guarded.as(reader, 'POST', `${root}/begin`);
  const ofReader = `${root}/${own.body.transaction_id}`;
  expect((await guarded.as(reader, 'POST', `${ofReader}/write`, write)).status).toBe(403);
  expect((await guarded.as(reader, 'POST', `${ofReader}/read`, { table: 't', key: 'a' })).status).toBe(200);
  await guarded.asAdmin('DELETE', '/auth/v1/users/writer/permissions?resource=t&resourceType=table');
  const refused = await guarded.as(writer, 'POST', `${path}/commit`);
  expect(refused.body).toMatchObject({ code: 'table_not_found' });
  expect((await guarded.asAdmin('GET', '/db/v1/tables/t/lookup/a')).status).toBe(404);
});

test('a hidden document is not there in a transaction, which cannot write it either', async () => {
  await using guarded = await startGuardedServer();
  await guarded.asAdmin('POST', '/db/v1/tables/t');
  await guarded.asAdmin('POST', '/db/v1/tables/t/batch', { inserts: { a: { owner: 'x' }, b: { owner: 'u' } } });
  const user = await guarded.user('u', [grant('t', 'read'), grant('t', 'write')]);
  const filter = { term: { owner: { $auth: 'username' } } };
  expect((await guarded.asAdmin('PUT', '/auth/v1/users/u/row-filters/t', filter)).status).toBeLessThan(300);
  const asUser = (path: string, body?: object) => guarded.as(user, 'POST', `${root}/${path}`, body);
  const begin = async () => (await asUser('begin')).body.transaction_id;
  const first = await begin();
  const read = await asUser(`${first}/read`, { table: 't', key: 'a' });
  expect(read).toMatchObject({ status: 200, body: { snapshot: { version: '0', document: null } } });
  const versioned = await asUser(`${first}/read`, { table: 't', key: 'a', version: '1' });
  expect(versioned).toMatchObject({ status: 409, body: { conflict: { current_version: '0' } } });
  await asUser(`${first}/write`, { table: 't', key: 'b', document: { owner: 'u', n: 1 } });
  expect((await asUser(`${first}/commit`)).status).toBe(200);
  const second = await begin();
  expect((await asUser(`${second}/write`, { table: 't', key: 'a', document: { owner: 'u' } })).status).toBe(200);
  expect(await asUser(`${second}/commit`)).toMatchObject({ status: 403, body: { code: 'forbidden' } });
  expect((await guarded.asAdmin('GET', '/db/v1/tables/t/lookup/a')).body).toEqual({ owner: 'x' });
  // The filters at the commit count, not those of when it was staged.
  const third = await begin();
  await asUser(`${third}/write`, { table: 't', key: 'b', document: { owner: 'u', n: 2 } });
  await guarded.asAdmin('PUT', '/auth/v1/users/u/row-filters/t', { term: { owner: 'x' } });
  expect((await asUser(`${third}/commit`)).status).toBe(403);
  await guarded.asAdmin('PUT', '/auth/v1/users/u/row-filters/t', filter);
  expect((await asUser(`${third}/commit`)).status).toBe(200);
  expect((await guarded.asAdmin('GET', '/db/v1/tables/t/lookup/b')).body).toEqual({ owner: 'u', n: 2 });
});
