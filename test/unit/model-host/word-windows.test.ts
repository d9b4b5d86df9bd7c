import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { wordWindows } from '../../../src/model-host/backends/onnx/text/text-words.ts';

describe('wordWindows', () => {
  test('one window where all fits, none for nothing', () => {
    expect(wordWindows([1, 2, 3], 10)).toEqual([{ from: 0, to: 3, first: 0, last: 3 }]);
    expect(wordWindows([], 10)).toEqual([]);
  });

  test('overlap by a quarter, and every word counts in one window', () => {
    const windows = wordWindows(new Array(20).fill(1), 8);
    expect(windows[0]).toEqual({ from: 0, to: 8, first: 0, last: 7 });
    expect(windows[1]).toEqual({ from: 6, to: 14, first: 7, last: 13 });
  });

  test('every word counts once, whatever the lengths', () => {
    const lengths = fc.array(fc.integer({ min: 0, max: 12 }), { maxLength: 200 });
    fc.assert(
      fc.property(lengths, fc.integer({ min: 1, max: 40 }), (words, tokensMax) => {
        const windows = wordWindows(words, tokensMax);
        expect(
          windows.flatMap(({ first, last }) =>
            words
              .keys()
              .drop(first)
              .take(last - first)
              .toArray(),
          ),
        ).toEqual([...words.keys()]);
        for (const { from, to, first, last } of windows) {
          expect([from <= first, last <= to]).toEqual([true, true]);
          const tokens = words.slice(from, to).reduce((sum, each) => sum + each, 0);
          expect(tokens <= tokensMax || to - from === 1).toBe(true);
        }
      }),
      { seed: 5 },
    );
  });
});
