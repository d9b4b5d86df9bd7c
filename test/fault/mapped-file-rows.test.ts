import { expect, setDefaultTimeout, test } from 'bun:test';
import { truncateSync } from 'node:fs';
import { until } from '../support/fault/until.ts';
import { type Hits, WireClient } from '../support/fault/wire-client.ts';
import { FaultPlace } from './fault-place.ts';

setDefaultTimeout(180_000);

const documents = Object.fromEntries(
  Array.from({ length: 2_000 }, (_, at) => [`k${at}`, { words: `amber number${at}` }]),
);

function search(wire: WireClient, words: string): Promise<Hits> {
  return wire.query({ table: 't', full_text_search: { query: `words:${words}` }, count: true });
}

test('a server whose mapped index files are cut says so and stops, and finds everything after its next start', async () => {
  using place = new FaultPlace();
  {
    await using server = await place.start();
    const wire = new WireClient(server.url);
    await wire.createTable('t');
    expect((await wire.batch('t', { inserts: documents, sync_level: 'full_text' })).status).toBe(201);
    expect((await server.stop()).code).toBe(0);
  }
  {
    await using server = await place.start();
    const wire = new WireClient(server.url);
    expect((await search(wire, 'number7')).total.value).toBe(1);
    for (const path of place.files('indexes')) truncateSync(path);
    // No answer is made of what is left.
    await expect(search(wire, 'amber')).rejects.toThrow();
    expect((await server.ended).code).toBe(74);
    expect(server.log).toContain('a mapped file was cut, or its disk failed (SIGBUS)');
  }
  await using server = await place.start();
  const wire = new WireClient(server.url);
  await until(async () => (await search(wire, 'amber').catch(() => undefined))?.total.value === 2_000);
});
