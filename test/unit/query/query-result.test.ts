import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import type { Hit } from '../../../src/query/execution/hydrate.ts';
import { type ResultContext, renderQueryResult } from '../../../src/query/execution/query-result.ts';
import { compileProjection } from '../../../src/query/request/projection/projection.ts';

function hitOf(members: Partial<Hit> = {}): Hit {
  const document = {
    ordinal: 1,
    key: 'soup:leek',
    sequence: 1,
    ttlBaseMs: undefined,
    writtenMs: undefined,
    text: '{"title":"Leek soup"}',
  };
  const plain = { hasChanged: false, sort: undefined, place: undefined, explanation: undefined };
  const legs = { legScores: undefined, legVectors: undefined };
  return { range: 0, document, score: 1, distance: Number.NaN, ...plain, ...legs, ...members };
}

async function rendered(hits: Hit[], more: Partial<ResultContext> = {}): Promise<Record<string, unknown>[]> {
  const counts = { total: hits.length, totalIsExact: true, isPartial: false, maxScore: 1, damaged: 0 };
  const executed = { ...counts, hits, aggregations: undefined, profile: undefined };
  const context = { table: 't', projection: compileProjection(undefined), tookMs: 1, seal: () => '', ...more };
  const answer = JSON.parse((await renderQueryResult(executed, context)).join('')) as {
    hits: { hits: Record<string, unknown>[] };
  };
  return answer.hits.hits;
}

describe('rendering a hit', () => {
  test('a hit of text alone says nothing of vectors', async () => {
    expect(await rendered([hitOf()])).toEqual([{ _id: 'soup:leek', _score: 1, _source: { title: 'Leek soup' } }]);
  });

  test('a hit of vectors says its distance, what each search scored it, and its vectors when they are named', async () => {
    const hit = hitOf({
      distance: Math.fround(-0.1),
      legScores: new Map([
        ['full_text', Math.fround(2.3)],
        ['taste', 0.5],
      ]),
    });
    const parts = new Map([[hit, { embeddings: '{"taste":[0.25,1]}' }]]);
    const projection = compileProjection(['_embeddings']);
    expect(await rendered([hit, hitOf({ distance: 0 })], { parts, projection })).toEqual([
      {
        _id: 'soup:leek',
        _score: 1,
        _distance: -0.1,
        _index_scores: { full_text: 2.3, taste: 0.5 },
        _source: { _embeddings: { taste: [0.25, 1] } },
      },
      { _id: 'soup:leek', _score: 1, _distance: 0, _source: {} },
    ]);
  });

  test('scores of any size keep seven digits', async () => {
    await fc.assert(
      fc.asyncProperty(fc.float({ noNaN: true, noDefaultInfinity: true }), async (score) => {
        const [hit] = await rendered([hitOf({ score })]);
        const shown = hit?._score as number;
        expect(Math.abs(shown - score)).toBeLessThanOrEqual(Math.abs(score) * 5.1e-7);
        expect(Number(shown.toPrecision(7))).toBe(shown);
      }),
    );
    expect((await rendered([hitOf({ score: Number.NaN })]))[0]?._score).toBe(0);
  });
});
