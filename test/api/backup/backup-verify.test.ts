import { describe, expect, test } from 'bun:test';
import { readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FolderStore } from '../../../src/backup/stores/folder-store.ts';
import { verifyBackup } from '../../../src/backup/verify-backup.ts';
import { otherVerbs } from '../../../src/other-verbs.ts';
import { BackupPlace } from '../../support/backup-place.ts';
import { runCommand } from '../../support/command-line.ts';
import { restore } from '../../support/restore-jobs.ts';
import type { TestServer } from '../../support/test-server.ts';

async function fill(server: TestServer): Promise<void> {
  const indexes = { v: { type: 'embeddings', external: true, dimension: 3 } };
  await server.send('POST', '/db/v1/tables/t', { num_shards: 2, indexes });
  const inserts = Object.fromEntries(
    Array.from({ length: 50 }, (_, n) => [`${n % 2 ? 'a' : 'z'}${n}`, { n, _embeddings: { v: [n, 1, 2] } }]),
  );
  expect((await server.send('POST', '/db/v1/tables/t/batch', { inserts })).status).toBe(201);
}

function verify(place: BackupPlace, id = 'b') {
  return verifyBackup(new FolderStore(place.path, place.path), id);
}

describe('the verification of a backup', () => {
  test('says what it has', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    await fill(server);
    await server.send('POST', '/db/v1/backup', { backup_id: 'b', location: place.location });
    expect(await verify(place)).toMatchObject({ backupId: 'b', tables: [{ name: 't', documents: 50 }] });
    await expect(verify(place, 'none')).rejects.toMatchObject({ code: 'backup_not_found' });
  });

  test.each([
    ['portable', false],
    ['native', false],
    ['portable', true],
    ['native', true],
  ])('finds a flipped bit in any byte of any file: %s, an increment: %p', async (format, isIncrement) => {
    using place = new BackupPlace();
    await using server = await place.server();
    await fill(server);
    const location = place.location;
    await server.send('POST', '/db/v1/backup', { backup_id: isIncrement ? 'base' : 'b', location, format });
    if (isIncrement) {
      await server.send('POST', '/db/v1/tables/t/batch', { inserts: { a1: { n: -1 } }, deletes: ['z0'] });
      await server.send('POST', '/db/v1/backup', { backup_id: 'b', location, base_backup_id: 'base' });
    }
    // The base of an increment is read with it.
    const files = [
      ...place.files('base'),
      ...place.files('b'),
      ...place.manifests.map((name) => join(place.path, name)),
    ];
    expect(files.some((name) => name.includes('-image-'))).toBe(format === 'native');
    for (const file of files) {
      const bytes = readFileSync(file);
      const step = Math.max(1, Math.floor(bytes.byteLength / 20));
      for (let at = 0; at < bytes.byteLength; at += step) {
        const damaged = Buffer.from(bytes);
        damaged[at] = (damaged[at] ?? 0) ^ (1 << (at % 8));
        writeFileSync(file, damaged);
        const outcome = await verify(place).then(
          () => 'sound',
          (error: unknown) => (error as { code?: string }).code,
        );
        expect([file, at, outcome]).toEqual([file, at, 'backup_corrupted']);
      }
      writeFileSync(file, bytes);
    }
    await verify(place);
  });

  test('finds a file that is cut, too long, missing or a link', async () => {
    using place = new BackupPlace();
    await using server = await place.server();
    await fill(server);
    await server.send('POST', '/db/v1/backup', { backup_id: 'b', location: place.location });
    for (const file of place.files('b')) {
      const bytes = readFileSync(file);
      writeFileSync(file, bytes.subarray(0, bytes.byteLength - 1));
      await expect(verify(place)).rejects.toMatchObject({ code: 'backup_corrupted' });
      writeFileSync(file, Buffer.concat([bytes, Buffer.from('\n')]));
      await expect(verify(place)).rejects.toMatchObject({ code: 'backup_corrupted' });
      rmSync(file);
      await expect(verify(place)).rejects.toMatchObject({ code: 'backup_corrupted' });
      symlinkSync('/etc/hostname', file);
      await expect(verify(place)).rejects.toMatchObject({ code: 'backup_corrupted' });
      rmSync(file);
      writeFileSync(file, bytes);
    }
    await verify(place);
  });

  test.each(['portable', 'native'])(
    'is part of a restore: a flipped bit in any file publishes nothing, %s',
    async (format) => {
      using place = new BackupPlace();
      await using server = await place.server();
      await fill(server);
      await server.send('POST', '/db/v1/backup', { backup_id: 'b', location: place.location, format });
      await server.send('POST', '/db/v1/tables/t/batch', { inserts: { a1: { n: 'kept' } } });
      const request = { backup_id: 'b', location: place.location, restore_mode: 'overwrite' };
      for (const file of [...place.files('b'), ...place.manifests.map((name) => join(place.path, name))]) {
        const bytes = readFileSync(file);
        // Nothing was written while an image was taken: that file is empty.
        if (bytes.byteLength === 0) continue;
        const damaged = Buffer.from(bytes);
        const at = Math.floor(bytes.byteLength / 2);
        damaged[at] = (damaged[at] ?? 0) ^ 4;
        writeFileSync(file, damaged);
        const job = await restore(server, request);
        expect([file, job]).toMatchObject([
          file,
          { phase: 'failed', published_table_count: 0, error: expect.stringContaining('backup_corrupted') },
        ]);
        expect((await server.send('GET', '/db/v1/tables/t/lookup/a1')).body).toMatchObject({ n: 'kept' });
        writeFileSync(file, bytes);
      }
      expect(await restore(server, request)).toMatchObject({ phase: 'succeeded' });
    },
  );
});

test('the command names the backup as routes do, and takes no server', async () => {
  using place = new BackupPlace();
  await using server = await place.server();
  await fill(server);
  await server.send('POST', '/db/v1/backup', { backup_id: 'b', location: place.location });
  const words = ['backup', 'verify', place.location, 'b', '--json', '--config', place.configuration];
  const { code, printed } = await runCommand(otherVerbs, words);
  expect([code, JSON.parse(printed)]).toMatchObject([0, { backup_id: 'b', tables: [{ name: 't', documents: 50 }] }]);
  const asked = await runCommand(otherVerbs, [...words, '--url', server.url]);
  expect(asked).toMatchObject({ code: 2, printed: '', explained: expect.stringContaining('takes no --url') });
});
