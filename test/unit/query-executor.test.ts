import { describe, expect, test } from 'bun:test';
import type { NativePlan } from '../../src/query/native-plan.ts';
import { executeQuery } from '../../src/query/query-executor.ts';
import { planQuery } from '../../src/query/query-plan.ts';
import type { NativeHits, QueryTarget } from '../../src/query/query-target.ts';

/** Three indexed documents, the first of which has been deleted since. */
const target = {
  tableName: 'recipes',
  expiredAtOrBeforeMs: undefined,
  ranges: [
    {
      rangeId: 1,
      handle: 7,
      documents: (ordinals: number[]) =>
        ordinals
          .filter((ordinal) => ordinal > 0)
          .map((ordinal) => ({
            ordinal,
            key: `k${ordinal}`,
            sequence: 1,
            ttlBaseMs: undefined,
            body: new Uint8Array(),
          })),
    },
  ],
  recheck: async (_: NativePlan, documents: unknown[]) => documents.map(() => true),
  highlight: async () => [],
} as QueryTarget;

describe('a page that is filled again', () => {
  test('is aggregated once, and keeps the count of that', async () => {
    const asked: NativePlan[] = [];
    const run = async (_: number[], plan: NativePlan): Promise<NativeHits> => {
      asked.push(plan);
      const count = Math.min(3, plan.limit);
      const found = {
        ranges: new Uint32Array(count),
        ordinals: Uint32Array.from({ length: count }, (_, at) => at),
        sequences: new Float64Array(count).fill(1),
        scores: new Float32Array(count),
        sort: '',
        explanations: '',
        maxScore: 1,
        isPartial: false,
      };
      const aggregated = { total: 3, totalIsExact: true, aggregations: '{"c":{"value":3}}' };
      return {
        ...found,
        ...(plan.aggregations ? aggregated : { total: 2, totalIsExact: false, aggregations: '' }),
      } as NativeHits;
    };
    const request = { limit: 2, full_text_search: { match: 'soup' }, aggregations: { c: { type: 'count' } } };
    const { plan } = planQuery(request, { name: 'recipes', nowMs: 0 });
    const { hits, ...rest } = await executeQuery(plan, target, run, new AbortController().signal);
    expect(hits.map((hit) => hit.document.key)).toEqual(['k1', 'k2']);
    expect(rest).toMatchObject({ total: 2, totalIsExact: true, aggregations: '{"c":{"value":3}}' });
    expect(asked.map((plan) => plan.aggregations !== undefined)).toEqual([true, false]);
  });
});
