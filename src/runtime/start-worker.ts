import { canOpen } from './descriptors.ts';
import { entryFile } from './entry-file.ts';
import { notStarted } from './start-child.ts';

/** More than a thread opens while it starts, for what other threads open at the same moment. */
const descriptorsOfStart = 16;

/**
 * Starts a worker thread; `source` comes from `new URL('./name.worker.ts', import.meta.url)`. Throws `unavailable`
 * where there is no room for it. Descriptors are counted before: the runtime ends the whole process where a thread gets
 * none.
 */
export function startWorker(source: URL, name: string): Worker {
  if (!canOpen(descriptorsOfStart)) throw notStarted(`the thread "${name}"`);
  try {
    return new Worker(entryFile(source), { name });
  } catch (error) {
    throw notStarted(`the thread "${name}"`, error);
  }
}
