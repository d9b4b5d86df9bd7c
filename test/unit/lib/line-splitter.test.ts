import { expect, test } from 'bun:test';
import fc from 'fast-check';
import { LineSplitter } from '../../../src/lib/text/line-splitter.ts';
import { threadMs } from '../../support/thread-time.ts';

function linesOf(pieces: readonly string[]): string[] {
  const splitter = new LineSplitter();
  const lines = pieces.flatMap((piece) => splitter.push(piece));
  return [...lines, splitter.rest()];
}

test('the lines of a text are the same however it is cut', () => {
  fc.assert(
    fc.property(fc.array(fc.array(fc.constantFrom('a', '\n', '\r\n'))), (pieces) => {
      const characters = pieces.map((piece) => piece.join(''));
      const whole = characters.join('');
      const expected = whole.split(/\r?\n/);
      expect(linesOf(characters)).toEqual(expected);
      expect(linesOf([...whole])).toEqual(expected);
    }),
  );
});

test('a long line takes time by its length', () => {
  const splitter = new LineSplitter();
  const began = threadMs();
  const piece = 'x'.repeat(1024);
  for (let count = 0; count < 32_768; count += 1) splitter.push(piece);
  expect(splitter.push('\nnext').map(({ length }) => length)).toEqual([32_768 * 1024]);
  expect(splitter.rest()).toBe('next');
  expect(threadMs() - began).toBeLessThan(10_000);
});
