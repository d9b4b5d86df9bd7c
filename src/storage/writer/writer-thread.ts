import { startWorker } from '../../runtime/start-worker.ts';

/** The thread that writes, before it knows which directory. */
export interface WriterThread {
  readonly worker: Worker;
  /** Rejects when the thread ends, also when nobody has opened a channel to it yet. */
  readonly failure: Promise<never>;
}

/** Starts the thread that `openStorage` needs; a process that has more to load does it first. */
export function startWriterThread(): WriterThread {
  const worker = startWorker(new URL('./storage-writer.worker.ts', import.meta.url), 'storage-writer');
  const failure = new Promise<never>((_, reject) => {
    worker.addEventListener('error', ({ message }) => reject(new Error(`the writer thread failed: ${message}`)));
    worker.addEventListener('close', () => reject(new Error('the writer thread ended')));
  });
  // The opening of the storage observes it; afterwards the channel does.
  failure.catch(() => undefined);
  return { worker, failure };
}
