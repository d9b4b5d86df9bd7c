import { describe, expect, test } from 'bun:test';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ClusterManifest, encodeManifest } from '../../../src/backup/archive/manifest.ts';
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
});
