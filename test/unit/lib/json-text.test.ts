import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { onOneLine, skipSpace, skipString, skipValue } from '../../../src/lib/text/json-text.ts';

describe('walking JSON text', () => {
  test('a value ends where it ends, whatever follows', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom('', ',', ' ', '}', ']'), (value, after) => {
        const text = JSON.stringify(value);
        expect(skipValue(`  ${text}${after}`, 2)).toBe(2 + text.length);
      }),
    );
  });

  test('a string ends at its quote, not at an escaped one', () => {
    expect(skipString('"a\\"b\\\\",1', 0)).toBe(8);
    expect(skipValue('"a\\"b\\\\",1', 0)).toBe(8);
  });

  test('what never ends is said so', () => {
    for (const text of ['"a', '"a\\"', '{"a":1', '[1,[2]', '{"a":"}']) expect(skipValue(text, 0)).toBe(-1);
  });

  test('only the white space of JSON is skipped', () => {
    expect(skipSpace(' \t\r\n1', 0)).toBe(4);
    expect(skipSpace('\u00a01', 0)).toBe(0);
    expect(skipSpace('  ', 0)).toBe(2);
  });

  test('a text on one line means the same', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const line = onOneLine(JSON.stringify(value, null, 2).replaceAll('\n', '\r\n'));
        expect(line).not.toMatch(/[\r\n]/);
        expect(JSON.parse(line)).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });
});
