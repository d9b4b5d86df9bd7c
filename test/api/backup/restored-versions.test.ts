import { describe, expect, test } from 'bun:test';
import { BackupPlace } from '../../support/backup-place.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { restore } from '../../support/restore-jobs.ts';
import { hitKeys, type TestServer } from '../../support/test-server.ts';

const batch = '/db/v1/tables/books/batch';
const keys = ['0', 'm', 'z'];

async function insert(server: TestServer, text: string, headers: Record<string, string> = {}): Promise<number> {
  const inserts = Object.fromEntries(keys.map((key) => [key, { text }]));
  return (await server.send('POST', batch, { inserts, sync_level: 'full_index' }, headers)).status;
}

async function backUp(server: TestServer, place: BackupPlace, id: string, more: object): Promise<void> {
  const request = { backup_id: id, location: place.location, ...more };
  expect((await server.send('POST', '/db/v1/backup', request)).body).toMatchObject({ status: 'completed' });
}

async function restoreOver(server: TestServer, place: BackupPlace, id: string): Promise<void> {
  const body = { backup_id: id, location: place.location, restore_mode: 'overwrite' };
  expect(await restore(server, body)).toMatchObject({ phase: 'succeeded' });
}

/** The versions of all keys, as their headers have them. */
function versions(server: TestServer): Promise<string[]> {
  return Promise.all(
    keys.map(async (key) => {
      const answer = await server.send('GET', `/db/v1/tables/books/lookup/${key}`);
      return answer.headers.get('x-service-version') ?? '';
    }),
  );
}

function commit(server: TestServer, key: string, version: string) {
  return server.send('POST', '/db/v1/transactions/commit', {
    read_set: [{ table: 'books', key, version }],
    tables: { books: { inserts: { [key]: { text: 'changed' } } } },
  });
}

const least = (texts: string[]) => Math.min(...texts.map(Number));
const greatest = (texts: string[]) => Math.max(...texts.map(Number));

describe.each(['portable', 'native'])('versions after a restore of the format "%s" over a table', (format) => {
  test('are above all that were given out, so that nothing read before it matches', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    await server.send('POST', '/db/v1/tables/books', { num_shards: 3 });
    await insert(server, 'first');
    const first = await versions(server);
    await backUp(server, place, 'b', { format });
    await insert(server, 'second', { 'idempotency-key': 'k' });
    const second = await versions(server);
    await restoreOver(server, place, 'b');
    const restored = await versions(server);
    expect(least(restored)).toBeGreaterThan(greatest(second));
    for (const [at, key] of keys.entries()) {
      for (const stale of [first[at], second[at]]) {
        const refused = await commit(server, key, String(stale));
        expect([refused.status, refused.body]).toMatchObject([409, { status: 'aborted' }]);
      }
      expect((await commit(server, key, String(restored[at]))).body).toMatchObject({ status: 'committed' });
    }
    expect(least(await versions(server))).toBeGreaterThan(greatest(restored));
    // The answers that the replaced table kept under a key are gone with it: the write is made.
    expect(await insert(server, 'second', { 'idempotency-key': 'k' })).toBe(201);
    const { body } = await server.send('GET', '/db/v1/tables/books/lookup/m');
    expect(body).toMatchObject({ text: 'second' });
  });

  test('by a machine whose clock is years behind go on above those of the backup', async () => {
    using place = new BackupPlace();
    const given: string[] = [];
    {
      await using ahead = await place.server({ clock: new FakeClock(Date.UTC(2036, 0, 1)) });
      await ahead.send('POST', '/db/v1/tables/books', { num_shards: 3 });
      await insert(ahead, 'first');
      given.push(...(await versions(ahead)));
      await backUp(ahead, place, 'b', { format });
    }
    await using server = await place.server({ clock: new FakeClock(Date.UTC(2026, 0, 1)) });
    await restoreOver(server, place, 'b');
    const restored = await versions(server);
    expect(least(restored)).toBeGreaterThan(greatest(given));
    expect(await insert(server, 'second')).toBe(201);
    expect(least(await versions(server))).toBeGreaterThan(greatest(restored));
    const found = await server.send('POST', '/db/v1/tables/books/query', { full_text_search: { query: 'second' } });
    expect(hitKeys(found).sort()).toEqual(keys);
    // A table of the name that comes later gives none of its versions again.
    await server.send('DELETE', '/db/v1/tables/books');
    await server.send('POST', '/db/v1/tables/books', { num_shards: 3 });
    expect(await insert(server, 'third')).toBe(201);
    expect(least(await versions(server))).toBeGreaterThan(greatest(restored));
  });

  test('rise with each restore, also over a table that was restored itself, and of a backup of it', async () => {
    using place = new BackupPlace();
    // No time passes between the restores that would set them apart.
    await using server = await place.server({ clock: new FakeClock() });
    await server.send('POST', '/db/v1/tables/books', { num_shards: 3 });
    await insert(server, 'first');
    await backUp(server, place, 'b', { format });
    let before = await versions(server);
    const rose = async () => {
      const after = await versions(server);
      expect(least(after)).toBeGreaterThan(greatest(before));
      before = after;
    };
    for (let n = 0; n < 3; n += 1) {
      await restoreOver(server, place, 'b');
      await rose();
    }
    await backUp(server, place, 'c', { format });
    await backUp(server, place, 'd', { base_backup_id: 'c' });
    await restoreOver(server, place, 'd');
    await rose();
    // Back to the older one, whose versions are far below.
    await restoreOver(server, place, 'b');
    await rose();
    await insert(server, 'later');
    await rose();
  });
});
