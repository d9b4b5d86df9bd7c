import { expect, setDefaultTimeout, test } from 'bun:test';
import { join } from 'node:path';
import { ChildServer } from '../support/fault/child-server.ts';
import { until } from '../support/fault/until.ts';
import { WireClient } from '../support/fault/wire-client.ts';
import { TemporaryDirectory } from '../support/temporary-directory.ts';

setDefaultTimeout(120_000);

const documents = 12_000;

test('a kill interrupts the rewrite of TTL bases; the next start resumes it, and nothing expires before its end', async () => {
  using directory = new TemporaryDirectory();
  const dataDir = join(directory.path, 'data');
  const past = '2001-01-01T00:00:00Z';
  const future = '2101-01-01T00:00:00Z';
  const change = { ttl: { field: 'until', duration: '1h' } };
  {
    await using server = await ChildServer.start({ dataDir });
    const wire = new WireClient(server.url);
    await wire.createTable('t', { schema: { ttl: { field: 'since', duration: '1h' } } });
    // Alive by the old field; by the new one all but every hundredth have long expired.
    for (let from = 0; from < documents; from += 3_000) {
      const inserts = Object.fromEntries(
        Array.from({ length: 3_000 }, (_, at) => [
          `k${String(from + at).padStart(6, '0')}`,
          { since: future, until: at % 100 === 0 ? future : past },
        ]),
      );
      expect((await wire.batch('t', { inserts })).status).toBe(201);
    }
    expect((await wire.send('PUT', '/db/v1/tables/t/schema', change)).status).toBe(200);
    expect((await wire.expect(200, 'GET', '/db/v1/tables/t')).body).toHaveProperty('ttl_rewrite');
    await server.kill();
  }
  await using server = await ChildServer.start({ dataDir });
  const wire = new WireClient(server.url);
  const isRunning = async () => 'ttl_rewrite' in ((await wire.expect(200, 'GET', '/db/v1/tables/t')).body as object);
  await until(async () => !(await isRunning()));
  const left = await wire.scan('t');
  expect(left.size).toBe(documents / 100);
  expect([...left.keys()].every((key) => key.endsWith('00'))).toBe(true);
});
