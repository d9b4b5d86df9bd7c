import type { RunningConfig } from '../../src/config/reload.ts';
import { type Clock, pause, systemClock } from '../../src/lib/clock.ts';
import { abortable } from '../../src/lib/concurrency/abortable.ts';
import type { Logger } from '../../src/observability/logger.ts';
import { openServices } from '../../src/server/open-services.ts';
import type { RunningServer } from '../../src/server/running-server.ts';

interface InProcessStart {
  readonly config: RunningConfig;
  readonly logger: Logger;
  readonly clock: Clock;
}

/** Applications of this process by their origins; `fetch` reaches them as it reaches a server. */
const served = new Map<string, (request: Request) => Promise<Response>>();
const overNetwork = globalThis.fetch;
let starts = 0;

/** The services without a listener, as an embedding program has them, under an address that only this process knows. */
export async function startInProcess(start: InProcessStart): Promise<RunningServer> {
  const services = await openServices({ ...start, socket: undefined });
  const { inFlight } = services.app;
  starts += 1;
  const url = `http://127.0.0.1.in-process-${starts}.invalid`;
  served.set(url, services.app.handle);
  globalThis.fetch = Object.assign(fetchHere, { preconnect: overNetwork.preconnect });
  return {
    url,
    firstKey: await services.makeFirstKey(),
    facts: {},
    fatal: services.database.failed,
    async drain(deadlineMs) {
      inFlight.refuseNew();
      const startedMs = systemClock.monotonicMs();
      while (inFlight.count > 0 && systemClock.monotonicMs() - startedMs < deadlineMs) await pause(systemClock, 5);
      inFlight.expireAll();
    },
    async stop() {
      served.delete(url);
      await services.close();
    },
  };
}

function fetchHere(...given: Parameters<typeof fetch>): Promise<Response> {
  const [target, init] = given;
  const address = target instanceof Request ? target.url : String(target);
  const handler = served.get(new URL(address).origin);
  if (handler === undefined) return overNetwork(...given);
  const request = new Request(target as string, init);
  // As `fetch` rejects, whatever the handler makes of it.
  return abortable(handler(request), request.signal);
}
