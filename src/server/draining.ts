import type { RunningConfig } from '../config/reload.ts';
import type { App } from '../http/listener/app.ts';
import type { ServerListener } from '../http/listener/server-listener.ts';
import { type Clock, pause } from '../lib/clock.ts';
import type { Logger } from '../observability/logger.ts';
import type { Readiness } from '../observability/readiness.ts';

interface DrainingDeps {
  readonly config: RunningConfig;
  readonly listener: ServerListener;
  readonly app: App;
  readonly readiness: Readiness;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * The `drain` of a running server: it turns not ready, goes on serving for `server.stop_delay`, and then takes no new
 * request while those in flight end.
 */
export function openDraining({ config, listener, app, readiness, clock, logger }: DrainingDeps) {
  let isStopping = false;
  readiness.add('draining', () => !isStopping && !app.inFlight.draining);
  return async (deadlineMs: number): Promise<void> => {
    isStopping = true;
    if (config.config.stopDelayMs > 0) await pause(clock, config.config.stopDelayMs);
    const cut = await listener.drain(app, deadlineMs, clock);
    if (cut > 0) logger.warn('requests were cut at the drain deadline', { requests: cut });
  };
}
