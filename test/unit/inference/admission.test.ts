import { expect, test } from 'bun:test';
import { Admission } from '../../../src/inference/admission.ts';

const full = expect.objectContaining({ code: 'inference_capacity', retryable: true, retryAfterMs: expect.any(Number) });

test('as many permits as allowed are given, and given again when they come back', async () => {
  let refused = 0;
  const admission = new Admission(2, () => {
    refused += 1;
  });
  const first = admission.take();
  const { promise, resolve } = Promise.withResolvers<number>();
  const working = admission.run(() => promise);
  expect(() => admission.take()).toThrow(full);
  expect(admission.run(async () => 1)).rejects.toThrow(full);
  resolve(7);
  expect(await working).toBe(7);
  first[Symbol.dispose]();
  first[Symbol.dispose]();
  expect(admission.taken).toBe(0);
  expect(refused).toBe(2);
});

test('a permit comes back when the work fails', async () => {
  const admission = new Admission(1);
  await expect(admission.run(() => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(admission.taken).toBe(0);
});

test('without a bound everything is admitted', () => {
  const admission = new Admission(0);
  for (let each = 0; each < 1_000; each += 1) admission.take();
  expect(admission.taken).toBe(1_000);
});
