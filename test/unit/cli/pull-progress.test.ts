import { expect, test } from 'bun:test';
import { PullProgress } from '../../../src/cli/pull-progress.ts';

function told(terminal: boolean): string {
  let text = '';
  const progress = new PullProgress((piece) => {
    text += piece;
  }, terminal);
  progress.tell({ type: 'file', path: 'model.onnx', from: 'hub:a/b@c#d', bytes: 2_000_000 });
  for (let received = 0; received <= 2_000_000; received += 10_000) {
    progress.tell({ type: 'progress', received, total: 2_000_000 });
  }
  progress.tell({ type: 'refused', from: 'hub:a/b@c#d', reason: 'HTTP 404' });
  progress.end();
  return text;
}

test('a pipe gets a line for every tenth', () => {
  const lines = told(false).trimEnd().split('\n');
  expect(lines[0]).toBe('model.onnx (2.0 MB) from hub:a/b@c#d');
  expect(lines.slice(1, 4)).toEqual(['  0 %  0 B of 2.0 MB', ' 10 %  200.0 kB of 2.0 MB', ' 20 %  400.0 kB of 2.0 MB']);
  expect(lines).toHaveLength(13);
  expect(lines.at(-1)).toBe('hub:a/b@c#d failed: HTTP 404');
});

test('a terminal gets one bar that grows, and no trace of it at the end', () => {
  const text = told(true);
  expect(text).toContain('\r\u001b[K[###############...............]  50 %  1.0 MB of 2.0 MB');
  expect(text.split('\n')).toHaveLength(3);
  expect(text.endsWith('\r\u001b[K')).toBe(true);
});

test('a host that does not answer is one line', () => {
  let text = '';
  const progress = new PullProgress((piece) => {
    text += piece;
  }, false);
  progress.tell({ type: 'file', path: 'model.onnx', from: 'hub:a/b@c#d', bytes: 2_000_000 });
  progress.tell({ type: 'unreachable', host: 'huggingface.co', reason: 'ENOTFOUND' });
  progress.end();
  expect(text).toBe('huggingface.co cannot be reached: ENOTFOUND\n');
});
