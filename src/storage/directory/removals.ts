import { renameSync, rmSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { RangeId } from '../write-request.ts';
import type { DataDirectory } from './data-directory.ts';

/**
 * Takes a range's directory out of its place, which is all that a drop waits for, and returns where its files wait for
 * their removal; undefined when they are gone already. The next start empties that place.
 */
export function takeAway(directory: DataDirectory, rangeId: RangeId): string | undefined {
  const place = directory.rangeDirectory(rangeId);
  const removed = join(directory.temporary, `range-${rangeId}`);
  try {
    renameSync(place, removed);
    return removed;
  } catch {
    rmSync(place, { recursive: true, force: true });
    return undefined;
  }
}

/** Removes files of dropped tables one directory after another, beside everything else. */
export class Removals {
  #waiting: string[] = [];
  #running: Promise<void> | undefined;

  add(paths: readonly string[]): void {
    this.#waiting.push(...paths);
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
  }

  /** Ends after the directory that is being removed. */
  async close(): Promise<void> {
    this.#waiting = [];
    await this.#running;
  }

  async #run(): Promise<void> {
    for (let path = this.#waiting.shift(); path !== undefined; path = this.#waiting.shift()) {
      // A folder that cannot be removed now is removed at the next start.
      await rm(path, { recursive: true, force: true }).catch(() => undefined);
    }
  }
}
