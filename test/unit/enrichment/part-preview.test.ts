import { expect, test } from 'bun:test';
import type { PartDefinition } from '../../../src/enrichment/part-definition.ts';
import { PartPreview } from '../../../src/enrichment/part-preview.ts';
import type { Embedder } from '../../../src/inference/providers/embedder.ts';
import { providerCall } from '../../support/providers/model-service.ts';

const sparseEmbedder: Embedder = {
  fingerprint: 'sparse',
  embed: (items) =>
    Promise.resolve({
      model: 'm',
      dimension: 0,
      vectors: items.map(() => ({ indices: Uint32Array.of(1, 5, 9), values: Float32Array.of(1, 2, 3) })),
      tokens: 4 * items.length,
      faults: [],
    }),
};

function definitionOf(source: Partial<PartDefinition['source']>, more: Partial<PartDefinition> = {}): PartDefinition {
  return {
    partId: 0,
    source: { field: undefined, template: undefined, together: false, ...source } as PartDefinition['source'],
    dimension: undefined,
    embedder: () => sparseEmbedder,
    cut: () => Promise.reject(new Error('no model cuts')),
    vectorFingerprint: 'v',
    fingerprintOfSource: 's',
    fingerprint: 'f',
    ...more,
  };
}

const bodyOf = (document: object) => Buffer.from(JSON.stringify(document));
const image = { mediaType: 'image/png', base64: Buffer.from('12345').toString('base64') };
const deps = {
  templates: { render: () => [{ url: 'data:', as: undefined }], resolve: () => Promise.resolve([image]) },
  call: providerCall(),
};

test('the length of a sparse vector is the number of its entries, and equal texts are paid for once', async () => {
  const preview = new PartPreview(definitionOf({ field: '$.text' }), deps);
  const body = bodyOf({ text: 'amber' });
  expect(await preview.of(body)).toEqual({ state: 'ready', text: 'amber', vectorLengths: [3], tokens: 4 });
  expect(await preview.of(body)).toMatchObject({ state: 'ready', tokens: 0 });
  expect(await preview.of(bodyOf({ text: 'birch' }))).toMatchObject({ tokens: 4 });
});

test('an image is told by its type and bytes', async () => {
  const preview = new PartPreview(definitionOf({ template: '{{media url=photo}}' }), deps);
  expect(await preview.of(bodyOf({}))).toEqual({
    state: 'ready',
    image: { mediaType: 'image/png', bytes: 5 },
    vectorLengths: [3],
    tokens: 4,
  });
});

test('a document that has no vector says why, and costs nothing', async () => {
  const preview = new PartPreview(definitionOf({ field: '$.text' }, { dimension: 8 }), deps);
  expect(await preview.of(bodyOf({ text: null }))).toEqual({ state: 'none', vectorLengths: [], tokens: 0 });
  const { state, error, tokens } = await preview.of(bodyOf({ text: 7 }));
  expect([state, error?.code, tokens]).toEqual(['failed', 'invalid_request', 0]);
  // The embedder was paid, and makes another kind of vectors than the index takes.
  const wrong = await preview.of(bodyOf({ text: 'amber' }));
  expect([wrong.state, wrong.vectorLengths, wrong.tokens]).toEqual(['failed', [], 4]);
});
