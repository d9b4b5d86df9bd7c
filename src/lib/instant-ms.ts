/** Milliseconds since 1970 beyond which no `Date` is (ECMAScript, "Time Values and Time Range"). */
const instantMsMax = 8.64e15;

const dateTime = /^(\d{4}-\d\d-\d\d)[\0-\x7f]([01]\d|2[0-3])(:[0-5]\d):([0-5]\d|60)(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;

/**
 * The instant that a member such as `_timestamp` means, as the engine reads it where a document is inserted: RFC 3339,
 * or nanoseconds since 1970, of which too large ones are the last instant there is. Undefined for anything else.
 */
export function instantMs(value: unknown): number | undefined {
  if (typeof value === 'number') return Math.max(-instantMsMax, Math.min(instantMsMax, Math.floor(value / 1e6)));
  return typeof value === 'string' ? dateTimeMs(value) : undefined;
}

/** Milliseconds since 1970 of a time in RFC 3339; undefined for a text that is none, as of a day that its month does not have. */
export function dateTimeMs(text: string): number | undefined {
  const [, day, hour, minute, second, fraction = '', zone = ''] = dateTime.exec(text) ?? [];
  const isDay = day !== undefined && dayOf(Date.parse(`${day}T00:00:00Z`)) === day;
  if (!isDay) return undefined;
  const isLeap = second === '60';
  const time = `${hour}${minute}:${isLeap ? '59.999' : `${second}${fraction.slice(0, 4)}`}`;
  const instant = Date.parse(`${day}T${time}${zone.toUpperCase()}`);
  if (Number.isNaN(instant) || (isLeap && !/-01T00:00:00\.000Z$/.test(textOf(instant + 1)))) return undefined;
  return instant;
}

function dayOf(instant: number): string {
  return Number.isNaN(instant) ? '' : textOf(instant).slice(0, 10);
}

function textOf(instant: number): string {
  return new Date(instant).toISOString();
}
