import { limits } from '../config/limits.ts';
import type { App } from '../http/listener/app.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../observability/logger.ts';
import { useHugePages } from './huge-pages.ts';

interface AfterStartDeps {
  readonly app: App;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly hugePages: boolean;
}

/** Does what the start and its first queries would only be slower for. Returns what calls it off. */
export function afterStart({ app, clock, logger, hugePages }: AfterStartDeps): () => void {
  return clock.after(limits.afterStartMs, async () => {
    // A new version may take the place of its files later.
    await app
      .prepareCalls()
      .catch((error) =>
        logger.warn('what a start does without could not be loaded; the next request for it tries again', {}, error),
      );
    if (hugePages) await useHugePages(logger);
  });
}
