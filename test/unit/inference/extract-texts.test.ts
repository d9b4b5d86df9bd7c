import { expect, test } from 'bun:test';
import { serverCaller } from '../../../src/access/principal.ts';
import { extractTexts } from '../../../src/inference/extraction/extract-texts.ts';
import type { Inference } from '../../../src/inference/inference.ts';
import { ServiceError } from '../../../src/protocol/service-error.ts';

test('a text that a generator fails on ends the others', async () => {
  const stopped: string[] = [];
  const uses = [
    () => Promise.reject(new ServiceError('inference_failed', 'the first one')),
    (signal: AbortSignal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          stopped.push('the second one');
          reject(signal.reason);
        });
      }),
  ];
  const generator = { name: 'g', kind: 'generators', backend: 'native', bytes: 1, manifest: { capabilities: [] } };
  const require = (kind: string) => {
    if (kind === 'generators') return generator;
    throw new ServiceError('model_not_supported', 'it is no extractor');
  };
  const use = (_spec: object, _work: unknown, { signal }: { signal: AbortSignal }) => uses.shift()?.(signal);
  const inference = {
    models: { require },
    pool: { isLoaded: () => true, use },
    generations: { begin: () => ({ failed: () => undefined }) },
    backends: {},
    settings: { contextTokensMax: 512, parallelSequences: 2 },
  } as unknown as Inference;
  const { signal } = new AbortController();
  const schema = { entities: ['a'], relations: [], classifications: [], structures: [] };
  const request = { model: 'g', texts: ['one', 'two'], schema, threshold: undefined, flat: true };
  const extracted = extractTexts(inference, request, { caller: serverCaller('r', signal), signal });
  await expect(extracted).rejects.toThrow('the first one');
  expect(stopped).toEqual(['the second one']);
});
