import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PullLock } from '../../src/models/download/pull-lock.ts';
import { TemporaryDirectory } from '../support/temporary-directory.ts';

const source = new URL('../../src/models/download/pull-lock.ts', import.meta.url).pathname;

test('M08: a pull waits for nobody but a process that pulls the same model, and is alive', async () => {
  using directory = new TemporaryDirectory();
  const path = join(directory.path, 'lock');
  const hold = `const { PullLock } = await import(${JSON.stringify(source)}); new PullLock(${JSON.stringify(path)}); console.log('held'); await new Promise(() => setInterval(() => {}, 1000));`;
  const child = Bun.spawn([process.execPath, '-e', hold], { stdout: 'pipe', stderr: 'inherit' });
  for await (const _ of child.stdout) break;
  expect(() => new PullLock(path)).toThrow(`process ${child.pid} is pulling this model already`);
  child.kill('SIGKILL');
  await child.exited;
  new PullLock(path)[Symbol.dispose]();
  // Another process has the number now.
  directory.write('lock', `${process.ppid} 1`);
  using _taken = new PullLock(path);
  expect(readFileSync(path, 'utf8')).toStartWith(`${process.pid} `);
});
