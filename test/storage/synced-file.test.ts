import { expect, test } from 'bun:test';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryDirectory } from './storage-fixture.ts';

const child = Bun.fileURLToPath(new URL('./small-file-child.ts', import.meta.url));

test('a file of which the disk takes only a part is not taken for written', () => {
  using directory = temporaryDirectory();
  const path = join(directory.path, 'file');
  // The write that reaches the bound takes what fits and reports no error, as on a disk that gets full.
  const bounded = `trap '' XFSZ && ulimit -f 8 && exec "$@"`;
  const { stdout } = Bun.spawnSync(['/bin/sh', '-c', bounded, 'sh', process.execPath, child, path], {
    stderr: 'inherit',
  });
  expect(JSON.parse(stdout.toString())).toEqual({
    synced: 'EFBIG',
    durable: 'EFBIG',
    extended: 'EFBIG, 4 bytes',
  });
  expect(existsSync(`${path}.text`)).toBe(false);
});
