import { expect, test } from 'bun:test';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { copyApart } from '../../../src/backup/image/copy-apart.ts';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';

test('a file is copied by another process, which says why where it cannot', async () => {
  using folder = new TemporaryDirectory();
  const [from, to] = ['a file', 'copy'].map((name) => join(folder.path, name)) as [string, string];
  writeFileSync(from, 'bytes');
  await copyApart(from, to);
  expect(readFileSync(to, 'utf8')).toBe('bytes');
  await expect(copyApart(join(folder.path, 'missing'), to)).rejects.toMatchObject({ code: 'ENOENT' });
  await expect(copyApart(from, join(folder.path, 'missing/copy'))).rejects.toMatchObject({ code: 'ENOENT' });
});
