import { expect, test } from 'bun:test';
import { nativeAddon } from '../../src/engine/native-addon.ts';
import { until } from '../support/fault/until.ts';
import { hitKeys, startTestServer } from '../support/test-server.ts';

test('a query whose index is replaced before the engine has it is answered by the one that serves now', async () => {
  await using server = await startTestServer();
  const path = '/db/v1/tables/t';
  await server.send('POST', path, {});
  await server.send('POST', `${path}/batch`, { inserts: { a: { title: 'soup' } }, sync_level: 'full_text' });
  const replaceIndex = async () => {
    const properties = { title: { type: 'string', 'x-service-types': ['text'] } };
    await server.send('PUT', `${path}/schema`, { document_schemas: { doc: { schema: { properties } } } });
    await until(async () => !('migration' in (await server.send('GET', path)).body));
    // Its files go when it is closed.
    const left = new Bun.Glob('ranges/*/*/indexes/full_text_index_v0@*');
    await until(async () => [...left.scanSync({ cwd: server.directory, onlyFiles: false })].length === 0);
  };
  const addon = nativeAddon() as { query: (...parts: unknown[]) => unknown };
  const { query } = addon;
  let calls = 0;
  addon.query = (...parts) => {
    calls += 1;
    return calls > 1 ? query(...parts) : replaceIndex().then(() => query(...parts));
  };
  try {
    const answer = await server.send('POST', `${path}/query`, { full_text_search: { query: 'soup' } });
    expect([answer.status, hitKeys(answer), calls]).toEqual([200, ['a'], 2]);
  } finally {
    addon.query = query;
  }
});
