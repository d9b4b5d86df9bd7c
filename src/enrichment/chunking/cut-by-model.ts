import { limits } from '../../config/limits.ts';
import type { ModelChunker } from '../../index-kinds/configuration/chunker-config.ts';
import type { InferenceCall } from '../../inference/admission.ts';
import { faultOf } from '../../inference/providers/client/fault.ts';
import type { Provider } from '../../inference/providers/provider.ts';
import { ServiceError } from '../../protocol/service-error.ts';
import type { ProviderConfig } from '../../provider-config/provider-config.ts';
import type { CutByModel, TextPiece } from './cut-text.ts';

/** The models that cut texts at this server. */
export function modelCutter(providerOf: (config: ProviderConfig) => Provider): CutByModel {
  return async (text, { model, threshold, targetTokens, separator, chunksMax }, call) => {
    const most = limits.chunkTextCharsMax;
    if (text.length > most) {
      throw new ServiceError('limit_exceeded', `the text has ${text.length} characters; a model cuts ${most} at most`);
    }
    const cut = providerOf(thisServer(model)).cut?.bind(providerOf(thisServer(model)));
    if (cut === undefined) {
      const message = `texts are cut by models of this server, and "${model}" would be one of another; use "fixed"`;
      throw new ServiceError('model_not_supported', message);
    }
    const request = { model, text, threshold, targetTokens, overlapTokens: 0, separator, chunksMax };
    try {
      return (await cut(request, call)).chunks;
    } catch (error) {
      if (!(error instanceof ServiceError) || error.code !== 'inference_interrupted') throw error;
    }
    return await secondTry(() => cut(request, call));
  };
}

/** A text that ends the process of the model twice is at fault: it would keep all others waiting for ever. */
async function secondTry(cut: () => Promise<{ readonly chunks: readonly TextPiece[] }>): Promise<readonly TextPiece[]> {
  try {
    return (await cut()).chunks;
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'inference_interrupted') throw error;
    throw new ServiceError('inference_failed', 'the process of the chunker ended on this text, twice', {
      cause: error,
    });
  }
}

/**
 * Whether the model is there and cuts, tried with a short text. One that cannot be asked now leaves what it is for waiting.
 * Throws `ServiceError`.
 */
export async function checkChunkModel(cut: CutByModel, chunker: ModelChunker, call: InferenceCall): Promise<void> {
  try {
    await cut('A text. It has two sentences.', chunker, call);
  } catch (error) {
    if (error instanceof ServiceError && faultOf(error) === 'provider' && error.retryable) return;
    throw error;
  }
}

function thisServer(model: string): ProviderConfig {
  return {
    provider: 'service',
    model,
    url: undefined,
    apiKey: undefined,
    region: undefined,
    signing: undefined,
    dimensions: undefined,
    requestsPerMinute: undefined,
    tokensPerMinute: undefined,
    burst: undefined,
    batchItems: undefined,
  };
}
