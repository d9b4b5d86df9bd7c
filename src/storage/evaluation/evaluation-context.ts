import { expiredAtOrBeforeMs, hasExpired } from '../../lib/ttl.ts';
import type { RangeCounters } from '../range/range-counters.ts';
import type { RowHead } from '../range/stored-rows.ts';

/** The part of a request that its evaluation depends on. */
export interface EvaluationContext {
  timeMs: number;
  timestamp: string;
  /** TTL of the range's documents; undefined when they do not expire. */
  ttlDurationMs: number | undefined;
  /** Dotted path of the field that holds the TTL base of a document of the range; undefined where only the write tells. */
  ttlField: string | undefined;
}

/** An expired document is still stored, but absent for everybody who reads. */
export function isExpired({ ttlBaseMs }: RowHead, { timeMs, ttlDurationMs }: EvaluationContext): boolean {
  return hasExpired(ttlBaseMs === 0 ? undefined : ttlBaseMs, expiredAtOrBeforeMs(timeMs, ttlDurationMs));
}

/** Whether a document that has expired may still have parts, which one written in its place must not inherit. */
export function partsMayOutlive({ partIds }: RangeCounters, { ttlDurationMs }: EvaluationContext): boolean {
  return ttlDurationMs !== undefined && partIds.length > 0;
}
