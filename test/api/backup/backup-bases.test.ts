import { describe, expect, test } from 'bun:test';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ClusterManifest, encodeManifest } from '../../../src/backup/archive/manifest.ts';
import { rememberedMax } from '../../../src/backup/backup-base.ts';
import { BackupPlace } from '../../support/backup-place.ts';
import { restore } from '../../support/restore-jobs.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';
import type { TestServer } from '../../support/test-server.ts';

const backUp = (server: TestServer, place: BackupPlace, id: string, base?: string) =>
  server.send('POST', '/db/v1/backup', {
    backup_id: id,
    location: place.location,
    ...(base && { base_backup_id: base }),
  });
const write = async (server: TestServer, inserts: object) =>
  expect((await server.send('POST', '/db/v1/tables/t/batch', { inserts })).status).toBe(201);
const manifestPath = (place: BackupPlace, id: string) => join(place.path, `${id}-cluster-metadata.json`);

describe('the base of a backup', () => {
  test('leans on backups that are all there, or nothing is written', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    await server.send('POST', '/db/v1/tables/t');
    await write(server, { a: { n: 1 } });
    for (const [id, base] of [['full'], ['first', 'full'], ['second', 'first']] as const) {
      expect((await backUp(server, place, id, base)).body).toMatchObject({ status: 'completed' });
    }
    const manifest = readFileSync(manifestPath(place, 'full'));
    rmSync(manifestPath(place, 'full'));
    const refused = await backUp(server, place, 'third', 'second');
    expect(refused.body).toMatchObject({ code: 'backup_corrupted', message: expect.stringContaining('"full"') });
    expect(place.files('third')).toEqual([]);
    writeFileSync(manifestPath(place, 'full'), manifest);
    expect((await backUp(server, place, 'third', 'second')).body).toMatchObject({ status: 'completed' });
  });

  test('ends a chain of at most 999 backups, since one of more than 1,000 could not be restored', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    await server.send('POST', '/db/v1/tables/t');
    await write(server, { a: { n: 1 } });
    await backUp(server, place, 'b0');
    const { checksum: _, ...first } = JSON.parse(readFileSync(manifestPath(place, 'b0'), 'utf8')) as ClusterManifest & {
      checksum: string;
    };
    for (let n = 1; n < 1_000; n += 1) {
      const next = { ...first, backup_id: `b${n}`, base_backup_id: `b${n - 1}` };
      writeFileSync(manifestPath(place, `b${n}`), encodeManifest(next));
    }
    expect(await backUp(server, place, 'more', 'b999')).toMatchObject({
      status: 400,
      body: { code: 'invalid_request', message: expect.stringContaining('make one without a base') },
    });
    expect((await backUp(server, place, 'last', 'b998')).body).toMatchObject({ status: 'completed' });
    const request = { backup_id: 'last', location: place.location, restore_mode: 'overwrite' };
    expect(await restore(server, request)).toMatchObject({ phase: 'succeeded' });
  });

  test('that is ahead of a data directory, which was put back to an earlier time, has everything copied', async () => {
    using place = new BackupPlace();
    using folder = new TemporaryDirectory();
    using earlier = new TemporaryDirectory();
    const directory = folder.path;
    {
      await using server = await place.server({ directory });
      await server.send('POST', '/db/v1/tables/t');
      await write(server, { a: { n: 1 } });
    }
    cpSync(directory, earlier.path, { recursive: true });
    {
      await using server = await place.server({ directory });
      for (let n = 2; n < 20; n += 1) await write(server, { a: { n }, [`k${n}`]: {} });
      expect((await backUp(server, place, 'full')).body).toMatchObject({ status: 'completed' });
    }
    rmSync(directory, { recursive: true });
    cpSync(earlier.path, directory, { recursive: true });
    await using server = await place.server({ directory });
    await write(server, { b: { n: 'later' } });
    expect((await backUp(server, place, 'b', 'full')).body).toMatchObject({ status: 'completed' });
    const request = { backup_id: 'b', location: place.location, restore_mode: 'overwrite' };
    expect(await restore(server, request)).toMatchObject({ phase: 'succeeded' });
    const found = async (key: string) => (await server.send('GET', `/db/v1/tables/t/lookup/${key}`)).body;
    expect([await found('a'), await found('b')]).toEqual([{ n: 1 }, { n: 'later' }]);
    expect(await found('k5')).toMatchObject({ code: 'key_not_found' });
  });

  test('of a data directory that was put back and has more changes since is no base of what it has now', async () => {
    using place = new BackupPlace();
    using folder = new TemporaryDirectory();
    using earlier = new TemporaryDirectory();
    const directory = folder.path;
    {
      await using server = await place.server({ directory });
      await server.send('POST', '/db/v1/tables/t');
      await write(server, { a: { n: 1 } });
      await backUp(server, place, 'first');
    }
    cpSync(directory, earlier.path, { recursive: true });
    {
      await using server = await place.server({ directory });
      await write(server, { a: { n: 2 }, gone: {} });
      expect((await backUp(server, place, 'full')).body).toMatchObject({ status: 'completed' });
    }
    rmSync(directory, { recursive: true });
    cpSync(earlier.path, directory, { recursive: true });
    await using server = await place.server({ directory });
    for (const key of ['b', 'c', 'd']) await write(server, { [key]: {} });
    const documents = async () => (await server.send('POST', '/db/v1/tables/t/documents', {})).body;
    const before = await documents();
    for (const base of ['full', 'first']) {
      const id = `on-${base}`;
      expect((await backUp(server, place, id, base)).body).toMatchObject({ status: 'completed' });
      const keys = place.lines(id).map(({ key }) => String(key));
      // The first one belongs to its history: only what came after it is copied.
      expect(keys).toEqual(base === 'first' ? ['b', 'c', 'd'] : ['a', 'b', 'c', 'd']);
    }
    for (const id of ['on-full', 'on-first']) {
      const request = { backup_id: id, location: place.location, restore_mode: 'overwrite' };
      expect(await restore(server, request)).toMatchObject({ phase: 'succeeded' });
      expect(await documents()).toEqual(before);
      // A restored table has nothing in common with any backup.
      expect((await backUp(server, place, `${id}-again`, id)).body).toMatchObject({ status: 'completed' });
      expect(place.lines(`${id}-again`)).toHaveLength(4);
    }
  });

  test('spares every range of every table what it has', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    const tables = ['t', 'other', 'third'];
    const insert = async (inserts: object) => {
      for (const table of tables) {
        expect((await server.send('POST', `/db/v1/tables/${table}/batch`, { inserts })).status).toBe(201);
      }
    };
    for (const table of tables) await server.send('POST', `/db/v1/tables/${table}`, { num_shards: 3 });
    await insert({ a: {}, m: {}, z: {} });
    expect((await backUp(server, place, 'full')).body).toMatchObject({ status: 'completed' });
    await insert({ b: {}, n: {}, y: {} });
    expect((await backUp(server, place, 'more', 'full')).body).toMatchObject({ status: 'completed' });
    expect(place.lines('more').map(({ key }) => key)).toEqual(tables.flatMap(() => ['b', 'n', 'y']));
  });

  test('is remembered until there are many later ones, and then everything is copied', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    await server.send('POST', '/db/v1/tables/t');
    await write(server, { a: {}, b: {} });
    for (let n = 0; n <= rememberedMax; n += 1) await backUp(server, place, `b${n}`);
    await write(server, { c: {} });
    for (const [base, count] of [
      [1, 1],
      [0, 3],
    ] as const) {
      expect((await backUp(server, place, `on${base}`, `b${base}`)).body).toMatchObject({ status: 'completed' });
      expect([base, place.lines(`on${base}`).length]).toEqual([base, count]);
    }
  });

  test('without the vectors of a dropped index has all of them copied for the index that takes them over', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    const index = { type: 'embeddings', external: true, dimension: 2 };
    const path = '/db/v1/tables/t/indexes/v';
    await server.send('POST', '/db/v1/tables/t', { indexes: { v: index } });
    await write(server, { a: { _embeddings: { v: [1, 0] } }, b: { _embeddings: { v: [1, 2] } } });
    expect((await server.send('DELETE', `${path}?keep_vectors=true`)).status).toBe(204);
    expect((await backUp(server, place, 'full')).body).toMatchObject({ status: 'completed' });
    expect((await server.send('POST', path, index)).status).toBe(201);
    await write(server, { c: { _embeddings: { v: [0, 1] } } });
    expect((await backUp(server, place, 'b', 'full')).body).toMatchObject({ status: 'completed' });
    const request = { backup_id: 'b', location: place.location, restore_mode: 'overwrite' };
    expect(await restore(server, request)).toMatchObject({ phase: 'succeeded' });
    const vectors = await Promise.all(
      ['a', 'b', 'c'].map(async (key) => {
        const { body } = await server.send('GET', `/db/v1/tables/t/lookup/${key}?fields=_embeddings`);
        return body;
      }),
    );
    expect(vectors).toEqual(
      [
        [1, 0],
        [1, 2],
        [0, 1],
      ].map((v) => ({ _embeddings: { v } })),
    );
  });

  test('that leans on its own increment is refused', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    await server.send('POST', '/db/v1/tables/t');
    await write(server, { a: {} });
    await backUp(server, place, 'x');
    await backUp(server, place, 'y', 'x');
    const { checksum: _, ...full } = JSON.parse(readFileSync(manifestPath(place, 'x'), 'utf8')) as ClusterManifest & {
      checksum: string;
    };
    writeFileSync(manifestPath(place, 'x'), encodeManifest({ ...full, base_backup_id: 'y' }));
    expect((await backUp(server, place, 'z', 'y')).body).toMatchObject({
      code: 'backup_corrupted',
      message: 'the backup "x" leans on "y", which leans on it',
    });
  });
});
