const latestMs = Date.UTC(2100, 0, 1);

/**
 * Where the sequences of a table begin at least that is made at this wall time, milliseconds since 1970: at its
 * microseconds. A clock that is far ahead, and that somebody will put right, must leave sequences for the writes of all
 * later tables.
 */
export function sequenceAt(wallMs: number): number {
  return Math.min(wallMs, latestMs) * 1_000;
}
