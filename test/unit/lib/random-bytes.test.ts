import { expect, test } from 'bun:test';
import { randomBytes } from '../../../src/lib/random-bytes.ts';

test('every byte is random, also of more than the system gives at once', () => {
  const bytes = randomBytes(200_001);
  const blocks = [0, 65_536, 131_072, 196_608].map((at) => Buffer.from(bytes.subarray(at, at + 3_393)).toString('hex'));
  expect(bytes.length).toBe(200_001);
  expect(new Set(blocks).size).toBe(4);
  expect(blocks.filter((block) => /^0+$/.test(block))).toEqual([]);
  expect(randomBytes(0).length).toBe(0);
});
