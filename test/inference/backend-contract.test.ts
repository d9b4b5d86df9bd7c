import sharp from 'sharp';
import type { HostSpec } from '../../src/model-host/model-spec.ts';
import { specOfPredictor } from '../../src/model-host/model-spec.ts';
import type { Pixels } from '../../src/model-host/operations/pixels.ts';
import { describePredictor } from '../../src/models/installed-predictor.ts';
import { modelBackendContract } from '../contracts/model-backend.ts';
import { pdfOf } from '../support/files/pdf-file.ts';
import { tone, wavFile } from '../support/files/wav-file.ts';
import { generateInput } from '../support/inference/generate-input.ts';
import { fixtureModel } from '../support/inference/inference-pool.ts';

const settings = { threads: 1, contextTokensMax: 1_024, parallelSequences: 4 };
const predictors = Bun.fileURLToPath(new URL('../fixtures/predictors/', import.meta.url));

const texts = (...given: string[]) => ({ texts: given, truncate: undefined });
const ranked = (query: string) => ({ query, texts: ['a cat', 'the king runs'], truncate: undefined });
const pixels = (value: number, edge: number): Pixels => ({
  data: new Float32Array(3 * edge * edge).fill(value),
  width: edge,
  height: edge,
});
const image = async (background: string): Promise<Uint8Array> =>
  new Uint8Array(
    await sharp({ create: { width: 8, height: 8, channels: 3, background } })
      .png()
      .toBuffer(),
  );
const resized = (file: Uint8Array) => ({ image: file, name: 'an image', fit: 'fill', width: 4, height: 4 }) as const;
const sound = (hz: number) => ({
  audio: wavFile(tone(hz, 1, 16_000), 16_000),
  language: undefined,
  translate: false,
});

for (const name of ['tiny-bert', 'tiny-bert-gguf']) {
  modelBackendContract(name, {
    spec: fixtureModel('embedders', name),
    operation: 'embed',
    input: texts('a cat', 'the quick brown fox'),
    other: texts('the king', 'runs fast'),
    answer: ({ dense, tokens }) => [dense, tokens],
  });
}

modelBackendContract('tiny-sparse', {
  spec: fixtureModel('embedders', 'tiny-sparse'),
  operation: 'embed',
  input: texts('a cat'),
  other: texts('the king runs'),
  answer: ({ sparse }) => sparse,
});

modelBackendContract('tiny-colours', {
  spec: fixtureModel('embedders', 'tiny-colours'),
  operation: 'embedImages',
  input: { images: [pixels(0.1, 8)] },
  other: { images: [pixels(-0.9, 8)] },
  answer: ({ dense }) => dense,
});

for (const name of ['tiny-cross', 'tiny-late', 'tiny-cross-gguf']) {
  modelBackendContract(name, {
    spec: fixtureModel('rerankers', name),
    operation: 'rerank',
    input: ranked('a cat'),
    other: ranked('who runs ?'),
    answer: ({ scores }) => scores,
  });
}

modelBackendContract('chain', {
  spec: fixtureModel('generators', 'chain'),
  operation: 'generate',
  input: generateInput('hello'),
  other: generateInput('count'),
  answer: ({ text, finish, completionTokens }) => [text, finish, completionTokens],
});

modelBackendContract('tiny-chunker', {
  spec: fixtureModel('chunkers', 'tiny-chunker'),
  operation: 'findBoundaries',
  input: { text: 'the cat sat . the king runs .', threshold: 0.5 },
  other: { text: 'the king runs fast . a cat . the end', threshold: 0.5 },
  answer: ({ places, tokens }) => [places, tokens],
});

modelBackendContract('tiny-spans', {
  spec: fixtureModel('extractors', 'tiny-spans'),
  operation: 'tagEntities',
  input: { texts: ['the cat sat'], labels: ['animal'], threshold: 0, flat: true },
  other: { texts: ['a king runs fast'], labels: ['person'], threshold: 0, flat: true },
  answer: ({ entities, tokens }) => [entities, tokens],
});

modelBackendContract('tiny-rewriter', {
  spec: fixtureModel('rewriters', 'tiny-rewriter'),
  operation: 'seq2seq',
  input: { sources: ['the cat sat'], prompt: undefined, tokensMax: 8 },
  other: { sources: ['a king runs fast'], prompt: undefined, tokensMax: 8 },
  answer: ({ texts: written, promptTokens, completionTokens }) => [written, promptTokens, completionTokens],
});

modelBackendContract('tiny-ear', {
  spec: fixtureModel('transcribers', 'tiny-ear'),
  operation: 'transcribe',
  input: sound(440),
  other: { ...sound(440), audio: wavFile(tone(440, 2, 16_000), 16_000) },
  answer: ({ text, duration, segments }) => [text, duration, segments],
});

modelBackendContract('linear', {
  spec: specOfPredictor(describePredictor('linear', `${predictors}linear`), settings),
  operation: 'predict',
  input: { features: Float64Array.of(0.2, 0.2) },
  other: { features: Float64Array.of(0.9, 0.1) },
  answer: ({ predictions }) => predictions,
});

const reader = (backend: 'image' | 'document'): HostSpec => ({ backend, settings });

modelBackendContract('the reader of images', {
  spec: reader('image'),
  operation: 'prepareImage',
  input: resized(await image('red')),
  other: resized(await image('blue')),
  answer: ({ width, height, data }) => [width, height, data],
});

modelBackendContract('the reader of documents', {
  spec: reader('document'),
  operation: 'readPdf',
  input: { file: pdfOf('one line'), name: 'a file', charsMax: 1_000 },
  other: { file: pdfOf('another line'), name: 'a file', charsMax: 1_000 },
  answer: ({ text, pages }) => [text, pages],
});
