import { closeSync, openSync } from 'node:fs';
import type { ServerListener } from '../../http/listener/server-listener.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../observability/logger.ts';
import { descriptorLimit } from '../../runtime/descriptors.ts';

const lookMs = 1_000;
/** Descriptors that are kept for new connections and for files, where the process may have many. */
const spareMax = 64;

interface DescriptorWatch {
  readonly listener: Pick<ServerListener, 'closeIdle'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Closes idle connections while the process has few descriptors left: with none left it can neither accept a connection, whose
 * client would wait without a word, nor open a file. Returns what stops it.
 */
export function watchDescriptors({ listener, clock, logger }: DescriptorWatch): () => void {
  let isShort = false;
  let cancel = clock.after(lookMs, look);
  function look(): void {
    const wasShort = isShort;
    // An operator may change it while the process runs.
    const limit = descriptorLimit() ?? Number.POSITIVE_INFINITY;
    const spare = Math.min(spareMax, Math.ceil(limit / 8));
    isShort = lowestFree() >= limit - spare;
    if (isShort) {
      const connections = listener.closeIdle();
      if (!wasShort)
        logger.warn('few file descriptors are left: raise "ulimit -n"', { limit, closed_idle: connections });
    }
    cancel = clock.after(lookMs, look);
  }
  return () => cancel();
}

/** A file gets the lowest number that is free: at least as many descriptors are open. */
function lowestFree(): number {
  try {
    const descriptor = openSync('/dev/null', 'r');
    closeSync(descriptor);
    return descriptor;
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}
