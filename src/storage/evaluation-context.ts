import type { RowHead } from './range-file.ts';

/** The part of a request that its evaluation depends on. */
export interface EvaluationContext {
  timeMs: number;
  timestamp: string;
  /** Lifetime of the range's documents; undefined when they have none. */
  ttlDurationMs: number | undefined;
}

/** An expired document is still stored, but absent for everybody who reads. */
export function hasExpired(row: RowHead, context: EvaluationContext): boolean {
  return (
    context.ttlDurationMs !== undefined &&
    row.ttlBaseMs !== 0 &&
    row.ttlBaseMs + context.ttlDurationMs <= context.timeMs
  );
}
