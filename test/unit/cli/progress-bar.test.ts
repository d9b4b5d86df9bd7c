import { expect, test } from 'bun:test';
import { ProgressBar } from '../../../src/cli/progress-bar.ts';

function written(isTerminal: boolean): string {
  let text = '';
  const bar = new ProgressBar((piece) => {
    text += piece;
  }, isTerminal);
  for (let done = 1; done <= 1_000; done += 1) bar.show(done, 1_000, `${done} rows`);
  bar.finish();
  return text;
}

test('writes plain lines to a pipe, one for every tenth of the way', () => {
  const lines = written(false).trimEnd().split('\n');
  expect(lines).toHaveLength(11);
  expect(lines.slice(0, 2)).toEqual(['  0 %  1 rows', ' 10 %  100 rows']);
  expect(lines.at(-1)).toBe('100 %  1000 rows');
});

test('redraws one line of a terminal at every percent, and goes on below it', () => {
  const text = written(true);
  expect(text.match(/\r/g)).toHaveLength(101);
  expect(text).toContain(`\r\u001b[K[${'#'.repeat(15)}${'.'.repeat(15)}]  50 %  500 rows`);
  expect(text.indexOf('\n')).toBe(text.length - 1);
});
