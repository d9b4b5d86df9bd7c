import { join } from 'node:path';

const main = join(import.meta.dir, '../../src/main.ts');

export interface CheckRun {
  code: number;
  text: string;
}

/** Runs `sundew check` on a directory that no server holds. */
export function offlineCheck(dataDir: string, ...flags: string[]): CheckRun {
  const run = Bun.spawnSync([process.execPath, main, 'check', '--data-dir', dataDir, ...flags], {
    stdout: 'pipe',
    stderr: 'pipe',
  });
  return { code: run.exitCode, text: run.stdout.toString() + run.stderr.toString() };
}
