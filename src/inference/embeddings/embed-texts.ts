import { ServiceError } from '../../protocol/service-error.ts';
import { specOfModel } from '../host/model-spec.ts';
import type { EmbedFault, EmbedText } from '../host/operations/embed.ts';
import type { Inference } from '../inference.ts';
import { type EmbedTask, prefixOf } from './task-prefix.ts';

export interface EmbedRequest {
  readonly model: string;
  readonly texts: readonly EmbedText[];
  readonly task?: EmbedTask | undefined;
  readonly instruction?: string | undefined;
  /** The first so many numbers of each vector, scaled to length one again; models made for that keep most meaning there. */
  readonly dimensions?: number | undefined;
  readonly truncate?: 'start' | 'end' | undefined;
  /** Answer the texts that can be embedded although others cannot. */
  readonly keepGoing?: boolean | undefined;
}

export interface SparseVector {
  readonly indices: Uint32Array;
  readonly values: Float32Array;
}

export interface Embeddings {
  /** The model that was used. */
  readonly model: string;
  readonly dimension: number;
  /** In the order of the texts; undefined where one failed. */
  readonly vectors: readonly (Float32Array | SparseVector | undefined)[];
  readonly tokens: number;
  readonly faults: readonly EmbedFault[];
}

/** Embeds texts. Throws `ServiceError`, also for the first text that fails, unless the request keeps going. */
export async function embedTexts(
  { models, pool, settings }: Inference,
  request: EmbedRequest,
  signal?: AbortSignal,
): Promise<Embeddings> {
  const model = models.require('embedders', request.model);
  const { manifest } = model;
  checkDimensions(request.dimensions, manifest.capabilities.includes('sparse') ? 'sparse' : manifest.dimension);
  const prefix = prefixOf(manifest.prefixes ?? {}, request.task, request.instruction);
  const empty = emptyTexts(request.texts);
  const faulty = new Set(empty.map(({ index }) => index));
  if (request.keepGoing !== true) throwFirst(empty, request.texts.length);
  const places = [...request.texts.keys()].filter((index) => !faulty.has(index));
  const input = {
    texts: places.map((index) => prefixed(request.texts[index] ?? '', prefix)),
    truncate: request.truncate,
    allOrNothing: request.keepGoing !== true,
  };
  const result =
    places.length === 0
      ? { dimension: 0, tokens: new Uint32Array(0), faults: [] }
      : await pool.run(specOfModel(model, settings), 'embed', input, signal === undefined ? {} : { signal });
  const late = result.faults.map((fault) => ({ ...fault, index: places[fault.index] ?? 0 }));
  if (request.keepGoing !== true) throwFirst(late, request.texts.length);
  for (const { index } of late) faulty.add(index);
  if (places.length > 0) checkDimensions(request.dimensions, result.sparse === undefined ? result.dimension : 'sparse');
  const dimension = request.dimensions ?? result.dimension;
  const vectors = new Array<Float32Array | SparseVector | undefined>(request.texts.length).fill(undefined);
  for (const [at, index] of places.entries()) {
    if (faulty.has(index)) continue;
    const start = at * result.dimension;
    vectors[index] =
      result.sparse === undefined
        ? shortened(result.dense?.subarray(start, start + result.dimension), request.dimensions)
        : result.sparse[at];
  }
  const faults = [...empty, ...late].sort((a, b) => a.index - b.index);
  return { model: model.name, dimension, vectors, tokens: result.tokens.reduce((sum, each) => sum + each, 0), faults };
}

function checkDimensions(wanted: number | undefined, has: number | 'sparse' | undefined): void {
  if (wanted === undefined || has === undefined) return;
  if (has === 'sparse')
    throw new ServiceError('invalid_request', '"dimensions" is for dense vectors; this model is sparse');
  if (wanted > has) {
    throw new ServiceError('invalid_request', `"dimensions" is ${wanted}; the model makes vectors of ${has} numbers`);
  }
}

function emptyTexts(texts: readonly EmbedText[]): EmbedFault[] {
  return [...texts.entries()].flatMap(([index, { length }]) =>
    length > 0 ? [] : [{ index, code: 'invalid_request' as const, message: 'the input is empty' }],
  );
}

function throwFirst([first]: readonly EmbedFault[], texts: number): void {
  if (first === undefined) return;
  const place = texts === 1 ? '' : `input ${first.index}: `;
  throw new ServiceError(first.code, `${place}${first.message}`);
}

function prefixed(text: EmbedText, prefix: string): EmbedText {
  if (prefix === '') return text;
  if (typeof text === 'string') return prefix + text;
  throw new ServiceError(
    'invalid_request',
    'an input of tokens takes no prefix; leave out "instruction", "task_type" and "input_type", or send texts',
  );
}

function shortened(vector: Float32Array | undefined, dimensions: number | undefined): Float32Array | undefined {
  if (vector === undefined || dimensions === undefined || dimensions === vector.length) return vector;
  const kept = vector.slice(0, dimensions);
  const length = Math.sqrt(kept.reduce((sum, value) => sum + value * value, 0));
  return length === 0 ? kept : kept.map((value) => value / length);
}
