/** How the pauses between attempts grow, in milliseconds. */
export interface Backoff {
  readonly firstMs: number;
  readonly maxMs: number;
}

/** The pause after the given failed attempt, counted from 1: twice as long each time, up to the bound. */
export function backoffMs(attempt: number, { firstMs, maxMs }: Backoff): number {
  return Math.min(firstMs * 2 ** Math.max(0, attempt - 1), maxMs);
}
