import { expect, test } from 'bun:test';
import { serverCaller } from '../../../src/access/principal.ts';
import { embedItems } from '../../../src/inference/embeddings/embed-items.ts';
import type { Inference } from '../../../src/inference/inference.ts';

test('images alone are not given more numbers than a model makes, also where its files do not say how many', async () => {
  const manifest = { capabilities: [] };
  const companions = { vision: 'vision.onnx' };
  const model = { name: 'm', kind: 'embedders', backend: 'onnx', bytes: 1, directory: '/none', manifest, companions };
  const answers: Readonly<Record<string, object>> = {
    prepareImage: { width: 1, height: 1, data: Float32Array.of(0, 0, 0) },
    embedImages: { dense: Float32Array.of(1, 0, 0), dimension: 3 },
  };
  const inference = {
    models: { require: () => model },
    media: { loadEach: () => Promise.resolve([{ type: 'image', mediaType: 'image/png', bytes: new Uint8Array(1) }]) },
    pool: { run: (_spec: object, operation: string) => Promise.resolve(answers[operation]) },
    settings: { contextTokensMax: 512, parallelSequences: 1 },
  } as unknown as Inference;
  const { signal } = new AbortController();
  const items = [{ where: 'input[0]', mediaType: 'image/png', from: { base64: '' } }];
  const embed = (dimensions: number) =>
    embedItems(inference, { model: 'm', items, dimensions }, { caller: serverCaller('r', signal), signal });
  expect((await embed(2)).vectors).toEqual([Float32Array.of(1, 0)]);
  await expect(embed(4)).rejects.toThrow('"dimensions" is 4; the model makes vectors of 3 numbers');
});
