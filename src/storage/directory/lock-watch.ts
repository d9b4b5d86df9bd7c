import { type Clock, pause } from '../../lib/clock.ts';
import type { HeldFile } from './held-file.ts';

/** Time between two looks at the lock of a directory that nobody writes to, in milliseconds. */
const lookMs = 1_000;

/**
 * Looks now and then whether the lock is in its place, until the signal is aborted. Throws `storage_failed` when it is not: the
 * directory was removed, or another one has its name, or another process may take it.
 */
export async function watchLock(lock: HeldFile, clock: Clock, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    lock.check();
    await pause(clock, lookMs, signal);
  }
}
