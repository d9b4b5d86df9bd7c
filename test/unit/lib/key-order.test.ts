import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { compareKeys } from '../../../src/lib/key-order.ts';

test('keys compare like their UTF-8 bytes', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (left, right) => {
      expect(compareKeys(left, right)).toBe(Buffer.compare(Buffer.from(left), Buffer.from(right)));
    }),
  );
});

test('characters beyond the basic plane come after all of it', () => {
  expect(compareKeys('\uffff', '😀')).toBe(-1);
  expect(compareKeys('😀', '\ue000')).toBe(1);
});
