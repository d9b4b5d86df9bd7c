import type { Clock } from '../../../lib/clock.ts';

/** A provider that asks for more is asked again after this. */
const waitMsMax = 10 * 60_000;

/** The wait that an answer asks for: `retry-after-ms`, or `retry-after` in seconds or as a date; undefined for none. */
export function retryAfterOf(headers: Headers, clock: Pick<Clock, 'nowMs'>): number | undefined {
  const inMs = Number(headers.get('retry-after-ms') ?? Number.NaN);
  const given = headers.get('retry-after') ?? '';
  const seconds = given === '' ? Number.NaN : Number(given);
  const waits = [inMs, seconds * 1_000, Date.parse(given) - clock.nowMs()];
  const waitMs = waits.find((each) => Number.isFinite(each));
  return waitMs === undefined ? undefined : Math.min(Math.max(1, Math.ceil(waitMs)), waitMsMax);
}
