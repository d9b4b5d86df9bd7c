import { ServiceError } from '../protocol/service-error.ts';
import { canOpen } from './descriptors.ts';
import { entryFile } from './entry-file.ts';

/** More than a thread opens while it starts, for what other threads open at the same moment. */
const descriptorsOfStart = 16;

/**
 * Starts a worker thread; `source` comes from `new URL('./name.worker.ts', import.meta.url)`. Throws `unavailable` while few
 * descriptors are left: the runtime ends the whole process where a thread gets none.
 */
export function startWorker(source: URL, name: string): Worker {
  if (!canOpen(descriptorsOfStart)) {
    const message = `too few file descriptors are left to start the thread "${name}"; raise "ulimit -n", or try again later`;
    throw new ServiceError('unavailable', message);
  }
  return new Worker(entryFile(source), { name });
}
