import { describe, expect, test } from 'bun:test';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fixtureModel, poolOfTests } from '../support/inference/inference-pool.ts';

const embedder = fixtureModel('embedders', 'tiny-bert-gguf');
const reranker = fixtureModel('rerankers', 'tiny-cross-gguf');
/** The vectors of the same weights as ONNX; llama.cpp approximates one function of the model. */
const embedded = referenceOf<{ text: string; ids: number[]; mean_pooled: number[] }>(embedder.model?.directory);
const ranked = referenceOf<{ text: string; pair: string; ids: number[]; logit: number }>(reranker.model?.directory);
const pool = poolOfTests();

function referenceOf<T>(directory = ''): T {
  return JSON.parse(readFileSync(join(directory, 'reference.json'), 'utf8')) as T;
}

const embed = (texts: (string | number[])[], truncate?: 'start' | 'end') =>
  pool().run(embedder, 'embed', { texts, truncate });
const rerank = (query: string, texts: string[], truncate?: 'start' | 'end') =>
  pool().run(reranker, 'rerank', { query, texts, truncate });

describe('vectors of a GGUF model', () => {
  test('are those of the same weights elsewhere, at length one', async () => {
    const { dense, dimension, tokens, faults } = await embed([embedded.text, embedded.ids, 'hello world']);
    expect([dimension, [...tokens], faults]).toEqual([32, [8, 8, 4], []]);
    for (const [at, value] of embedded.mean_pooled.entries()) {
      expect(Math.abs((dense?.[at] ?? 0) - value)).toBeLessThan(2e-3);
      // Given as tokens it is the same input.
      expect(dense?.[32 + at]).toBe(dense?.[at] ?? 0);
    }
    expect(Math.hypot(...(dense?.subarray(64) ?? []))).toBeCloseTo(1, 5);
    expect(await pool().info(embedder)).toMatchObject({ dimension: 32, contextTokens: 64 });
  });

  test('do not depend on what was read before or beside them', async () => {
    const alone = (await embed(['a quick cat'])).dense;
    const all = await Promise.all(['the dog runs', 'a quick cat', 'hello'].map((text) => embed([text])));
    expect(all[1]?.dense).toEqual(alone);
  });

  test('are missing where a text is too long or a token unknown, and the others are there', async () => {
    const long = 'the '.repeat(100);
    const { faults, dense, tokens } = await embed([long, 'hello', [7, 4_000]]);
    expect(faults).toEqual([
      {
        index: 0,
        code: 'context_length_exceeded',
        message: "this model's maximum context length is 64 tokens, but the input has 102",
      },
      { index: 2, code: 'invalid_request', message: expect.stringContaining('4000') },
    ]);
    expect([...tokens]).toEqual([0, 3, 0]);
    expect([Math.hypot(...(dense?.subarray(0, 32) ?? [])), Math.hypot(...(dense?.subarray(64) ?? []))]).toEqual([0, 0]);
    expect([...(await embed([long], 'end')).tokens]).toEqual([64]);
    expect(
      (await pool().run(embedder, 'embed', { texts: [long, 'a'], truncate: undefined, allOrNothing: true })).faults,
    ).toHaveLength(1);
  });
});

describe('scores of a GGUF model', () => {
  test('are those of the same weights elsewhere, for each text in its place', async () => {
    const { scores, tokens } = await rerank(ranked.text, [ranked.pair, 'hello world .', ranked.pair]);
    expect(scores[0]).toBeCloseTo(1 / (1 + Math.exp(-ranked.logit)), 3);
    expect(scores[2]).toBe(scores[0] ?? 0);
    expect(scores[1]).not.toBe(scores[0] ?? 0);
    expect(tokens).toBe(2 * ranked.ids.length + 12);
  });

  test('need a pair that fits, or leave to cut it', async () => {
    const long = 'the '.repeat(100);
    const error = await rerank('hello', ['world', long]).catch((failure: unknown) => failure);
    expect(error).toMatchObject({
      code: 'context_length_exceeded',
      message: expect.stringMatching(/64 tokens, but .*text 1 have 104/),
    });
    expect((await rerank('hello', [long], 'end')).tokens).toBe(64);
  });

  test('stop with the request', async () => {
    const texts = Array.from({ length: 20_000 }, () => 'the cat sat .');
    const control = new AbortController();
    const asked = pool().run(
      reranker,
      'rerank',
      { query: 'a', texts, truncate: undefined },
      { signal: control.signal },
    );
    const after = rerank('a', ['the cat']);
    control.abort(new Error('gone'));
    expect(await asked.catch(String)).toBe('Error: gone');
    expect((await after).scores).toHaveLength(1);
  });
});
