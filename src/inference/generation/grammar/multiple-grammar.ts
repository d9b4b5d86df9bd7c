import { characterClass, type GrammarWriter, oneOf } from './grammar-writer.ts';
import { unsupported } from './schema-keywords.ts';

/** A rule for each remainder. */
const divisorMax = 100;
/** Values between bounds that are listed one by one. */
const valuesMax = 2_048;
const fractionDigitsMax = 15;

interface MultipleBounds {
  readonly min: number | undefined;
  readonly max: number | undefined;
}

/** Multiples of a number, written without an exponent. `wholeOnly` for integers. */
export function multipleExpression(
  divisor: unknown,
  { min, max }: MultipleBounds,
  wholeOnly: boolean,
  writer: GrammarWriter,
): string {
  if (typeof divisor !== 'number' || !(divisor > 0)) throw unsupported('multipleOf', 'has to be a number above zero');
  const digits = Number.isInteger(divisor) ? 0 : Math.round(-Math.log10(divisor));
  const isPowerOfTen = digits > 0 && digits <= fractionDigitsMax && divisor === Number(`1e-${digits}`);
  if (!Number.isInteger(divisor) && !isPowerOfTen) {
    throw unsupported('multipleOf', 'can be enforced for whole numbers and powers of ten');
  }
  if (min !== undefined && max !== undefined && digits === 0) return listed(divisor, min, max);
  if (min !== undefined || max !== undefined) {
    throw unsupported('multipleOf', 'can be enforced with no bounds, or with two bounds for a whole number');
  }
  const whole = '"-"? ([0-9] | [1-9] [0-9]{1,15})';
  if (digits > 0) return wholeOnly ? whole : `${whole} ("." [0-9]{1,${digits}})?`;
  if (divisor === 1) return whole;
  if (divisor > divisorMax) throw unsupported('multipleOf', `can be enforced up to ${divisorMax} without two bounds`);
  return remainders(divisor, writer);
}

function listed(divisor: number, min: number, max: number): string {
  const first = Math.ceil(min / divisor);
  const count = Math.floor(max / divisor) - first + 1;
  if (count > valuesMax) throw unsupported('multipleOf', `leaves more than ${valuesMax} values between the bounds`);
  if (count <= 0) throw unsupported('multipleOf', 'no multiple lies between the bounds');
  return oneOf(Array.from({ length: count }, (_, at) => `"${(first + at) * divisor + 0}"`));
}

/** Long division digit by digit: a rule for the rest that each beginning leaves. */
function remainders(divisor: number, writer: GrammarWriter): string {
  const names = Array.from({ length: divisor }, () => writer.reserve('rest'));
  const steps = (rest: number, digits: readonly number[]) => {
    const byRest = Map.groupBy(digits, (digit) => (rest * 10 + digit) % divisor);
    return [...byRest].map(
      ([next, some]) => `${characterClass(some.map((digit) => [48 + digit, 48 + digit]))} ${names[next]}`,
    );
  };
  const all = Array.from({ length: 10 }, (_, digit) => digit);
  names.forEach((name, rest) => {
    writer.define(name, [...steps(rest, all), ...(rest === 0 ? ['""'] : [])].join(' | '));
  });
  return `("0" | "-"? ${oneOf(steps(0, all.slice(1)))})`;
}
