import { expect, setDefaultTimeout, test } from 'bun:test';
import { mkdirSync, renameSync, rmSync, truncateSync } from 'node:fs';
import { ChildServer } from '../support/fault/child-server.ts';
import { type Answer, WireClient, WireError } from '../support/fault/wire-client.ts';
import { FaultPlace } from './fault-place.ts';
import { offlineCheck } from './offline-check.ts';

setDefaultTimeout(180_000);

const keys = ['!a', 'm', '~z'];
const documents = Object.fromEntries(keys.map((key) => [key, { words: 'amber' }]));

async function writeFirst(server: ChildServer): Promise<WireClient> {
  const wire = new WireClient(server.url);
  await wire.createTable('t', { num_shards: 3 });
  await wire.createTable('one');
  for (const table of ['t', 'one']) {
    expect((await wire.batch(table, { inserts: documents, sync_level: 'full_text' })).status).toBe(201);
  }
  return wire;
}

/** Of a write that meets what was taken, nobody is told that it is durable. */
async function expectRefused(write: Promise<Answer>): Promise<void> {
  const answer = await write.catch(() => undefined);
  // The process may end before it answers.
  if (answer) expect(answer).toMatchObject({ status: 503, body: { code: 'storage_failed' } });
}

async function expectStopped(server: ChildServer, file: string): Promise<void> {
  expect((await server.ended).code).toBe(74);
  expect(server.log).toContain('the data directory failed; the server stops and recovers at its next start');
  expect(server.log).toMatch(
    new RegExp(`"message":"[^: ]*${file} was (removed or replaced|cut) while the server had it open"`),
  );
}

const ways: { way: string; take(place: FaultPlace): void }[] = [
  { way: 'is removed', take: ({ dataDir }) => rmSync(dataDir, { recursive: true }) },
  { way: 'is moved away', take: ({ dataDir }) => renameSync(dataDir, `${dataDir}-moved`) },
  {
    way: 'gives its place to an empty one',
    take({ dataDir }) {
      renameSync(dataDir, `${dataDir}-moved`);
      mkdirSync(dataDir);
    },
  },
];

test.each(ways)('a data directory that $way while nobody writes ends the server', async ({ take }) => {
  using place = new FaultPlace();
  await using server = await place.start();
  await writeFirst(server);
  take(place);
  await expectStopped(server, '(LOCK|catalog.db)');
});

test.each(ways)('a write after the data directory $way is not acknowledged', async ({ take }) => {
  using place = new FaultPlace();
  await using server = await place.start();
  const wire = await writeFirst(server);
  take(place);
  await expectRefused(wire.batch('t', { inserts: { ...documents, m: { words: 'birch' } } }));
  await expectRefused(wire.batch('one', { inserts: { m: { words: 'birch' } } }));
  await expectRefused(wire.send('POST', '/db/v1/tables/other', {}));
  await expectStopped(server, '(documents.db|catalog.db|LOCK)');
});

test('another data directory in the place of the one that a server has open is neither read nor written', async () => {
  using place = new FaultPlace();
  using other = new FaultPlace();
  {
    await using server = await other.start();
    const wire = await writeFirst(server);
    const inserts = { other: { words: 'cedar' } };
    expect((await wire.batch('one', { inserts })).status).toBe(201);
    expect((await server.stop()).code).toBe(0);
  }
  const before = other.fingerprint();
  {
    await using server = await place.start();
    const wire = await writeFirst(server);
    renameSync(place.dataDir, `${place.dataDir}-moved`);
    renameSync(other.dataDir, place.dataDir);
    // A read that had opened the files before still has those.
    const seen = await wire.scan('one').catch((error: unknown) => error);
    if (seen instanceof Map) expect([...seen.keys()]).toEqual(keys);
    else if (seen instanceof WireError) expect(seen.answer.status).toBe(503);
    await expectRefused(wire.send('POST', '/db/v1/tables/other', {}));
    await expectStopped(server, '(documents.db|catalog.db|LOCK)');
  }
  expect(place.fingerprint()).toEqual(before);
  renameSync(`${place.dataDir}-moved`, `${place.directory}/again`);
  await using server = await ChildServer.start({ dataDir: `${place.directory}/again` });
  expect([...(await new WireClient(server.url).scan('one')).keys()]).toEqual(keys);
});

test.each(['documents.db', 'documents.db-wal', 'catalog.db-wal', 'LOCK'])(
  'a write behind the removal of %s is not acknowledged, and what was acknowledged before is not lost',
  async (name) => {
    using place = new FaultPlace();
    {
      await using server = await place.start();
      const wire = await writeFirst(server);
      for (const path of place.files(name)) if (path.endsWith(name)) rmSync(path);
      if (name.startsWith('catalog')) await expectRefused(wire.send('POST', '/db/v1/tables/other', {}));
      else await expectRefused(wire.batch('one', { inserts: { new: { words: 'birch' } } }));
      await expectStopped(server, name);
    }
    if (name === 'documents.db') {
      expect(offlineCheck(place.dataDir).code).not.toBe(0);
      return;
    }
    await using server = await place.start();
    const found = await new WireClient(server.url).scan('one');
    for (const key of keys) expect(found.has(key)).toBe(true);
  },
);

test.each(['documents.db', 'documents.db-wal'])('a %s that is cut is not taken for whole', async (name) => {
  using place = new FaultPlace();
  {
    await using server = await place.start();
    const wire = await writeFirst(server);
    for (const path of place.files(name)) if (path.endsWith(name)) truncateSync(path);
    await expectRefused(wire.batch('one', { inserts: { new: { words: 'birch' } } }));
    await expectStopped(server, name);
  }
  if (name === 'documents.db') expect(offlineCheck(place.dataDir).code).not.toBe(0);
});
