import { systemClock } from '../../src/lib/clock.ts';
import { ModelPool } from '../../src/model-host/model-pool.ts';

const hostEntry = Bun.fileURLToPath(new URL('../../src/model-host/child/host-main.ts', import.meta.url));
const minuteMs = 60_000;

/** A pool with real children that stay for the whole case. */
export function openModelPool(): ModelPool {
  return new ModelPool({
    entry: hostEntry,
    environment: { PATH: process.env.PATH ?? '' },
    clock: systemClock,
    options: { loadMs: minuteMs, stallMs: minuteMs },
    pool: {
      loadedModelsMax: 1,
      memoryBytesMax: 4 * 1024 ** 3,
      keepAliveMs: 10 * minuteMs,
      checkEveryMs: minuteMs,
      stuckMs: minuteMs,
    },
    onLoading: () => undefined,
    onLoad: () => undefined,
    onUnload: () => undefined,
    onCrash: (_key, reason) => process.stderr.write(`the child ended: ${reason}\n`),
  });
}
