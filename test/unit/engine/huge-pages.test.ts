import { expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { release } from 'node:os';
import { join } from 'node:path';

/** Whether this system gives a process huge pages where it asks for them. */
function areThere(): boolean {
  const [major = 0, minor = 0] = release().split('.').map(Number);
  if (process.platform !== 'linux' || major < 6 || (major === 6 && minor < 1)) return false;
  return !readFileSync('/sys/kernel/mm/transparent_hugepage/enabled', 'latin1').includes('[never]');
}

test('machine code that threads run meanwhile goes to huge pages, as many bytes as the answer says, and only once', async () => {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, 'huge-pages-child.ts')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const { moved, again, left, huge } = (await new Response(child.stdout).json()) as Record<
    'moved' | 'again' | 'left' | 'huge',
    number
  >;
  expect(await child.exited).toBe(0);
  expect(moved > 0).toBe(areThere());
  expect({ again, left, huge }).toEqual({ again: 0, left: moved, huge: moved });
});
