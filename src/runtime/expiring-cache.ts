import { LRUCache } from 'lru-cache';
import type { Clock } from '../lib/clock.ts';

interface ExpiringCacheOptions<Value> {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** Milliseconds that an entry is kept, from its setting or, with `renewed`, from its last use. */
  readonly keptMs: number;
  readonly renewed?: boolean;
  /** Entries, or what `sizeOf` counts of all of them; a value that is larger alone is not kept. */
  readonly max: number;
  readonly sizeOf?: (value: Value) => number;
}

/** Values by name that end with their time; what was used longest ago makes room. */
export function expiringCache<Value extends object>(options: ExpiringCacheOptions<Value>): LRUCache<string, Value> {
  const { clock, keptMs, renewed = false, max, sizeOf } = options;
  return new LRUCache<string, Value>({
    ...(sizeOf === undefined ? { max } : { maxSize: max, sizeCalculation: sizeOf }),
    ttl: keptMs,
    ttlResolution: 0,
    updateAgeOnGet: renewed,
    // An entry of the moment 0 would never expire.
    perf: { now: () => clock.monotonicMs() + 1 },
  });
}
