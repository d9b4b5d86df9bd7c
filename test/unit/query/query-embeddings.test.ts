import { describe, expect, test } from 'bun:test';
import type { InferenceCall } from '../../../src/inference/admission.ts';
import { ServiceError } from '../../../src/protocol/service-error.ts';
import { readProviderConfig } from '../../../src/provider-config/provider-config.ts';
import { QueryEmbeddings } from '../../../src/query/inputs/query-embeddings.ts';
import { FakeClock } from '../../support/fake-clock.ts';

const configOf = (members: object = {}) =>
  readProviderConfig({ provider: 'openai', model: 'm', ...members }, 'embed', 'embedder');

/** Embeds each text as its length, when it is told to. */
function embedding(bytesMax = 1_000_000) {
  const clock = new FakeClock();
  const asked: { text: string; task: string; call: InferenceCall }[] = [];
  const answers: PromiseWithResolvers<void>[] = [];
  const embedder = (config: ReturnType<typeof configOf>) => ({
    fingerprint: `${config.provider} ${config.model}`,
    async embed(texts: readonly string[], task: string, call: InferenceCall) {
      const [text = ''] = texts;
      const answer = Promise.withResolvers<void>();
      asked.push({ text, task, call });
      answers.push(answer);
      await answer.promise;
      return { model: config.model, dimension: 1, vectors: [Float32Array.of(text.length)], tokens: 1, faults: [] };
    },
  });
  const embeddings = new QueryEmbeddings({ embedder, clock, keptMs: 1_000, bytesMax });
  const embed = (text: string, config = configOf(), signal = new AbortController().signal) =>
    embeddings.embed(config, text, 'r', signal);
  return { clock, asked, answers, embed };
}

describe('the vector of a query text', () => {
  test('is made once for queries at the same time, and kept for a while', async () => {
    const { clock, asked, answers, embed } = embedding();
    const both = [embed('soup'), embed('soup')];
    answers[0]?.resolve();
    expect(await Promise.all(both)).toEqual([Float32Array.of(4), Float32Array.of(4)]);
    await clock.advance(999);
    await embed('soup');
    expect(asked).toMatchObject([{ text: 'soup', task: 'RETRIEVAL_QUERY', call: { priority: 'foreground' } }]);
    await clock.advance(2);
    const later = embed('soup');
    answers[1]?.resolve();
    await later;
    expect(asked).toHaveLength(2);
  });

  test('is another one for another text, model or address', async () => {
    const { asked, answers, embed } = embedding();
    const configs = [configOf(), configOf({ model: 'n' }), configOf({ url: 'https://other.example/v1' })];
    const all = [...configs.map((config) => embed('soup', config)), embed('soups')];
    for (const answer of answers) answer.resolve();
    await Promise.all(all);
    expect(asked).toHaveLength(4);
  });

  test('is still made for others when one query is given up, and no longer when all are', async () => {
    const { asked, answers, embed } = embedding();
    const [first, second, third] = [new AbortController(), new AbortController(), new AbortController()];
    const waiting = [first, second].map(({ signal }) => embed('soup', configOf(), signal));
    const settled = Promise.allSettled(waiting);
    first.abort('gone');
    await Promise.resolve();
    expect(asked[0]?.call.signal.aborted).toBe(false);
    second.abort('gone');
    expect(await settled).toEqual([
      { status: 'rejected', reason: 'gone' },
      { status: 'rejected', reason: 'gone' },
    ]);
    expect(asked[0]?.call.signal.aborted).toBe(true);
    const again = embed('soup', configOf(), third.signal);
    answers[1]?.resolve();
    expect(await again).toEqual(Float32Array.of(4));
    await expect(embed('other', configOf(), second.signal)).rejects.toBe('gone');
  });

  test('that could not be made is asked for again', async () => {
    const { asked, answers, embed } = embedding();
    const failed = embed('soup');
    answers[0]?.reject(new ServiceError('upstream_failed', 'down'));
    await expect(failed).rejects.toEqual(expect.objectContaining({ code: 'upstream_failed' }));
    const again = embed('soup');
    answers[1]?.resolve();
    await again;
    expect(asked).toHaveLength(2);
  });

  test('makes room for newer ones', async () => {
    const { asked, answers, embed } = embedding(600);
    for (const [at, text] of ['a', 'b', 'c', 'a'].entries()) {
      const vector = embed(text);
      answers[at]?.resolve();
      await vector;
    }
    expect(asked.map(({ text }) => text)).toEqual(['a', 'b', 'c', 'a']);
  });
});
