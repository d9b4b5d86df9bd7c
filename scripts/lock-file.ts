import { Database } from 'bun:sqlite';
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Waits until no other process holds this file, which is made where it is missing; `onWait` is told once. The system
 * gives the lock back with the process.
 */
export async function lockFile(path: string, onWait: () => void): Promise<Disposable> {
  mkdirSync(dirname(path), { recursive: true });
  const lock = new Database(path);
  for (let isTold = false; ; isTold = true) {
    try {
      lock.run('BEGIN EXCLUSIVE');
      return { [Symbol.dispose]: () => lock.close() };
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'SQLITE_BUSY')) throw error;
      if (!isTold) onWait();
      await Bun.sleep(100);
    }
  }
}
