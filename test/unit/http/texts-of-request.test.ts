import { expect, test } from 'bun:test';
import { checkTexts, truncation } from '../../../src/http/inference/texts-of-request.ts';

test('texts are bounded in number and length', () => {
  expect(() => checkTexts(new Array(2_048).fill('a'))).not.toThrow();
  expect(() => checkTexts(new Array(2_049).fill('a'))).toThrow('2049 texts; it may have 2048');
  expect(() => checkTexts([{ length: 1_048_577 }])).toThrow('it may have 1048576');
});

test('texts are cut where they are to be cut', () => {
  expect([true, false, undefined, 'start', 'end'].map((word) => truncation(word as boolean))).toEqual([
    'end',
    undefined,
    undefined,
    'start' as never,
    'end',
  ]);
});
