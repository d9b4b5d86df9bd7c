import { describe, expect, test } from 'bun:test';
import { rateAtRecall, recallOf } from '../../../bench/measure/recall.ts';
import { exactSparse, sparseQueries, sparseRows } from '../../../bench/workloads/sparse-vectors.ts';

describe('recall', () => {
  test('is the share of the true neighbours that were found, over all queries', () => {
    expect(
      recallOf(
        [[3, 1, 9], []],
        [
          [1, 2],
          [4, 5],
        ],
      ),
    ).toBe(0.25);
    expect(recallOf([[7]], [[]])).toBe(1);
  });

  test('refuses answers to other queries', () => {
    expect(() => recallOf([[1]], [[1], [2]])).toThrow('differ in length');
  });
});

describe('the rate at a recall', () => {
  const points = [
    { recall: 0.9, perSecond: 4_000 },
    { recall: 1, perSecond: 1_000 },
  ];

  test('lies on the logarithm between the points around it', () => {
    expect(rateAtRecall(points, 0.95)).toBeCloseTo(2_000);
    expect(rateAtRecall(points, 1)).toBeCloseTo(1_000);
  });

  test('is that of the fastest point when all have more recall, and an error when none has it', () => {
    expect(rateAtRecall(points, 0.5)).toBe(4_000);
    expect(() => rateAtRecall(points.slice(0, 1), 0.95)).toThrow('most thorough search has 0.900');
  });
});

describe('generated sparse vectors', () => {
  const set = { rows: 50, queries: 5, seed: 42 };

  test('are the same for the same seed, with ascending indices and weights of 0.1 to 2.1', () => {
    const rows = sparseRows(set).toArray();
    expect(sparseRows(set).toArray()).toEqual(rows);
    for (const { indices, values } of rows) {
      expect(indices.length >= 60 && indices.length <= 120 && values.length === indices.length).toBe(true);
      expect(indices.every((token, at) => at === 0 || token > (indices[at - 1] ?? 0))).toBe(true);
      expect(values.every((weight) => weight >= 0.1 && weight <= 2.101)).toBe(true);
    }
  });

  test('have their exact answers in the order of the dot products', () => {
    const rows = sparseRows(set).toArray();
    const [query] = sparseQueries(set);
    const weights = new Map(Array.from(query?.indices ?? [], (token, at) => [token, query?.values[at] ?? 0]));
    const scores = rows.map(({ indices, values }) =>
      indices.reduce((sum, token, at) => sum + (weights.get(token) ?? 0) * (values[at] ?? 0), 0),
    );
    const order = scores.map((_, row) => row).sort((left, right) => (scores[right] ?? 0) - (scores[left] ?? 0));
    expect(exactSparse(set)[0]).toEqual(order.slice(0, 10));
  });
});
