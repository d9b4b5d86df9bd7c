import { isDateText } from '../../lib/text/date-text.ts';

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

const step = /([+-])(\d{1,6})([yMwdhHms])|\/([yMwdhHms])/y;

/**
 * A date as RFC 3339: an ISO 8601 date or time as it is, or `now` (the moment of the query) or `2024-01-31||` with
 * steps after it. A step adds or takes a number of units (`now-7d`, `now+1M-1d`: y, M, w, d, h, m, s) or goes back to
 * the beginning of one (`now/d`, weeks from Monday), in UTC. Fails with a DateMathError.
 */
export function readDateMath(text: string, nowMs: number): string {
  if (isDateText(text)) return text;
  const anchor = text.indexOf('||');
  const isNow = text.startsWith('now');
  if (!isNow && anchor < 0) throw unreadable(text);
  let moment = isNow ? new Date(nowMs) : readDate(text.slice(0, anchor));
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

function readDate(text: string): Date {
  const moment = new Date(text.toUpperCase().replace(' ', 'T'));
  if (!isDateText(text) || Number.isNaN(moment.getTime())) throw unreadable(text);
  return moment;
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
  const ms = unitMs.get(unit);
  if (ms !== undefined && unit !== 'w') return new Date(Math.floor(moment.getTime() / ms) * ms);
  const start = new Date(moment);
  start.setUTCHours(0, 0, 0, 0);
  if (unit === 'y') start.setUTCMonth(0, 1);
  if (unit === 'M') start.setUTCDate(1);
  if (unit === 'w') start.setUTCDate(start.getUTCDate() - ((start.getUTCDay() + 6) % 7));
  return start;
}
