import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ChildServer } from './child-server.ts';
import { type JsonDocument, WireClient } from './wire-client.ts';

// usage: bun test/support/fault/make-data-directory.ts NAME
// Writes test/fixtures/data-directories/NAME.tar.gz, a data directory as this code leaves it after a kill in the middle of
// a write over three ranges, and NAME.json: what every later release must find in it.

const fixtures = join(import.meta.dir, '../../fixtures/data-directories');
const name = process.argv[2];
if (!name) throw new Error('give the fixture a name, such as "range-2-catalog-1"');
const place = mkdtempSync(join(tmpdir(), 'sundew-fixture-'));
const dataDir = join(place, 'data');
mkdirSync(dataDir);

const indexes = {
  dense: { type: 'embeddings', external: true, dimension: 3 },
  sparse: { type: 'embeddings', external: true, sparse: true },
};

/** A clean stop: everything is in the files and in checkpoints of the indexes. */
{
  await using server = await ChildServer.start({ dataDir });
  const wire = new WireClient(server.url);
  await wire.createTable('words', { num_shards: 3, indexes });
  await wire.createTable('leases', { schema: { ttl: { duration: '36500d' } } });
  const inserts = Object.fromEntries(
    Array.from({ length: 30 }, (_, i): [string, JsonDocument] => {
      const vectors = { dense: [i, 1, 0], sparse: { [i]: 0.5 } };
      const key = `${['!', 'k', '~'][i % 3]}${String(i).padStart(2, '0')}`;
      return [key, { n: i, words: i % 2 === 0 ? 'amber birch' : 'cedar', _embeddings: vectors }];
    }),
  );
  await wire.expect(201, 'POST', '/db/v1/tables/words/batch', { inserts, sync_level: 'full_index' });
  await wire.expect(201, 'POST', '/db/v1/tables/leases/batch', { inserts: { lease: { holder: 'amber' } } });
  await server.stop();
}
/** A kill: later writes are in the logs alone, and the last one in its redo record. */
{
  await using server = await ChildServer.start({ dataDir, failpoint: 'redo.after-record' });
  const wire = new WireClient(server.url);
  const transforms = [{ key: 'k01', operations: [{ op: '$inc', path: 'n', value: 100 }] }];
  await wire.expect(201, 'POST', '/db/v1/tables/words/batch', { transforms });
  await wire.expect(201, 'POST', '/db/v1/tables/words/batch', { deletes: ['!03'] });
  const inserts = Object.fromEntries(['!redo', 'kredo', '~redo'].map((key) => [key, { words: 'redo' }]));
  await wire.batch('words', { inserts }).catch(() => undefined);
  await server.ended;
}
/** The expected content, as this very code reads a copy of it. */
const copy = join(place, 'copy');
Bun.spawnSync(['cp', '-r', dataDir, copy]);
{
  await using server = await ChildServer.start({ dataDir: copy });
  const wire = new WireClient(server.url);
  const documents: Record<string, Record<string, unknown>> = {};
  for (const table of ['words', 'leases']) {
    documents[table] = Object.fromEntries(await wire.scan(table, { fields: ['*', '_embeddings'] }));
  }
  const version = (await wire.lookup('words', 'k01'))?.version;
  writeFileSync(join(fixtures, `${name}.json`), `${JSON.stringify({ documents, version_of_k01: version }, null, 2)}\n`);
  await server.stop();
}
rmSync(join(dataDir, 'LOCK.pid'), { force: true });
Bun.spawnSync([
  'tar',
  '--sort=name',
  '--exclude=*-shm',
  '--owner=0',
  '--group=0',
  '-czf',
  join(fixtures, `${name}.tar.gz`),
  '-C',
  dataDir,
  '.',
]);
rmSync(place, { recursive: true });
