import { type ModelSpec, specOfModel } from '../../model-host/model-spec.ts';
import type { EmbedFault, EmbedText } from '../../model-host/operations/embed.ts';
import type { EmbedImagesResult } from '../../model-host/operations/embed-images.ts';
import type { Pixels } from '../../model-host/operations/pixels.ts';
import type { InstalledModel } from '../../models/installed-model.ts';
import type { ErrorCode } from '../../protocol/error-codes.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { InferenceCall } from '../admission.ts';
import type { Inference } from '../inference.ts';
import { loadEachPixels } from '../media/image-pixels.ts';
import type { MediaReference } from '../media/media-reference.ts';
import { type EmbedTask, prefixOf } from './task-prefix.ts';

/** A text, an image for models that look at images, or why an input can be neither. */
export type EmbedItem = EmbedText | MediaReference | ServiceError;

/** Why one input has no vector. */
interface EmbedItemFault {
  readonly index: number;
  readonly error: ServiceError;
}

export interface EmbedRequest {
  readonly model: string;
  readonly items: readonly EmbedItem[];
  readonly task?: EmbedTask | undefined;
  readonly instruction?: string | undefined;
  /**
   * Length to which each vector is cut, before it is scaled to length one
   * again; models made for that keep most meaning there.
   */
  readonly dimensions?: number | undefined;
  readonly truncate?: 'start' | 'end' | undefined;
  /** The reason to refuse sparse vectors, where the answer has no form for them. */
  readonly denseOnly?: string | undefined;
  /** Answer the inputs that can be embedded although others cannot. */
  readonly keepGoing?: boolean | undefined;
  /** The items are chunks of one text, and each vector is made in view of the others (late chunking). */
  readonly together?: boolean | undefined;
}

export interface SparseVector {
  readonly indices: Uint32Array;
  readonly values: Float32Array;
}

export interface Embeddings {
  /** The model that was used. */
  readonly model: string;
  readonly dimension: number;
  /** In the order of the inputs, of finite numbers; undefined where one failed. */
  readonly vectors: readonly (Float32Array | SparseVector | undefined)[];
  readonly tokens: number;
  readonly faults: readonly EmbedItemFault[];
}

/** Embeds texts and images. Throws `ServiceError`, also for the first input that fails, unless the request keeps going. */
export async function embedItems(
  inference: Inference,
  request: EmbedRequest,
  call: InferenceCall,
): Promise<Embeddings> {
  const { items } = request;
  const model = inference.models.require('embedders', request.model);
  const { manifest } = model;
  const isSparse = manifest.capabilities.includes('sparse');
  if (isSparse && request.denseOnly !== undefined) throw new ServiceError('invalid_request', request.denseOnly);
  checkDimensions(request.dimensions, isSparse ? 'sparse' : manifest.dimension);
  const prefix = prefixOf(manifest.prefixes ?? {}, request.task, request.instruction);
  const together = request.together === true;
  if (together) checkTogether(model);
  const keepGoing = request.keepGoing === true;
  const faults = new Map<number, ServiceError>();
  const fail = (index: number, error: ServiceError) => {
    if (!keepGoing) throw error;
    faults.set(index, error);
  };
  for (const [index, item] of items.entries()) if (item instanceof ServiceError) fail(index, item);
  const places = placesOf(items, isText);
  // Texts that are read together have their prefix once.
  const prefixAt = (at: number) => (together && at > 0 ? '' : prefix);
  const texts = places.map((index, at) => prefixed(items[index] as EmbedText, prefixAt(at)));
  const empty = emptyTexts(places.map((index) => items[index] as EmbedText));
  const failAt = (place: number, code: ErrorCode, message: string) =>
    fail(place, new ServiceError(code, items.length === 1 || keepGoing ? message : `input ${place}: ${message}`));
  const failText = ({ index, code, message }: EmbedFault) => failAt(places[index] ?? 0, code, message);
  if (!keepGoing) empty.forEach(failText);
  const images = placesOf(items, isImage);
  const references = images.map((index) => items[index] as MediaReference);
  const failImage = (at: number, error: ServiceError) => fail(images[at] ?? 0, error);
  const pixels = await loadEachPixels(inference, model, references, failImage, call.signal);
  const spec = specOfModel(model, inference.settings);
  const read = await readTexts(
    inference,
    spec,
    { texts, empty, truncate: request.truncate, keepGoing, together },
    call,
  );
  read.faults.forEach(failText);
  const shown = images.filter((_, at) => pixels[at] !== undefined);
  const seen = await seeImages(inference, spec, pixels, call);
  const dimension = seen?.dimension ?? read.dimension;
  if (seen !== undefined || texts.length > empty.length)
    checkDimensions(request.dimensions, read.sparse ? 'sparse' : dimension);
  const vectors = new Array<Float32Array | SparseVector | undefined>(items.length).fill(undefined);
  const put = (index: number, vector: Float32Array | SparseVector | undefined) => {
    if (vector === undefined) return;
    const isDense = vector instanceof Float32Array;
    if (areFinite(isDense ? vector : vector.values)) {
      vectors[index] = isDense ? shortened(vector, request.dimensions) : vector;
    } else failAt(index, 'inference_failed', 'the model gave a vector with numbers that are not finite');
  };
  for (const [at, vector] of read.vectors.entries()) put(places[at] ?? 0, vector);
  for (const [at, index] of shown.entries()) put(index, seen?.dense.subarray(at * dimension, (at + 1) * dimension));
  return {
    model: model.name,
    dimension: request.dimensions ?? dimension,
    vectors,
    tokens: read.tokens,
    faults: [...faults].sort(([a], [b]) => a - b).map(([index, error]) => ({ index, error })),
  };
}

async function seeImages(
  { pool }: Inference,
  spec: ModelSpec,
  pixels: readonly (Pixels | undefined)[],
  call: InferenceCall,
): Promise<EmbedImagesResult | undefined> {
  const images = pixels.filter((each) => each !== undefined);
  return images.length === 0 ? undefined : await pool.run(spec, 'embedImages', { images }, call);
}

interface TextsToRead {
  readonly texts: readonly EmbedText[];
  readonly empty: readonly EmbedFault[];
  readonly truncate: 'start' | 'end' | undefined;
  readonly keepGoing: boolean;
  readonly together: boolean;
}

/** The vectors of texts, undefined where one failed; places are those among the texts. */
async function readTexts(
  { pool }: Inference,
  spec: ModelSpec,
  { texts, empty, truncate, keepGoing, together }: TextsToRead,
  call: InferenceCall,
): Promise<{
  vectors: (Float32Array | SparseVector | undefined)[];
  faults: EmbedFault[];
  dimension: number;
  tokens: number;
  sparse: boolean;
}> {
  const left = new Set(empty.map(({ index }) => index));
  const places = [...texts.keys()].filter((index) => !left.has(index));
  const vectors = new Array<Float32Array | SparseVector | undefined>(texts.length).fill(undefined);
  if (places.length === 0) return { vectors, faults: [...empty], dimension: 0, tokens: 0, sparse: false };
  const wanted = places.map((index) => texts[index] ?? '');
  const input = { texts: wanted, truncate, allOrNothing: !keepGoing, ...(together ? { together } : {}) };
  const { dense, sparse, dimension, tokens, faults } = await pool.run(spec, 'embed', input, call);
  const late = faults.map((fault) => ({ ...fault, index: places[fault.index] ?? 0 }));
  for (const { index } of late) left.add(index);
  for (const [at, index] of places.entries()) {
    if (left.has(index)) continue;
    vectors[index] = sparse === undefined ? dense?.subarray(at * dimension, (at + 1) * dimension) : sparse[at];
  }
  return {
    vectors,
    faults: [...empty, ...late].sort((a, b) => a.index - b.index),
    dimension,
    tokens: tokens.reduce((sum, each) => sum + each, 0),
    sparse: sparse !== undefined,
  };
}

/** Vectors of single tokens have to be there, and the vector of a text to be their mean. */
function checkTogether({ name, backend, manifest }: InstalledModel): void {
  const isMean = (manifest.pooling ?? 'mean') === 'mean' && !manifest.capabilities.includes('sparse');
  if (isMean && backend !== 'native') return;
  const message = `the model "${name}" cannot read chunks together: its vectors are not means of the vectors of tokens`;
  throw new ServiceError('invalid_request', message);
}

function isImage(item: EmbedItem): boolean {
  return typeof item === 'object' && 'where' in item;
}

function isText(item: EmbedItem): boolean {
  return !isImage(item) && !(item instanceof ServiceError);
}

function placesOf(items: readonly EmbedItem[], isWanted: (item: EmbedItem) => boolean): number[] {
  return [...items.entries()].flatMap(([index, item]) => (isWanted(item) ? [index] : []));
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

function prefixed(text: EmbedText, prefix: string): EmbedText {
  if (prefix === '') return text;
  if (typeof text === 'string') return prefix + text;
  throw new ServiceError(
    'invalid_request',
    'an input of tokens takes no prefix; leave out "instruction", "task_type" and "input_type", or send texts',
  );
}

/** The sum of 32-bit numbers is finite in 64 bits where each of them is. */
function areFinite(values: Float32Array): boolean {
  let sum = 0;
  for (const value of values) sum += value;
  return Number.isFinite(sum);
}

function shortened(vector: Float32Array, dimensions: number | undefined): Float32Array {
  if (dimensions === undefined || dimensions === vector.length) return vector;
  const kept = vector.slice(0, dimensions);
  const length = Math.sqrt(kept.reduce((sum, value) => sum + value * value, 0));
  return length === 0 ? kept : kept.map((value) => value / length);
}
