import { expect, test } from 'bun:test';
import { startChild } from '../../../src/runtime/start-child.ts';

function failing(code: string): () => never {
  return () => {
    throw Object.assign(new Error(`${code}: posix_spawn`), { code });
  };
}

test.each(['EAGAIN', 'ENOMEM', 'EMFILE', 'ENFILE'])(
  'a child for which the machine has no room (%s) is refused for now, with advice',
  (code) => {
    expect(() => startChild('a process for SQL', failing(code))).toThrow(
      expect.objectContaining({
        code: 'unavailable',
        retryable: true,
        message: expect.stringMatching(/^a process for SQL cannot be started now; raise the limits/),
      }),
    );
  },
);

test('a child that cannot be started for another reason fails with it', () => {
  expect(() => startChild('a process for SQL', failing('ENOENT'))).toThrow('ENOENT: posix_spawn');
});
