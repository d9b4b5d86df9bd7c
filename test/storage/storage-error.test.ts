import { Database } from 'bun:sqlite';
import { expect, test } from 'bun:test';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { isRefusedFile, translateStorageError } from '../../src/storage/storage-error.ts';
import { temporaryDirectory } from './storage-fixture.ts';

test('a file that may not be written is told from a disk that takes no writes', () => {
  using directory = temporaryDirectory();
  const path = join(directory.path, 'documents.db');
  new Database(path).run('CREATE TABLE t (a)');
  const database = new Database(path, { readonly: true });
  let failure: unknown;
  try {
    database.run('INSERT INTO t VALUES (1)');
  } catch (error) {
    failure = error;
  }
  const told = translateStorageError(failure, path);
  expect(told).toMatchObject({ code: 'unavailable', message: expect.stringContaining('start the server again') });
  expect(isRefusedFile(failure, told)).toBe(true);
  expect(readdirSync(directory.path)).toEqual(['documents.db']);
});

test.each([
  ['EIO', 'fsync', 'storage_failed'],
  ['EIO', 'mkdir', 'unavailable'],
  ['ENOMEM', 'mkdir', 'unavailable'],
  ['EBUSY', 'rmdir', 'unavailable'],
  ['ENOSPC', 'fsync', 'insufficient_storage'],
  ['EROFS', 'mkdir', 'read_only'],
])('%s of %s on a file of the data directory is %s', (code, syscall, meaning) => {
  const failure = Object.assign(new Error(code), { code, errno: -1, syscall });
  expect(translateStorageError(failure, 'documents.db')).toMatchObject({ code: meaning });
});
