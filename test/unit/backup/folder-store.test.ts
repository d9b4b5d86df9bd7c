import { describe, expect, test } from 'bun:test';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { TemporaryDirectory } from '../../support/temporary-directory.ts';

const store = join(import.meta.dir, '../../../src/backup/stores/folder-store.ts');

/** Runs the script in a process whose files may have 64 KiB: a write beyond that fails half way, as on a full disk. */
async function withLittleRoom(folder: string, script: string): Promise<string> {
  const program = `import { FolderStore } from ${JSON.stringify(store)};
    const store = new FolderStore(${JSON.stringify(folder)}, ${JSON.stringify(folder)});
    const codeOf = (error) => error.code;
    const open = () => require('node:fs').readdirSync('/proc/self/fd').length;
    ${script}`;
  // Blocks of 1,024 bytes; without the trap the signal would end the process.
  const limited = `trap '' XFSZ; ulimit -f 64; exec "$0" -e "$1"`;
  const { stdout, stderr, exitCode } = Bun.spawnSync(['bash', '-c', limited, process.execPath, program]);
  expect([exitCode, stderr.toString()]).toEqual([0, '']);
  return stdout.toString().trim();
}

describe('a folder that has no room for all of an object', () => {
  test('fails the object that is created, keeps nothing of it, and takes a smaller one of that name', async () => {
    using folder = new TemporaryDirectory();
    const answer = await withLittleRoom(
      folder.path,
      `const before = open();
      const first = await store.create('b-cluster-metadata.json', new Uint8Array(1 << 20)).catch(codeOf);
      const isClosed = open() === before;
      console.log(first, isClosed, await store.create('b-cluster-metadata.json', new Uint8Array(10)));`,
    );
    expect(answer).toBe('location_unavailable true created');
    expect(readdirSync(folder.path)).toEqual(['b-cluster-metadata.json']);
  });

  test('fails the write of a payload; once that is given up, nothing is left', async () => {
    using folder = new TemporaryDirectory();
    const answer = await withLittleRoom(
      folder.path,
      `const before = open();
      const payload = await store.open('b/attempt/t-1.lines');
      await payload.write(new Uint8Array(60_000));
      const code = await payload.write(new Uint8Array(60_000)).catch(codeOf);
      await payload.abort();
      console.log(code, open() === before);`,
    );
    expect(answer).toBe('location_unavailable true');
    expect(readdirSync(folder.path, { recursive: true }).filter((name) => `${name}`.includes('.'))).toEqual([]);
  });
});
