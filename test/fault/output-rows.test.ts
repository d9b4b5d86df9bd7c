import { dlopen } from 'bun:ffi';
import { expect, setDefaultTimeout, test } from 'bun:test';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { TemporaryDirectory } from '../support/temporary-directory.ts';

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
    import { writeToStandardError } from '${sources}/observability/standard-error.ts';
    writeToStandardError('lost\\n');
    console.log('goes on');`;
  expect(runOnFullDisk(['-e', program], 'stderr')).toEqual({ code: 0, said: 'goes on\n' });
});

interface Ends {
  readonly written: number;
  /** Opened when it is to be read. */
  readonly read: () => number;
}

const ends = {
  pipe(directory: string): Ends {
    const pipe = join(directory, 'pipe');
    Bun.spawnSync(['mkfifo', pipe]);
    // Open for both, because opening it to write alone would wait for a reader.
    return { written: openSync(pipe, 'r+'), read: () => openSync(pipe, 'r') };
  },
  // As journald has it: it cannot be opened by a path.
  socket(): Ends {
    const { symbols } = dlopen('libc.so.6', {
      socketpair: { args: ['i32', 'i32', 'i32', 'ptr'], returns: 'i32' },
    });
    const pair = new Int32Array(2);
    const [afUnix, sockStream] = [1, 1];
    expect(symbols.socketpair(afUnix, sockStream, 0, pair)).toBe(0);
    const [read = 0, written = 0] = pair;
    return { written, read: () => read };
  },
};

test.each(Object.entries(ends))(
  'a log whose reader stands still loses lines, says how many, and stops nothing: a %s',
  async (_name, open) => {
    const program = `
    import { createLogger } from '${sources}/observability/line-logger.ts';
    import { writeToStandardError } from '${sources}/observability/standard-error.ts';
    const clock = { nowMs: () => 0 };
    const logger = createLogger({ level: 'info', format: 'json', clock, write: writeToStandardError });
    const line = 'x'.repeat(10_000);
    for (let number = 0; number < 100; number += 1) logger.info(line);
    console.log('goes on');
    await Bun.stdin.text();
    logger.info('heard');`;
    using directory = new TemporaryDirectory();
    const { written, read } = open(directory.path);
    const run = Bun.spawn([process.execPath, '-e', program], { stdin: 'pipe', stdout: 'pipe', stderr: written });
    const { value } = await run.stdout.getReader().read();
    expect(Buffer.from(value ?? []).toString()).toBe('goes on\n');
    const reader = Bun.spawn(['cat'], { stdin: read(), stdout: 'pipe' });
    const chunks: Uint8Array[] = [];
    for await (const chunk of reader.stdout) {
      // The pipe has room from now on, and ends with the program.
      if (chunks.push(chunk) > 1) continue;
      closeSync(written);
      run.stdin.end();
    }
    const lines = Buffer.concat(chunks).toString().trimEnd().split('\n');
    const [heard, told] = lines.slice(-2).map((line) => JSON.parse(line));
    expect([heard.msg, told.level]).toEqual(['heard', 'warn']);
    const whole = lines.filter((line) => line.startsWith('{') && line.endsWith('}')).length - 2;
    expect(whole).toBeGreaterThan(0);
    expect(whole + told.lost).toBe(100);
  },
);

test('a command whose output does not get where it was to go says so and fails', () => {
  const { code, said } = runOnFullDisk([join(sources, 'main.ts'), 'config', 'show'], 'stdout');
  expect(code).toBe(1);
  expect(said).toMatch(/^sundew: the output cannot be written: ENOSPC[^\n]*\n$/);
});
