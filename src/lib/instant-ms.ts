/** Milliseconds since 1970 beyond which no `Date` is (ECMAScript, "Time Values and Time Range"). */
const instantMsMax = 8.64e15;

/** The instant that a member such as `_timestamp` means: RFC 3339, or nanoseconds since 1970. Undefined for anything else. */
export function instantMs(value: unknown): number | undefined {
  if (typeof value === 'string' && /^\d{4}-\d\d-\d\d[Tt ]/.test(value)) {
    const instant = Date.parse(value);
    return Number.isNaN(instant) ? undefined : instant;
  }
  if (typeof value !== 'number') return undefined;
  const instant = Math.floor(value / 1e6);
  return Math.abs(instant) <= instantMsMax ? instant : undefined;
}
