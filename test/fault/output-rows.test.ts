import { expect, setDefaultTimeout, test } from 'bun:test';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';

setDefaultTimeout(120_000);

const sources = join(import.meta.dir, '../../src');

/** Runs a program with one of its outputs on a disk that takes nothing; returns its exit code and what the other one says. */
function runOnFullDisk(words: readonly string[], full: 'stdout' | 'stderr'): { code: number; said: string } {
  const file = openSync('/dev/full', 'w');
  try {
    const outputs = { stdout: full === 'stdout' ? file : 'pipe', stderr: full === 'stderr' ? file : 'pipe' } as const;
    const run = Bun.spawnSync([process.execPath, ...words], outputs);
    return { code: run.exitCode, said: String((full === 'stdout' ? run.stderr : run.stdout) ?? '') };
  } finally {
    closeSync(file);
  }
}

test('a log that lies on a full disk loses lines and ends nothing', () => {
  const program = `
    import { writeToStandardError } from '${sources}/observability/line-logger.ts';
    writeToStandardError('lost\\n');
    console.log('goes on');`;
  expect(runOnFullDisk(['-e', program], 'stderr')).toEqual({ code: 0, said: 'goes on\n' });
});

test('a command whose output does not get where it was to go says so and fails', () => {
  const { code, said } = runOnFullDisk([join(sources, 'main.ts'), 'config', 'show'], 'stdout');
  expect(code).toBe(1);
  expect(said).toMatch(/^sundew: the output cannot be written: ENOSPC[^\n]*\n$/);
});
