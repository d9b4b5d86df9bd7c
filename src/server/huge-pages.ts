import { limits } from '../config/limits.ts';
import { moveCodeToHugePages } from '../engine/huge-pages.ts';
import type { Logger } from '../observability/logger.ts';

/** Moves the machine code of the process to huge pages. Small machines keep their memory. */
export async function useHugePages(logger: Logger): Promise<void> {
  if (process.constrainedMemory() < limits.hugePagesMemoryBytesMin) return;
  try {
    logger.debug('machine code in huge pages', { bytes: await moveCodeToHugePages() });
  } catch (error) {
    logger.warn('machine code could not be moved to huge pages', {}, error);
  }
}
