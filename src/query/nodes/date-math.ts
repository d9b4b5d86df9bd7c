/** A moment as a request may write it that cannot be read; the message is a whole sentence. */
export class DateMathError extends Error {
  override readonly name = 'DateMathError';
}

const unitMs: ReadonlyMap<string, number> = new Map([
  ['w', 7 * 86_400_000],
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['H', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
]);

const isoDate = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d))?$/;
const step = /([+-])(\d{1,6})([yMwdhHms])|\/([yMwdhHms])/y;

/**
 * A date as RFC 3339: an ISO 8601 date or time as it is, or `now` (the moment of the query) or `2024-01-31||` with
 * steps after it. A step adds or takes a number of units (`now-7d`, `now+1M-1d`: y, M, w, d, h, m, s) or goes back to
 * the beginning of one (`now/d`, weeks from Monday), in UTC. Fails with a DateMathError.
 */
export function readDateMath(text: string, nowMs: number): string {
  if (isoDate.test(text)) return checkDate(text);
  const anchor = text.indexOf('||');
  const isNow = text.startsWith('now');
  if (!isNow && anchor < 0) throw unreadable(text);
  let moment = isNow ? new Date(nowMs) : new Date(checkDate(text.slice(0, anchor)));
  let position = isNow ? 3 : anchor + 2;
  while (position < text.length) {
    step.lastIndex = position;
    const [found, sign, count, unit = '', rounding] = step.exec(text) ?? [];
    if (found === undefined) throw unreadable(text);
    moment = rounding === undefined ? add(moment, Number(`${sign}${count}`), unit) : beginningOf(moment, rounding);
    position += found.length;
  }
  const isInRange = moment.getUTCFullYear() >= 1 && moment.getUTCFullYear() <= 9999;
  if (!isInRange) throw new DateMathError(`"${text.slice(0, 64)}" is outside of the years 1 to 9999`);
  return moment.toISOString();
}

function checkDate(text: string): string {
  const day = Date.parse(text.slice(0, 10));
  // A month's 31st that it does not have would be read as the next month's first.
  const exists = !Number.isNaN(day) && new Date(day).toISOString().startsWith(text.slice(0, 10));
  if (!isoDate.test(text) || !exists || Number.isNaN(Date.parse(text))) throw unreadable(text);
  return text;
}

function unreadable(text: string): DateMathError {
  const shown = text.length > 64 ? `${text.slice(0, 64)}...` : text;
  return new DateMathError(`"${shown}" is not a date such as 2024-02-29, 2024-02-29T12:00:00Z or now-7d`);
}

/** Months and years keep the day, or take the last that the month has. */
function add(moment: Date, count: number, unit: string): Date {
  const ms = unitMs.get(unit);
  if (ms !== undefined) return new Date(moment.getTime() + count * ms);
  const months = unit === 'y' ? count * 12 : count;
  const moved = new Date(moment);
  moved.setUTCDate(1);
  moved.setUTCMonth(moved.getUTCMonth() + months);
  const daysInMonth = new Date(Date.UTC(moved.getUTCFullYear(), moved.getUTCMonth() + 1, 0)).getUTCDate();
  moved.setUTCDate(Math.min(moment.getUTCDate(), daysInMonth));
  return moved;
}

function beginningOf(moment: Date, unit: string): Date {
  const [year, month] = [moment.getUTCFullYear(), moment.getUTCMonth()];
  if (unit === 'y') return new Date(Date.UTC(year, 0, 1));
  if (unit === 'M') return new Date(Date.UTC(year, month, 1));
  if (unit === 'w') return new Date(Date.UTC(year, month, moment.getUTCDate() - ((moment.getUTCDay() + 6) % 7)));
  const ms = unitMs.get(unit) ?? 1;
  return new Date(Math.floor(moment.getTime() / ms) * ms);
}
