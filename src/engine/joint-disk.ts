import { closeSync, openSync } from 'node:fs';
import { awaitNative } from './engine-error.ts';
import { nativeAddon } from './native-addon.ts';

interface CheckpointJson {
  sequence: number;
  bytes_written: number;
}

/** Makes indexes of a data directory durable together, and whatever else was written to its file system meanwhile. */
export class JointDisk implements Disposable {
  /** Failed writes are reported since its opening. */
  readonly #descriptor: number;

  constructor(directory: string) {
    this.#descriptor = openSync(directory, 'r');
  }

  /**
   * One answer for each index: its report, why it failed, or undefined when there was no time to begin. Rejects when the
   * file system could not be synced.
   */
  async checkpoint(
    indexes: readonly { handle: number }[],
    withinMs: number,
  ): Promise<({ sequence: number; bytes: number } | Error | undefined)[]> {
    const handles = indexes.map(({ handle }) => handle);
    const json = await awaitNative(() => nativeAddon().checkpointIndexes(handles, this.#descriptor, withinMs));
    const outcomes = JSON.parse(json) as ('left' | { done: CheckpointJson } | { failed: string })[];
    return outcomes.map((outcome) => {
      if (outcome === 'left') return undefined;
      if ('failed' in outcome) return new Error(outcome.failed);
      return { sequence: outcome.done.sequence, bytes: outcome.done.bytes_written };
    });
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor);
  }
}
