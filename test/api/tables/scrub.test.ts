import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { openBehind } from '../../support/behind-the-server.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { until } from '../../support/fault/until.ts';
import { startTestServer } from '../../support/test-server.ts';

test('a scrub finds a document that was damaged on disk, and leaves the others alone', async () => {
  const clock = new FakeClock();
  await using server = await startTestServer({ clock, environment: { SUNDEW__STORAGE__SCRUB_INTERVAL: '1s' } });
  await server.send('POST', '/db/v1/tables/t');
  const inserts = Object.fromEntries(Array.from({ length: 600 }, (_, n) => [`k${n}`, { n }]));
  // Nothing is written any more when the file is changed behind the server's back.
  await server.send('POST', '/db/v1/tables/t/batch', { inserts, sync_level: 'full_index' });
  const [file] = [...new Bun.Glob('ranges/*/*/documents.db').scanSync({ cwd: server.directory })];
  using database = openBehind(join(server.directory, file ?? ''));
  const { changes } = database.run(
    `UPDATE documents SET body = CAST(replace(CAST(body AS TEXT), '"n":577', '"n":578') AS BLOB) WHERE key = CAST('k577' AS BLOB)`,
  );
  expect(changes).toBe(1);
  const found = () => server.logLines.filter((line) => line.includes('does not match its checksum'));
  await clock.advance(1_000);
  // A page, a rest, the next page.
  await until(async () => {
    await clock.advance(20);
    return found().length > 0;
  });
  expect(found()).toHaveLength(1);
  expect((await server.send('GET', '/db/v1/status')).body).toMatchObject({
    health: 'degraded',
    disk: { health: 'healthy', message: '' },
    ranges: [{ table: 't', health: 'degraded', message: expect.stringContaining('one stored document is damaged') }],
  });
  expect((await server.send('GET', '/readyz')).status).toBe(200);
  expect((await server.send('GET', '/db/v1/tables/t/lookup/k577')).body).toMatchObject({ code: 'data_corrupted' });
  expect((await server.send('GET', '/db/v1/tables/t/lookup/k576')).status).toBe(200);
  await server.send('POST', '/db/v1/tables/t/batch', { inserts: { k577: { n: 577 } } });
  await until(async () => {
    await clock.advance(1_000);
    return (await server.send('GET', '/db/v1/status')).body.health === 'healthy';
  });
});
