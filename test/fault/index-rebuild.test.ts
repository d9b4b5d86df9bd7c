import { expect, test } from 'bun:test';
import { until } from '../support/fault/until.ts';
import { WireClient } from '../support/fault/wire-client.ts';
import { FaultPlace } from './fault-place.ts';

function schema(types: string[]) {
  const words = { type: 'string', 'x-service-types': types };
  return { default_type: 'd', document_schemas: { d: { schema: { type: 'object', properties: { words } } } } };
}

test(
  'while indexes are built and take over, every awaited write is found at once and no request fails',
  async () => {
    using place = new FaultPlace();
    await using server = await place.start();
    const wire = new WireClient(server.url);
    await wire.createTable('t', { num_shards: 3, schema: schema(['text']) });
    const filler = Object.fromEntries(
      Array.from({ length: 300 }, (_, i) => [`${'!k~'[i % 3]}filler${i}`, { words: 'x' }]),
    );
    await wire.batch('t', { inserts: filler });
    let done = false;
    let found = 0;
    const writers = Array.from({ length: 6 }, async (_, client) => {
      for (let i = 0; !done; i += 1) {
        const word = `w${client}n${i}`;
        const key = `${'!k~'[i % 3]}${client}`;
        const written = await wire.batch('t', { inserts: { [key]: { words: word } }, sync_level: 'full_text' });
        expect(written).toMatchObject({ status: 201, body: { status: 'committed' } });
        const query = { table: 't', full_text_search: { field: 'words', match: word }, fields: ['words'] };
        expect({ word, ids: (await wire.query(query)).hits.map(({ _id }) => _id) }).toEqual({ word, ids: [key] });
        found += 1;
      }
    });
    const change = async () => {
      for (let version = 1; version <= 12; version += 1) {
        const types = version % 2 === 0 ? ['text'] : ['text', 'keyword'];
        await wire.expect(200, 'PUT', '/db/v1/tables/t/schema', schema(types));
        await until(async () => !('migration' in ((await wire.expect(200, 'GET', '/db/v1/tables/t')).body as object)));
      }
    };
    await Promise.all([change().finally(() => (done = true)), ...writers]);
    expect(found).toBeGreaterThan(50);
    expect(await wire.count('t')).toBe(300 + 18);
  },
  { timeout: 120_000 },
);
