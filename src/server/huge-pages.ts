import { limits } from '../config/limits.ts';
import { moveCodeToHugePages } from '../engine/huge-pages.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../observability/logger.ts';

/**
 * Moves the machine code of the process to huge pages, after the start and its first queries, which it would slow down. Small machines
 * keep their memory. Returns what calls it off.
 */
export function useHugePages(clock: Clock, logger: Logger): () => void {
  if (process.constrainedMemory() < limits.hugePagesMemoryBytesMin) return () => {};
  return clock.after(limits.hugePagesDelayMs, () => {
    moveCodeToHugePages().then(
      (bytes) => logger.debug('machine code in huge pages', { bytes }),
      (error) => logger.warn('machine code could not be moved to huge pages', {}, error),
    );
  });
}
