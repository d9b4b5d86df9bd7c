import { expect, test } from 'bun:test';
import { serverCaller } from '../../../src/access/principal.ts';
import { artifactPart } from '../../../src/enrichment/artifacts/artifact-part.ts';
import { chunkMaker } from '../../../src/enrichment/artifacts/chunk-maker.ts';
import type { Made } from '../../../src/enrichment/artifacts/part-maker.ts';
import { RecentResults } from '../../../src/enrichment/artifacts/recent-results.ts';
import { vectorSetMaker } from '../../../src/enrichment/artifacts/vector-maker.ts';
import { imageItem } from '../../../src/enrichment/media/image-item.ts';
import type { EmbedItem } from '../../../src/inference/embeddings/embed-items.ts';
import type { Embedder } from '../../../src/inference/providers/embedder.ts';
import { readDenseSet } from '../../../src/lib/parts/dense-set-part.ts';

const { signal } = new AbortController();
const call = { caller: serverCaller('r', signal), signal, priority: 'background' as const };
const image = { mediaType: 'image/png', base64: 'AAAA' };
const hash = new Uint8Array(16);

test('vectors are made of texts, of chunks, and of an image that stands by itself', async () => {
  const asked: EmbedItem[] = [];
  const embedder: Embedder = {
    fingerprint: 'f',
    embed: async (items) => {
      asked.push(...items);
      return { vectors: items.map((_, at) => Float32Array.of(at)), faults: [] } as never;
    },
  };
  const make = vectorSetMaker(() => embedder, 1, { fingerprint: 'f', request: { items: 10, bytes: 1_000 } });
  const chunks = [
    { start: 0, end: 1, text: 'a' },
    { start: 2, end: 3, text: 'b' },
  ];
  const sources = [{ parts: [image] }, { parts: ['a', 'b'], chunks }, { parts: ['whole'] }];
  const made = await make(sources, call, () => undefined);
  expect(asked).toEqual([imageItem(image), 'a', 'b', 'whole']);
  const sets = made.map((each) => (each.kind === 'part' ? readDenseSet(each.body(1, hash)) : []));
  expect(sets.map((set) => set.map(({ start, end, vector }) => [start, end, ...vector]))).toEqual([
    [[0, 0, 0]],
    [
      [0, 1, 1],
      [2, 3, 2],
    ],
    [[0, 5, 3]],
  ]);
});

test('an image has no chunks, and its document says so', async () => {
  const make = chunkMaker({ model: 'fixed' } as never, () => Promise.reject(new Error('no model cuts')));
  const [made] = await make([{ parts: [image] }], call, () => undefined);
  expect(made).toMatchObject({ kind: 'failed', error: { code: 'invalid_media' } });
});

test('results that are kept are bounded by their bytes, and the last ones stay', () => {
  const part = (bytes: number): Made => ({ kind: 'part', bytes, body: () => new Uint8Array() });
  const recent = new RecentResults();
  const mebibyte = 1_024 * 1_024;
  for (let at = 0; at < 10; at += 1) recent.keep(`m${at}`, part(mebibyte));
  recent.keep('m9', part(mebibyte));
  recent.keep('too large', part(5 * mebibyte));
  const held = Array.from({ length: 10 }, (_, at) => `m${at}`).filter((name) => recent.get(name));
  expect(held).toEqual(['m6', 'm7', 'm8', 'm9']);
  expect(recent.get('too large')).toBeUndefined();
  for (let at = 0; at < 300; at += 1) recent.keep(`n${at}`, { kind: 'none' });
  expect(Array.from({ length: 300 }, (_, at) => recent.get(`n${at}`)).filter((made) => made).length).toBe(256);
});

test('an enrichment of a kind that a later release has made says which release to start', () => {
  const config = { name: 'gist', kind: 'summary', full_text_index: false } as never;
  const definition = { partId: 3, name: 'gist', config, source: undefined, index: undefined };
  const told = 'the enrichment "gist" is of kind "summary", which this release does not know: start the release';
  expect(() => artifactPart(definition, {} as never)).toThrow(told);
});
