import { encode } from '@toon-format/toon';

const delimiters: Readonly<Record<string, ',' | '|' | '\t'>> = {
  ',': ',',
  comma: ',',
  '|': '|',
  pipe: '|',
  '\t': '\t',
  '\\t': '\t',
  tab: '\t',
};
const indentMax = 16;

/**
 * The header of an array, at the beginning of its line: list marks, a name, bare or quoted, and the length. Texts that have
 * brackets in them are quoted, so nothing else begins like this.
 */
const header = /^((?: *- )* *(?:[A-Za-z_][\w.]*|"(?:[^"\\]|\\.)*")?\[)(?=\d+[|\t]?\])/gm;

interface ToonOptions {
  readonly lengthMarker?: unknown;
  readonly indent?: unknown;
  readonly delimiter?: unknown;
}

/**
 * Plain data in Token-Oriented Object Notation (https://github.com/toon-format/spec): `indent` spaces a level, `delimiter`
 * between the values of a row. With `lengthMarker` lengths read `[#3]`, as in the first versions of the notation. Throws
 * `TypeError` for an option that cannot be.
 */
export function encodeToon(value: unknown, options: ToonOptions): string {
  const { lengthMarker = true, indent = 2, delimiter = ',' } = options;
  if (typeof lengthMarker !== 'boolean') throw new TypeError('"lengthMarker" must be true or false');
  if (typeof indent !== 'number' || !Number.isInteger(indent) || indent < 0 || indent > indentMax) {
    throw new TypeError(`"indent" must be an integer from 0 to ${indentMax}`);
  }
  const known =
    typeof delimiter === 'string' && Object.hasOwn(delimiters, delimiter) ? delimiters[delimiter] : undefined;
  if (known === undefined) throw new TypeError('"delimiter" must be a comma, "tab" or "pipe"');
  const text = encode(value, { indentSize: indent, delimiter: known });
  return lengthMarker ? text.replace(header, '$1#') : text;
}
