import { entryFile } from './entry-file.ts';

/** Starts a worker thread; `source` comes from `new URL('./name.worker.ts', import.meta.url)`. */
export function startWorker(source: URL, name: string): Worker {
  return new Worker(entryFile(source), { name });
}
