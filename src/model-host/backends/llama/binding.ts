import { getLlama, LlamaLogLevel } from 'node-llama-cpp';
import { must } from '../../../lib/assert.ts';
import type { GgufHeader } from '../../../models/headers/gguf-header.ts';
import type { Device, GpuKind } from '../../available-backends.ts';

/**
 * The members that we use of the native classes below node-llama-cpp's own: batches, sequences and samplers as
 * llama.cpp has them. They are not part of that package's public API, so its version is pinned exactly.
 */
export interface LlamaBinding {
  readonly AddonModel: new (
    path: string,
    options: { readonly useMmap: boolean; readonly gpuLayers: number; readonly addonExports: LlamaBinding },
  ) => NativeModel;
  readonly AddonContext: new (model: NativeModel, options: NativeContextOptions) => NativeContext;
  readonly AddonSampler: new (model: NativeModel) => NativeSampler;
  /** Models whose state cannot be cut, only dropped. */
  getIsArchRecurrent(architecture: string): boolean | undefined;
  getIsArchHybrid(architecture: string): boolean | undefined;
  /** Instructions of the processor that the library uses: `AVX2 = 1 | AMX_INT8 = 1 | ...`. */
  systemInfo(): string;
}

export interface NativeModel {
  init(): Promise<boolean>;
  dispose(): Promise<void>;
  tokenize(text: string, readSpecial: boolean): Uint32Array;
  detokenize(tokens: Uint32Array, showSpecial: boolean): string;
  getTrainContextSize(): number;
  getEmbeddingVectorSize(): number;
  tokenBos(): number;
  tokenEos(): number;
  sepToken(): number;
  /** Of models that can fill a gap; -1 for others. */
  prefixToken(): number;
  middleToken(): number;
  suffixToken(): number;
  getTokenString(token: number): string;
  getTokenAttributes(token: number): number;
  isEogToken(token: number): boolean;
  getVocabularyType(): number;
  shouldPrependBosToken(): boolean;
  shouldAppendEosToken(): boolean;
}

interface NativeContextOptions {
  /** Of all sequences together, in tokens. */
  readonly contextSize: number;
  readonly batchSize: number;
  readonly sequences: number;
  readonly flashAttention: boolean | 'auto';
  readonly threads: number;
  readonly embeddings?: boolean;
  readonly ranking?: boolean;
  /** Numbers of ggml's types. */
  readonly kvCacheKeyType?: number;
  readonly kvCacheValueType?: number;
  readonly swaFullCache?: boolean;
}

export interface NativeContext {
  init(): Promise<boolean>;
  dispose(): Promise<void>;
  initBatch(tokens: number): void;
  /** Gives the places in the batch whose logits were asked for. */
  addToBatch(sequence: number, position: number, tokens: Uint32Array, withLogits: Uint32Array): Uint32Array;
  decodeBatch(): Promise<void>;
  /** -1 where no token can follow. */
  sampleToken(place: number, sampler: NativeSampler): Promise<number>;
  /** Also the logits of some tokens, in pairs, and the sum of all weights relative to the largest logit. */
  sampleToken(
    place: number,
    sampler: NativeSampler,
    probabilities: false,
    confidence: false,
    logits: readonly [
      tokens: readonly number[],
      includeMax: false,
      includeMin: false,
      includeSelected: boolean,
      includeTop: number,
    ],
    totalWeight: true,
  ): Promise<readonly [token: number, undefined, undefined, logits: readonly number[], totalWeight: number]>;
  /** False where the memory of the model cannot forget just a part. */
  removeTokenCellsFromSequence(sequence: number, start: number, end: number): boolean;
  disposeSequence(sequence: number): void;
  getSequenceKvCacheMinPosition(sequence: number): number;
  copySequenceStateFromOtherSequence(target: number, source: number): Promise<number>;
  /** Of the first sequence. */
  getEmbedding(tokens: number): Float64Array;
  setThreads(threads: number): void;
  /** Throws with the difference between the vocabularies. */
  ensureDraftContextIsCompatibleForSpeculative(draft: NativeContext): void;
}

export interface NativeSampler {
  dispose(): void;
  applyConfig(config: NativeSamplerConfig): void;
}

/** A missing member is off; members may not be undefined. */
export interface NativeSamplerConfig {
  temperature?: number;
  topK?: number;
  topP?: number;
  minP?: number;
  seed?: number;
  repeatPenalty?: number;
  repeatPenaltyMaxTokens?: number;
  repeatPenaltyTokens?: Uint32Array;
  tokenBiasKeys?: Uint32Array;
  tokenBiasValues?: Float32Array;
}

export interface OpenBinding {
  readonly binding: LlamaBinding;
  /** Where models go, as a whole. */
  readonly device: Device;
}

const allLayers = 9_999;
/** llama.cpp rearranges weights of these types for the processor. */
const rearrangedTypes = ['Q4_0', 'Q4_K', 'Q2_K', 'IQ4_NL'] as const;
/** And of these too for one with AMX. */
const rearrangedForAmx = ['Q4_1', 'Q8_0', 'Q5_K', 'Q6_K', 'IQ4_XS'] as const;

/**
 * The library for the first of these GPUs that works, else for the CPU: a package for a GPU may be there without one, or
 * without its driver. `onWord` gets what llama.cpp complains about.
 */
export async function openBinding(gpus: readonly GpuKind[], onWord: (text: string) => void): Promise<OpenBinding> {
  const [gpu, ...others] = gpus;
  const options = { build: 'never', skipDownload: true, logLevel: LlamaLogLevel.error } as const;
  const opening = getLlama({ ...options, gpu: gpu ?? false, logger: (_level, text) => onWord(text) });
  const llama = gpu === undefined ? await opening : await opening.catch(() => undefined);
  if (llama === undefined) return await openBinding(others, onWord);
  const { _bindings } = llama as unknown as { readonly _bindings?: LlamaBinding };
  const binding = must(_bindings, 'node-llama-cpp has no binding where this version should have one');
  return { binding, device: llama.gpu === false ? 'cpu' : llama.gpu };
}

/** Loads a model. Throws where llama.cpp refuses it, or the device has no room for it. */
export async function openModel(
  { binding, device }: OpenBinding,
  path: string,
  header: Pick<GgufHeader, 'weightBytes' | 'typeBytes'>,
): Promise<NativeModel> {
  const hasAmx = binding.systemInfo().includes('AMX_INT8 = 1');
  const types = hasAmx ? [...rearrangedTypes, ...rearrangedForAmx] : rearrangedTypes;
  const rearranged = types.reduce((sum, type) => sum + (header.typeBytes.get(type) ?? 0), 0);
  // A mapped file would stay in memory beside the rearranged weights.
  const useMmap = device !== 'cpu' || rearranged < header.weightBytes / 2;
  const gpuLayers = device === 'cpu' ? 0 : allLayers;
  const model = new binding.AddonModel(path, { useMmap, gpuLayers, addonExports: binding });
  if (await model.init().catch(() => false)) return model;
  throw new Error('llama.cpp refuses its weights, which may be damaged or of a newer kind; the log has the details');
}
