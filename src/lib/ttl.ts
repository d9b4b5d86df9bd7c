/** The latest TTL base, in milliseconds since 1970, of documents that have expired by now; undefined when none ever does. */
export function expiredAtOrBeforeMs(nowMs: number, ttlDurationMs: number | undefined): number | undefined {
  return ttlDurationMs === undefined ? undefined : nowMs - ttlDurationMs;
}

/** Whether a document with this TTL base is expired under that bound; one without a base never is. */
export function hasExpired(ttlBaseMs: number | undefined, boundMs: number | undefined): boolean {
  return boundMs !== undefined && ttlBaseMs !== undefined && ttlBaseMs <= boundMs;
}
