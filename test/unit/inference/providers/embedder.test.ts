import { describe, expect, test } from 'bun:test';
import { serverCaller } from '../../../../src/access/principal.ts';
import { faultOf } from '../../../../src/inference/providers/client/fault.ts';
import { probeEmbedder } from '../../../../src/inference/providers/embedder.ts';
import type { Provider } from '../../../../src/inference/providers/provider.ts';
import { ServiceError } from '../../../../src/protocol/service-error.ts';
import { readProviderConfig } from '../../../../src/provider-config/provider-config.ts';
import { openProviders } from '../../../support/providers/model-service.ts';

const { signal } = new AbortController();
const call = { caller: serverCaller('test', signal), signal };
const unused = () => Promise.reject(new Error('not asked in this test'));
const ownWith = (embed: Provider['embed']): Provider => ({ embed, rerank: unused, generate: unused });
const configOf = (members: object) => readProviderConfig({ model: 'm', ...members }, 'embed', 'embedder');

describe('an embedder', () => {
  test('asks this server in process, for texts one by one, as the task says', async () => {
    const asked: unknown[] = [];
    const own = ownWith((request) => {
      asked.push(request);
      return Promise.resolve({
        model: 'm',
        dimension: 2,
        vectors: [Float32Array.of(1, 0)],
        tokens: 1,
        faults: [],
      });
    });
    const embedder = openProviders({ own }).embedder(configOf({ provider: 'service', dimensions: 2 }));
    const { vectors } = await embedder.embed(['a'], 'RETRIEVAL_QUERY', call);
    expect(vectors).toEqual([Float32Array.of(1, 0)]);
    expect(asked).toEqual([{ model: 'm', items: ['a'], task: 'RETRIEVAL_QUERY', dimensions: 2, keepGoing: true }]);
  });

  test('has a fingerprint of provider, model and length, without key and address', () => {
    const providers = openProviders({ own: ownWith(unused) });
    const of = (members: object) => providers.embedder(configOf({ provider: 'service', ...members })).fingerprint;
    expect(of({ api_key: 'k' })).toBe(of({}));
    expect(new Set([of({}), of({ model: 'n' }), of({ dimensions: 8 })]).size).toBe(3);
  });

  test('tells the length of its vectors when it is probed', async () => {
    const providers = openProviders({ own: ownWith(unused) });
    const mock = providers.embedder(configOf({ provider: 'mock', dimensions: 8 }));
    expect(await probeEmbedder(mock, call)).toEqual({ sparse: false, dimension: 8 });
  });

  test('finds the text that ends the process of its model, and embeds the others', async () => {
    let requests = 0;
    const own = ownWith(({ items }) => {
      requests += 1;
      if (items.includes('poison')) throw new ServiceError('inference_interrupted', 'the process ended');
      const vectors = items.map((item) => Float32Array.of(String(item).length));
      return Promise.resolve({ model: 'm', dimension: 1, vectors, tokens: items.length, faults: [] });
    });
    const embedder = openProviders({ own }).embedder(configOf({ provider: 'service' }));
    const texts = ['a', 'bb', 'ccc', 'poison', 'eeeee', 'ffffff', 'ggggggg'];
    const { vectors, faults, tokens } = await embedder.embed(texts, 'RETRIEVAL_DOCUMENT', call);
    expect(vectors.map((vector) => (vector as Float32Array | undefined)?.[0])).toEqual([1, 2, 3, undefined, 5, 6, 7]);
    expect(faults.map(({ index, error }) => [index, error.code])).toEqual([[3, 'inference_failed']]);
    expect([tokens, requests]).toEqual([6, 8]);
  });

  test('goes on after a process that ended once', async () => {
    let requests = 0;
    const own = ownWith(() => {
      requests += 1;
      if (requests === 1) throw new ServiceError('inference_interrupted', 'the process ended');
      return Promise.resolve({ model: 'm', dimension: 1, vectors: [Float32Array.of(1)], tokens: 1, faults: [] });
    });
    const embedder = openProviders({ own }).embedder(configOf({ provider: 'service' }));
    expect((await embedder.embed(['a'], 'RETRIEVAL_DOCUMENT', call)).faults).toEqual([]);
  });

  test('that refuses its probe says why', async () => {
    const error = new ServiceError('context_length_exceeded', 'one token is all it takes');
    const own = ownWith(() =>
      Promise.resolve({ model: 'm', dimension: 0, vectors: [undefined], tokens: 0, faults: [{ index: 0, error }] }),
    );
    const embedder = openProviders({ own }).embedder(configOf({ provider: 'service' }));
    await expect(probeEmbedder(embedder, call)).rejects.toThrow('one token is all it takes');
  });
});

describe('the mock provider', () => {
  const mock = openProviders({ own: ownWith(unused) }).embedder(configOf({ provider: 'mock' }));

  test('puts texts that share words near each other', async () => {
    const texts = ['red apples and pears', 'pears and red apples', 'a treatise on naval law', '   '];
    const { vectors, faults } = await mock.embed(texts, 'RETRIEVAL_DOCUMENT', call);
    const [left, same, other] = vectors as Float32Array[];
    const dot = (a?: Float32Array, b?: Float32Array) => a?.reduce((sum, x, at) => sum + x * (b?.[at] ?? 0), 0);
    expect(dot(left, same)).toBeCloseTo(1, 5);
    expect(dot(left, other)).toBeLessThan(0.5);
    expect([vectors[3], faults.map(({ index }) => index)]).toEqual([undefined, [3]]);
  });
});

test('a fault is of the item or of the provider', () => {
  const of = (code: ConstructorParameters<typeof ServiceError>[0]) => faultOf(new ServiceError(code, 'x'));
  expect([of('context_length_exceeded'), of('invalid_media')]).toEqual(['item', 'item']);
  expect([of('upstream_failed'), of('upstream_refused'), of('model_not_found')]).toEqual(
    Array.from({ length: 3 }, () => 'provider'),
  );
  expect(faultOf(new TypeError('a bug'))).toBe('provider');
});
