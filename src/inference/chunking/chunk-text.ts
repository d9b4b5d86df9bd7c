import { yieldToEventLoop } from '../../lib/concurrency/yield-to-event-loop.ts';
import { specOfModel } from '../../model-host/model-spec.ts';
import type { InstalledModel } from '../../models/installed-model.ts';
import { fixedChunker } from '../../models/model-registry.ts';
import type { ErrorCode } from '../../protocol/error-codes.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { InferenceCall } from '../admission.ts';
import type { Inference } from '../inference.ts';
import { type CutText, chunkKey } from './chunk-cache.ts';
import { type FixedOptions, fixedChunks, type TextChunk } from './fixed-chunks.ts';

export interface ChunkRequest extends FixedOptions {
  /** `fixed`, or the name of an installed chunker. */
  readonly model: string;
  readonly text: string;
  /** Chunks that are answered; what comes behind them is left out. */
  readonly chunksMax: number | undefined;
  /** How sure a model has to be that a part ends, 0 to 1. */
  readonly threshold: number;
}

export interface Chunked extends CutText {
  readonly cacheHit: boolean;
}

/** Faults of a model behind which the text is cut without one. */
const fallBackCodes: readonly ErrorCode[] = [
  'model_load_failed',
  'model_not_supported',
  'inference_failed',
  'inference_interrupted',
  'memory_budget_exceeded',
  'internal',
];
/** Tokens that are cut before the loop yields to others. */
const tokensBetweenTurns = 50_000;

/** Cuts a text. Where a model fails, the text is cut as `fixed` does it, and the answer says so. Throws `ServiceError`. */
export async function chunkText(inference: Inference, request: ChunkRequest, call: InferenceCall): Promise<Chunked> {
  const { text, ...configuration } = request;
  const model = request.model === fixedChunker ? undefined : usableChunker(inference, request.model);
  // With its files: other ones may be put under the name of a model.
  const key = chunkKey(JSON.stringify([configuration, model]), text);
  const known = inference.chunkCache.get(key);
  if (known !== undefined) return { ...known, cacheHit: true };
  const cut = model === undefined ? await cutFixed(request) : await cutOrFixed(model, inference, request, call);
  if (cut.model === fixedChunker && request.model !== fixedChunker) return { ...cut, cacheHit: false };
  inference.chunkCache.set(key, cut);
  return { ...cut, cacheHit: false };
}

/** Cuts a text by an installed model, and by nothing else: where it fails, that is thrown. Throws `ServiceError`. */
export async function chunkByModel(inference: Inference, request: ChunkRequest, call: InferenceCall): Promise<CutText> {
  return await cutBy(inference.models.require('chunkers', request.model), inference, request, call);
}

async function cutBy(
  model: InstalledModel,
  { pool, settings }: Inference,
  request: ChunkRequest,
  call: InferenceCall,
): Promise<CutText> {
  const { text, threshold } = request;
  const found = await pool.run(specOfModel(model, settings), 'findBoundaries', { text, threshold }, call);
  const { chunks } = await collect(partsOf(request, found.places), request.chunksMax);
  return { model: model.name, chunks, tokens: found.tokens };
}

async function cutOrFixed(
  model: InstalledModel,
  inference: Inference,
  request: ChunkRequest,
  call: InferenceCall,
): Promise<CutText> {
  try {
    return await cutBy(model, inference, request, call);
  } catch (error) {
    const falls = error instanceof ServiceError && fallBackCodes.includes(error.code);
    if (!falls || call.signal.aborted) throw error;
    return await cutFixed(request);
  }
}

/** Undefined for one that is there and cannot be served: it fails as one does that cannot be loaded. */
function usableChunker({ models, registry }: Inference, name: string): InstalledModel | undefined {
  try {
    return models.require('chunkers', name);
  } catch (error) {
    if (registry.refused.some((each) => each.kind === 'chunkers' && each.name === name)) return undefined;
    throw error;
  }
}

async function cutFixed(request: ChunkRequest): Promise<CutText> {
  return { model: fixedChunker, ...(await collect(fixedChunks(request.text, request), request.chunksMax)) };
}

/** The parts that a model found; one that is too long is cut further. */
function* partsOf(request: ChunkRequest, places: Uint32Array): Generator<TextChunk> {
  let from = 0;
  for (const place of [...places, request.text.length]) {
    for (const chunk of fixedChunks(request.text.slice(from, place), { ...request, overlapTokens: 0 })) {
      yield { ...chunk, start: from + chunk.start, end: from + chunk.end };
    }
    from = place;
  }
}

async function collect(
  found: Iterable<TextChunk>,
  most = Number.POSITIVE_INFINITY,
): Promise<{ chunks: TextChunk[]; tokens: number }> {
  const chunks: TextChunk[] = [];
  let tokens = 0;
  let untilTurn = tokensBetweenTurns;
  for (const chunk of found) {
    chunks.push(chunk);
    tokens += chunk.tokens;
    if (chunks.length >= most) break;
    untilTurn -= chunk.tokens;
    if (untilTurn > 0) continue;
    untilTurn = tokensBetweenTurns;
    await yieldToEventLoop();
  }
  return { chunks, tokens };
}
