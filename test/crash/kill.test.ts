import { expect, test } from 'bun:test';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runSeed, SeededRandom } from '../support/fault/seeded-random.ts';
import { CrashRun } from './crash-run.ts';

const rounds = Number(process.env.SUNDEW_CRASH_ROUNDS ?? 50);

test(
  `S01: a loaded server killed ${rounds} times keeps every acknowledged write, whole`,
  async () => {
    const seed = runSeed();
    console.log(`crash suite: seed ${seed} (SUNDEW_TEST_SEED repeats it)`);
    const directory = mkdtempSync(join(tmpdir(), 'sundew-crash-'));
    const run = new CrashRun(directory, new SeededRandom(seed));
    try {
      for (let round = 1; round <= rounds; round += 1) await run.round();
      expect(run.acknowledged).toBeGreaterThan(rounds);
      await run.checkOffline();
    } catch (error) {
      console.log(`crash suite: seed ${seed}; the data directory stays at ${directory}\n${run.history.join('\n')}`);
      throw error;
    }
    console.log(`crash suite: ${run.acknowledged} acknowledged operations, ${run.killedWhereNamed} kills where named`);
    rmSync(directory, { recursive: true, force: true });
  },
  { timeout: Math.max(180_000, rounds * 10_000) },
);
