import { promises as fs, renameSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock } from '../../lib/clock.ts';
import { type Service, supervise } from '../../lib/concurrency/supervise.ts';
import type { RangeId } from '../write-request.ts';
import type { DataDirectory } from './data-directory.ts';

/**
 * Takes a range's directory out of its place, which is all that a drop waits for, and returns where its files wait for
 * their removal: where they were, when they cannot be moved. No later range has its number.
 */
export function takeAway(directory: DataDirectory, rangeId: RangeId): string {
  const place = directory.rangeDirectory(rangeId);
  const removed = join(directory.temporary, `range-${rangeId}`);
  try {
    renameSync(place, removed);
    return removed;
  } catch {
    return place;
  }
}

interface RemovalsDeps {
  readonly clock: Clock;
  /** Some files could not be removed; they are tried again after a pause. */
  onFailed(service: string, error: unknown, attempt: number): void;
}

/**
 * Removes files of dropped tables and indexes one directory after another, beside everything else. What cannot be removed
 * before the end of the process is removed by the next start.
 */
export class Removals implements Service {
  readonly name = 'removal of dropped files';
  readonly #deps: RemovalsDeps;
  readonly #stopping = new AbortController();
  #waiting: string[] = [];
  #running: Promise<void> | undefined;

  constructor(deps: RemovalsDeps) {
    this.#deps = deps;
  }

  add(paths: readonly string[]): void {
    this.#waiting.push(...paths);
    this.#begin();
  }

  #begin(): void {
    const { signal } = this.#stopping;
    if (this.#running !== undefined || this.#waiting.length === 0 || signal.aborted) return;
    const { clock, onFailed } = this.#deps;
    this.#running = supervise(this, { clock, signal, onFailed }).finally(() => {
      this.#running = undefined;
      // More may have come since the last look at what waits.
      this.#begin();
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    const left: string[] = [];
    let failure: unknown;
    for (let path = this.#waiting.shift(); path !== undefined && !signal.aborted; path = this.#waiting.shift()) {
      try {
        await fs.rm(path, { recursive: true, force: true });
      } catch (error) {
        left.push(path);
        failure = error;
      }
    }
    this.#waiting.push(...left);
    if (left.length > 0) throw failure;
  }

  /** Ends after the directory that is being removed. */
  async close(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }
}
