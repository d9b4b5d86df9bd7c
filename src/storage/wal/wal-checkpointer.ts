import { startWorker } from '../../runtime/start-worker.ts';
import { openChannel, type WorkerChannel } from '../../runtime/worker-channel.ts';
import type { StorageCalls } from '../storage-calls.ts';

export type WalCheckpointerCalls = { copy: [{ path: string }, undefined] };

/**
 * Copies long write-ahead logs into their files on a thread of its own, so that no write waits for it. The thread is
 * started with the first long log.
 */
export class WalCheckpointer {
  readonly #writer: WorkerChannel<StorageCalls>;
  readonly #onFailure: (error: Error) => void;
  readonly #running = new Set<Promise<void>>();
  #checkpointer: WorkerChannel<WalCheckpointerCalls> | undefined;
  #closed = false;

  constructor(writer: WorkerChannel<StorageCalls>, onFailure: (error: Error) => void) {
    this.#writer = writer;
    this.#onFailure = onFailure;
  }

  /** The writer says that the log of the file at `path` is long; it hears when the copy has ended. */
  request(path: string): void {
    if (this.#closed) return;
    const running = this.#copy(path).finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  /** Ends the thread after what it is copying. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(this.#running);
    this.#checkpointer?.terminate();
  }

  async #copy(path: string): Promise<void> {
    const failure = await this.#copyOnThread(path).then(
      () => undefined,
      (error: Error) => ('code' in error ? String(error.code) : error.message),
    );
    await this.#writer
      .call('walCheckpointed', failure === undefined ? { path } : { path, failure })
      .catch(this.#onFailure);
  }

  async #copyOnThread(path: string): Promise<void> {
    this.#checkpointer ??= openChannel<WalCheckpointerCalls>(
      startWorker(new URL('./wal-checkpointer.worker.ts', import.meta.url), 'wal-checkpointer'),
      { onEvent: () => undefined, onFailure: this.#onFailure },
    );
    await this.#checkpointer.call('copy', { path });
  }
}
