import { assert, must } from '../../../lib/assert.ts';
import { yieldToEventLoop } from '../../../lib/concurrency/yield-to-event-loop.ts';
import type { Backend, OperationContext } from '../../backend.ts';
import type { ModelSpec } from '../../model-spec.ts';
import type { EmbedFault, EmbedInput, EmbedResult, EmbedText } from '../../operations/embed.ts';
import type { EmbedImagesInput, EmbedImagesResult } from '../../operations/embed-images.ts';
import { contextOverflow } from '../context-overflow.ts';
import { truncateTokens } from '../truncate-tokens.ts';
import { unwatched } from '../unwatched.ts';
import { ImageEncoder } from './image-encoder.ts';
import { floats } from './onnx-session.ts';
import { normalize, poolRows, poolSpans, type SparseRow, sparseRows } from './text/pooling.ts';
import { type EncodedBatch, TextEncoder } from './text/text-encoder.ts';
import type { Encoded } from './text/text-tokenizer.ts';

/** Tokens that are made of texts before the event loop turns. */
const tokensBetweenTurns = 16_384;

type Vector = Float32Array | SparseRow;
/** The output of the model for one text: its vector, or one of each of its runs. */
type Read = Vector | Float32Array[];

export async function loadEmbedder(spec: ModelSpec): Promise<Backend> {
  const model = must(spec.model, 'an embedder is installed');
  const { manifest } = model;
  const sparse = manifest.capabilities.includes('sparse');
  const pooling = (manifest.pooling ?? 'mean') as 'mean' | 'cls' | 'last' | 'none';
  const unit = manifest.normalize ?? true;
  const encoder = await TextEncoder.open<Read>(spec, (batch) => {
    const output = floats(batch.outputs[nameOf(batch, sparse ? ['logits'] : ['sentence_embedding', 'text_embeds'])]);
    const lengths = batch.items.map((item) => item.length);
    if (sparse) return sparseRows(output, lengths);
    const scaled = (vector: Float32Array) => (unit ? normalize(vector) : vector);
    if (batch.items.every(({ spans }) => spans === undefined)) return poolRows(output, lengths, pooling).map(scaled);
    const whole = poolRows(output, lengths, pooling);
    return batch.items.map(({ spans }, row) =>
      spans ? poolSpans(output, row, spans).map(scaled) : scaled(must(whole[row], 'a vector for each text')),
    );
  });
  const embed = (input: EmbedInput, context: OperationContext<'embed'>) =>
    input.together ? embedTogether(encoder, input, context) : embedTexts(encoder, sparse, input, context);
  const vision = await ImageEncoder.open(model, encoder.threads);
  const { dimension } = await embed({ texts: ['a'], truncate: 'end' }, unwatched());
  return {
    info: {
      contextTokens: encoder.contextTokens,
      dimension,
      threads: { prefill: encoder.threads, decode: encoder.threads },
    },
    handlers:
      vision === undefined
        ? { embed }
        : { embed, embedImages: (input, context) => embedImages(vision, unit, input, context) },
    canary: async () => void (await embed({ texts: ['a'], truncate: 'end' }, unwatched())),
    async close() {
      await encoder.session.close();
      await vision?.close();
    },
  };
}

function nameOf({ outputs }: EncodedBatch, preferred: readonly string[]): string {
  const names = Object.keys(outputs);
  return preferred.find((name) => names.includes(name)) ?? must(names[0], 'a model has an output');
}

/** One vector for each image, made as the vectors of texts are. */
async function embedImages(
  vision: ImageEncoder,
  unit: boolean,
  { images }: EmbedImagesInput,
  context: OperationContext<'embedImages'>,
): Promise<EmbedImagesResult> {
  const rows = (await vision.encode(images, context)).map((output) => {
    const [vector = new Float32Array(0)] = poolRows(output, [1], 'cls');
    return unit ? normalize(vector) : vector;
  });
  const dimension = rows[0]?.length ?? 0;
  const dense = new Float32Array(rows.length * dimension);
  for (const [at, row] of rows.entries()) dense.set(row, at * dimension);
  return { dense, dimension };
}

/**
 * Late chunking (Guenther et al., "Late Chunking: Contextual Chunk Embeddings Using Long-Context Embedding Models", 2024):
 * consecutive texts are read as one, as many as fit, and each gets the mean of its own tokens, which have seen the others.
 */
async function embedTogether(
  encoder: TextEncoder<Read>,
  { texts }: EmbedInput,
  context: OperationContext<'embed'>,
): Promise<EmbedResult> {
  const { tokenizer, contextTokens } = encoder;
  const room = contextTokens - tokenizer.marks(1);
  const faults: EmbedFault[] = [];
  const runs: { ids: number[]; members: { index: number; from: number; to: number }[] }[] = [];
  const tokens = new Uint32Array(texts.length);
  for (const [index, text] of texts.entries()) {
    const ids = typeof text === 'string' ? tokenizer.plain(text) : text;
    tokens[index] = ids.length;
    if (ids.length === 0 || ids.length > room) {
      const [code, message] =
        ids.length === 0
          ? (['invalid_request', 'the text has no tokens'] as const)
          : (['context_length_exceeded', contextOverflow(contextTokens, `the chunk has ${ids.length}`)] as const);
      faults.push({ index, code, message });
      continue;
    }
    let run = runs.at(-1);
    if (run === undefined || run.ids.length + ids.length > room) {
      run = { ids: [], members: [] };
      runs.push(run);
    }
    const from = tokenizer.marksBefore + run.ids.length;
    run.members.push({ index, from, to: from + ids.length });
    run.ids.push(...ids);
  }
  const encoded = runs.map(({ ids, members }) => ({
    ...tokenizer.framed(ids),
    spans: members.map(({ from, to }) => [from, to] as const),
  }));
  const read = (await encoder.encode(encoded, context)) as Float32Array[][];
  const vectors = new Array<Vector | undefined>(texts.length).fill(undefined);
  for (const [at, { members }] of runs.entries()) {
    for (const [place, { index }] of members.entries()) vectors[index] = read[at]?.[place];
  }
  return denseResult(vectors, tokens, faults);
}

async function embedTexts(
  encoder: TextEncoder<Read>,
  sparse: boolean,
  { texts, truncate, allOrNothing }: EmbedInput,
  context: OperationContext<'embed'>,
): Promise<EmbedResult> {
  const encoded: (Encoded | undefined)[] = [];
  const faults: EmbedFault[] = [];
  let sinceTurn = 0;
  for (const [index, text] of texts.entries()) {
    const made = encodeText(encoder, text, truncate);
    if ('code' in made) faults.push({ index, ...made });
    encoded.push('code' in made ? undefined : made);
    sinceTurn += 'code' in made ? 0 : made.ids.length;
    if (sinceTurn < tokensBetweenTurns) continue;
    sinceTurn = 0;
    context.progress();
    await yieldToEventLoop();
    context.signal.throwIfAborted();
  }
  const tokens = Uint32Array.from(encoded, (each) => each?.ids.length ?? 0);
  const wanted = allOrNothing && faults.length > 0 ? [] : encoded.filter((each) => each !== undefined);
  const vectors = (await encoder.encode(wanted, context)) as Vector[];
  let next = 0;
  const placed = encoded.map((each) => (each === undefined ? undefined : vectors[next++]));
  return sparse ? sparseResult(placed, tokens, faults) : denseResult(placed, tokens, faults);
}

function encodeText(
  { tokenizer, contextTokens }: TextEncoder<Read>,
  text: EmbedText,
  truncate: EmbedInput['truncate'],
): Encoded | Omit<EmbedFault, 'index'> {
  const given = typeof text !== 'string';
  const plain = given ? text : tokenizer.plain(text);
  const wrong = given
    ? plain.find((id) => !(Number.isInteger(id) && id >= 0 && id < tokenizer.vocabularySize))
    : undefined;
  if (wrong !== undefined) {
    const message = `the token ${wrong} is not one of the ${tokenizer.vocabularySize} of the model`;
    return { code: 'invalid_request', message };
  }
  const marks = given ? 0 : tokenizer.marks(1);
  const kept = truncateTokens(plain, contextTokens - marks, truncate);
  if (kept === undefined) {
    const message = contextOverflow(contextTokens, `the input has ${plain.length + marks}`);
    return { code: 'context_length_exceeded', message };
  }
  const made = given ? { ids: Int32Array.from(kept), types: new Int32Array(kept.length) } : tokenizer.framed(kept);
  return made.ids.length > 0 ? made : { code: 'invalid_request', message: 'the input has no tokens' };
}

function denseResult(
  vectors: readonly (Vector | undefined)[],
  tokens: Uint32Array,
  faults: readonly EmbedFault[],
): EmbedResult {
  const first = vectors.find((vector) => vector !== undefined);
  const dimension = first instanceof Float32Array ? first.length : 0;
  const dense = new Float32Array(vectors.length * dimension);
  for (const [at, vector] of vectors.entries()) {
    if (vector instanceof Float32Array) dense.set(vector, at * dimension);
  }
  return { dense, dimension, tokens, faults };
}

function sparseResult(
  vectors: readonly (Vector | undefined)[],
  tokens: Uint32Array,
  faults: readonly EmbedFault[],
): EmbedResult {
  const sparse = vectors.map((vector) => {
    assert(!(vector instanceof Float32Array), 'sparse models make sparse vectors');
    return vector ?? { indices: new Uint32Array(0), values: new Float32Array(0) };
  });
  return { sparse, dimension: 0, tokens, faults };
}
