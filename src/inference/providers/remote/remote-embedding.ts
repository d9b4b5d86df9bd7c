import { limits } from '../../../config/limits.ts';
import { readBase64 } from '../../../lib/text/base64.ts';
import { ServiceError } from '../../../protocol/service-error.ts';
import type { InferenceCall } from '../../admission.ts';
import type { Embeddings, EmbedItem, EmbedRequest, SparseVector } from '../../embeddings/embed-items.ts';
import { faultOf } from '../client/fault.ts';
import type { Answered, GateCall } from '../client/provider-gate.ts';

/** The bounds of one request to a provider. */
export interface BatchBounds {
  readonly items: number;
  /** Of all texts in UTF-8. One that is larger goes alone. */
  readonly bytes: number;
}

/** One request: a vector for each text, as the protocol has them. */
type EmbedBatch = (texts: readonly string[], call: GateCall) => Promise<Answered<readonly unknown[]>>;

type Vector = Float32Array | SparseVector;

interface Text {
  /** Place among the inputs. */
  readonly index: number;
  readonly text: string;
}

/** Bytes of UTF-8 that make a token, about. */
const bytesPerToken = 4;
/** Any provider that works takes this. */
const plainText = 'a';

/**
 * Embeds texts by requests of bounded size, side by side. A provider that refuses a request of several texts is asked for
 * halves of it until it is known which texts it refuses.
 */
export class RemoteEmbedding {
  readonly #bounds: BatchBounds;
  readonly #embed: EmbedBatch;
  /** An answer came: what is refused from now on lies in the texts. */
  #hasWorked = false;

  constructor(bounds: BatchBounds, embed: EmbedBatch) {
    this.#bounds = bounds;
    this.#embed = embed;
  }

  /** Throws as `Provider.embed` does. */
  async run({ model, items, dimensions, keepGoing = false }: EmbedRequest, call: InferenceCall): Promise<Embeddings> {
    const vectors = new Array<Vector | undefined>(items.length).fill(undefined);
    const faults: { index: number; error: ServiceError }[] = [];
    const texts: Text[] = [];
    for (const [index, item] of items.entries()) {
      const text = textOf(item);
      if (typeof text === 'string') texts.push({ index, text });
      else faults.push({ index, error: text });
    }
    let tokens = 0;
    const stop = new AbortController();
    const signal = AbortSignal.any([call.signal, stop.signal]);
    const one = async (batch: readonly Text[]) => {
      const found = await this.#split(batch, { signal, priority: call.priority }, dimensions);
      for (const { index, vector } of found.vectors) vectors[index] = vector;
      faults.push(...found.faults);
      tokens += found.tokens;
      if (!keepGoing && faults.length > 0) stop.abort();
    };
    try {
      if (!keepGoing) throwFirst(faults, items.length);
      await Promise.all(batchesOf(texts, this.#bounds).map(one));
    } catch (error) {
      stop.abort();
      if (call.signal.aborted || keepGoing || faults.length === 0) throw error;
    }
    if (!keepGoing) throwFirst(faults, items.length);
    const dense = vectors.filter((each) => each instanceof Float32Array);
    const dimension = dense[0]?.length ?? 0;
    // An index tells of each of its texts alone.
    if (!keepGoing && dense.some(({ length }) => length !== dimension)) {
      throw new ServiceError('upstream_failed', 'the provider gave vectors of different lengths for one request');
    }
    return { model, dimension, vectors, tokens, faults: faults.sort((a, b) => a.index - b.index) };
  }

  async #split(
    batch: readonly Text[],
    call: Omit<GateCall, 'tokens'>,
    dimensions: number | undefined,
  ): Promise<BatchResult> {
    try {
      const texts = batch.map(({ text }) => text);
      const { value, tokens } = await this.#embed(texts, { ...call, tokens: tokensOf(texts) });
      this.#hasWorked = true;
      return resultOf(value, tokens, batch, dimensions);
    } catch (error) {
      if (faultOf(error) === 'provider' || !(error instanceof ServiceError)) throw error;
      await this.#proveWorks(error, call);
      const [first] = batch;
      if (batch.length === 1 && first !== undefined) return { vectors: [], faults: [{ ...first, error }], tokens: 0 };
      const middle = Math.ceil(batch.length / 2);
      const left = await this.#split(batch.slice(0, middle), call, dimensions);
      const right = await this.#split(batch.slice(middle), call, dimensions);
      return {
        vectors: [...left.vectors, ...right.vectors],
        faults: [...left.faults, ...right.faults],
        tokens: left.tokens + right.tokens,
      };
    }
  }

  /** A provider that refuses everything (a member that its model does not take, say) is misconfigured; no text is at fault. */
  async #proveWorks(refusal: ServiceError, call: Omit<GateCall, 'tokens'>): Promise<void> {
    if (this.#hasWorked) return;
    try {
      await this.#embed([plainText], { ...call, tokens: 1 });
      this.#hasWorked = true;
    } catch (error) {
      if (faultOf(error) === 'provider') throw error;
      throw new ServiceError('upstream_refused', refusal.message, { cause: refusal });
    }
  }
}

interface BatchResult {
  readonly vectors: readonly { readonly index: number; readonly vector: Vector }[];
  readonly faults: readonly { readonly index: number; readonly error: ServiceError }[];
  readonly tokens: number;
}

function resultOf(
  answered: readonly unknown[],
  tokens: number,
  batch: readonly Text[],
  dimensions: number | undefined,
): BatchResult {
  const vectors: { index: number; vector: Vector }[] = [];
  const faults: { index: number; error: ServiceError }[] = [];
  for (const [at, { index }] of batch.entries()) {
    const vector = vectorOf(answered[at], dimensions);
    if (typeof vector === 'string') faults.push({ index, error: new ServiceError('inference_failed', vector) });
    else vectors.push({ index, vector });
  }
  return { vectors, faults, tokens };
}

/** A vector as an answer has it: numbers, base64 of 32-bit floats, or a sparse one; else what is wrong with it. */
function vectorOf(given: unknown, dimensions: number | undefined): Vector | string {
  if (typeof given === 'object' && given !== null && 'indices' in given) {
    return sparseOf(given) ?? 'the provider gave a sparse vector that does not have one finite value for each index';
  }
  const dense = denseOf(given);
  if (dense === undefined || dense.length === 0) return 'the provider gave no vector for this text';
  if (dimensions !== undefined && dense.length !== dimensions) {
    return `the provider gave a vector of ${dense.length} numbers; ${dimensions} were asked for`;
  }
  return dense.every(Number.isFinite) ? dense : 'the provider gave a vector with a number that is not finite';
}

function denseOf(given: unknown): Float32Array | undefined {
  if (typeof given === 'string') {
    const bytes = readBase64(given);
    return bytes && bytes.length % 4 === 0 ? new Float32Array(bytes.buffer) : undefined;
  }
  if (!Array.isArray(given)) return undefined;
  return Float32Array.from(given, (value: unknown) => (typeof value === 'number' ? value : Number.NaN));
}

/** Indices go up in what is kept, each is there once, and values of zero are not. */
function sparseOf({ indices, values }: { indices?: unknown; values?: unknown }): SparseVector | undefined {
  if (!Array.isArray(indices) || !Array.isArray(values) || indices.length !== values.length) return undefined;
  const isIndex = (value: unknown) => Number.isInteger(value) && (value as number) >= 0 && (value as number) < 2 ** 32;
  const isValue = (value: unknown) => typeof value === 'number' && Number.isFinite(Math.fround(value));
  if (!indices.every(isIndex) || !values.every(isValue) || new Set(indices).size < indices.length) return undefined;
  const entries = (indices as number[])
    .map((index, at): [index: number, value: number] => [index, Math.fround((values as number[])[at] ?? 0)])
    .filter(([, value]) => value !== 0)
    .sort(([one], [other]) => one - other);
  return {
    indices: Uint32Array.from(entries, ([index]) => index),
    values: Float32Array.from(entries, ([, value]) => value),
  };
}

function textOf(item: EmbedItem): string | ServiceError {
  if (item instanceof ServiceError) return item;
  if (typeof item !== 'string') {
    return new ServiceError('model_not_supported', 'this provider embeds texts, neither tokens nor images');
  }
  if (item === '') return new ServiceError('invalid_request', 'the input is empty');
  const most = limits.inferenceTextCharsMax;
  if (item.length <= most) return item;
  return new ServiceError('limit_exceeded', `the input has ${item.length} characters; ${most} are taken`);
}

function throwFirst(faults: BatchResult['faults'], items: number): void {
  const [first] = faults;
  if (first === undefined) return;
  const { index, error } = first;
  throw items === 1 ? error : new ServiceError(error.code, `input ${index}: ${error.message}`, { cause: error });
}

function tokensOf(texts: readonly string[]): number {
  return Math.ceil(texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0) / bytesPerToken);
}

/** Texts in their order, cut where the next one would go beyond a bound. */
function batchesOf(texts: readonly Text[], bounds: BatchBounds): Text[][] {
  const batches: Text[][] = [];
  let bytes = 0;
  for (const each of texts) {
    const size = Buffer.byteLength(each.text);
    const current = batches.at(-1);
    if (current === undefined || current.length >= bounds.items || bytes + size > bounds.bytes) {
      batches.push([each]);
      bytes = size;
    } else {
      current.push(each);
      bytes += size;
    }
  }
  return batches;
}
