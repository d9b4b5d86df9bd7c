import { ServiceError } from '../../../protocol/service-error.ts';
import type { Device } from '../../available-backends.ts';
import type { CacheType } from '../../operations/generate.ts';
import type { LlamaBinding, NativeContext, NativeModel } from './binding.ts';

/** Tokens of prompts that are read in one go: between two goes, aborted requests are dropped. A GPU is as fast with more. */
export function sliceTokensOn(device: Device): number {
  return device === 'cpu' ? 128 : 512;
}

/** Tokens that may be drafted at a time. */
export const draftTokensMax = 16;

/** Numbers of ggml's types. */
const ggmlTypes: Readonly<Record<CacheType, number>> = { f32: 0, f16: 1, int4: 2, int8: 8 };
/** Sequences start at multiples of this. */
const cellStep = 256;

export interface ContextDeps {
  readonly name: string;
  readonly binding: LlamaBinding;
  readonly model: NativeModel;
  /** Where the model is. */
  readonly device: Device;
  /** Tokens of each sequence. */
  readonly contextTokens: number;
  readonly sequences: number;
}

/** The device has no memory left for a context. */
export class NoRoomError extends Error {}

/**
 * Opens a context for generations. Throws `NoRoomError`, or `model_not_supported` where the model does not support the type.
 */
export async function openContext(deps: ContextDeps, type: CacheType): Promise<NativeContext> {
  const { binding, model, device, sequences, contextTokens, name } = deps;
  const native = new binding.AddonContext(model, {
    contextSize: Math.ceil(contextTokens / cellStep) * cellStep * sequences,
    batchSize: sliceTokensOn(device) + sequences * (1 + draftTokensMax),
    sequences,
    // A quantised state works with it only.
    flashAttention: type === 'int8' || type === 'int4' ? true : 'auto',
    threads: 1,
    kvCacheKeyType: ggmlTypes[type],
    kvCacheValueType: ggmlTypes[type],
    // Without it a window that slides forgets what a later prompt could have started from.
    swaFullCache: true,
  });
  if (await native.init().catch(() => false)) return native;
  if (type === 'f16') throw new NoRoomError(`no room for the state of ${sequences} x ${contextTokens} tokens`);
  throw new ServiceError('model_not_supported', `the model "${name}" cannot keep its state as ${type}; use f16 or f32`);
}
