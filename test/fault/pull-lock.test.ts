import { expect, test } from 'bun:test';
import { join } from 'node:path';
import { lockPull } from '../../src/models/download/pull-lock.ts';
import { TemporaryDirectory } from '../support/temporary-directory.ts';

const source = Bun.fileURLToPath(new URL('../../src/models/download/pull-lock.ts', import.meta.url));

test('M08: a pull is refused while the same model is being pulled, and at no other time', async () => {
  using directory = new TemporaryDirectory();
  const path = join(directory.path, 'LOCK');
  const hold = `const { lockPull } = await import(${JSON.stringify(source)}); globalThis.held = lockPull(${JSON.stringify(path)}); console.log('held'); await new Promise(() => setInterval(() => {}, 1000));`;
  const child = Bun.spawn([process.execPath, '-e', hold], { stdout: 'pipe', stderr: 'inherit' });
  for await (const _ of child.stdout) break;
  expect(() => lockPull(path)).toThrow(`process ${child.pid} is pulling this model already`);
  child.kill('SIGKILL');
  await child.exited;
  // The kernel has taken the lock back; what lies there of it counts for nothing.
  const first = lockPull(path);
  expect(() => lockPull(path)).toThrow(`process ${process.pid} is pulling this model already`);
  first[Symbol.dispose]();
  lockPull(path)[Symbol.dispose]();
});
