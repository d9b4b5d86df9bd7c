import { expect, setDefaultTimeout, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FakeClock } from '../../support/fake-clock.ts';
import { type Answer, startTestServer, type TestServer } from '../../support/test-server.ts';

setDefaultTimeout(120_000);

const hour = 3_600_000;
const increment = (key: string) => ({
  transforms: [{ key, operations: [{ op: '$inc', path: 'n', value: 1 }], upsert: true }],
});

function keyed(server: TestServer, path: string, key: string, body: unknown): Promise<Answer<Record<string, unknown>>> {
  return server.send('POST', path, body, { 'idempotency-key': key });
}

async function numberOf(server: TestServer, key: string): Promise<unknown> {
  return (await server.send('GET', `/db/v1/tables/t/lookup/${encodeURIComponent(key)}`)).body.n;
}

test('a repetition gets the first answer and changes nothing; another key, or none, is another request', async () => {
  await using server = await startTestServer();
  await server.send('POST', '/db/v1/tables/t');
  const path = '/db/v1/tables/t/batch';
  const first = await keyed(server, path, 'one', {
    ...increment('a'),
    inserts: { b: { n: 1 } },
    sync_level: 'full_text',
  });
  expect(first.status).toBe(201);
  expect(first.body).toEqual({ status: 'committed', inserted: 1, deleted: 0, transformed: 1 });
  await server.send('POST', path, { deletes: ['b'] });
  const again = await keyed(server, path, 'one', {
    ...increment('a'),
    inserts: { b: { n: 1 } },
    sync_level: 'full_text',
  });
  expect([again.status, again.body]).toEqual([first.status, first.body]);
  expect(await numberOf(server, 'a')).toBe(1);
  expect((await server.send('GET', '/db/v1/tables/t/lookup/b')).status).toBe(404);
  await keyed(server, path, 'two', increment('a'));
  await server.send('POST', path, increment('a'));
  expect(await numberOf(server, 'a')).toBe(3);
});

test('another body under the same key is refused, also where it would write to another range', async () => {
  await using server = await startTestServer();
  await server.send('POST', '/db/v1/tables/t', { num_shards: 3 });
  const path = '/db/v1/tables/t/batch';
  expect((await keyed(server, path, 'one', increment('k'))).status).toBe(201);
  for (const other of [increment('j'), increment('!'), increment('~'), { deletes: ['k'] }]) {
    const { status, body } = await keyed(server, path, 'one', other);
    expect(status).toBe(409);
    expect(body).toMatchObject({ code: 'idempotency_conflict', retryable: false });
  }
  expect(await numberOf(server, 'k')).toBe(1);
  for (const key of ['!', '~', 'j']) {
    expect((await server.send('GET', `/db/v1/tables/t/lookup/${encodeURIComponent(key)}`)).status).toBe(404);
  }
});

test('writes to several tables, commits and merges have keys as well', async () => {
  await using server = await startTestServer();
  await server.send('POST', '/db/v1/tables/t', { num_shards: 3 });
  await server.send('POST', '/db/v1/tables/u');
  const tables = { t: increment('!'), u: increment('k') };
  const paths = ['/db/v1/batch', '/db/v1/transactions/commit'];
  for (const [at, path] of paths.entries()) {
    const body = at === 0 ? { tables } : { tables, read_set: [] };
    const answers = [await keyed(server, path, `key${at}`, body), await keyed(server, path, `key${at}`, body)];
    expect(answers[1]).toMatchObject({ status: answers[0]?.status as number, body: answers[0]?.body as object });
    expect(answers[0]?.body).toMatchObject({
      status: 'committed',
      tables: { t: { transformed: 1 }, u: { transformed: 1 } },
    });
    expect(await numberOf(server, '!')).toBe(at + 1);
  }
  const merge = { records: { m: { n: 1 }, n: { n: 2 } } };
  const merged = await keyed(server, '/db/v1/tables/t/merge', 'merge', merge);
  expect(merged.body).toMatchObject({ status: 'success', upserted: 2 });
  await server.send('POST', '/db/v1/tables/t/batch', { inserts: { m: { n: 5 } } });
  expect((await keyed(server, '/db/v1/tables/t/merge', 'merge', merge)).body).toMatchObject({ upserted: 2 });
  expect(await numberOf(server, 'm')).toBe(5);
});

test('repetitions at the same time take effect once', async () => {
  await using server = await startTestServer();
  await server.send('POST', '/db/v1/tables/t', { num_shards: 3 });
  const body = { transforms: ['!', 'k', '~'].flatMap((key) => increment(key).transforms) };
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => keyed(server, '/db/v1/tables/t/batch', 'one', body)),
  );
  for (const { status, body: answer } of answers) expect([status, answer.transformed]).toEqual([201, 3]);
  for (const key of ['!', 'k', '~']) expect(await numberOf(server, key)).toBe(1);
});

test('what failed is not kept, and a key that is none is refused', async () => {
  await using server = await startTestServer();
  await server.send('POST', '/db/v1/tables/t');
  const body = { tables: { t: increment('a') }, read_set: [{ table: 't', key: 'b', version: '7' }] };
  expect((await keyed(server, '/db/v1/transactions/commit', 'one', body)).status).toBe(409);
  const other = { tables: { t: increment('a') }, read_set: [] };
  expect((await keyed(server, '/db/v1/transactions/commit', 'one', other)).status).toBe(200);
  for (const key of ['', 'a b', 'x'.repeat(256)]) {
    const { status, body: answer } = await keyed(server, '/db/v1/tables/t/batch', key, increment('a'));
    expect([status, answer.code]).toEqual([400, 'invalid_request']);
  }
  expect(await numberOf(server, 'a')).toBe(1);
});

test('keys are kept over a restart, for a day', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'sundew-test-'));
  const clock = new FakeClock();
  try {
    {
      await using server = await startTestServer({ directory, clock });
      await server.send('POST', '/db/v1/tables/t');
      await keyed(server, '/db/v1/tables/t/batch', 'one', increment('a'));
    }
    await using server = await startTestServer({ directory, clock });
    await clock.advance(23 * hour);
    await keyed(server, '/db/v1/tables/t/batch', 'one', increment('a'));
    expect(await numberOf(server, 'a')).toBe(1);
    await clock.advance(2 * hour);
    await keyed(server, '/db/v1/tables/t/batch', 'one', increment('a'));
    expect(await numberOf(server, 'a')).toBe(2);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
