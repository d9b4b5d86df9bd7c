import { characterClass, oneOf, repeated } from './grammar-writer.ts';
import { integerText, numberText } from './json-rules.ts';

/** Integer bounds; what is absent is unbounded. */
interface NumberBounds {
  readonly min: number | undefined;
  readonly max: number | undefined;
  /** For numbers with a fraction: the bound itself is not allowed. */
  readonly minExclusive: boolean;
  readonly maxExclusive: boolean;
}

/** Digits that a double keeps. */
const digitsMax = 16;
const fraction = '("." [0-9]{1,16})?';
const zeroFraction = '("." "0"{1,16})?';
const someFraction = '"." [0-9]{0,15} [1-9]';

/** Integers from `min` to `max`, both included; nothing where there is none. */
export function integerExpression(min: number | undefined, max: number | undefined): string | undefined {
  if (min === undefined && max === undefined) return integerText;
  const ways: string[] = [];
  if (max === undefined || max >= 0) {
    const ways0 = magnitudes(Math.max(min ?? 0, 0), max);
    if (ways0 !== undefined) ways.push(ways0);
  }
  if (min === undefined || min < 0) {
    const below = magnitudes(Math.max(1, -(max ?? 0)), min === undefined ? undefined : -min);
    if (below !== undefined) ways.push(`"-" ${below}`);
  }
  return ways.length === 0 ? undefined : oneOf(ways);
}

/** Numbers between integer bounds, written without an exponent; nothing where there is none. */
export function numberExpression({ min, max, minExclusive, maxExclusive }: NumberBounds): string | undefined {
  if (min === undefined && max === undefined) return numberText;
  const ways: string[] = [];
  if (max === undefined || max >= 0) {
    const low = Math.max(min ?? 0, 0);
    ways.push(...decimals(low, minExclusive && low === min, max, maxExclusive));
  }
  if (min === undefined || min < 0) {
    const low = Math.max(-(max ?? 0), 0);
    const lowExclusive = max === undefined || max >= 0 || maxExclusive;
    const negative = decimals(low, lowExclusive, min === undefined ? undefined : -min, minExclusive);
    ways.push(...negative.map((each) => `"-" ${each}`));
  }
  return ways.length === 0 ? undefined : oneOf(ways);
}

/** Decimals without a sign between two integers at or above zero. */
function decimals(low: number, lowExclusive: boolean, high: number | undefined, highExclusive: boolean): string[] {
  if (high !== undefined && high < low) return [];
  const ways: string[] = [];
  const wholeLow = lowExclusive ? low + 1 : low;
  const wholeHigh = high === undefined ? undefined : high - 1;
  const whole = wholeHigh !== undefined && wholeHigh < wholeLow ? undefined : magnitudes(wholeLow, wholeHigh);
  if (whole !== undefined) ways.push(`${whole} ${fraction}`);
  if (lowExclusive && (high === undefined || low < high)) ways.push(`"${low}" ${someFraction}`);
  if (high !== undefined && !highExclusive && !(lowExclusive && high === low)) ways.push(`"${high}" ${zeroFraction}`);
  return ways;
}

/** Integers without a sign from `low` (at least 0) to `high`, or of up to sixteen digits. */
function magnitudes(low: number, high: number | undefined): string | undefined {
  if (high !== undefined && high < low) return undefined;
  const from = String(low);
  const to = high === undefined ? '9'.repeat(digitsMax) : String(high);
  const ways: string[] = [];
  for (let length = from.length; length <= to.length; length += 1) {
    const least = length === from.length ? from : `1${'0'.repeat(length - 1)}`;
    const most = length === to.length ? to : '9'.repeat(length);
    ways.push(sameLength(least, most));
  }
  return oneOf(ways);
}

function sameLength(least: string, most: string): string {
  const tail = least.length - 1;
  if (/^0*$/.test(least) && /^9*$/.test(most)) return digits(least.length);
  const [low, high] = [Number(least[0]), Number(most[0])];
  if (low === high) return joined(digit(low, low), sameLength(least.slice(1), most.slice(1)));
  const lowFull = /^0*$/.test(least.slice(1));
  const highFull = /^9*$/.test(most.slice(1));
  const [from, to] = [lowFull ? low : low + 1, highFull ? high : high - 1];
  const ways = [
    ...(lowFull ? [] : [joined(digit(low, low), sameLength(least.slice(1), '9'.repeat(tail)))]),
    ...(from > to ? [] : [joined(digit(from, to), digits(tail))]),
    ...(highFull ? [] : [joined(digit(high, high), sameLength('0'.repeat(tail), most.slice(1)))]),
  ];
  return oneOf(ways);
}

function digit(low: number, high: number): string {
  return low === high ? `"${low}"` : characterClass([[48 + low, 48 + high]]);
}

function digits(count: number): string {
  return count === 0 ? '' : repeated('[0-9]', count, count);
}

function joined(first: string, rest: string): string {
  return rest === '' ? first : `${first} ${rest}`;
}
