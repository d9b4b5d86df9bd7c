import { describe, expect, test } from 'bun:test';
import { encode } from '@msgpack/msgpack';
import fc from 'fast-check';
import { msgpackToJson } from '../../../src/http/listener/msgpack/msgpack-to-json.ts';

const bounds = { bytesMax: 1024 * 1024, depthMax: 64 };

function textOf(bytes: Uint8Array, more: Partial<typeof bounds> = {}): string {
  return new TextDecoder().decode(msgpackToJson(bytes, { ...bounds, ...more }));
}

describe('MessagePack as JSON', () => {
  test('every value that JSON has comes out as JSON.stringify writes it, but for the order of nothing', () => {
    // A member of this name is refused by the library that encodes.
    const values = fc.jsonValue({ maxDepth: 6 }).filter((value) => !JSON.stringify(value).includes('__proto__'));
    fc.assert(
      fc.property(values, (value) => {
        expect(JSON.parse(textOf(encode(value)))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
      { numRuns: 1_000 },
    );
  });

  test('integers of every width keep all their digits', () => {
    for (const value of [0n, 127n, 128n, 255n, 256n, 65_536n, 2n ** 32n, 2n ** 53n + 1n, 2n ** 64n - 1n]) {
      for (const each of value < 2n ** 63n ? [value, -value] : [value]) {
        const isSmall = each >= -(2n ** 31n) && each < 2n ** 31n;
        const bytes = isSmall ? encode(Number(each)) : encode(each, { useBigInt64: true });
        expect(textOf(bytes)).toBe(String(each));
      }
    }
    const narrow: readonly (readonly [bytes: number[], text: string])[] = [
      [[0xd0, 0x80], '-128'],
      [[0xd1, 0x80, 0x00], '-32768'],
      [[0xd2, 0x80, 0, 0, 0], '-2147483648'],
      [[0xe0], '-32'],
      [[0xca, 0x3f, 0xc0, 0, 0], '1.5'],
      [[0xcb, 0x80, 0, 0, 0, 0, 0, 0, 0], '-0.0'],
      [[0xcb, 0x43, 0x40, 0, 0, 0, 0, 0, 0], '9007199254740992'],
      [[0xcb, 0xc3, 0xb0, 0, 0, 0, 0, 0, 0], '-1.152921504606847e+18'],
    ];
    for (const [bytes, text] of narrow) expect(textOf(Uint8Array.from(bytes))).toBe(text);
  });

  test('binary values are base64, members that repeat stay, values in a row are lines', () => {
    expect(textOf(encode({ v: new Uint8Array([0, 0, 128, 63]) }))).toBe('{"v":"AACAPw=="}');
    expect(textOf(Uint8Array.from([0x82, 0xa1, 0x61, 1, 0xa1, 0x61, 2]))).toBe('{"a":1,"a":2}');
    expect(textOf(Uint8Array.from([0x80, 0x90, 0x01]))).toBe('{}\n[]\n1');
    expect(textOf(new Uint8Array(0))).toBe('');
  });

  const refused: readonly (readonly [why: string, bytes: number[], code: string])[] = [
    ['a value that ends early', [0x92, 1], 'invalid_request'],
    ['a string that ends early', [0xa5, 0x61], 'invalid_request'],
    ['a map without its last value', [0x81, 0xa1, 0x61], 'invalid_request'],
    ['a count beyond the body', [0xdd, 0xff, 0xff, 0xff, 0xff], 'invalid_request'],
    ['a binary value beyond the body', [0xc6, 0xff, 0xff, 0xff, 0xff, 0], 'invalid_request'],
    ['a member that has no string for a name', [0x81, 1, 1], 'invalid_request'],
    ['an extension', [0xd4, 1, 1], 'invalid_request'],
    ['the type that is never used', [0xc1], 'invalid_request'],
    ['a string that is not UTF-8', [0xa2, 0xff, 0xfe], 'invalid_request'],
    ['a surrogate written as UTF-8', [0xa3, 0xed, 0xa0, 0x80], 'invalid_request'],
    ['NaN', [0xcb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0], 'number_out_of_range'],
    ['infinity', [0xca, 0x7f, 0x80, 0, 0], 'number_out_of_range'],
  ];
  test.each(refused)('%s is refused', (_why, bytes, code) => {
    expect(() => textOf(Uint8Array.from(bytes))).toThrow(expect.objectContaining({ code }));
  });

  test('nesting and size are bounded, and cost no more than their bound', () => {
    const deep = new Uint8Array(4 * 1024 * 1024).fill(0x91);
    expect(() => textOf(deep)).toThrow(expect.objectContaining({ code: 'json_too_deep' }));
    expect(() => textOf(encode('x'.repeat(100)), { bytesMax: 50 })).toThrow(
      expect.objectContaining({ code: 'payload_too_large' }),
    );
  });

  test('bytes of any kind are written or refused with a code, never read beyond their end', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        try {
          JSON.parse(textOf(bytes).split('\n')[0] || 'null');
        } catch (error) {
          expect(['invalid_request', 'number_out_of_range']).toContain((error as { code: string }).code);
        }
      }),
      { numRuns: 3_000 },
    );
  });
});
