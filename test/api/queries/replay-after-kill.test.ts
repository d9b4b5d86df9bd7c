import { expect, test } from 'bun:test';
import { cpSync } from 'node:fs';
import { nativeAddon } from '../../../src/engine/native-addon.ts';
import { until } from '../../support/fault/until.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';
import { startTestServer, type TestServer } from '../../support/test-server.ts';

interface Result {
  hits: { total: { value: number; relation: string }; hits: unknown[] };
  partial?: boolean;
}

const query = async (server: TestServer, body: object) =>
  (await server.send<{ responses: [Result] }>('POST', '/db/v1/tables/t/query', body)).body.responses[0];

/** The directory of a server as a kill leaves it, with `count` documents that were shown and no checkpoint. */
async function killedDirectory(into: string, count: number): Promise<void> {
  await using server = await startTestServer();
  await server.send('POST', '/db/v1/tables/t');
  const inserts = Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n * 7}`, { text: 'amber', n }]));
  const written = await server.send('POST', '/db/v1/tables/t/batch', { inserts, sync_level: 'full_index' });
  expect(written.status).toBe(201);
  expect((await query(server, { count: true })).hits.total).toEqual({ value: count, relation: 'exact' });
  cpSync(server.directory, into, { recursive: true });
}

/** Holds every row that is given to an index until `release`. */
function holdIndexing(): { release(): void } & Disposable {
  const addon = nativeAddon() as { applyFrame: (...parts: unknown[]) => Promise<unknown> };
  const { applyFrame } = addon;
  const held = Promise.withResolvers<void>();
  addon.applyFrame = (...parts) => held.promise.then(() => applyFrame(...parts));
  const release = () => {
    addon.applyFrame = applyFrame;
    held.resolve();
  };
  return { release, [Symbol.dispose]: release };
}

test('after a kill no answer looks whole, and the server is not ready, until the indexes have replayed', async () => {
  using directory = new TemporaryDirectory();
  const count = 300;
  await killedDirectory(directory.path, count);
  const held = holdIndexing();
  await using server = await startTestServer({ directory: directory.path });
  // Before the server is stopped.
  using _ = held;
  const ready = () => server.send('GET', '/readyz');
  expect(await ready()).toMatchObject({
    status: 503,
    body: { status: 'not_ready', failing: ['replaying'], replaying: { ranges: 1, ranges_done: 0, progress: 0 } },
  });
  const open = async () =>
    (await server.send('POST', '/db/v1/tables/t/query', { wait_for_index_ms: 0 })).status === 200;
  await until(open);
  for (const body of [{ count: true }, {}, { full_text_search: { match: 'amber', field: 'text' } }]) {
    const { hits, partial } = await query(server, { ...body, wait_for_index_ms: 0 });
    expect({ ...hits.total, partial }).toEqual({ value: 0, relation: 'gte', partial: true });
  }
  const status = async () => (await server.send('GET', '/db/v1/status')).body;
  const message = 'indexes are replaying after an unclean stop: 0 of 1 ranges are done (0%)';
  expect(await status()).toMatchObject({ health: 'degraded', message });
  const waiting = query(server, { count: true, wait_for_index_ms: 60_000 });
  held.release();
  expect(await waiting).toMatchObject({ hits: { total: { value: count, relation: 'exact' } } });
  await until(async () => (await ready()).status === 200);
  const { hits, partial } = await query(server, { count: true });
  expect({ ...hits.total, partial }).toEqual({ value: count, relation: 'exact', partial: undefined });
  expect(await status()).toMatchObject({ health: 'healthy', message: '' });
});

test('an option makes the server ready before, and a table can be dropped meanwhile', async () => {
  using directory = new TemporaryDirectory();
  await killedDirectory(directory.path, 10);
  const held = holdIndexing();
  await using server = await startTestServer({
    directory: directory.path,
    environment: { SUNDEW__SERVER__READY_AFTER_REPLAY: 'false' },
  });
  using _ = held;
  expect((await server.send('GET', '/readyz')).status).toBe(200);
  const dropped = server.send('DELETE', '/db/v1/tables/t');
  await until(async () => (await server.send('GET', '/db/v1/tables/t')).status === 404);
  held.release();
  expect((await dropped).status).toBe(204);
  await until(async () => (await server.send('GET', '/db/v1/status')).body.health === 'healthy');
});

test('after a clean stop nothing has to replay', async () => {
  using directory = new TemporaryDirectory();
  {
    await using server = await startTestServer({ directory: directory.path });
    await server.send('POST', '/db/v1/tables/t', {});
    await server.send('POST', '/db/v1/tables/t/batch', { inserts: { a: { n: 1 } } });
  }
  const held = holdIndexing();
  await using server = await startTestServer({ directory: directory.path });
  using _ = held;
  expect((await server.send('GET', '/readyz')).status).toBe(200);
  expect((await query(server, { count: true })).hits.total).toEqual({ value: 1, relation: 'exact' });
});

test('a stop before the indexes have replayed is no end of it', async () => {
  using directory = new TemporaryDirectory();
  await killedDirectory(directory.path, 10);
  const addon = nativeAddon() as { applyFrame: (...parts: unknown[]) => Promise<unknown> };
  const { applyFrame } = addon;
  try {
    addon.applyFrame = () => Promise.reject(new Error('no room'));
    {
      await using server = await startTestServer({ directory: directory.path });
      await until(async () => server.logLines.some((line) => line.includes('an index failed')));
    }
    await using server = await startTestServer({ directory: directory.path });
    expect((await server.send('GET', '/readyz')).body).toMatchObject({ failing: ['replaying'] });
    addon.applyFrame = applyFrame;
    await until(async () => (await server.send('GET', '/readyz')).status === 200);
    expect((await query(server, { count: true })).hits.total).toEqual({ value: 10, relation: 'exact' });
  } finally {
    addon.applyFrame = applyFrame;
  }
});
