import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { batchWindow, planBatch } from '../../../src/model-host/backends/onnx/text/plan-batch.ts';

describe('planBatch', () => {
  test('puts texts of like length beside the one that waits longest', () => {
    expect(planBatch([], 512)).toEqual([]);
    expect(planBatch([10], 512)).toEqual([0]);
    expect(planBatch([10, 400, 11, 9], 512).sort()).toEqual([0, 2, 3]);
    expect(planBatch([400, 10, 11, 9], 512)).toEqual([0]);
  });

  test('fills no row up at greater cost than a run of its own', () => {
    expect(planBatch([100, 60], 512)).toEqual([0]);
    expect(planBatch([100, 70], 512).sort()).toEqual([0, 1]);
  });

  test('keeps to the bound, but for a text that is longer by itself', () => {
    expect(planBatch(new Array(100).fill(16), 64)).toHaveLength(4);
    expect(planBatch([1_000, 1_000], 512)).toEqual([0]);
    expect(planBatch([16, 16], 0)).toEqual([0]);
  });

  test('always takes the first, never more than the bound, never one twice', () => {
    const lengths = fc.array(fc.integer({ min: 1, max: 600 }), { minLength: 1, maxLength: 300 });
    fc.assert(
      fc.property(lengths, fc.integer({ min: 0, max: 1_024 }), (waiting, tokensMax) => {
        const chosen = planBatch(waiting, tokensMax);
        const longest = Math.max(...chosen.map((at) => waiting[at] ?? 0));
        expect(chosen).toContain(0);
        expect(new Set(chosen).size).toBe(chosen.length);
        expect(chosen.length === 1 || chosen.length * longest <= tokensMax).toBe(true);
      }),
      { seed: 7 },
    );
  });

  test('looks at a window only, so that planning stays cheap', () => {
    expect(Math.max(...planBatch(new Array(5_000).fill(1), 100_000))).toBe(batchWindow - 1);
  });
});
