import { startWorker } from '../../runtime/start-worker.ts';
import { openChannel, type WorkerChannel } from '../../runtime/worker-channel.ts';
import type { ObjectStore } from '../stores/object-store.ts';
import type { CopiedRange, CopyCalls } from './copy-calls.ts';
import { CopyWriter } from './copy-writer.ts';

/**
 * The thread that reads ranges for backups and packs what it has read, so that requests wait for neither. It starts with the
 * first backup.
 */
export class Copier {
  #channel: WorkerChannel<CopyCalls> | undefined;
  readonly #open = new Set<Promise<void>>();
  #lastFile = 0;
  #isStopped = false;

  /** Has `fill` write an object of the store. What fails leaves no object. */
  async write<Result>(
    store: ObjectStore,
    name: string,
    range: CopiedRange | undefined,
    fill: (file: CopyWriter) => Promise<Result>,
  ): Promise<{ file: Awaited<ReturnType<CopyWriter['finish']>>; filled: Result }> {
    const channel = this.#started();
    const object = await store.open(name);
    this.#lastFile += 1;
    const number = this.#lastFile;
    const closed = Promise.withResolvers<void>();
    this.#open.add(closed.promise);
    const writer = new CopyWriter(channel, number, name, object);
    try {
      await channel.call('open', { file: number, ...(range && { range }) });
      const filled = await fill(writer);
      return { file: await writer.finish(), filled };
    } catch (error) {
      await writer.abort();
      throw error;
    } finally {
      // The thread has the range's file open until then.
      await channel.call('close', { file: number }).catch(() => undefined);
      this.#open.delete(closed.promise);
      closed.resolve();
    }
  }

  /** Ends the thread once no file is open. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await Promise.all(this.#open);
    this.#channel?.terminate();
  }

  #started(): WorkerChannel<CopyCalls> {
    if (this.#isStopped) throw new Error('the server stops');
    this.#channel ??= openChannel<CopyCalls>(startWorker(new URL('./copier.worker.ts', import.meta.url), 'copier'), {
      onEvent: () => undefined,
      // Copies that waited have failed; the next file gets a new thread.
      onFailure: () => {
        this.#channel = undefined;
      },
    });
    return this.#channel;
  }
}
