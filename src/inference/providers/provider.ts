import type { InferenceCall } from '../admission.ts';
import type { Embeddings, EmbedRequest } from '../embeddings/embed-items.ts';
import type { GenerationOptions, GenerationOutput } from '../generation/generate.ts';
import type { GenerationRequest } from '../generation/generation-request.ts';
import type { Reranked, RerankRequest } from '../reranking/rerank-texts.ts';

/**
 * A place where models are: this server itself, or a service elsewhere. Every method throws `ServiceError`, whose
 * `retryable` tells a fault of the place (wait, then try again) from one of the request.
 */
export interface Provider {
  embed(request: EmbedRequest, call: InferenceCall): Promise<Embeddings>;
  rerank(request: RerankRequest, call: InferenceCall): Promise<Reranked>;
  /** As many answers as the request asks for. With `onPiece` each also arrives in pieces, before the promise settles. */
  generate(
    request: GenerationRequest,
    call: InferenceCall & Pick<GenerationOptions, 'onPiece'>,
  ): Promise<readonly GenerationOutput[]>;
}
