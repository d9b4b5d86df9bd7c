import { type GrammarWriter, oneOf, repeated } from './grammar-writer.ts';
import { characterRule } from './json-rules.ts';
import { patternExpression, repetitionsMax } from './pattern-grammar.ts';
import { countOf, type SchemaObject, unsupported } from './schema-keywords.ts';

const day = '("0" [1-9] | "1" [0-9] | "2" [0-8])';
const month30 = `(${day} | "29" | "30")`;
const monthDay = oneOf([
  `("0" [13578] | "1" [02]) "-" (${month30} | "31")`,
  `("0" [469] | "11") "-" ${month30}`,
  `"02-" ${day}`,
]);
const date = `[0-9]{4} "-" ${monthDay}`;
const clock = '([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9] ":" [0-5] [0-9] ("." [0-9]{1,9})?';
const zone = '("Z" | [+-] ([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9])';
const octet = '([0-9] | [1-9] [0-9] | "1" [0-9]{2} | "2" [0-4] [0-9] | "25" [0-5])';
const hex = '[0-9a-fA-F]';
const label = '[A-Za-z0-9] ([A-Za-z0-9-]{0,30} [A-Za-z0-9])?';

const host = `${label} ("." ${label}){0,3}`;
/** Host name of a URL. The last label is not a number, and no label is in Punycode. */
const webHost =
  '([A-Za-z0-9]{1,24} ("-" [A-Za-z0-9]{1,24}){0,3} "."){0,3} [A-Za-z] [A-Za-z0-9]{0,23} ("-" [A-Za-z0-9]{1,24}){0,3}';
const group = `${hex}{1,4}`;
const unreserved = '[A-Za-z0-9._~-]';
const count = '[0-9]{1,4}';
const clockPart = `"T" (${count} "H" (${count} "M" (${count} "S")?)? | ${count} "M" (${count} "S")? | ${count} "S")`;
const dayPart = `(${count} "Y" (${count} "M" (${count} "D")?)? | ${count} "M" (${count} "D")? | ${count} "D")`;

/** Some of what each format allows, and nothing that it does not. */
const formats: Readonly<Record<string, string>> = {
  date,
  time: `${clock} ${zone}`,
  'date-time': `${date} "T" ${clock} ${zone}`,
  uuid: `${hex}{8} "-" ${hex}{4} "-" ${hex}{4} "-" ${hex}{4} "-" ${hex}{12}`,
  ipv4: `${octet} "." ${octet} "." ${octet} "." ${octet}`,
  ipv6: `((${group} ":"){7} ${group} | "::" (${group} (":" ${group}){0,5})?)`,
  hostname: host,
  uri: `"http" "s"? "://" ${webHost} (":" [1-9] [0-9]{0,3})? ("/" ${unreserved}{0,64}){0,8} ("?" (${unreserved} | [=&+]){1,128})?`,
  duration: `"P" (${dayPart} (${clockPart})? | ${clockPart} | ${count} "W")`,
  email: `[A-Za-z0-9_+-]{1,32} ("." [A-Za-z0-9_+-]{1,32})? "@" ${label} ("." ${label}){1,3}`,
};

/** A JSON string under `minLength`, `maxLength`, `pattern` and `format`. */
export function stringExpression(schema: SchemaObject, writer: GrammarWriter): string {
  const { pattern, format } = schema;
  const known = format === undefined ? undefined : knownFormat(format);
  const min = countOf(schema, 'minLength');
  const max = countOf(schema, 'maxLength');
  const given = ['pattern', 'format', 'minLength', 'maxLength'].filter((keyword) => schema[keyword] !== undefined);
  if ((pattern ?? format) !== undefined && given.length > 1) {
    throw unsupported(String(given[1]), `cannot be enforced beside "${given[0]}"`);
  }
  const character = characterRule(writer);
  let inside = repeated(character, checkedCount('minLength', min) ?? 0, checkedCount('maxLength', max));
  if (pattern !== undefined) {
    if (typeof pattern !== 'string') throw unsupported('pattern', 'has to be a string');
    inside = patternExpression(pattern, writer);
  } else if (known !== undefined) inside = known;
  else if (max !== undefined && (min ?? 0) > max) throw unsupported('minLength', 'is above "maxLength"');
  return writer.rule('text', `"\\"" ${inside} "\\""`);
}

function knownFormat(format: unknown): string {
  const known = typeof format === 'string' && Object.hasOwn(formats, format) ? formats[format] : undefined;
  if (known !== undefined) return known;
  const names = Object.keys(formats).join(', ');
  throw unsupported('format', `${JSON.stringify(format)} cannot be enforced; ${names} can`);
}

/** Counts become repetitions, whose number is bounded. */
export function checkedCount(keyword: string, count: number | undefined): number | undefined {
  if (count === undefined || count <= repetitionsMax) return count;
  throw unsupported(keyword, `can be enforced up to ${repetitionsMax}`);
}
